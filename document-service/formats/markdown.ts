/**
 * Rich text as Markdown (CommonMark, with the tables, task lists and strikethrough of GitHub). The result leaves out what
 * Markdown cannot express: underline, colours, titles of links, spans of table cells.
 *
 * The invariant: text of people becomes neither markup nor HTML. For example, `<b>` in a text is written `&lt;b>`. Outside
 * of code the result contains no `<`, and no bare address from which a renderer makes a link. This holds for renderers of
 * CommonMark and of GitHub's tables, strikethrough and autolinks, and is tested with markdown-it and marked. It does not
 * hold for what a site adds to Markdown, such as GitHub's mentions, formulas and emoji, or links to mail addresses in text.
 */

import type { BlockContent, Html, Image, List, Paragraph, Parents, PhrasingContent, RootContent, Text } from "mdast";
import {
  defaultHandlers,
  type Handle,
  type Handlers,
  type Info,
  type Options,
  type State,
  toMarkdown,
  type Unsafe,
} from "mdast-util-to-markdown";

import {
  type ContentBlock,
  type Inline,
  type ListItem,
  type Phrase,
  phrasesOf,
  START_MAX,
  type TableCell,
  type TextMark,
} from "./blocks.ts";

/** Marks that Markdown has a form for. The others must go before phrases are grouped, or code would stand beside code. */
const WRITTEN_MARKS: ReadonlySet<TextMark["kind"]> = new Set(["link", "bold", "italic", "strike", "code"]);
/**
 * GitHub makes a link of an address in text, and takes the backslashes and backticks behind it into the link. The text that
 * they kept harmless then becomes markup.
 */
const NO_BARE_ADDRESS: Pick<Unsafe, "inConstruct" | "notInConstruct"> = {
  inConstruct: "phrasing",
  notInConstruct: ["label", "destinationRaw"],
};
const UNSAFE: Unsafe[] = [
  { character: "<", inConstruct: "phrasing" },
  { character: "~", inConstruct: "phrasing" },
  { character: "|", inConstruct: "phrasing" },
  { character: ":", before: "[PSps]", after: "/", ...NO_BARE_ADDRESS },
  { character: ".", before: "[Ww]{3}", ...NO_BARE_ADDRESS },
  { character: "(", inConstruct: "label" },
];
const HANDLERS = {
  text: withReferences(defaultHandlers.text),
  image: withReferences(defaultHandlers.image),
  delete: Object.assign(() => "~", { attention: () => ({ construct: "strikethrough", markers: ["~"], sizes: [2] }) }),
  /** Writes markup that the library has no node for. */
  written: ({ value }: { readonly value: string }): string => value,
} as object as Partial<Handlers>;
const OPTIONS: Options = {
  handlers: HANDLERS,
  bullet: "-",
  rule: "-",
  emphasis: "_",
  fences: true,
  resourceLink: true,
  listItemIndent: "one",
  unsafe: UNSAFE,
  /** A line of text below a table would be one of its rows. */
  join: [(left, right) => ([left.type, right.type].includes("written" as "html") ? 1 : undefined)],
};
/** The `data` of a text or image in a block that contains code or addresses, which are written as they are. */
const BESIDE_VERBATIM: Readonly<Record<string, never>> = {};

/** What the text stands in. */
type Place = { readonly isLink?: boolean; readonly isStruck?: boolean; readonly isCell?: boolean; readonly hasVerbatim?: boolean };

export function markdownOf(blocks: readonly ContentBlock[]): string {
  return toMarkdown({ type: "root", children: blocks.flatMap(nodesOf) as RootContent[] }, OPTIONS);
}

/**
 * A reference is text in every renderer. A backslash is not: to find the end of emphasis, marked takes brackets and backticks
 * in spite of it, and an end within code or a link would set the rest of it free.
 */
function withReferences(handle: Handle): Handle {
  const handled = (node: Text | Image, parent: Parents | undefined, state: State, info: Info): string =>
    handle(node, parent, state, info).replaceAll(node.data === BESIDE_VERBATIM ? /\\([<~`[])/g : /\\([<~])/g, (_, character: string) =>
      character === "<" ? "&lt;" : `&#${character.charCodeAt(0)};`,
    );
  return Object.assign(handled, handle);
}

function nodesOf(block: ContentBlock): BlockContent[] {
  switch (block.kind) {
    case "paragraph": {
      const children = phrasing(withoutLastBreaks(block.content));
      return children.length === 0 ? [] : [{ type: "paragraph", children }];
    }
    case "heading":
      return [{ type: "heading", depth: block.level, children: phrasing(inOneLine(block.content)) }];
    case "quote":
      return [{ type: "blockquote", children: block.content.flatMap(nodesOf) }];
    case "code":
      return [{ type: "code", lang: block.language === "" ? null : block.language, value: block.text }];
    case "list":
      return [listOf(block.start, block.items)];
    case "table":
      return tableOf(block.rows);
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
  const first = start === undefined ? null : Math.min(start, Math.max(START_MAX - items.length + 1, 0));
  return { type: "list", ordered: first !== null, start: first, spread: false, children };
}

/**
 * Columns are not aligned: padding would multiply the length of a table. The first row becomes the header. It has as many
 * cells as the longest row, because renderers drop the cells of a row that the header lacks.
 */
function tableOf(rows: readonly (readonly TableCell[])[]): Html[] {
  const columns = rows.reduce((most, cells) => Math.max(most, cells.length), 0);
  if (columns === 0) return [];
  const [header = [], ...others] = rows.map((cells) => cells.map(cellText));
  const padded = Array.from({ length: columns }, (_, column) => header[column] ?? "");
  const rule = `|${" --- |".repeat(columns)}`;
  return [asWritten([rowOf(padded), rule, ...others.map(rowOf)].join("\n"))];
}

function rowOf(cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}

function cellText({ content }: TableCell): string {
  const paragraph: Paragraph = { type: "paragraph", children: phrasing(inOneLine(content), { isCell: true }) };
  return toMarkdown(paragraph, OPTIONS).trim();
}

function withoutLastBreaks(inlines: readonly Inline[]): readonly Inline[] {
  return inlines.slice(0, inlines.findLastIndex(({ kind }) => kind !== "break") + 1);
}

function inOneLine(inlines: readonly Inline[]): Inline[] {
  return withoutLastBreaks(inlines).map((inline) => (inline.kind === "break" ? { kind: "text", text: " ", marks: inline.marks } : inline));
}

function phrasing(inlines: readonly Inline[], place: Place = {}): PhrasingContent[] {
  const written = inlines.map((inline) => ({ ...inline, marks: inline.marks.filter(({ kind }) => WRITTEN_MARKS.has(kind)) }));
  const hasVerbatim = written.some(
    ({ kind, marks }) => kind === "image" || marks.some((mark) => mark.kind === "code" || mark.kind === "link"),
  );
  return phraseNodes(phrasesOf(written), { ...place, hasVerbatim });
}

/** Text beside text becomes one node, because the escaping of a character depends on the characters around it. */
function phraseNodes(phrases: readonly Phrase[], place: Place): PhrasingContent[] {
  const nodes: PhrasingContent[] = [];
  for (const phrase of phrases)
    for (const node of nodesOfPhrase(phrase, place)) {
      const last = nodes.at(-1);
      if (last?.type === "text" && node.type === "text") last.value += node.value;
      else nodes.push(node);
    }
  return nodes;
}

function nodesOfPhrase(phrase: Phrase, place: Place): PhrasingContent[] {
  if ("inline" in phrase) {
    const { inline } = phrase;
    switch (inline.kind) {
      case "text":
        return [textNode(lineOf(inline.text), place.hasVerbatim === true)];
      case "break":
        return [{ type: "break" }];
      case "image":
        return [
          {
            type: "image",
            url: destinationOf(inline.src),
            alt: lineOf(inline.alt),
            ...(place.hasVerbatim === true ? { data: BESIDE_VERBATIM } : {}),
          },
        ];
    }
  }
  const { mark, content } = phrase;
  if (mark.kind === "code") return [codeOf(content.map(textOf).join(""), place)];
  const children = phraseNodes(content, {
    ...place,
    ...(mark.kind === "link" && { isLink: true }),
    ...(mark.kind === "strike" && { isStruck: true }),
  });
  switch (mark.kind) {
    case "link":
      return [{ type: "link", url: destinationOf(mark.href ?? ""), children }];
    case "bold":
      return [{ type: "strong", children }];
    case "italic":
      return [{ type: "emphasis", children }];
    case "strike":
      return [{ type: "delete", children }];
    default:
      return children;
  }
}

/**
 * Code cannot be escaped, so it is written as text where renderers differ in its end: with backticks, with `]` in a link and
 * `~` in struck text (marked), and with `\|` in a table (GitHub and markdown-it).
 */
function codeOf(text: string, { isLink = false, isStruck = false, isCell = false, hasVerbatim = false }: Place): PhrasingContent {
  const isUnclear =
    text.includes("`") || (isLink && text.includes("]")) || (isStruck && text.includes("~")) || (isCell && text.includes(String.raw`\|`));
  if (isUnclear) return textNode(text, hasVerbatim);
  return { type: "inlineCode", value: isCell ? text.replaceAll("|", String.raw`\|`) : text };
}

function textNode(value: string, isBesideVerbatim: boolean): Text {
  return { type: "text", value, ...(isBesideVerbatim ? { data: BESIDE_VERBATIM } : {}) };
}

function textOf(phrase: Phrase): string {
  if (!("inline" in phrase)) return phrase.content.map(textOf).join("");
  return phrase.inline.kind === "text" ? lineOf(phrase.inline.text) : " ";
}

/** A line end in text means a space. It could begin a block, and a blank line would end a paragraph, and with it code. */
function lineOf(text: string): string {
  return text.replaceAll(/[\r\n\u2028\u2029]+/g, " ");
}

/**
 * Characters that no address contains would end the destination. An `&` before the path is encoded too, because marked lets
 * browsers read `javascript&colon;` as a scheme.
 */
function destinationOf(address: string): string {
  return address
    .replaceAll(/[\s"<>\\^`{|}~]/g, (character) => (character === "~" ? "%7E" : encodeURIComponent(character)))
    .replace(/^[^/?#]+/, (beginning) => beginning.replaceAll("&", "%26"));
}

/** Markup that the writer knows no node for. Never contains unescaped text of people. */
function asWritten(value: string): Html {
  return { type: "written", value } as unknown as Html; // A node of HTML would join lines around it.
}
