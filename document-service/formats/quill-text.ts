/**
 * A text with Quill's formatting as the JSON of ProseMirror, with TipTap's names. Quill formats a line by the attributes of
 * its line end. A text without formatting becomes paragraphs, one for each line.
 */

import type * as Y from "yjs";

import { wholeNumberIn } from "./attributes.ts";
import { piecesOf, type ResultBudget, type RichMark, type RichNode } from "./rich-text.ts";

type Line = { readonly content: readonly RichNode[]; readonly format: ReadonlyMap<string, unknown> };

const UNFORMATTED: ReadonlyMap<string, unknown> = new Map();
const LISTS: ReadonlyMap<unknown, string> = new Map([
  ["bullet", "bulletList"],
  ["ordered", "orderedList"],
  ["checked", "taskList"],
  ["unchecked", "taskList"],
]);
/** Quill's own maximum. */
const LIST_INDENT_MAX = 8;

export function quillTextOf(text: Y.Text, budget: ResultBudget): RichNode {
  const lines = linesOf(text, budget);
  const blocks: RichNode[] = [];
  for (let start = 0; start < lines.length;) {
    const kind = groupOf(lines[start]!);
    let end = start + 1;
    if (kind !== undefined) while (end < lines.length && groupOf(lines[end]!) === kind) end++;
    for (const block of groupBlocks(kind, lines.slice(start, end))) blocks.push(block);
    start = end;
  }
  return { type: "doc", content: blocks };
}

function linesOf(text: Y.Text, budget: ResultBudget): Line[] {
  const lines: Line[] = [];
  let content: RichNode[] = [];
  for (const { insert, attributes } of piecesOf(text, 1, budget)) {
    if (typeof insert !== "string") {
      const image = (insert as { readonly image?: unknown } | null)?.image;
      if (typeof image === "string") content.push(imageOf(image, attributes));
      continue; // Formulas, videos and the application's own embeds have no text.
    }
    const marks = [...attributes].map(([name, value]) => markOf(name, value));
    const [first = "", ...rest] = insert.split("\n");
    const add = (part: string): void => {
      if (part !== "") content.push({ type: "text", text: part, ...(marks.length === 0 ? {} : { marks }) });
    };
    add(first);
    for (const part of rest) {
      lines.push({ content, format: attributes });
      content = [];
      if (!budget.take(2 + 2 * indentOf(attributes), attributes)) return lines;
      add(part);
    }
  }
  return content.length === 0 ? lines : [...lines, { content, format: UNFORMATTED }];
}

/** Quill stores these attributes of an image beside its marks, such as a link. */
const IMAGE_ATTRIBUTES: ReadonlySet<string> = new Set(["alt", "width", "height"]);

function imageOf(src: string, attributes: ReadonlyMap<string, unknown>): RichNode {
  const given = [...attributes];
  const marks = given.flatMap(([name, value]) => (IMAGE_ATTRIBUTES.has(name) ? [] : [markOf(name, value)]));
  const attrs = Object.fromEntries(given.filter(([name]) => IMAGE_ATTRIBUTES.has(name)));
  return { type: "image", attrs: { src, ...attrs }, ...(marks.length === 0 ? {} : { marks }) };
}

function markOf(name: string, value: unknown): RichMark {
  if (name === "link") return { type: "link", attrs: { href: value } };
  if (name === "script") return { type: value === "sub" ? "subscript" : "superscript" };
  return value === true ? { type: name } : { type: name, attrs: { value } };
}

/** Lines of one group make one block. Undefined: a block of its own. */
function groupOf({ format }: Line): "list" | "code" | "quote" | undefined {
  if (LISTS.has(format.get("list"))) return "list";
  if (format.has("code-block")) return "code";
  return format.get("blockquote") === true ? "quote" : undefined;
}

function groupBlocks(kind: ReturnType<typeof groupOf>, lines: readonly Line[]): RichNode[] {
  switch (kind) {
    case "list":
      return listsOf(lines, 0);
    case "code": {
      const language = lines[0]!.format.get("code-block");
      const text = lines.map(({ content }) => content.map((node) => node.text ?? "").join("")).join("\n");
      const attrs = typeof language === "string" && language !== "plain" ? { attrs: { language } } : {};
      return [{ type: "codeBlock", ...attrs, ...(text === "" ? {} : { content: [{ type: "text", text }] }) }];
    }
    case "quote":
      return [{ type: "blockquote", content: lines.map(({ content }) => ({ type: "paragraph", content })) }];
    case undefined:
      return lines.map(({ content, format }) => {
        const level = wholeNumberIn(format.get("header"), 0, 7, 0);
        return level >= 1 && level <= 6 ? { type: "heading", attrs: { level }, content } : { type: "paragraph", content };
      });
  }
}

/** Lines with a higher indent belong to the item before them. */
function listsOf(lines: readonly Line[], level: number): RichNode[] {
  const lists: { readonly type: string; readonly content: RichNode[] }[] = [];
  for (let start = 0; start < lines.length;) {
    const { content, format } = lines[start]!;
    let end = start + 1;
    while (end < lines.length && indentOf(lines[end]!.format) > level) end++;
    const type = LISTS.get(format.get("list"))!;
    const isTask = type === "taskList";
    const item: RichNode = {
      type: isTask ? "taskItem" : "listItem",
      ...(isTask ? { attrs: { checked: format.get("list") === "checked" } } : {}),
      content: [{ type: "paragraph", content }, ...listsOf(lines.slice(start + 1, end), level + 1)],
    };
    const last = lists.at(-1);
    if (last?.type === type) last.content.push(item);
    else lists.push({ type, content: [item] });
    start = end;
  }
  return lists;
}

function indentOf(format: Line["format"]): number {
  return wholeNumberIn(format.get("indent"), 0, LIST_INDENT_MAX, 0);
}
