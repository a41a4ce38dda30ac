/**
 * Merges in a thread of its own: a long document takes hundreds of milliseconds, in which the service must
 * go on reading, answering and renewing its leases.
 */

import { Worker } from "node:worker_threads";

import type { Merged } from "../merge.ts";
import type { Merging } from "../ports.ts";

export type MergeQuestion = { readonly id: number; readonly state: Uint8Array; readonly edits: PackedEdits };
export type MergeAnswer = { readonly id: number; readonly merged: Merged } | { readonly id: number; readonly failure: string };

/** The compiled file: Node 20 runs no TypeScript in a thread, so from the sources the build's is taken. */
const WORKER = new URL(import.meta.url.endsWith(".ts") ? "../../dist/document-service/io/merge-worker.js" : "./merge-worker.js", import.meta.url);

/** Many edits as two buffers: thousands of small ones cost far more to hand over than to merge. */
export type PackedEdits = { readonly bytes: Uint8Array<ArrayBuffer>; readonly ends: Uint32Array<ArrayBuffer> };

export function pack(edits: readonly Uint8Array[]): PackedEdits {
  const bytes = new Uint8Array(edits.reduce((sum, edit) => sum + edit.byteLength, 0));
  const ends = new Uint32Array(edits.length);
  let end = 0;
  edits.forEach((edit, index) => {
    bytes.set(edit, end);
    end += edit.byteLength;
    ends[index] = end;
  });
  return { bytes, ends };
}

export function unpack({ bytes, ends }: PackedEdits): Uint8Array[] {
  return Array.from(ends, (end, index) => bytes.subarray(index === 0 ? 0 : ends[index - 1], end));
}

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
        const packed = pack(edits);
        worker.postMessage({ id, state, edits: packed } satisfies MergeQuestion, [packed.bytes.buffer, packed.ends.buffer]);
      }),
    stop: async () => {
      await worker?.terminate();
    },
  };
}
