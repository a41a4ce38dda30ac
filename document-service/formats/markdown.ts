/**
 * Rich text as Markdown (CommonMark, with the tables, task lists and strikethrough of GitHub). What Markdown has no form for
 * is left out: underline, colours, titles of links, spans of table cells. Text of people is escaped, so it becomes neither markup nor HTML.
 */

import type { BlockContent, Html, List, PhrasingContent, RootContent } from "mdast";
import { type Handlers, toMarkdown } from "mdast-util-to-markdown";

import { type ContentBlock, type Inline, type ListItem, type Phrase, phrasesOf, type TableCell } from "./blocks.ts";

/** Characters with a meaning in GitHub's Markdown only. */
const UNSAFE = [
  { character: "~", inConstruct: "phrasing" as const },
  { character: "|", inConstruct: "phrasing" as const },
];
/** Writes markup that the library has no node for. */
const HANDLERS = { written: ({ value }: { readonly value: string }): string => value } as object as Partial<Handlers>;
const OPTIONS = {
  handlers: HANDLERS,
  bullet: "-",
  rule: "-",
  emphasis: "_",
  fences: true,
  listItemIndent: "one",
  unsafe: UNSAFE,
} as const;

export function markdownOf(blocks: readonly ContentBlock[]): string {
  return toMarkdown({ type: "root", children: blocks.flatMap(nodesOf) as RootContent[] }, OPTIONS);
}

function nodesOf(block: ContentBlock): BlockContent[] {
  switch (block.kind) {
    case "paragraph": {
      const children = phrasing(block.content);
      return children.length === 0 ? [] : [{ type: "paragraph", children }];
    }
    case "heading":
      return [{ type: "heading", depth: block.level, children: phrasing(block.content) }];
    case "quote":
      return [{ type: "blockquote", children: block.content.flatMap(nodesOf) }];
    case "code":
      return [{ type: "code", lang: block.language === "" ? null : block.language, value: block.text }];
    case "list":
      return [listOf(block.start, block.items)];
    case "table":
      return block.rows.length === 0 ? [] : [asWritten(tableOf(block.rows))];
    case "rule":
      return [{ type: "thematicBreak" }];
  }
}

function listOf(start: number | undefined, items: readonly ListItem[]): List {
  const children = items.map(({ checked, content }) => {
    const blocks = content.flatMap(nodesOf);
    const box = checked === undefined ? [] : [asWritten(checked ? "[x] " : "[ ] ")];
    const [first] = blocks;
    const boxed = first?.type === "paragraph" ? [{ ...first, children: [...box, ...first.children] }, ...blocks.slice(1)] : blocks;
    const isAlone = box.length > 0 && first?.type !== "paragraph";
    return {
      type: "listItem" as const,
      spread: false,
      children: isAlone ? [{ type: "paragraph" as const, children: box }, ...blocks] : boxed,
    };
  });
  return { type: "list", ordered: start !== undefined, start: start ?? null, spread: false, children };
}

/** Columns are not aligned: padding would multiply the length of a table. The first row becomes the header. */
function tableOf(rows: readonly (readonly TableCell[])[]): string {
  const [header = [], ...others] = rows.map((cells) => `| ${cells.map(cellText).join(" | ")} |`);
  const rule = `|${(rows[0] ?? []).map(() => " --- |").join("")}`;
  return [header, rule, ...others].join("\n");
}

function cellText({ content }: TableCell): string {
  const children = phrasing(content.map((inline) => (inline.kind === "break" ? { kind: "text", text: " ", marks: inline.marks } : inline)));
  const text = toMarkdown({ type: "paragraph", children }, OPTIONS)
    .trim()
    .replaceAll(/\s*\n\s*/g, " ");
  return text.replaceAll(/(?<!\\)\|/g, String.raw`\|`);
}

function phrasing(inlines: readonly Inline[]): PhrasingContent[] {
  return phrasesOf(inlines).flatMap(phraseNodes);
}

function phraseNodes(phrase: Phrase): PhrasingContent[] {
  if ("inline" in phrase) {
    const { inline } = phrase;
    switch (inline.kind) {
      case "text":
        return [{ type: "text", value: inline.text }];
      case "break":
        return [{ type: "break" }];
      case "image":
        return [{ type: "image", url: inline.src, alt: inline.alt }];
    }
  }
  const { mark, content } = phrase;
  if (mark.kind === "code") return [{ type: "inlineCode", value: content.map(textOf).join("") }];
  const children = content.flatMap(phraseNodes);
  switch (mark.kind) {
    case "link":
      return [{ type: "link", url: mark.href ?? "", children }];
    case "bold":
      return [{ type: "strong", children }];
    case "italic":
      return [{ type: "emphasis", children }];
    case "strike":
      return [asWritten("~~"), ...children, asWritten("~~")];
    default:
      return children;
  }
}

function textOf(phrase: Phrase): string {
  if (!("inline" in phrase)) return phrase.content.map(textOf).join("");
  return phrase.inline.kind === "text" ? phrase.inline.text : " ";
}

/** Markup that the writer knows no node for. Never contains unescaped text of people. */
function asWritten(value: string): Html {
  return { type: "written", value } as unknown as Html; // A node of HTML would join lines around it.
}
