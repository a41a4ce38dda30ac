/**
 * Edits of a text for a program that knows the text, not its positions: replace a passage that occurs exactly once, or
 * append. Returns the Yjs update that makes the edit.
 *
 * The Yjs client id comes from the call's key, and every edit contains at least one item of this client. So the same call
 * on the same document makes the same bytes, and a document that contains this client id contains the edit already.
 */

import * as Y from "yjs";

import { inDocument, kindOf } from "../../document-service/content.ts";
import { hash32 } from "../../shared/collections/hash.ts";

/** A shared type and the kind that its content shows. `empty`: it has no content, and may be of any kind. */
export type NamedType = { readonly name: string; readonly kind: ReturnType<typeof kindOf> };
type Replacement = { readonly find: string; readonly replace: string };
/** `key`: names this call; another call has another key. `append`: empty for none. */
export type TextEdits = { readonly key: string; readonly replacements: readonly Replacement[]; readonly append: string };
export type EditedText =
  | { readonly kind: "edited"; readonly update: Uint8Array; readonly text: string }
  /** The document contains the edit of an earlier call with this key. */
  | { readonly kind: "repeated"; readonly text: string }
  | { readonly kind: "no-such-text"; readonly types: readonly NamedType[] }
  /** `times`: how often the passage occurs. */
  | { readonly kind: "not-once"; readonly find: string; readonly times: number };

/** `state`: the document as a Yjs update; undefined: it is empty. `name`: the shared text. */
export function editText(state: Uint8Array | undefined, name: string, { key, replacements, append }: TextEdits): EditedText {
  const doc = new Y.Doc();
  if (state !== undefined) Y.applyUpdate(doc, state);
  const types = namedTypesOf(doc);
  if (types.length > 0 && !types.some((type) => type.name === name && isText(type))) return { kind: "no-such-text", types };
  const text = doc.getText(name);
  const client = hash32(key);
  if (Y.decodeStateVector(Y.encodeStateVector(doc)).has(client)) return { kind: "repeated", text: text.toString() };
  doc.clientID = client;
  let update = new Uint8Array(); // The update of this transaction only: `encodeStateAsUpdate` would add every deletion in the document.
  doc.on("update", (made) => (update = made.slice()));
  const refusal = doc.transact(() => {
    for (const { find, replace } of replacements) {
      const written = text.toString();
      const [at, times] = [written.indexOf(find), written.split(find).length - 1];
      if (times !== 1) return { kind: "not-once" as const, find, times };
      text.delete(at, find.length);
      text.insert(at, replace);
    }
    text.insert(text.length, append);
    markClient(text);
    return undefined;
  });
  return refusal ?? { kind: "edited", update, text: text.toString() };
}

/** The shared types of a document, by name. */
export function namedTypesIn(state: Uint8Array): readonly NamedType[] {
  return inDocument(state, namedTypesOf);
}

/** Text in a type of another kind, such as the rich text of an editor, would make it unreadable for its users. */
export function isText({ kind }: NamedType): boolean {
  return kind === "text" || kind === "empty";
}

function namedTypesOf(doc: Y.Doc): readonly NamedType[] {
  return [...doc.share.keys()].sort().map((name) => ({ name, kind: kindOf(doc.get(name)) }));
}

/** Leaves a deleted character. An edit that only deletes would otherwise have no item of its client. */
function markClient(text: Y.Text): void {
  text.insert(text.length, " ");
  text.delete(text.length - 1, 1);
}
