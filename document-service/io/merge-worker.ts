/** The other end of merge-thread.ts: merges what it is given, one after the other. */

import { parentPort } from "node:worker_threads";

import { mergeEdits } from "../merge.ts";
import type { MergeAnswer, MergeQuestion } from "./merge-thread.ts";

parentPort?.on("message", ({ id, state, edits }: MergeQuestion) => {
  parentPort?.postMessage(answer(id, state, edits));
});

function answer(id: number, state: Uint8Array, edits: readonly Uint8Array[]): MergeAnswer {
  try {
    return { id, merged: mergeEdits(state, edits) };
  } catch (error) {
    return { id, failure: error instanceof Error ? error.message : String(error) }; // A state that does not read back, or no memory left.
  }
}
