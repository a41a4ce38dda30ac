/**
 * The threads that merge and read documents: runs a task in one, and ends the thread when the task takes too long. A
 * long document has a separate thread that ends with the answer. The decoded document needs several times its bytes,
 * and only the end of the thread returns that memory at once.
 */

import { Piscina } from "piscina";

import type { Log } from "../../shared/process/log.ts";
import type { Clock } from "../../shared/time/clock.ts";
import type { Unread } from "../ports.ts";
import type { ThreadLane } from "../thread-lanes.ts";
import type { Task, ThreadAnswer, ThreadQuestion, Threw } from "./document-worker.ts";

/** `worker`: the file that the threads run. */
type ThreadPoolsOptions = { readonly mergeMsMax: number; readonly mergingThreads: number; readonly worker?: URL | undefined };
type ThreadPoolsDeps = { readonly clock: Clock; readonly log: Pick<Log, "info" | "warn"> };

/** `question` is called once the task begins. `signal`: the caller has left. */
type ThreadTask<T extends Task> = {
  readonly task: T;
  readonly question: () => ThreadQuestion<T>;
  readonly msMax: number;
  readonly signal: AbortSignal | undefined;
};

/** The compiled file: Node 20 runs no TypeScript in a thread, so even a run from the sources uses the build's file. */
const WORKER = new URL(
  import.meta.url.endsWith(".ts") ? "../../dist/document-service/io/document-worker.js" : "./document-worker.js",
  import.meta.url,
);
const THREAD_IDLE_MS_MAX = 60_000;
/**
 * Measured on a document of 20 MB: four merges in a row raise the process from 90 to 540 MB in one thread, and to 300
 * MB in a thread each. A thread start takes 50 ms of CPU, such a merge 600 ms.
 */
const LONG_BYTES = 4 * 1024 ** 2;

export class ThreadPools {
  readonly #options: ThreadPoolsOptions;
  readonly #deps: ThreadPoolsDeps;
  readonly #lasting: Piscina;
  readonly #passing: Piscina;
  /** In a shared pool a merge would take the thread of writes after another one was aborted, and writes would wait until a new one has started. */
  readonly #writing: Piscina;

  constructor(options: ThreadPoolsOptions, deps: ThreadPoolsDeps) {
    this.#options = options;
    this.#deps = deps;
    this.#lasting = this.#poolOf(options.mergingThreads, THREAD_IDLE_MS_MAX);
    this.#passing = this.#poolOf(options.mergingThreads, 0);
    this.#writing = this.#poolOf(1, THREAD_IDLE_MS_MAX);
  }

  /** Call it while the task has a thread of the lane. */
  async run<T extends Task>(lane: ThreadLane, { task, question, msMax, signal }: ThreadTask<T>): Promise<ThreadAnswer<T> | Unread> {
    const { log } = this.#deps;
    const late = new AbortController();
    const begun = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
    const stopWaiting = this.#abortWhenLate(msMax, begun, late);
    try {
      if (signal?.aborted === true) return "overran"; // The caller has left.
      const asked = question();
      const pool = lane === "writes" ? this.#writing : bytesOf(asked) < LONG_BYTES ? this.#lasting : this.#passing;
      const answer = (await pool.run({ task, question: asked, begun }, { signal: late.signal })) as ThreadAnswer<T> | Threw;
      if (!("threw" in answer)) return answer;
      log.info({ task, cause: answer.threw }, "a document or its new content cannot be read; the caller receives an error");
      return "unreadable";
    } catch (cause) {
      if (late.signal.aborted) return "overran"; // The task's thread was terminated.
      log.warn({ task, cause }, "a document was not read because its thread died: check the available memory. The caller asks again");
      return "busy";
    } finally {
      stopWaiting();
    }
  }

  async stop(): Promise<void> {
    await Promise.all([this.#lasting, this.#passing, this.#writing].map((pool) => pool.destroy()));
  }

  #poolOf(maxThreads: number, idleTimeout: number): Piscina {
    const { worker = WORKER } = this.#options;
    const execArgv: string[] = []; // Flags of this process may not suit the file.
    const pool = new Piscina({ filename: worker.href, name: "run", minThreads: 0, maxThreads, idleTimeout, execArgv, recordTiming: false });
    pool.on("error", (cause: unknown) =>
      this.#deps.log.warn({ cause }, "a document thread died while idle, or did not start; the next task starts another"),
    ); // Tasks that wait for a thread that does not start exceed their time.
    return pool;
  }

  /**
   * Counts the time in which the task runs, in quarters of `msMax`. On a busy machine the start of a thread alone may
   * take longer than a quick try, so the start has `mergeMsMax`.
   */
  #abortWhenLate(msMax: number, begun: Int32Array, late: AbortController): () => void {
    const quarterMs = msMax / 4;
    let [quarters, quartersRun] = [0, 0];
    const wait = (): (() => void) =>
      this.#deps.clock.after(quarterMs, () => {
        quarters += 1;
        quartersRun += Atomics.load(begun, 0);
        if (quartersRun >= 4 || quarters * quarterMs >= this.#options.mergeMsMax) late.abort();
        else stop = wait();
      });
    let stop = wait();
    return () => stop();
  }
}

function bytesOf(question: object): number {
  let bytes = 0;
  for (const value of Object.values(question)) bytes += value instanceof Uint8Array ? value.byteLength : 0;
  return bytes;
}
