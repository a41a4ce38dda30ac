/**
 * Rich text as the few kinds of blocks that HTML and Markdown have. Names of TipTap, ProseMirror's basic schema and BlockNote
 * are known. An unknown node is replaced by its content: by its blocks, or by a paragraph of its text. An unknown mark is left out.
 */

import { wholeNumberIn } from "./attributes.ts";
import type { RichMark, RichNode } from "./rich-text.ts";
import { safeImage, safeLink } from "./safe-url.ts";

/** In the order of nesting, the outermost first. */
const MARK_KINDS = ["link", "bold", "italic", "strike", "underline", "highlight", "subscript", "superscript", "code"] as const;
/** `href` and `title` belong to links. */
export type TextMark = { readonly kind: (typeof MARK_KINDS)[number]; readonly href?: string; readonly title?: string };

type Marked = { readonly marks: readonly TextMark[] };
export type Inline = Marked &
  (
    | { readonly kind: "text"; readonly text: string }
    | { readonly kind: "break" }
    | { readonly kind: "image"; readonly src: string; readonly alt: string }
  );
/** `checked` undefined: the item has no box. */
export type ListItem = { readonly checked: boolean | undefined; readonly content: readonly ContentBlock[] };
export type TableCell = {
  readonly isHeader: boolean;
  readonly columns: number;
  readonly rows: number;
  readonly content: readonly Inline[];
};
export type ContentBlock =
  | { readonly kind: "paragraph"; readonly content: readonly Inline[] }
  | { readonly kind: "heading"; readonly level: 1 | 2 | 3 | 4 | 5 | 6; readonly content: readonly Inline[] }
  | { readonly kind: "quote"; readonly content: readonly ContentBlock[] }
  | { readonly kind: "code"; readonly language: string; readonly text: string }
  | { readonly kind: "list"; readonly start: number | undefined; readonly items: readonly ListItem[] }
  | { readonly kind: "table"; readonly rows: readonly (readonly TableCell[])[] }
  | { readonly kind: "rule" };

/** Names of marks, in lower case and without separators. */
const MARK_NAMES: ReadonlyMap<string, TextMark["kind"]> = new Map([
  ...MARK_KINDS.map((kind) => [kind, kind] as const),
  ["strong", "bold"],
  ["em", "italic"],
  ["strikethrough", "strike"],
  ["sub", "subscript"],
  ["sup", "superscript"],
]);
const LISTS: ReadonlySet<string> = new Set(["bulletlist", "orderedlist", "tasklist", "todolist"]);
/** Blocks of BlockNote that are items without a list around them. */
const LOOSE_ITEMS: ReadonlySet<string> = new Set(["bulletlistitem", "numberedlistitem", "checklistitem", "togglelistitem"]);
const INLINE: ReadonlySet<string> = new Set(["text", "hardbreak", "image", "mention", "emoji"]);
const SPAN_MAX = 1_000;
/** CommonMark's numbers of list items have at most nine digits. */
export const START_MAX = 999_999_999;

export function blocksOf(nodes: readonly RichNode[] = []): ContentBlock[] {
  const blocks: ContentBlock[] = [];
  let inlines: Inline[] = [];
  const endParagraph = (): void => {
    if (inlines.length > 0) blocks.push({ kind: "paragraph", content: inlines });
    inlines = [];
  };
  for (let at = 0; at < nodes.length; at++) {
    const node = nodes[at]!;
    if (isInline(node)) {
      for (const inline of inlinesOf([node])) inlines.push(inline);
      continue;
    }
    endParagraph();
    const listName = listNameOf(node);
    if (listName === undefined) for (const block of blockOf(node)) blocks.push(block);
    else {
      let end = at + 1;
      while (end < nodes.length && listNameOf(nodes[end]!) === listName) end++;
      blocks.push(looseList(nodes.slice(at, end)));
      at = end - 1;
    }
  }
  endParagraph();
  return blocks;
}

function blockOf(node: RichNode): ContentBlock[] {
  const { content = [] } = node;
  const name = nameOf(node);
  if (LISTS.has(name)) return [listOf(node)];
  switch (name) {
    case "paragraph":
    case "tableparagraph":
      return [{ kind: "paragraph", content: inlinesOf(content) }];
    case "heading":
      return [{ kind: "heading", level: levelOf(node), content: inlinesOf(content) }];
    case "blockquote":
      return [{ kind: "quote", content: blocksOf(content) }];
    case "quote":
      return [{ kind: "quote", content: [{ kind: "paragraph", content: inlinesOf(content) }] }];
    case "codeblock":
      return [{ kind: "code", language: languageOf(node), text: textOfAll(content) }];
    case "horizontalrule":
    case "divider":
      return [{ kind: "rule" }];
    case "table":
      return [{ kind: "table", rows: content.map(({ content: cells = [] }) => cells.map(cellOf)) }];
    default:
      return blocksOf(content); // A container, or a name of the application.
  }
}

function listOf(node: RichNode): ContentBlock {
  const { content = [], attrs = {} } = node;
  return {
    kind: "list",
    start: nameOf(node) === "orderedlist" ? startOf(attrs["start"] ?? attrs["order"]) : undefined,
    items: content.map((item) => ({
      checked: ["taskitem", "todoitem"].includes(nameOf(item)) ? item.attrs?.["checked"] === true : undefined,
      content: blocksOf(isInline(item) ? [item] : item.content),
    })),
  };
}

/** A list item of BlockNote, and the blocks below it. */
function looseItemOf(node: RichNode): { readonly item: RichNode; readonly below: readonly RichNode[] } | undefined {
  const [item, ...below] = nameOf(node) === "blockcontainer" ? (node.content ?? []) : [node];
  return item !== undefined && LOOSE_ITEMS.has(nameOf(item)) ? { item, below } : undefined;
}

/** Items of one kind make one list. */
function listNameOf(node: RichNode): string | undefined {
  const loose = looseItemOf(node);
  return loose && nameOf(loose.item);
}

function looseList(nodes: readonly RichNode[]): ContentBlock {
  const items = nodes.flatMap((node) => looseItemOf(node) ?? []);
  const [first] = items;
  return {
    kind: "list",
    start: nameOf(first!.item) === "numberedlistitem" ? startOf(first!.item.attrs?.["start"]) : undefined,
    items: items.map(({ item, below }) => ({
      checked: nameOf(item) === "checklistitem" ? item.attrs?.["checked"] === true : undefined,
      content: [{ kind: "paragraph", content: inlinesOf(item.content) }, ...blocksOf(below)],
    })),
  };
}

function startOf(value: unknown): number {
  return wholeNumberIn(value, 0, START_MAX, 1);
}

function cellOf(node: RichNode): TableCell {
  const span = (name: string): number => wholeNumberIn(node.attrs?.[name], 1, SPAN_MAX, 1);
  return { isHeader: nameOf(node) === "tableheader", columns: span("colspan"), rows: span("rowspan"), content: inlinesOf(node.content) };
}

/** Inline content of nodes, with a line break between blocks. */
function inlinesOf(nodes: readonly RichNode[] = []): Inline[] {
  const inlines: Inline[] = [];
  for (const [index, node] of nodes.entries()) {
    if (index > 0 && !isInline(node) && inlines.length > 0) inlines.push({ kind: "break", marks: [] });
    for (const inline of inlineOf(node)) inlines.push(inline);
  }
  return inlines;
}

function inlineOf(node: RichNode): Inline[] {
  const { text, attrs = {} } = node;
  const marks = marksOf(node.marks);
  if (text !== undefined) return text === "" ? [] : [{ kind: "text", text, marks }];
  switch (nameOf(node)) {
    case "hardbreak":
      return [{ kind: "break", marks }];
    case "image":
      return imageOf(attrs, marks);
    case "mention":
      return [{ kind: "text", text: `@${textOf(attrs["label"]) || textOf(attrs["id"])}`, marks }];
    case "emoji":
      return [{ kind: "text", text: textOf(attrs["emoji"]) || `:${textOf(attrs["name"])}:`, marks }];
    default:
      return inlinesOf(node.content);
  }
}

/** BlockNote names the address `url` and the text `caption`. */
function imageOf(attrs: Readonly<Record<string, unknown>>, marks: readonly TextMark[]): Inline[] {
  const src = safeImage(attrs["src"] ?? attrs["url"]);
  const alt = textOf(attrs["alt"]) || textOf(attrs["caption"]) || textOf(attrs["name"]);
  if (src !== undefined) return [{ kind: "image", src, alt, marks }];
  return alt === "" ? [] : [{ kind: "text", text: alt, marks }];
}

/** One of each kind, in the order of nesting. */
function marksOf(marks: readonly RichMark[] = []): TextMark[] {
  const byKind = new Map<TextMark["kind"], TextMark>();
  for (const { type, attrs = {} } of marks) {
    const kind = MARK_NAMES.get(plain(type));
    if (kind === undefined) continue;
    if (kind !== "link") byKind.set(kind, { kind });
    const href = kind === "link" ? safeLink(attrs["href"]) : undefined;
    const title = textOf(attrs["title"]);
    if (href !== undefined) byKind.set("link", { kind: "link", href, ...(title === "" ? {} : { title }) });
  }
  return MARK_KINDS.flatMap((kind) => byKind.get(kind) ?? []);
}

/** A text, or a node that stands within a line of text. */
function isInline(node: RichNode): boolean {
  return node.text !== undefined || INLINE.has(nameOf(node));
}

function levelOf({ attrs }: RichNode): 1 | 2 | 3 | 4 | 5 | 6 {
  return wholeNumberIn(attrs?.["level"], 1, 6, 1) as 1;
}

/** Only names that cannot end the line of a code fence. */
function languageOf({ attrs }: RichNode): string {
  const language = textOf(attrs?.["language"]) || textOf(attrs?.["params"]);
  return /^[\w+#.-]{1,40}$/.test(language) ? language : "";
}

function textOfAll(nodes: readonly RichNode[]): string {
  return nodes.map(({ text, content }) => text ?? textOfAll(content ?? [])).join("");
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : typeof value === "number" ? String(value) : "";
}

function nameOf({ type }: RichNode): string {
  return plain(type);
}

/** `bullet_list` and `bulletList` are the same. */
function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[_-]/g, "");
}

/** Consecutive inlines by their outermost mark, so that a link of several formats stays one link. */
export type Phrase = { readonly mark: TextMark; readonly content: readonly Phrase[] } | { readonly inline: Inline };

export function phrasesOf(inlines: readonly Inline[]): Phrase[] {
  const phrases: Phrase[] = [];
  for (let start = 0; start < inlines.length;) {
    const [mark] = inlines[start]!.marks;
    let end = start + 1;
    if (mark === undefined) phrases.push({ inline: inlines[start]! });
    else {
      while (end < inlines.length && isSame(mark, inlines[end]!.marks[0])) end++;
      phrases.push({ mark, content: phrasesOf(inlines.slice(start, end).map((inline) => ({ ...inline, marks: inline.marks.slice(1) }))) });
    }
    start = end;
  }
  return phrases;
}

function isSame(one: TextMark, other: TextMark | undefined): boolean {
  return one.kind === other?.kind && one.href === other.href && one.title === other.title;
}
