/**
 * The edit that brings a document back to what it was. What was typed since is deleted and what was deleted is typed
 * again, as anybody could do it by hand: nothing of the past is rewritten, and what others type meanwhile stays.
 */

import * as Y from "yjs";

/** `unchanged`: it is as it was. */
export type Reverted = { readonly kind: "edit"; readonly edit: Uint8Array } | { readonly kind: "unchanged" };

const SINCE = "since";

/** `past`: a state that `current` has grown from. `author`: the Yjs client that the edit is by; no other edit's. */
export function revertingEdit(current: Uint8Array, past: Uint8Array, author: number): Reverted {
  const [now, then] = [new Y.Doc(), new Y.Doc()];
  then.clientID = author;
  try {
    Y.applyUpdate(now, current);
    Y.applyUpdate(then, past);
    const undo = new Y.UndoManager(then, { trackedOrigins: new Set([SINCE]) });
    Y.applyUpdate(then, Y.encodeStateAsUpdate(now, Y.encodeStateVector(then)), SINCE);
    return undo.undo() === null ? { kind: "unchanged" } : { kind: "edit", edit: Y.encodeStateAsUpdate(then, Y.encodeStateVector(now)) };
  } finally {
    now.destroy();
    then.destroy();
  }
}
