/**
 * Makes the edit that brings a document back to an earlier state. It deletes text that was typed later and types
 * deleted text again, as a person could do by hand. The history stays unchanged, and text that others type at the same
 * time stays.
 */

import * as Y from "yjs";

import { checkUpdate } from "../../shared/yjs/checked-update.ts";

/** `unchanged`: the document equals the earlier state. `unfit`: clients would refuse the edit. */
export type Reverted =
  { readonly kind: "edit"; readonly edit: Uint8Array } | { readonly kind: "unchanged" } | { readonly kind: "unfit"; readonly why: string };

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
    if (undo.undo() === null) return { kind: "unchanged" };
    const edit = Y.encodeStateAsUpdate(then, Y.encodeStateVector(now));
    const check = checkUpdate(edit, now);
    return check.kind === "fit" ? { kind: "edit", edit } : { kind: "unfit", why: check.why };
  } finally {
    now.destroy();
    then.destroy();
  }
}
