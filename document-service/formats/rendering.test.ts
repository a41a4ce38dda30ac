/** Documents as ProseMirror JSON, HTML and Markdown: as real bindings write them, and hostile ones. */

import { getSchema } from "@tiptap/core";
import StarterKit from "@tiptap/starter-kit";
import { prosemirrorToYXmlFragment } from "@tiptap/y-tiptap";
import { Window } from "happy-dom";
import { Node } from "prosemirror-model";
import { expect, test } from "vitest";
import * as Y from "yjs";

import { type DocumentFormat, renderedAs } from "./rendering.ts";
import { DEPTH_MAX } from "./rich-text.ts";

function stateOf(write: (doc: Y.Doc) => void): Uint8Array {
  const doc = new Y.Doc();
  write(doc);
  return Y.encodeStateAsUpdate(doc);
}

function render(state: Uint8Array, format: DocumentFormat): string {
  const made = renderedAs(state, format, undefined);
  return made.kind === "rendered" ? new TextDecoder().decode(made.body) : JSON.stringify(made);
}

const text = (value: string, ...marks: { type: string; attrs?: object }[]): object => ({
  type: "text",
  text: value,
  ...(marks.length > 0 && { marks }),
});
const paragraph = (...content: object[]): object => ({ type: "paragraph", content });
const LINK = {
  type: "link",
  attrs: { href: "https://example.org/a?b=1&c=2", target: "_blank", rel: "noopener", class: null, title: null },
};

const WRITTEN = {
  type: "doc",
  content: [
    { type: "heading", attrs: { level: 2 }, content: [text("Plan & <goals>")] },
    paragraph(
      text("Plain, "),
      text("bold ", { type: "bold" }),
      text("both", { type: "bold" }, { type: "italic" }),
      text(" and "),
      text("a link", LINK),
    ),
    paragraph(
      text("1. no list, *no* emphasis, "),
      text("x < 1", { type: "code" }),
      { type: "hardBreak" },
      text("gone", { type: "strike" }),
    ),
    {
      type: "bulletList",
      content: [
        { type: "listItem", content: [paragraph(text("one"))] },
        {
          type: "listItem",
          content: [
            paragraph(text("two")),
            { type: "orderedList", attrs: { start: 3, type: null }, content: [{ type: "listItem", content: [paragraph(text("deep"))] }] },
          ],
        },
      ],
    },
    { type: "blockquote", content: [paragraph(text("quoted"))] },
    { type: "codeBlock", attrs: { language: "ts" }, content: [text("const a = `<b>`;\n```\n")] },
    { type: "horizontalRule" },
  ],
};

const TIPTAP = stateOf((doc) => {
  const schema = getSchema([StarterKit]);
  prosemirrorToYXmlFragment(Node.fromJSON(schema as never, WRITTEN) as never, doc.getXmlFragment("default"));
});

test("[RND1] a document of TipTap comes back as the JSON that TipTap loads", () => {
  const schema = getSchema([StarterKit]);
  const read = Node.fromJSON(schema as never, JSON.parse(render(TIPTAP, "prosemirror")));
  read.check();
  expect(read.eq(Node.fromJSON(schema as never, WRITTEN))).toBe(true);
});

test("[RND2] a document of TipTap as HTML", () => {
  expect(render(TIPTAP, "html")).toBe(`<h2>Plan &amp; &lt;goals&gt;</h2>
<p>Plain, <strong>bold <em>both</em></strong> and <a href="https://example.org/a?b=1&amp;c=2" rel="noopener noreferrer nofollow">a link</a></p>
<p>1. no list, *no* emphasis, <code>x &lt; 1</code><br><s>gone</s></p>
<ul>
<li>one</li>
<li>two
<ol start="3">
<li>deep</li>
</ol>
</li>
</ul>
<blockquote>
<p>quoted</p>
</blockquote>
<pre><code class="language-ts">const a = \`&lt;b&gt;\`;
\`\`\`
</code></pre>
<hr>
`);
});

test("[RND3] a document of TipTap as Markdown, with text that looks like markup escaped", () => {
  expect(render(TIPTAP, "markdown")).toBe(`## Plan & \\<goals>

Plain, **bold _both_** and [a link](https://example.org/a?b=1\\&c=2)

1\\. no list, \\*no\\* emphasis, \`x < 1\`\\
~~gone~~

- one
- two

  3. deep

> quoted

\`\`\`\`ts
const a = \`<b>\`;
\`\`\`

\`\`\`\`

---
`);
});

test("[RND4] a text of Quill becomes blocks; one without formatting becomes paragraphs", () => {
  const quill = stateOf((doc) =>
    doc
      .getText("quill")
      .applyDelta([
        { insert: "Title" },
        { insert: "\n", attributes: { header: 1 } },
        { insert: "one" },
        { insert: "\n", attributes: { list: "bullet" } },
        { insert: "below" },
        { insert: "\n", attributes: { list: "bullet", indent: 1 } },
        { insert: "done" },
        { insert: "\n", attributes: { list: "checked" } },
        { insert: "see " },
        { insert: "here", attributes: { link: "https://example.org", bold: true } },
        { insert: "\n" },
      ]),
  );
  expect(render(quill, "markdown")).toBe("# Title\n\n- one\n  - below\n\n* [x] done\n\nsee [**here**](https://example.org)\n");
  const plain = stateOf((doc) => doc.getText("body").insert(0, "a\n\n# b"));
  expect(render(plain, "html")).toBe("<p>a</p>\n<p></p>\n<p># b</p>\n");
});

/** Nested elements: `[name, attributes, ...children]`. */
type Tree = string | readonly [string, Readonly<Record<string, unknown>>, ...Tree[]];
function elementOf(tree: Tree): Y.XmlElement | Y.XmlText {
  if (typeof tree === "string") return new Y.XmlText(tree);
  const [name, attributes, ...children] = tree;
  const element = new Y.XmlElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value as string);
  element.insert(0, children.map(elementOf));
  return element;
}
const xml = (...trees: Tree[]): Uint8Array => stateOf((doc) => doc.getXmlFragment("default").insert(0, trees.map(elementOf)));

test("[RND5] BlockNote's blocks become lists and tables, and unknown nodes become their text", () => {
  const state = xml([
    "blockGroup",
    {},
    [
      "blockContainer",
      { id: "1" },
      ["checkListItem", { checked: true }, "done"],
      ["blockGroup", {}, ["blockContainer", {}, ["bulletListItem", {}, "below"]]],
    ],
    ["blockContainer", {}, ["checkListItem", { checked: false }, "open"]],
    [
      "blockContainer",
      {},
      [
        "table",
        {},
        ["tableRow", {}, ["tableHeader", {}, ["tableParagraph", {}, "a|b"]], ["tableHeader", {}, ["tableParagraph", {}, "c"]]],
        ["tableRow", {}, ["tableCell", { colspan: 2 }, ["tableParagraph", {}, "d"]]],
      ],
    ],
    ["blockContainer", {}, ["callout", { kind: "note" }, ["title", {}, "Beware"], ["paragraph", {}, "of the dog"]]],
  ]);
  expect(render(state, "markdown")).toBe(
    "- [x] done\n  - below\n- [ ] open\n\n| a\\|b | c |\n| --- | --- |\n| d |\n\nBeware\n\nof the dog\n",
  );
  expect(render(state, "html")).toContain('<td colspan="2">d</td>');
  expect(render(state, "html")).toContain('<li><input type="checkbox" disabled checked> done\n<ul>\n<li>below</li>\n</ul>\n</li>');
});

const CODE = "<img src=x onerror=alert(1)>\"'><script>alert(2)</script>";
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
  const state = stateOf((doc) => {
    const marked = new Y.XmlText();
    for (const href of ADDRESSES) marked.insert(0, CODE, { link: { href, title: CODE, onclick: "alert(1)" }, [CODE]: {} });
    const node = new Y.XmlElement("paragraph");
    node.insert(0, [marked]);
    const images = ADDRESSES.map((src) => elementOf(["image", { src, alt: CODE, onerror: "alert(1)" }]));
    const others = [
      elementOf(["script", { src: "https://evil.example/x.js" }, CODE]),
      elementOf(["codeBlock", { language: `x" onclick="alert(1)` }, CODE]),
      elementOf(["heading", { level: "1 onclick=alert(1)" }, CODE]),
      elementOf(["iframe", { srcdoc: CODE }, ["style", {}, CODE]]),
      elementOf(["table", {}, ["tableRow", {}, ["tableCell", { colspan: '2" onclick="alert(1)' }, CODE]]]),
      elementOf(["orderedList", { start: '1" onclick="alert(1)' }, ["listItem", {}, CODE]]),
    ];
    doc.getXmlFragment("default").insert(0, [node, ...images, ...others]);
  });
  const window = new Window();
  window.document.body.innerHTML = render(state, "html");
  const elements = [...window.document.body.querySelectorAll("*")];
  expect(elements.length).toBeGreaterThan(10);
  const names = new Set(elements.map((element) => element.tagName.toLowerCase()));
  expect([...names].toSorted()).toEqual(
    ["a", "code", "h1", "img", "li", "ol", "p", "pre", "table", "tbody", "td", "tr"].filter((name) => names.has(name)),
  );
  const attributes = new Set(elements.flatMap((element) => element.getAttributeNames()));
  expect([...attributes].toSorted()).toEqual(["alt", "href", "rel", "src", "title"]);
  const addresses = elements.flatMap((element) => element.getAttribute("href") ?? element.getAttribute("src") ?? []);
  expect(new Set(addresses)).toEqual(new Set([`https://x/"onmouseover="alert(1)`]));
  const markdown = render(state, "markdown");
  expect(markdown.replaceAll(/```[^]*?```/g, "")).not.toMatch(/(?<!\\)<(script|img|iframe)|\]\(\s*(javascript|vbscript|data|blob)/i);
});

test("[RND7] a document that is nested too deep, or would become too long, is refused with the reason", () => {
  let tree: Tree = "x";
  for (let level = 0; level <= DEPTH_MAX; level++) tree = ["blockquote", {}, tree];
  expect(renderedAs(xml(tree), "html", undefined)).toEqual({ kind: "unfit", why: expect.stringContaining("more than 100 deep") });

  const href = `https://example.org/${"x".repeat(50_000)}`;
  const long = stateOf((doc) => {
    const link = { href };
    const repeated = new Y.XmlText();
    doc.getXmlFragment("default").insert(0, [repeated]);
    repeated.insert(0, "ab".repeat(500), { link });
    for (let at = 0; at < 1_000; at += 2) repeated.format(at, 1, { bold: {} });
  });
  expect(long.byteLength).toBeLessThan(200_000);
  for (const format of ["prosemirror", "html", "markdown"] as const)
    expect(renderedAs(long, format, undefined)).toEqual({ kind: "unfit", why: expect.stringContaining("longer than about") });
});

test("[RND8] of several texts one must be named, and a type of another kind is no text", () => {
  const state = stateOf((doc) => {
    doc.getText("title").insert(0, "T");
    doc.getXmlFragment("body").insert(0, [elementOf(["paragraph", {}, "B"])]);
    doc.getMap("meta").set("a", 1);
  });
  expect(renderedAs(state, "html", undefined)).toEqual({ kind: "no-such-text", names: ["body:xml", "title:text"] });
  expect(renderedAs(state, "html", { name: "meta", kind: "xml" })).toMatchObject({ kind: "no-such-text" });
  expect(renderedAs(state, "html", { name: "body", kind: "xml" })).toMatchObject({ kind: "rendered" });
});
