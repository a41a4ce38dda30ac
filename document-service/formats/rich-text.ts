/**
 * Rich text of a Yjs document as the JSON of ProseMirror, without a schema: names and attributes as the editor's binding wrote
 * them (y-prosemirror: TipTap, BlockNote). Text of Quill and nodes of Lexical become blocks with TipTap's names (`quill-text.ts`,
 * `lexical-text.ts`).
 *
 * A small document may describe a huge result: a long link that thousands of pieces of text repeat, or lists whose every line
 * is indented. So the result is estimated while it is made, and a document above the limits is refused, never cut.
 */

import * as Y from "yjs";

export type RichMark = { readonly type: string; readonly attrs?: Readonly<Record<string, unknown>> };
/** A node as in `Node.toJSON()` of ProseMirror. */
export type RichNode = {
  readonly type: string;
  readonly attrs?: Readonly<Record<string, unknown>>;
  readonly content?: readonly RichNode[];
  readonly text?: string;
  readonly marks?: readonly RichMark[];
};

/** Nodes in nodes. Editors stay below 30. */
export const DEPTH_MAX = 100;
/** Estimated bytes of the longest result. The estimate is above the actual size: each character counts as escaped. */
export const RESULT_BYTES_MAX = 64 * 1024 ** 2;
const NODE_BYTES = 40;
/** `&quot;` in HTML, `&#x20;` in Markdown, `\u0001` in JSON. Rare spaces in an address of Markdown have 9. */
const CHARACTER_BYTES = 6;
/** Markdown repeats the indentation of a list or quote in each line. */
const INDENT_BYTES = 4;
/** Base64 has 4/3. */
const BYTE_BYTES = 4;

/** The work that is left for one document. `exceeded`: the reason why the document is refused. */
export class ResultBudget {
  exceeded: string | undefined;
  #bytesLeft = RESULT_BYTES_MAX;
  readonly #sizes = new WeakMap<object, number>();

  /** Takes a node or a text, with its attributes by name. `text`: the text, or the name of the node. False: the document is refused. */
  take(depth: number, attributes: Iterable<readonly [string, unknown]> = [], text = ""): boolean {
    if (depth > DEPTH_MAX) this.exceeded ??= `its nodes are nested more than ${DEPTH_MAX} deep`;
    let bytes = NODE_BYTES + depth * INDENT_BYTES + text.length * CHARACTER_BYTES;
    for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) bytes += depth * INDENT_BYTES;
    for (const [name, value] of attributes) bytes += NODE_BYTES + name.length * CHARACTER_BYTES + this.#sizeOf(value);
    this.#bytesLeft -= bytes;
    if (this.#bytesLeft < 0) this.exceeded ??= `the result would be longer than about ${RESULT_BYTES_MAX} bytes`;
    return this.exceeded === undefined;
  }

  /** An object counts again for each text that it formats, and is measured once. */
  #sizeOf(value: unknown): number {
    if (typeof value === "string") return value.length * CHARACTER_BYTES;
    if (typeof value !== "object" || value === null) return NODE_BYTES;
    if (value instanceof Uint8Array) return value.byteLength * BYTE_BYTES;
    const known = this.#sizes.get(value);
    if (known !== undefined) return known;
    const size = Object.entries(value).reduce(
      (sum, [key, inner]) => sum + NODE_BYTES + key.length * CHARACTER_BYTES + this.#sizeOf(inner),
      0,
    );
    this.#sizes.set(value, size);
    return size;
  }
}

/** A piece of a text with its formatting attributes, or what is embedded in it. */
type TextPiece = { readonly insert: unknown; readonly attributes: ReadonlyMap<string, unknown> };

/**
 * Pieces in order. Like `toDelta()`, but it is asked for each piece whether to continue: many attributes times many pieces
 * would need more memory than there is.
 */
export function* piecesOf(text: Y.Text, depth: number, budget: ResultBudget): Generator<TextPiece> {
  const attributes = new Map<string, unknown>();
  let pending = "";
  const take = (insert: unknown): TextPiece | undefined =>
    budget.take(depth, attributes, typeof insert === "string" ? insert : "") ? { insert, attributes: new Map(attributes) } : undefined;
  for (let item = text._start; item !== null; item = item.right) {
    const { content } = item;
    if (item.deleted || (content instanceof Y.ContentFormat && attributes.get(content.key) === content.value)) continue;
    if (content instanceof Y.ContentString) {
      pending += content.str;
      continue;
    }
    if (pending !== "") {
      const piece = take(pending);
      if (piece === undefined) return;
      yield piece;
      pending = "";
    }
    if (content instanceof Y.ContentFormat) {
      if (content.value === null) attributes.delete(content.key);
      else attributes.set(content.key, content.value);
    } else {
      const piece = take(content.getContent()[0]);
      if (piece === undefined) return;
      yield piece;
    }
  }
  const last = pending === "" ? undefined : take(pending);
  if (last !== undefined) yield last;
}

/** A document that an editor on ProseMirror wrote. */
export function richTextOf(fragment: Y.XmlFragment, budget: ResultBudget): RichNode {
  const blocks = fragment.toArray().flatMap((child) => {
    const nodes = nodesOf(child, 1, budget);
    return child instanceof Y.XmlText ? [{ type: "paragraph", ...contentOf(nodes) }] : nodes; // A binding writes no text here.
  });
  return { type: "doc", content: blocks };
}

function nodesOf(type: unknown, depth: number, budget: ResultBudget): RichNode[] {
  if (type instanceof Y.XmlText) return [...piecesOf(type, depth, budget)].flatMap(textNodesOf);
  if (!(type instanceof Y.XmlElement)) return [];
  const attributes = Object.entries(type.getAttributes() as Record<string, unknown>).filter(([, value]) => value !== undefined);
  if (!budget.take(depth, attributes, type.nodeName)) return [];
  const content = type.toArray().flatMap((child) => nodesOf(child, depth + 1, budget));
  return [{ type: type.nodeName, ...(attributes.length === 0 ? {} : { attrs: Object.fromEntries(attributes) }), ...contentOf(content) }];
}

function contentOf(content: readonly RichNode[]): { readonly content?: readonly RichNode[] } {
  return content.length === 0 ? {} : { content };
}

/** No binding of ProseMirror embeds anything in a text. */
function textNodesOf({ insert, attributes }: TextPiece): RichNode[] {
  if (typeof insert !== "string") return [];
  const marks = [...attributes].map(([name, value]) => ({ type: markNameOf(name), ...markAttributesOf(value) }));
  return [{ type: "text", text: insert, ...(marks.length === 0 ? {} : { marks }) }];
}

/** The binding adds a hash to the names of marks that may overlap, such as comments. */
function markNameOf(name: string): string {
  return name.replace(/--[A-Za-z0-9+/=]{8}$/, "");
}

function markAttributesOf(value: unknown): { readonly attrs?: Readonly<Record<string, unknown>> } {
  return typeof value === "object" && value !== null && Object.keys(value).length > 0 ? { attrs: value as Record<string, unknown> } : {};
}
