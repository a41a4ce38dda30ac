/**
 * Merges and reads documents in threads of their own: a long one takes hundreds of milliseconds, in which the service
 * must go on reading the log, answering and renewing its leases. A thread has one question at a time, so that its time
 * is its own; one that takes too long costs the thread, and nobody else's answer. Long documents have a thread that ends
 * with the answer: the heap that it decoded one in is several times as large, and goes back at once with the thread only.
 */

import { Piscina } from "piscina";

import type { Clock } from "../../shared/clock.ts";
import type { Log } from "../../shared/log.ts";
import type { Merging, Reading, Reverting, Unread } from "../ports.ts";
import type { Answer, Question, Task, Threw } from "./document-worker.ts";
import { pack } from "./packed-edits.ts";

export type ThreadOptions = {
  readonly mergeMsMax: number;
  readonly mergeThreads: number;
  readonly readsWaitingMax: number;
  readonly worker?: URL;
};

/** The compiled file: Node 20 runs no TypeScript in a thread, so from the sources the build's is taken. */
const WORKER = new URL(
  import.meta.url.endsWith(".ts") ? "../../dist/document-service/io/document-worker.js" : "./document-worker.js",
  import.meta.url,
);
const THREAD_IDLE_MS_MAX = 60_000;
/**
 * Measured on a document of 20 MB: four merges in a row bring the process from 90 to 540 MB in one thread, to 300 in one
 * each. To start a thread takes 50 ms of CPU, such a merge 600.
 */
const LONG_BYTES = 4 * 1024 ** 2;

/** A question about a state that ended so many threads is not asked of that state again; edited it is another. */
const DEATHS_MAX = 3;
/** Nor is any, once all of them together ended so many: types can be named without end. */
const DEATHS_OF_STATE_MAX = 12;

/** `worker`: the file that the threads run. `waiting`: questions that no thread has taken yet. */
export function documentThreads(
  { mergeMsMax, mergeThreads, readsWaitingMax, worker = WORKER }: ThreadOptions,
  { clock, log }: { readonly clock: Clock; readonly log: Pick<Log, "info" | "warn"> },
): Merging & Reading & Reverting & { readonly waiting: number; stop(): Promise<void> } {
  const poolOf = (idleTimeout: number): Piscina => {
    const pool = new Piscina({
      filename: worker.href,
      name: "run",
      minThreads: 0,
      maxThreads: mergeThreads,
      idleTimeout,
      execArgv: [],
      recordTiming: false,
    }); // Flags of this process may make no sense for the file: `execArgv`.
    pool.on("error", (cause: unknown) =>
      log.warn({ cause }, "a thread for documents died idle, or did not begin; the next question starts another"),
    ); // What waits for one that does not begin overruns.
    return pool;
  };
  const [lasting, passing] = [poolOf(THREAD_IDLE_MS_MAX), poolOf(0)];
  const waiting: (() => void)[] = [];
  /** Of threads, by state and question. */
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

  const ask = async <T extends Task>(task: T, question: () => Question<T>, signal?: AbortSignal): Promise<Answer<T> | Unread> => {
    await takeThread();
    const late = new AbortController();
    const stopWaiting = clock.after(mergeMsMax, () => late.abort());
    try {
      if (signal?.aborted === true) return "overran"; // Nobody hears of it.
      const asked = question();
      const pool = bytesOf(asked) < LONG_BYTES ? lasting : passing;
      const answer = (await pool.run({ task, question: asked }, { signal: late.signal })) as Answer<T> | Threw;
      if (!("threw" in answer)) return answer;
      log.info({ task, cause: answer.threw }, "a document, or what is to go into one, cannot be read; whoever asked is told so");
      return "unreadable";
    } catch (cause) {
      if (late.signal.aborted) return "overran"; // Its thread was ended.
      log.warn({ task, cause }, "a document was not read, for its thread died: is there memory enough? Whoever asked is told to ask again");
      return "busy";
    } finally {
      stopWaiting();
      giveThread();
    }
  };
  const askAsReader: typeof ask = async (task, question, signal) =>
    waiting.length >= readsWaitingMax ? "busy" : ask(task, question, signal);

  /** `name`: of the question. Asked for ever, one that no thread has memory for would cost a thread each time. */
  const askOf = async <T extends Task>(
    task: T,
    question: Question<T> & { readonly state: Uint8Array },
    name: string,
  ): Promise<Answer<T> | Unread> => {
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
