/**
 * Merges in a thread of its own: a long document takes hundreds of milliseconds, in which the service must
 * go on reading, answering and renewing its leases.
 */

import { Worker } from "node:worker_threads";

import type { Merged } from "../merge.ts";
import type { Merging } from "../ports.ts";

export type MergeQuestion = { readonly id: number; readonly state: Uint8Array; readonly edits: readonly Uint8Array[] };
export type MergeAnswer = { readonly id: number; readonly merged: Merged } | { readonly id: number; readonly failure: string };

/** The compiled file: Node 20 runs no TypeScript in a thread, so from the sources the build's is taken. */
const WORKER = new URL(import.meta.url.endsWith(".ts") ? "../../dist/document-service/io/merge-worker.js" : "./merge-worker.js", import.meta.url);

type Waiting = { readonly resolve: (merged: Merged) => void; readonly reject: (error: Error) => void };

export function mergeThread(): Merging & { stop(): Promise<void> } {
  const waiting = new Map<number, Waiting>();
  let asked = 0;
  let worker: Worker | undefined;

  /** Started when first needed, and again after it died: of a document too long for its memory, say. */
  function start(): Worker {
    const thread = new Worker(WORKER, { execArgv: [] }); // Flags of this process may make no sense for a file.
    thread.on("message", (answer: MergeAnswer) => {
      const asker = waiting.get(answer.id);
      waiting.delete(answer.id);
      if ("merged" in answer) asker?.resolve(answer.merged);
      else asker?.reject(new Error(`a document could not be merged: ${answer.failure}`));
    });
    thread.on("error", (cause) => {
      worker = undefined;
      for (const { reject } of waiting.values()) reject(new Error("the merging thread died", { cause }));
      waiting.clear();
    });
    return thread;
  }

  return {
    merge: (state, edits) =>
      new Promise((resolve, reject) => {
        const id = ++asked;
        waiting.set(id, { resolve, reject });
        worker ??= start();
        worker.postMessage({ id, state, edits } satisfies MergeQuestion);
      }),
    stop: async () => {
      await worker?.terminate();
    },
  };
}
