/**
 * Merges in a thread of its own: a long document takes hundreds of milliseconds, in which the service must
 * go on reading, answering and renewing its leases.
 */

import { Worker } from "node:worker_threads";

import type { Clock } from "../../shared/clock.ts";
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

type Question = { readonly state: Uint8Array; readonly edits: readonly Uint8Array[]; readonly resolve: (merged: Merged | "overran") => void; readonly reject: (error: Error) => void };
type Asked = Question & { readonly id: number; readonly stopWaiting: () => void };

/** One question at a time is with the thread, so that its time is its own. One that takes too long costs the thread, and nobody else's answer. `worker`: the file it runs. */
export function mergeThread({ mergeMsMax, worker: file = WORKER }: { mergeMsMax: number; worker?: URL }, clock: Clock): Merging & { stop(): Promise<void> } {
  const waiting: Question[] = [];
  let asked: Asked | undefined;
  let lastId = 0;
  let worker: Worker | undefined;

  /** Started when first needed, and again after it died: of a document too long for its memory, say. */
  function start(): Worker {
    const thread = new Worker(file, { execArgv: [] }); // Flags of this process may make no sense for a file.
    thread.on("message", (answer: MergeAnswer) => {
      if (answer.id !== asked?.id) return;
      const { resolve, reject } = asked;
      askNext();
      if ("merged" in answer) resolve(answer.merged);
      else reject(new Error(`a document could not be merged: ${answer.failure}`));
    });
    thread.on("error", (cause) => {
      if (thread !== worker) return;
      worker = undefined;
      const { reject } = asked ?? {};
      askNext();
      reject?.(new Error("the merging thread died", { cause }));
    });
    return thread;
  }

  function askNext(): void {
    asked?.stopWaiting();
    asked = undefined;
    const next = waiting.shift();
    if (next === undefined) return;
    asked = { ...next, id: ++lastId, stopWaiting: clock.after(mergeMsMax, giveUp) };
    worker ??= start();
    const packed = pack(next.edits);
    worker.postMessage({ id: asked.id, state: next.state, edits: packed } satisfies MergeQuestion, [packed.bytes.buffer, packed.ends.buffer]);
  }

  function giveUp(): void {
    void worker?.terminate();
    worker = undefined;
    const { resolve } = asked ?? {};
    askNext();
    resolve?.("overran");
  }

  return {
    merge: (state, edits) =>
      new Promise((resolve, reject) => {
        waiting.push({ state, edits, resolve, reject });
        if (asked === undefined) askNext();
      }),
    stop: async () => {
      asked?.stopWaiting();
      await worker?.terminate();
    },
  };
}
