/**
 * Rich text as a fragment of HTML. The invariant: the fragment of a hostile document runs no code. It contains only the
 * elements and attributes below, every text and value is escaped, and addresses have safe schemes (`safe-url.ts`).
 */

import { type ContentBlock, type Inline, type ListItem, type Phrase, phrasesOf, type TableCell, type TextMark } from "./blocks.ts";

const ELEMENTS: Readonly<Record<Exclude<TextMark["kind"], "link">, string>> = {
  bold: "strong",
  italic: "em",
  strike: "s",
  underline: "u",
  highlight: "mark",
  subscript: "sub",
  superscript: "sup",
  code: "code",
};

/** One block on each line. */
export function htmlOf(blocks: readonly ContentBlock[]): string {
  return blocks.map((block) => `${blockHtml(block)}\n`).join("");
}

function blockHtml(block: ContentBlock): string {
  switch (block.kind) {
    case "paragraph":
      return `<p>${inlineHtml(block.content)}</p>`;
    case "heading":
      return `<h${block.level}>${inlineHtml(block.content)}</h${block.level}>`;
    case "quote":
      return `<blockquote>\n${htmlOf(block.content)}</blockquote>`;
    case "code":
      return `<pre><code${block.language === "" ? "" : ` class="language-${escaped(block.language)}"`}>${escaped(block.text)}</code></pre>`;
    case "list": {
      const items = block.items.map(itemHtml).join("");
      if (block.start === undefined) return `<ul>\n${items}</ul>`;
      return `<ol${block.start === 1 ? "" : ` start="${block.start}"`}>\n${items}</ol>`;
    }
    case "table":
      return `<table>\n${block.rows.map((cells) => `<tr>${cells.map(cellHtml).join("")}</tr>\n`).join("")}</table>`;
    case "rule":
      return "<hr>";
  }
}

/** An item of one paragraph has no element for it, as in the HTML of Markdown. */
function itemHtml({ checked, content }: ListItem): string {
  const box = checked === undefined ? "" : `<input type="checkbox" disabled${checked ? " checked" : ""}> `;
  const [first, ...rest] = content;
  if (first?.kind !== "paragraph") return `<li>${box}${content.length === 0 ? "" : `\n${htmlOf(content)}`}</li>\n`;
  return `<li>${box}${inlineHtml(first.content)}${rest.length === 0 ? "" : `\n${htmlOf(rest)}`}</li>\n`;
}

function cellHtml({ isHeader, columns, rows, content }: TableCell): string {
  const element = isHeader ? "th" : "td";
  const spans = `${columns === 1 ? "" : ` colspan="${columns}"`}${rows === 1 ? "" : ` rowspan="${rows}"`}`;
  return `<${element}${spans}>${inlineHtml(content)}</${element}>`;
}

function inlineHtml(inlines: readonly Inline[]): string {
  return phrasesOf(inlines).map(phraseHtml).join("");
}

function phraseHtml(phrase: Phrase): string {
  if ("inline" in phrase) {
    const { inline } = phrase;
    switch (inline.kind) {
      case "text":
        return escaped(inline.text);
      case "break":
        return "<br>";
      case "image":
        return `<img src="${escaped(inline.src)}" alt="${escaped(inline.alt)}">`;
    }
  }
  const { mark, content } = phrase;
  const inner = content.map(phraseHtml).join("");
  if (mark.kind !== "link") return `<${ELEMENTS[mark.kind]}>${inner}</${ELEMENTS[mark.kind]}>`;
  const title = mark.title === undefined ? "" : ` title="${escaped(mark.title)}"`;
  return `<a href="${escaped(mark.href ?? "")}"${title} rel="noopener noreferrer nofollow">${inner}</a>`;
}

const ESCAPES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

/** Safe as text and in a quoted attribute. */
function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => ESCAPES[character]!);
}
