/**
 * Work on a room's bytes whose duration grows with the room. Threads run it. Linear in the bytes, except for
 * condensing, which integrates edits into a document within limits. Rules YWK1 to YWK3.
 */

import * as Y from "yjs";

import { HOPS_MAX, withinBounds } from "../shared/yjs/bounded-integration.ts";
import { mergedEdits } from "../shared/yjs/merged-edits.ts";

/**
 * `parts`: earlier content, then edits of any writer that `checkUpdate` accepts. `condense`: merges into few structs and
 * drops deleted content, if the limits on Yjs' work allow it.
 */
export type MergeQuestion = { readonly parts: readonly Uint8Array[]; readonly stateVector: Uint8Array; readonly condense: boolean };
/** `content`: all parts merged. `answer`: the content beyond the state vector. */
export type MergeAnswer = { readonly content: Uint8Array; readonly answer: Uint8Array };

/** The document service has merged the edits one by one in limited time. */
const CONDENSE_HOPS_MAX = 20 * HOPS_MAX;

export function mergeContent({ parts, stateVector, condense }: MergeQuestion): MergeAnswer {
  const [base, ...edits] = parts as readonly [Uint8Array, ...Uint8Array[]];
  const content = (condense ? condensed(parts) : undefined) ?? mergedEdits(base, edits);
  const knowsNothing = Y.decodeStateVector(stateVector).size === 0;
  return { content, answer: knowsNothing ? content : Y.diffUpdate(content, stateVector) };
}

/** An encoded `Y.Snapshot`: the amount of each client's content in the snapshot, and the deletions. */
export function openContent(content: Uint8Array): Uint8Array {
  const { ds } = Y.decodeUpdate(content);
  return Y.encodeSnapshot(Y.createSnapshot(ds, Y.decodeStateVector(Y.encodeStateVectorFromUpdate(content))));
}

function condensed(parts: readonly Uint8Array[]): Uint8Array | undefined {
  const doc = new Y.Doc();
  try {
    withinBounds(() => {
      for (const part of parts) Y.applyUpdate(doc, part);
    }, CONDENSE_HOPS_MAX);
    return Y.encodeStateAsUpdate(doc);
  } catch {
    return undefined; // A limit was exceeded, or Yjs failed. The bytes are merged instead.
  } finally {
    doc.destroy();
  }
}
