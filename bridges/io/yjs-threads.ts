/**
 * Checks and merges Yjs updates: short updates on the calling thread, long ones in worker threads, so that no room
 * blocks the sockets of others. A task that takes too long ends its thread.
 */

import { Piscina } from "piscina";

import type { Log } from "../../shared/process/log.ts";
import type { YjsWork } from "../ports.ts";
import { factsOf, type UpdateFacts } from "../update-facts.ts";
import { isLinear, mergeContent, type MergeAnswer, openContent, type OpenedContent } from "../yjs-work.ts";
import type * as tasks from "./yjs-worker.ts";

/** The compiled file: Node 20 cannot run TypeScript in a thread, so even a run from the sources uses the build's file. */
const WORKER = new URL(import.meta.url.endsWith(".ts") ? "../../dist/bridges/io/yjs-worker.js" : "./yjs-worker.js", import.meta.url);
const THREADS_MAX = 2;
const THREAD_IDLE_MS_MAX = 60_000;
/** A merge of 20 MB takes about one second. */
const TASK_MS_MAX = 10_000;
/** Maximum bytes of an update that is checked on the calling thread: its check takes less time than the transfer to a thread. */
const SHORT_UPDATE_BYTES = 1_000;
/**
 * Maximum bytes that are merged on the calling thread: the merge takes less than 2 ms, about as long as the transfer to
 * a thread and back. Edits that have to be integrated are not: 14 KB with many conflicts take Yjs 0.2 s and more.
 */
const SHORT_BYTES = 16_384;

export function yjsThreads(log: Pick<Log, "warn">): YjsWork & { stop(): Promise<void> } {
  const pool = new Piscina({
    filename: WORKER.href,
    minThreads: 0,
    maxThreads: THREADS_MAX,
    idleTimeout: THREAD_IDLE_MS_MAX,
    execArgv: [],
  });
  pool.on("error", (cause: unknown) => log.warn({ cause }, "a thread died while idle, or did not start; the next task starts another"));

  const run = (name: keyof typeof tasks, question: unknown, receive: (answer: unknown) => void): void => {
    pool.run(question, { name, signal: AbortSignal.timeout(TASK_MS_MAX) }).then(receive, (cause: unknown) => {
      log.warn({ task: name, cause }, "a task on a room's content failed, or took too long");
      receive(undefined);
    });
  };
  const runHere = <T>(task: () => T): T | undefined => {
    try {
      return task();
    } catch (cause) {
      log.warn({ cause }, "content of a room cannot be read"); // Yjs throws errors of any kind on bytes that are no update.
      return undefined;
    }
  };
  return {
    check: (update, receive) => {
      if (update.byteLength <= SHORT_UPDATE_BYTES) return receive(factsOf(update));
      run("check", update, (facts) => receive(facts as UpdateFacts | undefined));
    },
    merge: (question, receive) => {
      const bytes = [...question.parts, question.stateVector].reduce((sum, { byteLength }) => sum + byteLength, 0);
      if (bytes <= SHORT_BYTES && runHere(() => isLinear(question)) === true) return receive(runHere(() => mergeContent(question)));
      run("merge", question, (answer) => receive(answer as MergeAnswer | undefined));
    },
    open: (snapshot, receive) => {
      if (snapshot.byteLength <= SHORT_BYTES) return receive(runHere(() => openContent(snapshot)));
      run("open", snapshot, (opened) => receive(opened as OpenedContent | undefined));
    },
    stop: () => pool.destroy(),
  };
}
