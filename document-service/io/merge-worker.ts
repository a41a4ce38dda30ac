/** The other end of merge-thread.ts: merges what it is given, one after the other. */

import { parentPort } from "node:worker_threads";

import { mergeEdits } from "../merge.ts";
import { type MergeAnswer, type MergeQuestion, unpack } from "./merge-thread.ts";

parentPort?.on("message", (question: MergeQuestion) => {
  parentPort?.postMessage(answer(question));
});

function answer({ id, state, edits }: MergeQuestion): MergeAnswer {
  try {
    return { id, merged: mergeEdits(state, unpack(edits)) };
  } catch (error) {
    return { id, failure: error instanceof Error ? error.message : String(error) }; // A state that does not read back, or no memory left.
  }
}
