/**
 * Work on a room's bytes whose duration grows with the room. Threads run it. The duration is linear in the
 * bytes, except for edits that are integrated into a document, within limits. Rules YWK1 to YWK3.
 */

import * as Y from "yjs";

import { hasContested, integratedEdits, mergeOf } from "../shared/yjs/merged-edits.ts";
import { type ContentRun, runsOf } from "../shared/yjs/update-needs.ts";

/**
 * `parts`: earlier content, then edits of any writer that `checkUpdate` accepts. `condense`: merges into few structs and
 * drops deleted content, if the limits on Yjs' work allow it.
 */
export type MergeQuestion = { readonly parts: readonly Uint8Array[]; readonly stateVector: Uint8Array; readonly condense: boolean };
/** `content`: all parts merged. `answer`: the content beyond the state vector. `isLinear`: nothing was integrated. */
export type MergeAnswer = { readonly content: Uint8Array; readonly answer: Uint8Array; readonly isLinear: boolean };

export function mergeContent({ parts, stateVector, condense }: MergeQuestion): MergeAnswer {
  const [base, ...edits] = parts as readonly [Uint8Array, ...Uint8Array[]];
  const condensed = condense ? integratedEdits(parts) : undefined;
  const { content, isContested } = condensed === undefined ? mergeOf(base, edits) : { content: condensed, isContested: false };
  const knowsNothing = Y.decodeStateVector(stateVector).size === 0;
  return { content, answer: knowsNothing ? content : Y.diffUpdate(content, stateVector), isLinear: !condense && !isContested };
}

/** Whether the merge takes time linear in the bytes, because no edit has to be integrated. */
export function isLinear({ parts, condense }: MergeQuestion): boolean {
  const [base, ...edits] = parts as readonly [Uint8Array, ...Uint8Array[]];
  return !condense && !hasContested(base, edits);
}

/** `snapshot`: an encoded `Y.Snapshot`. `pending`: runs of content behind a hole, which it does not count. */
export type OpenedContent = { readonly snapshot: Uint8Array; readonly pending: readonly ContentRun[] };

export function openContent(content: Uint8Array): OpenedContent {
  const { structs, ds } = Y.decodeUpdate(content);
  const clocks = Y.decodeStateVector(Y.encodeStateVectorFromUpdate(content));
  const pending = runsOf(structs).filter(({ client, start }) => start > (clocks.get(client) ?? 0));
  return { snapshot: Y.encodeSnapshot(Y.createSnapshot(ds, clocks)), pending };
}
