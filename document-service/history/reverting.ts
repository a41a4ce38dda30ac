/**
 * Makes the edit that brings a document back to an earlier state. It deletes text that was typed later and types
 * deleted text again, as a person could do by hand. The history stays unchanged, and text that others type at the same
 * time stays.
 */

import { equalityDeep } from "lib0/function";
import * as Y from "yjs";

import { checkUpdate } from "../../shared/yjs/checked-update.ts";

/** `unchanged`: the document has the content of the earlier state. `unfit`: clients would refuse the edit. */
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
    if (equalityDeep(contentOf(now), contentOf(then))) return { kind: "unchanged" };
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

/**
 * What is in the types, without the edits that made it: a restored text has new items, and may be in other pieces. Types
 * of unequal kind never have equal content.
 */
function contentOf({ share }: Y.Doc): Map<string, unknown> {
  return new Map(
    [...share].map(([name, type]) => [name, partsOf(type as Y.AbstractType<unknown>)] as const).filter(([, parts]) => parts.length > 0),
  );
}

function partsOf(type: Y.AbstractType<unknown>): unknown[] {
  const parts: unknown[] = [];
  for (let item = type._start; item !== null; item = item.right) {
    const { content, deleted } = item;
    if (deleted) continue;
    if (content instanceof Y.ContentString && typeof parts.at(-1) === "string") parts.push(`${parts.pop() as string}${content.str}`);
    else for (const value of valuesOf(content)) parts.push(value); // Possibly too many for arguments of one call.
  }
  const fields = [...type._map].filter(([, item]) => !item.deleted).map(([name, { content }]) => [name, valuesOf(content)] as const);
  if (fields.length > 0) parts.push(new Map(fields));
  return parts;
}

function valuesOf(content: Y.Item["content"]): readonly unknown[] {
  if (content instanceof Y.ContentString) return [content.str];
  if (content instanceof Y.ContentFormat) return [{ format: content.key, value: content.value }];
  if (content instanceof Y.ContentDoc) return [{ subdocument: content.doc.guid }];
  if (!(content instanceof Y.ContentType)) return content.getContent().map((value) => ({ ref: content.getRef(), value: value as unknown }));
  const { type } = content;
  return [{ type: type.constructor.name, name: type instanceof Y.XmlElement ? type.nodeName : "", parts: partsOf(type) }];
}
