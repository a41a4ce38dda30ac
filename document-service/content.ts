/**
 * Reads a document's state: the text or the values of its shared types, or the part that a client lacks. Also makes the
 * edit that creates given content. Like merge.ts, this code holds a document for one call only, and runs in a thread.
 *
 * An update names its shared types but not their kinds: a kind that the caller does not name is inferred from the
 * content.
 */

import { toBase64 } from "lib0/buffer";
import * as Y from "yjs";

import { fnv1a } from "../shared/collections/hash.ts";
import { checkUpdate } from "../shared/yjs/checked-update.ts";
import { RESULT_BYTES_MAX } from "./formats/rich-text.ts";
import { EMPTY_STATE, mergeEdits } from "./merge.ts";

export const KINDS = ["text", "array", "map", "xml"] as const;
type ContentKind = (typeof KINDS)[number];
/** A shared type by name, and the kind to read it as. */
export type Wanted = { readonly name: string; readonly kind: ContentKind };
export const DOCUMENT_FORMATS = ["prosemirror", "html", "markdown"] as const;
/** A format for other programs: `formats/rendering.ts` writes it. */
export type DocumentFormat = (typeof DOCUMENT_FORMATS)[number];
export type TextFound =
  { readonly kind: "text"; readonly text: Uint8Array } | { readonly kind: "no-such-text"; readonly names: readonly string[] };
export type Diff = { readonly kind: "diff"; readonly edit: Uint8Array } | { readonly kind: "bad-vector" };
export type Made = { readonly kind: "edit"; readonly edit: Uint8Array } | { readonly kind: "bad-content"; readonly why: string };
type ContentType =
  | { readonly kind: "text"; readonly value: string }
  | { readonly kind: "array"; readonly value: readonly unknown[] }
  | { readonly kind: "map"; readonly value: Readonly<Record<string, unknown>> };
/** The content of a document, by the names of its shared types. XML is missing: it is written as an edit. */
export type DocumentContent = { readonly types: Readonly<Record<string, ContentType>> };

const encoder = new TextEncoder();

/**
 * All shared types, or the wanted ones, as JSON: `{"types":{name:{"kind":...,"value":...}}}`. The value is a string for a
 * text or XML, and JSON for the other kinds. The kind `empty`: the type has no content that shows its kind. A BigInt
 * becomes the string of its digits, and bytes become base64. Throws if the result is longer than 64 MiB.
 */
export function contentJson(state: Uint8Array, wanted: readonly Wanted[]): Uint8Array {
  const types = inDocument(state, (doc) => {
    const named = wanted.length > 0 ? wanted : [...doc.share.keys()].sort().map((name) => ({ name, kind: kindOf(doc.get(name)) }));
    return Object.fromEntries(named.map(({ name, kind }) => [name, { kind, value: valueOf(doc, name, kind) }]));
  });
  let characters = 0;
  const json = JSON.stringify({ types }, (_, given: unknown) => {
    const value = jsonValue(given);
    if (typeof value === "string") refuseTooLong((characters += value.length));
    return value;
  });
  return encoded(json);
}

/** Bytes become base64, and a BigInt the string of its digits: JSON has neither. */
export function jsonValue(value: unknown): unknown {
  if (value instanceof Uint8Array) return toBase64(value);
  return typeof value === "bigint" ? String(value) : value;
}

/** `name` undefined: the document's only text. Throws if the result is longer than 64 MiB. */
export function textOf(state: Uint8Array, name: string | undefined): TextFound {
  return inDocument(state, (doc) => {
    const texts = [...doc.share.keys()].filter((key) => ["text", "xml", "empty"].includes(kindOf(doc.get(key))));
    const chosen = name ?? (texts.length === 1 ? texts[0] : undefined);
    if (chosen === undefined || !texts.includes(chosen)) return { kind: "no-such-text", names: texts.sort() };
    const kind = kindOf(doc.get(chosen));
    return { kind: "text", text: encoded(String(valueOf(doc, chosen, kind === "xml" ? "xml" : "text"))) };
  });
}

function encoded(result: string): Uint8Array {
  refuseTooLong(result.length); // Before the bytes are made.
  const bytes = encoder.encode(result);
  refuseTooLong(bytes.byteLength);
  return bytes;
}

/** XML repeats a long attribute for each piece of text that it formats: 240 KB of state may have a result of 400 MB. */
function refuseTooLong(bytes: number): void {
  if (bytes > RESULT_BYTES_MAX) throw new Error(`the document's content is longer than ${RESULT_BYTES_MAX} bytes`);
}

/** The part of the state that a document with this state vector lacks. */
export function diffOf(state: Uint8Array, vector: Uint8Array): Diff {
  try {
    return { kind: "diff", edit: Y.diffUpdate(state, vector.slice()) };
  } catch {
    return { kind: "bad-vector" }; // The state is readable, so the error must come from the vector. Yjs throws many kinds of errors for it.
  }
}

/** The edit, if Yjs can read it and clients accept it. It may depend on other edits. */
export function checkedEdit(edit: Uint8Array): Made {
  const check = checkUpdate(edit);
  if (check.kind === "unfit" && check.cause === undefined) {
    return {
      kind: "bad-content",
      why: `clients would refuse this Yjs update: ${check.why}. Send it in parts, or make the document flatter`,
    };
  }
  const { state, refused } = mergeEdits(EMPTY_STATE, [edit]);
  return refused === 0 && state.byteLength > EMPTY_STATE.byteLength
    ? { kind: "edit", edit }
    : { kind: "bad-content", why: "the body is no Yjs update (version 1) with content: send what Y.encodeStateAsUpdate gives" };
}

/**
 * One edit that makes all of the content. The same content makes the same bytes, so applying it twice changes nothing.
 */
export function editOf(content: DocumentContent): Made {
  const doc = new Y.Doc();
  doc.clientID = fnv1a(JSON.stringify(content));
  try {
    doc.transact(() => {
      for (const [name, type] of Object.entries(content.types)) fill(doc, name, type);
    });
    const edit = Y.encodeStateAsUpdate(doc);
    return edit.byteLength > EMPTY_STATE.byteLength
      ? checkedEdit(edit)
      : { kind: "bad-content", why: "there is nothing in it: give at least one shared type something" };
  } finally {
    doc.destroy();
  }
}

/** Calls `read` with the document, which exists for this call only. */
export function inDocument<Value>(state: Uint8Array, read: (doc: Y.Doc) => Value): Value {
  const doc = new Y.Doc();
  try {
    Y.applyUpdate(doc, state);
    return read(doc);
  } finally {
    doc.destroy();
  }
}

/** The kind that the content implies. */
export function kindOf(type: Y.AbstractType<unknown>): ContentKind | "empty" {
  for (let item = type._start; item !== null; item = item.right) {
    const { content } = item;
    if (item.deleted || content instanceof Y.ContentFormat) continue;
    if (content instanceof Y.ContentString || content instanceof Y.ContentEmbed) return "text";
    return content instanceof Y.ContentType && isXml(content.type) ? "xml" : "array";
  }
  return [...type._map.values()].some((item) => !item.deleted) ? "map" : "empty";
}

function isXml(type: Y.AbstractType<unknown>): boolean {
  return type instanceof Y.XmlElement || type instanceof Y.XmlText || type instanceof Y.XmlFragment;
}

function valueOf(doc: Y.Doc, name: string, kind: ContentKind | "empty"): unknown {
  switch (kind) {
    case "text":
      return doc.getText(name).toString();
    case "array":
      return doc.getArray(name).toJSON();
    case "map":
      return doc.getMap(name).toJSON();
    case "xml":
      return doc.getXmlFragment(name).toString();
    case "empty":
      return null;
  }
}

function fill(doc: Y.Doc, name: string, type: DocumentContent["types"][string]): void {
  switch (type.kind) {
    case "text":
      return doc.getText(name).insert(0, type.value);
    case "array":
      return doc.getArray(name).insert(0, type.value.map(shared));
    case "map":
      for (const [key, value] of Object.entries(type.value)) doc.getMap(name).set(key, shared(value));
  }
}

/** Arrays and objects become shared types, so that their parts can be edited separately. */
function shared(value: unknown): unknown {
  if (Array.isArray(value)) {
    const list = new Y.Array<unknown>();
    list.insert(0, value.map(shared));
    return list;
  }
  return typeof value === "object" && value !== null ? new Y.Map(Object.entries(value).map(([key, inner]) => [key, shared(inner)])) : value;
}
