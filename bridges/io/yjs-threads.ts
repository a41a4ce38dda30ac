/**
 * Checks and merges Yjs updates: short ones on the calling thread, long ones in worker threads, so that no room blocks
 * the sockets of others. Tenants and rooms share the threads by time: if 50 slow tasks of a room wait, a task of another
 * room is the next. A task that takes too long ends its thread. Rules YTH1 to YTH7.
 */

import { Piscina } from "piscina";

import type { RoomKey } from "../../shared/ids.ts";
import { FairQueue } from "../../shared/limits/fair-queue.ts";
import type { Log } from "../../shared/process/log.ts";
import type { YjsWork } from "../ports.ts";
import { factsOf, type UpdateFacts } from "../update-facts.ts";
import { isLinear, mergeContent, type MergeAnswer, type MergeQuestion, openContent, type OpenedContent } from "../yjs-work.ts";
import type * as tasks from "./yjs-worker.ts";

/** The compiled file: Node 20 cannot run TypeScript in a thread, so even a run from the sources uses the build's file. */
const WORKER = new URL(import.meta.url.endsWith(".ts") ? "../../dist/bridges/io/yjs-worker.js" : "./yjs-worker.js", import.meta.url);
const THREADS_MAX = 2;
const THREAD_IDLE_MS_MAX = 60_000;
/** Counts from the start of the task: a task that waits for others does not fail for it. A merge of 20 MB takes about one second. */
const TASK_MS_MAX = 10_000;
/**
 * Maximum bytes that are checked or merged on the calling thread: 1,000 bytes take 0.2 ms, less than the transfer to a
 * thread. Longer ones do not: a client may request a merge of 16 KB, which takes 5 ms, thousands of times. Edits that
 * have to be integrated take longer too: 14 KB with many conflicts take Yjs 0.2 s and more.
 */
const SHORT_BYTES = 1_000;
/** Each part of a merge takes 50 µs, however short it is. */
const SHORT_PARTS_MAX = 8;

/** `workOf`: the work of one room. */
type YjsThreads = { workOf(room: RoomKey): YjsWork; stop(): Promise<void> };

export function yjsThreads(log: Pick<Log, "warn">): YjsThreads {
  const pool = new Piscina({
    filename: WORKER.href,
    minThreads: 0,
    maxThreads: THREADS_MAX,
    idleTimeout: THREAD_IDLE_MS_MAX,
    execArgv: [],
  });
  pool.on("error", (cause: unknown) => log.warn({ cause }, "a thread died while idle, or did not start; the next task starts another"));

  /** Each room's work waits for itself, so the number of waiting tasks is limited by the rooms and clients. */
  const waiting = new FairQueue<() => void>(Number.POSITIVE_INFINITY);
  let freeCount = THREADS_MAX;
  const release = (room: RoomKey, ms: number): void => {
    waiting.charge(room, ms);
    const next = waiting.next();
    if (next === undefined) freeCount += 1;
    else next();
  };
  const runIn = async (room: RoomKey, name: keyof typeof tasks, question: unknown): Promise<unknown> => {
    const startedAt = performance.now();
    try {
      return await pool.run(question, { name, signal: AbortSignal.timeout(TASK_MS_MAX) });
    } catch (cause) {
      log.warn({ task: name, cause }, "a task on a room's content failed, or took too long");
      return undefined;
    } finally {
      release(room, performance.now() - startedAt);
    }
  };
  const run = (room: RoomKey, name: keyof typeof tasks, question: unknown, receive: (answer: unknown) => void): void => {
    const start = (): void => void runIn(room, name, question).then(receive);
    if (freeCount === 0) return void waiting.add(room, start);
    freeCount -= 1;
    start();
  };
  const runHere = <T>(task: () => T): T | undefined => {
    try {
      return task();
    } catch (cause) {
      log.warn({ cause }, "content of a room cannot be read"); // Yjs throws errors of any kind on bytes that are no update.
      return undefined;
    }
  };
  const workOf = (room: RoomKey): YjsWork => ({
    check: (update, receive) => {
      if (update.byteLength <= SHORT_BYTES) return receive(factsOf(update));
      run(room, "check", update, (facts) => receive(facts as UpdateFacts | undefined));
    },
    merge: (question, receive) => {
      const isShort = question.parts.length <= SHORT_PARTS_MAX && bytesOf(question) <= SHORT_BYTES;
      if (isShort && runHere(() => isLinear(question)) === true) return receive(runHere(() => mergeContent(question)));
      run(room, "merge", question, (answer) => receive(answer as MergeAnswer | undefined));
    },
    open: (snapshot, receive) => {
      if (snapshot.byteLength <= SHORT_BYTES) return receive(runHere(() => openContent(snapshot)));
      run(room, "open", snapshot, (opened) => receive(opened as OpenedContent | undefined));
    },
  });
  return { workOf, stop: () => pool.destroy() };
}

function bytesOf({ parts, stateVector }: MergeQuestion): number {
  return [...parts, stateVector].reduce((sum, { byteLength }) => sum + byteLength, 0);
}
