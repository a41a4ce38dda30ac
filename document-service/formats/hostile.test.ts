/** Documents of attackers as HTML and Markdown: whatever they contain, a page that shows the result runs nothing of it. */

import fc from "fast-check";
import { Window } from "happy-dom";
import MarkdownIt from "markdown-it";
import { marked } from "marked";
import { expect, test } from "vitest";
import * as Y from "yjs";

import { blocksOf } from "./blocks.ts";
import { htmlOf } from "./html.ts";
import { markdownOf } from "./markdown.ts";
import { ResultBudget, type RichMark, type RichNode, richTextOf } from "./rich-text.ts";

const RUNS = 100;
const ELEMENTS = new Set(
  "a blockquote br code del em h1 h2 h3 h4 h5 h6 hr img input li mark ol p pre s strong sub sup table tbody td th thead tr u ul".split(" "),
);
const ATTRIBUTES = new Set("alt checked class colspan disabled href rel rowspan src start title type".split(" "));
const LINK_SCHEMES = new Set(["", "http", "https", "mailto", "tel"]);

/** Renderers of CommonMark with GitHub's additions, that show raw HTML and any address. */
const PAGES = new Map<string, (markdown: string) => string>();
for (const [name, renderer] of [
  ["CommonMark", new MarkdownIt("commonmark")],
  ["markdown-it", new MarkdownIt({ html: true })],
  ["markdown-it with links", new MarkdownIt({ html: true, linkify: true })],
] as const) {
  renderer.validateLink = () => true;
  PAGES.set(name, (markdown) => renderer.render(markdown));
}
PAGES.set("marked", (markdown) => marked.parse(markdown, { async: false }));

const window = new Window();
function bodyOf(html: string): InstanceType<typeof Window>["document"]["body"] {
  window.document.body.innerHTML = html;
  return window.document.body;
}

/** What a page must not contain. */
function violationsOf(html: string): string[] {
  return [...bodyOf(html).querySelectorAll("*")].flatMap((element) => {
    const name = element.tagName.toLowerCase();
    const found = ELEMENTS.has(name) ? [] : [`element ${name}`];
    for (const attribute of element.getAttributeNames()) {
      const value = element.getAttribute(attribute)!;
      const isUnknown = !ATTRIBUTES.has(attribute) || (attribute === "class" && !/^language-[\w+#.-]{1,40}$/.test(value));
      if (isUnknown || (attribute === "type" && value !== "checkbox")) found.push(`attribute ${attribute}=${value} of ${name}`);
      if ((attribute === "href" || attribute === "src") && !isSafe(value)) found.push(`address ${value}`);
    }
    return found;
  });
}

/** As browsers read an address: without control characters. */
function isSafe(address: string): boolean {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(address.replaceAll(/[\p{Cc}\p{Z}]/gu, ""))?.[1] ?? "";
  return LINK_SCHEMES.has(scheme.toLowerCase()) || /^data:image\/png;base64,[A-Za-z0-9+/=]*$/.test(address);
}

function pagesOf(nodes: readonly RichNode[]): { html: string; markdown: string; pages: Map<string, string> } {
  const blocks = blocksOf(nodes);
  const markdown = markdownOf(blocks);
  return { html: htmlOf(blocks), markdown, pages: new Map([...PAGES].map(([name, render]) => [name, render(markdown)])) };
}

function expectHarmless(nodes: readonly RichNode[]): void {
  const { html, markdown, pages } = pagesOf(nodes);
  for (const [name, page] of [["HTML", html] as const, ...pages])
    expect(violationsOf(page), `${name} of ${markdown}\nis ${page}`).toEqual([]);
}

const IMAGE = "<img src=x onerror=alert(1)>";
const text = (value: string, ...marks: (string | RichMark)[]): RichNode => ({
  type: "text",
  text: value,
  marks: marks.map((mark) => (typeof mark === "string" ? { type: mark } : mark)),
});
const link = (href: string): RichMark => ({ type: "link", attrs: { href, title: IMAGE, onclick: "alert(1)" } });
const block = (type: string, ...content: RichNode[]): RichNode => ({ type, content });
const table = (...cells: RichNode[]): RichNode => block("table", block("tableRow", ...cells));
const struckImage = (src: string): RichNode => ({ type: "image", attrs: { src, alt: "a" }, marks: [{ type: "strike" }] });
const CELL = block("tableCell");

const CODE = `${IMAGE}"'<script>alert(2)</script>`;
function element(
  name: string,
  attributes: Readonly<Record<string, string>>,
  ...children: (Y.XmlElement | Y.XmlText | string)[]
): Y.XmlElement {
  const made = new Y.XmlElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.insert(
    0,
    children.map((child) => (typeof child === "string" ? new Y.XmlText(child) : child)),
  );
  return made;
}
const ADDRESSES = [
  "javascript:alert(1)",
  " JaVa\tScript\n:alert(1)",
  "\u0001javascript:alert(1)",
  "vbscript:x",
  "data:text/html,<script>alert(1)</script>",
  "blob:x",
  `https://x/"onmouseover="alert(1)`,
  "data:image/svg+xml;base64,PHN2Zz4=",
];

test("[RND6] a hostile document injects neither elements, attributes nor addresses into HTML and Markdown", () => {
  const text = new Y.XmlText();
  const nodes = [
    element("paragraph", {}, text),
    ...ADDRESSES.map((src) => element("image", { src, alt: CODE, onerror: "alert(1)" })),
    element("script", { src: "https://evil.example/x.js" }, CODE),
    element("codeBlock", { language: `x" onclick="alert(1)` }, CODE),
    element("heading", { level: "1 onclick=alert(1)" }, CODE),
    element("iframe", { srcdoc: CODE }, element("style", {}, CODE)),
    element("table", {}, element("tableRow", {}, element("tableCell", { colspan: '2" onclick="alert(1)' }, CODE))),
    element("orderedList", { start: '1" onclick="alert(1)' }, element("listItem", {}, CODE)),
  ];
  const doc = new Y.Doc();
  const fragment = doc.getXmlFragment("default");
  fragment.insert(0, nodes);
  for (const href of ADDRESSES) {
    text.insert(0, `a\n\n${CODE}`, { code: {} });
    text.insert(0, CODE, { link: { href, title: CODE, onclick: "alert(1)" }, [CODE]: {}, code: null });
  }
  const rich = richTextOf(fragment, new ResultBudget());
  const { html, pages } = pagesOf(rich.content ?? []);
  const elements = [...bodyOf(html).querySelectorAll("*")];
  const names = new Set(elements.map(({ tagName }) => tagName.toLowerCase()));
  expect([...names].toSorted()).toEqual(["a", "code", "h1", "img", "li", "ol", "p", "pre", "table", "tbody", "td", "tr"]);
  const attributes = new Set(elements.flatMap((one) => one.getAttributeNames()));
  expect([...attributes].toSorted()).toEqual(["alt", "href", "rel", "src", "title"]);
  for (const page of [html, ...pages.values()]) {
    expect(violationsOf(page)).toEqual([]);
    const addresses = [...bodyOf(page).querySelectorAll("*")].flatMap((one) => one.getAttribute("href") ?? one.getAttribute("src") ?? []);
    expect(new Set(addresses.map(decodeURI))).toEqual(new Set([`https://x/"onmouseover="alert(1)`]));
  }
});

test.each<[string, ...RichNode[]]>([
  ["a blank line in code", block("paragraph", text(`a\n\nx ${IMAGE}`, "code"))],
  ["two lone carriage returns in code", block("paragraph", text(`a\r\rx ${IMAGE}`, "code"))],
  ["a line end in code in a heading", { type: "heading", attrs: { level: 3 }, content: [text(`a\nx ${IMAGE}`, "code")] }],
  ["a carriage return in code in a cell", table(block("tableCell", text(`a\rx ${IMAGE}`, "code")))],
  ["a script after blank lines in code", block("paragraph", text("a\n\n<script>alert(1)</script>", "code"))],
  ["code beside underlined code", block("paragraph", text("x", "underline", "code"), text(`a\`${IMAGE}`, "code"))],
  ["an address that begins a tag", block("paragraph", text("x", link("<script>location=name//")), text("y", link("</script>x")))],
  ["an image's address that begins a tag", { type: "image", attrs: { src: "<script>location=name//", alt: IMAGE } }],
  ["a bare address before a tag", block("paragraph", text(`https://x${IMAGE}`))],
  ["a bare address before a backtick and code", block("paragraph", text("https://x`"), text(`\` ${IMAGE}`, "code"))],
  ["a bare address before code", block("paragraph", text("HTTPS://x"), text(IMAGE, "code"), text("www.x"), text(IMAGE, "code"))],
  ["a bare address in two texts", block("paragraph", text("ww", "underline"), text("w.x"), text(IMAGE, "code"))],
  ["a link in a link's text", block("paragraph", text("[x](javascript:alert(1))", link("https://y")))],
  ["code with brackets and backticks in a link", block("paragraph", text("a`]b", "code", link("https://y")), text(IMAGE, "code"))],
  ["code with backticks in bold text", block("paragraph", text(`![x](javascript:alert(1))**\`~~~`, "code", "bold"))],
  ["code in struck text", block("paragraph", text("\n`", "strike"), text(`x\`${IMAGE}`, "code"), text(`~~${IMAGE}`, "code", "strike"))],
  ["an image in struck text", block("paragraph", struckImage("https://x/~~y"), text(IMAGE, "code"))],
  ["an address with a space of Unicode", block("paragraph", text("http://x`", link("http://x/\u3000")), text(` ${IMAGE}`, "code"))],
  ["a line separator in a link", block("paragraph", text("http://x\\\u2028`", link("/")), text(` ${IMAGE}`, "code"))],
  ["a backtick before emphasis in code", block("paragraph", text("`x", "bold"), text("**~", "code"), text(" "), text(IMAGE, "code"))],
  ["backticks in emphasis and a link", block("paragraph", text("`$", "italic"), text("ftp://x.y`", link("/"), "italic"))],
  ["a bracket before emphasis in code", block("paragraph", text("[x", "bold"), text(" "), text(`](y)** ${IMAGE}`, "code"))],
  [
    "a scheme with a reference",
    block("paragraph", ...["&colon;", "&#58;", "&#x3a;"].map((colon) => text("x", link(`javascript${colon}alert(1)`)))),
  ],
  [
    "a pipe behind backslashes in code in a cell",
    block("table", block("tableRow", CELL, CELL, CELL), block("tableRow", block("tableCell", text(String.raw`a\\|${IMAGE}`, "code")))),
  ],
])("[RND9] %s makes no element, attribute or address", (_, ...nodes) => {
  expectHarmless(nodes);
});

/** Pieces of markup of which texts and addresses are made. */
const PIECES = [
  ..."` `` ``` ~ ~~ ~~~ \\ \\\\ < > & | [ ] ( ) ]( ![ ! * ** _ __ # - + = : :// / \" ' $ ; a b 1. 1) > --- === x@y.z".split(" "),
  "\n",
  "\n\n",
  "\r",
  "\r\n",
  " ",
  "    ",
  "\t",
  "\u00a0",
  "\u2028",
  "\0",
  "\u{1f600}",
  "é",

  IMAGE,
  "<script>",
  "</script>",
  "<!--",
  "-->",
  "<svg/onload=alert(1)>",
  "</p>",
  "<a href=javascript:alert(1)>",
  "<x@y.z>",
  "<?",
  "<![CDATA[",

  "http://x",
  "https://x",
  "HTTP://",
  "www.x",
  "ftp://x.y",
  "javascript:alert(1)",
  "data:text/html,x",
  "<javascript:alert(1)>",
  "&lt;",
  "&#60;",

  "[x](javascript:alert(1))",
  "![x](javascript:alert(1))",
  "[x]: javascript:alert(1)\n",
  "[x]",
  "&colon;",
  "&Tab;",
  "- [ ] ",
  "| a | b |\n| - | - |\n",
];
const hostile = fc.array(fc.constantFrom(...PIECES), { minLength: 1, maxLength: 8 }).map((pieces) => pieces.join(""));
const address = fc
  .tuple(fc.constantFrom("https://x/", "mailto:", "http:", "/", "#", "?", "", "javascript", "data:image/png;base64,"), hostile)
  .map((parts) => parts.join(""));
const mark: fc.Arbitrary<string | RichMark> = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom("code", "bold", "italic", "strike", "underline", "highlight") },
  address.map(link),
);
const inline: fc.Arbitrary<RichNode> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.tuple(hostile, fc.array(mark, { maxLength: 3 })).map(([value, marks]) => text(value, ...marks)),
  },
  fc.constant({ type: "hardBreak" }),
  fc.tuple(address, hostile).map(([src, alt]) => ({ type: "image", attrs: { src, alt } })),
);
const inlines = fc.array(inline, { maxLength: 5 });
const { node } = fc.letrec<{ node: RichNode; list: RichNode }>((tie) => {
  const nodes = fc.array(tie("node"), { maxLength: 3 });
  const attributes = fc.record({
    level: fc.nat(7),
    start: fc.constantFrom<unknown>(0, 1, 7, 99, 999_999_999, 1e12, "x"),
    checked: fc.boolean(),
  });
  return {
    node: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      inlines.map((content) => ({ type: "paragraph", content })),
      fc.tuple(attributes, inlines).map(([attrs, content]) => ({ type: "heading", attrs, content })),
      fc.tuple(fc.constantFrom("ts", "`", "x y"), hostile).map(([language, value]) => ({
        type: "codeBlock",
        attrs: { language },
        content: [text(value)],
      })),
      fc
        .array(fc.array(inlines, { maxLength: 3 }), { maxLength: 3 })
        .map((rows) =>
          block("table", ...rows.map((cells) => block("tableRow", ...cells.map((content) => ({ type: "tableCell", content }))))),
        ),
      fc.constant({ type: "horizontalRule" }),
      nodes.map((content) => ({ type: "blockquote", content })),
      tie("list"),
    ),
    list: fc
      .tuple(fc.constantFrom("bulletList", "orderedList", "taskList"), attributes, fc.array(nodes, { minLength: 1, maxLength: 3 }))
      .map(([type, attrs, items]) => ({
        type,
        attrs,
        content: items.map((content) => ({ type: type === "taskList" ? "taskItem" : "listItem", attrs, content })),
      })),
  };
});

test("[RND10] random hostile documents make only known elements, attributes and addresses", () => {
  fc.assert(fc.property(fc.array(node, { minLength: 1, maxLength: 4 }), expectHarmless), { seed: 1, numRuns: RUNS });
});
