/**
 * Merges and reads documents in threads: a long document takes hundreds of milliseconds, while the service must read
 * the log, answer requests and renew its leases. A thread runs one task at a time, so a task that takes too long costs
 * its own thread and no other task. A long document has a thread that ends with the answer: decoded it needs several
 * times its bytes, and only the end of the thread returns that memory at once.
 */

import { Piscina } from "piscina";

import type { Clock } from "../../shared/time/clock.ts";
import type { Log } from "../../shared/process/log.ts";
import type { Merging, DocumentReads, Reverting, Unread } from "../ports.ts";
import type { ThreadAnswer, ThreadQuestion, Task, Threw } from "./document-worker.ts";
import { pack } from "./packed-edits.ts";

export type ThreadOptions = {
  readonly mergeMsMax: number;
  readonly mergeThreads: number;
  readonly readsWaitingMax: number;
  readonly worker?: URL;
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

/**
 * A task on a state that has ended this many threads is not run again on that state. After an edit the state is a new
 * one.
 */
const DEATHS_MAX = 3;
/**
 * No task is run on a state once all tasks together have ended this many threads: requests may name any number of
 * types.
 */
const DEATHS_OF_STATE_MAX = 12;

/** `worker`: the file that the threads run. `waiting`: tasks that no thread has taken yet. */
export function documentThreads(
  { mergeMsMax, mergeThreads, readsWaitingMax, worker = WORKER }: ThreadOptions,
  { clock, log }: { readonly clock: Clock; readonly log: Pick<Log, "info" | "warn"> },
): Merging & DocumentReads & Reverting & { readonly waiting: number; stop(): Promise<void> } {
  const poolOf = (idleTimeout: number): Piscina => {
    const pool = new Piscina({
      filename: worker.href,
      name: "run",
      minThreads: 0,
      maxThreads: mergeThreads,
      idleTimeout,
      execArgv: [],
      recordTiming: false,
    }); // `execArgv`: flags of this process may not suit the file.
    pool.on("error", (cause: unknown) =>
      log.warn({ cause }, "a document thread died while idle, or did not start; the next task starts another"),
    ); // Tasks that wait for a thread that does not start exceed their time.
    return pool;
  };
  const [lasting, passing] = [poolOf(THREAD_IDLE_MS_MAX), poolOf(0)];
  const waiting: (() => void)[] = [];
  /** Thread deaths, by state and task. */
  const deaths = new WeakMap<Uint8Array, Map<string, number>>();
  let free = mergeThreads;

  const takeThread = async (): Promise<void> => {
    if (free === 0) return new Promise((resolve) => void waiting.push(resolve));
    free -= 1;
  };
  const giveThread = (): void => {
    const next = waiting.shift();
    if (next === undefined) free += 1;
    else next();
  };

  const ask = async <T extends Task>(
    task: T,
    question: () => ThreadQuestion<T>,
    signal?: AbortSignal,
  ): Promise<ThreadAnswer<T> | Unread> => {
    await takeThread();
    const late = new AbortController();
    const stopWaiting = clock.after(mergeMsMax, () => late.abort());
    try {
      if (signal?.aborted === true) return "overran"; // The caller has left.
      const asked = question();
      const pool = bytesOf(asked) < LONG_BYTES ? lasting : passing;
      const answer = (await pool.run({ task, question: asked }, { signal: late.signal })) as ThreadAnswer<T> | Threw;
      if (!("threw" in answer)) return answer;
      log.info({ task, cause: answer.threw }, "a document or its new content cannot be read; the caller receives an error");
      return "unreadable";
    } catch (cause) {
      if (late.signal.aborted) return "overran"; // The task's thread was terminated.
      log.warn({ task, cause }, "a document was not read because its thread died: check the available memory. The caller asks again");
      return "busy";
    } finally {
      stopWaiting();
      giveThread();
    }
  };
  const askAsReader: typeof ask = async (task, question, signal) =>
    waiting.length >= readsWaitingMax ? "busy" : ask(task, question, signal);

  /** `name`: of the task. A task that needs more memory than any thread has would end a thread at every request. */
  const askOf = async <T extends Task>(
    task: T,
    question: ThreadQuestion<T> & { readonly state: Uint8Array },
    name: string,
  ): Promise<ThreadAnswer<T> | Unread> => {
    const ofState = deaths.get(question.state) ?? new Map<string, number>();
    const died = ofState.get(name) ?? 0;
    if (died >= DEATHS_MAX || sumOf(ofState.values()) >= DEATHS_OF_STATE_MAX) return "unreadable";
    if (waiting.length >= readsWaitingMax) return "busy";
    const answer = await ask(task, () => question);
    if (answer === "busy") deaths.set(question.state, ofState.set(name, died + 1));
    return answer;
  };

  return {
    get waiting() {
      return waiting.length;
    },
    merge: (state, edits) => ask("merge", () => ({ state, edits: pack(edits) })),
    mergePast: (state, edits, signal) => askAsReader("merge", () => ({ state, edits: pack(edits) }), signal),
    diff: (state, vector) => askOf("diff", { state, vector }, "diff"),
    json: (state, wanted) => askOf("json", { state, wanted }, `json ${JSON.stringify(wanted)}`),
    text: (state, name) => askOf("text", { state, name }, `text ${name ?? ""}`),
    check: (edit) => askAsReader("check", () => ({ edit })),
    make: (content) => askAsReader("make", () => ({ content })),
    revert: (current, past) => askAsReader("revert", () => ({ current, past })),
    stop: async () => void (await Promise.all([lasting, passing].map((pool) => pool.destroy()))),
  };
}

function bytesOf(question: object): number {
  return sumOf(Object.values(question).map((value) => (value instanceof Uint8Array ? value.byteLength : 0)));
}

function sumOf(numbers: Iterable<number>): number {
  let sum = 0;
  for (const number of numbers) sum += number;
  return sum;
}
