/**
 * Makes the edit that brings a document back to an earlier state. It deletes text that was typed later and types
 * deleted text again, as a person could do by hand. The history stays unchanged, and text that others type at the same
 * time stays.
 */

import * as Y from "yjs";

/** `unchanged`: the document equals the earlier state. */
export type Reverted = { readonly kind: "edit"; readonly edit: Uint8Array } | { readonly kind: "unchanged" };

const SINCE = "since";

/** `earlier`: an earlier state of `current`. `author`: a Yjs client id that no other edit has. */
export function revertingEdit(current: Uint8Array, earlier: Uint8Array, author: number): Reverted {
  const [now, then] = [new Y.Doc(), new Y.Doc()];
  then.clientID = author;
  try {
    Y.applyUpdate(now, current);
    Y.applyUpdate(then, earlier);
    const undo = new Y.UndoManager(then, { trackedOrigins: new Set([SINCE]) });
    Y.applyUpdate(then, Y.encodeStateAsUpdate(now, Y.encodeStateVector(then)), SINCE);
    return undo.undo() === null ? { kind: "unchanged" } : { kind: "edit", edit: Y.encodeStateAsUpdate(then, Y.encodeStateVector(now)) };
  } finally {
    now.destroy();
    then.destroy();
  }
}
