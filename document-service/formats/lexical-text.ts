/**
 * A document of Lexical (@lexical/yjs) as the JSON of ProseMirror, with TipTap's names. An element is a Y.XmlText whose
 * attributes are the node's properties. In it, a Y.Map with the format stands before the characters of each text, and line
 * breaks are maps too. A decorator is a Y.XmlElement without content. The names of properties begin with `__`.
 */

import * as Y from "yjs";

import { wholeNumberIn } from "./attributes.ts";
import { piecesOf, type ResultBudget, type RichMark, type RichNode } from "./rich-text.ts";

/** Bits of a text's `__format`. Further bits change the case of letters. */
const FORMATS: readonly (readonly [number, string])[] = [
  [1, "bold"],
  [2, "italic"],
  [4, "strike"],
  [8, "underline"],
  [16, "code"],
  [32, "subscript"],
  [64, "superscript"],
  [128, "highlight"],
];
const BITS_MAX = 2 ** 31 - 1;
const LISTS: ReadonlySet<string> = new Set(["bulletList", "orderedList", "taskList"]);
const INLINE: ReadonlySet<string> = new Set(["text", "hardBreak", "image"]);
/** Lexical's elements within a line: commented text, and text beyond a maximum length. */
const INLINE_ELEMENTS: ReadonlySet<string> = new Set(["mark", "overflow"]);

type LexicalNode = Y.XmlText | Y.XmlElement;

/** True if the first node of the document is Lexical's. */
export function isLexical(fragment: Y.XmlFragment): boolean {
  return isLexicalNode(fragment.firstChild);
}

export function lexicalTextOf(fragment: Y.XmlFragment, budget: ResultBudget): RichNode {
  return { type: "doc", content: fragment.toArray().flatMap((child) => (isLexicalNode(child) ? nodesOf(child, 1, budget, []) : [])) };
}

function isLexicalNode(type: unknown): type is LexicalNode {
  return (type instanceof Y.XmlText || type instanceof Y.XmlElement) && typeof propertyOf(type, "type") === "string";
}

/** Undefined: the property has Lexical's default. */
function propertyOf(node: LexicalNode, name: string): unknown {
  return node.getAttribute(`__${name}`);
}

/** `marks`: of the link around the node. */
function nodesOf(node: LexicalNode, depth: number, budget: ResultBudget, marks: readonly RichMark[]): RichNode[] {
  const type = String(propertyOf(node, "type"));
  const property = (name: string): unknown => propertyOf(node, name);
  if (!budget.take(depth, Object.entries(node.getAttributes()))) return [];
  if (node instanceof Y.XmlElement) return decoratorOf(type, property);
  const isLink = type === "link" || type === "autolink";
  const content = contentOf(node, depth + 1, budget, isLink ? [{ type: "link", attrs: { href: property("url") } }] : marks);
  if (isLink || INLINE_ELEMENTS.has(type)) return content;
  switch (type) {
    case "heading":
      return [{ type, attrs: { level: levelOf(property("tag")) }, content }];
    case "quote":
      return [{ type: "blockquote", content: blocksOf(content) }];
    case "code":
      return [{ type: "codeBlock", attrs: { language: property("language") ?? null }, content: content.map(plainOf) }];
    case "list":
      return [listOf(property, content)];
    case "listitem":
      return [{ type: "listItem", attrs: { checked: property("checked") === true }, content: blocksOf(content) }];
    case "tablerow":
      return [{ type: "tableRow", content }];
    case "tablecell": {
      const isHeader = wholeNumberIn(property("headerState"), 0, BITS_MAX, 0) > 0;
      const attrs = { colspan: property("colSpan") ?? 1, rowspan: property("rowSpan") ?? 1 };
      return [{ type: isHeader ? "tableHeader" : "tableCell", attrs, content: blocksOf(content) }];
    }
    default:
      return [{ type, content }]; // `paragraph` and `table` have the same names. Others are the application's.
  }
}

function contentOf(text: Y.XmlText, depth: number, budget: ResultBudget, marks: readonly RichMark[]): RichNode[] {
  const nodes: RichNode[] = [];
  let current = marks;
  for (const { insert } of piecesOf(text, depth, budget)) {
    if (insert instanceof Y.Map) {
      if (insert.get("__type") === "linebreak") nodes.push({ type: "hardBreak" });
      else current = [...marks, ...marksOf(insert.get("__format"))];
    } else if (isLexicalNode(insert)) {
      for (const node of nodesOf(insert, depth, budget, marks)) nodes.push(node);
    } else if (typeof insert === "string") {
      const named = current.map(({ type, attrs }) => [type, attrs] as const);
      if (!budget.take(depth, named)) return nodes;
      nodes.push({ type: "text", text: insert, ...(current.length === 0 ? {} : { marks: current }) });
    }
  }
  return nodes;
}

/** `tag`: `h1` to `h6`. */
function levelOf(tag: unknown): number {
  return typeof tag === "string" ? wholeNumberIn(tag.slice(1), 1, 6, 1) : 1;
}

function marksOf(format: unknown): RichMark[] {
  const bits = wholeNumberIn(format, 0, BITS_MAX, 0);
  return FORMATS.flatMap(([bit, type]) => ((bits & bit) === 0 ? [] : [{ type }]));
}

function decoratorOf(type: string, property: (name: string) => unknown): RichNode[] {
  if (type === "horizontalrule") return [{ type: "horizontalRule" }];
  return type === "image" ? [{ type, attrs: { src: property("src"), alt: property("altText") ?? null } }] : [];
}

/** Lexical puts a nested list in an item of its own. It belongs to the item before. */
function listOf(property: (name: string) => unknown, content: readonly RichNode[]): RichNode {
  const kind = property("listType");
  const items: (RichNode & { readonly content: RichNode[] })[] = [];
  for (const { attrs, content: blocks = [] } of content) {
    const last = items.at(-1);
    const isNested = blocks.length > 0 && blocks.every(({ type }) => LISTS.has(type));
    if (isNested && last !== undefined) for (const block of blocks) last.content.push(block);
    else if (kind === "check") items.push({ type: "taskItem", attrs: attrs ?? {}, content: [...blocks] });
    else items.push({ type: "listItem", content: [...blocks] });
  }
  if (kind === "check") return { type: "taskList", content: items };
  if (kind === "number") return { type: "orderedList", attrs: { start: property("start") ?? 1 }, content: items };
  return { type: "bulletList", content: items };
}

/** Inline nodes in a row become a paragraph. */
function blocksOf(nodes: readonly RichNode[]): RichNode[] {
  const blocks: RichNode[] = [];
  let inlines: RichNode[] = [];
  const endParagraph = (): void => {
    if (inlines.length > 0) blocks.push({ type: "paragraph", content: inlines });
    inlines = [];
  };
  for (const node of nodes) {
    if (INLINE.has(node.type)) inlines.push(node);
    else {
      endParagraph();
      blocks.push(node);
    }
  }
  endParagraph();
  return blocks;
}

function plainOf({ type, text }: RichNode): RichNode {
  return { type: "text", text: type === "hardBreak" ? "\n" : (text ?? "") };
}
