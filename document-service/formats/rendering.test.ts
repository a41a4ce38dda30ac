/** Documents as ProseMirror JSON, HTML and Markdown: as real bindings write them, and hostile ones. */

import { getSchema } from "@tiptap/core";
import StarterKit from "@tiptap/starter-kit";
import { prosemirrorToYXmlFragment } from "@tiptap/y-tiptap";
import { Node } from "prosemirror-model";
import { expect, test } from "vitest";
import * as Y from "yjs";

import type { DocumentFormat } from "../content.ts";
import { blocksOf } from "./blocks.ts";
import { markdownOf } from "./markdown.ts";
import { renderedAs } from "./rendering.ts";
import { DEPTH_MAX, type RichNode } from "./rich-text.ts";

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

test("[RND17] bytes and a BigInt, which JSON does not have, are base64 and digits in ProseMirror's JSON", () => {
  const attrs = { icon: new Uint8Array([0, 1, 254, 255]), views: 9_007_199_254_740_993n };
  expect(JSON.parse(render(xml(["image", attrs]), "prosemirror"))).toEqual({
    type: "doc",
    content: [{ type: "image", attrs: { icon: "AAH+/w==", views: "9007199254740993" } }],
  });
  const photo = JSON.parse(render(xml(["image", { photo: new Uint8Array(3_000_000) }]), "prosemirror")) as {
    content: [{ attrs: { photo: string } }];
  };
  expect(photo.content[0].attrs.photo.length).toBe(4_000_000);
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
  expect(render(TIPTAP, "markdown")).toBe(`## Plan & &lt;goals>

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

test("[RND4] an image of Quill keeps its link, and the text that Quill stores for it", () => {
  const quill = stateOf((doc) =>
    doc.getText("quill").applyDelta([
      { insert: { image: "https://h/a.png" }, attributes: { alt: "a plan", width: "80", link: "https://example.org", bold: true } },
      { insert: "\n", attributes: { align: "center" } },
    ]),
  );
  expect(render(quill, "markdown")).toBe("[**![a plan](https://h/a.png)**](https://example.org)\n");
  expect(render(quill, "html")).toContain('<strong><img src="https://h/a.png" alt="a plan"></strong></a>');
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

const cell = (text: string, attributes: Readonly<Record<string, unknown>> = {}): Tree => ["tableCell", attributes, ["paragraph", {}, text]];

test("[RND11] a table keeps all columns below a wide cell, and takes no line below it as a row", () => {
  const table: Tree = ["table", {}, ["tableRow", {}, cell("wide", { colspan: 2 })], ["tableRow", {}, cell("a"), cell("b")]];
  const item: Tree = ["bulletList", {}, ["listItem", {}, ["paragraph", {}, "above"], table, ["paragraph", {}, "below"]]];
  expect(render(xml(item), "markdown")).toBe("- above\n\n  | wide |  |\n  | --- | --- |\n  | a | b |\n\n  below\n");
  expect(render(xml(["table", {}, ["tableRow", {}]]), "markdown")).toBe("");
});

test("[RND12] a line break at the end of a block is left out, and one in a heading or cell is a space", () => {
  const end: Tree[] = ["a", ["hardBreak", {}], "b", ["hardBreak", {}], ["hardBreak", {}]];
  const state = xml(["paragraph", {}, ...end], ["heading", { level: 1 }, ...end], ["paragraph", {}, ["hardBreak", {}]]);
  expect(render(state, "markdown")).toBe("a\\\nb\n\n# a b\n");
});

test("[RND16] marks that Markdown has no form for do not divide code or links, and code is one line", () => {
  const of = (...marks: string[]): { type: string; attrs?: object }[] =>
    marks.map((type) => (type === "link" ? { type, attrs: { href: "/a" } } : { type }));
  const content = [
    text("x", ...of("underline", "code")),
    text("\n\n<y>", ...of("code")),
    text(" "),
    text("a ", ...of("highlight", "link")),
  ];
  const blocks = blocksOf([paragraph(...content, text("b", ...of("link"))) as RichNode]);
  expect(markdownOf(blocks)).toBe("`x <y>` [a b](/a)\n");
});

test("[RND13] spaces and line ends in a table's cell cost no quadratic time", () => {
  const spaces = " ".repeat(200_000);
  const rendered = render(xml(["table", {}, ["tableRow", {}, cell(`a${spaces}b\r\n\rc`)]]), "markdown");
  expect(rendered).toBe(`| a${spaces}b c |\n| --- |\n`);
});

test("[RND14] hostile attributes leave a document readable, and numbers are within the limits of formats", () => {
  const lines = (attributes: object): Uint8Array =>
    stateOf((doc) => doc.getText("q").applyDelta([{ insert: "a" }, { insert: "\n", attributes }]));
  for (const list of ["constructor", "toString", { toString: 1 }])
    expect(render(lines({ list, header: { valueOf: 1 }, indent: { toString: 1 } }), "html")).toBe("<p>a</p>\n");
  const [object, item] = [{ toString: 1 }, ["listItem", {}, ["paragraph", {}, "a"]] as Tree];
  const state = xml(
    ["heading", { level: object }, "a"],
    ["table", {}, ["tableRow", {}, cell("b", { colspan: object, rowspan: 1e9 })]],
    ["orderedList", { start: object }, item],
    ["orderedList", { start: 1e12 }, item, item],
    ["numberedListItem", { start: object }, "c"],
  );
  const html = render(state, "html");
  expect(html).toContain('<h1>a</h1>\n<table>\n<tr><td rowspan="1000">b</td></tr>');
  expect(html).toContain('<ol>\n<li>a</li>\n</ol>\n<ol start="999999999">\n<li>a</li>\n<li>a</li>\n</ol>\n<ol>\n<li>c</li>');
  expect(render(state, "markdown")).toContain("\n999999998) a\n999999999) a\n");
});

test("[RND15] as many blocks, lists and pieces of text in a row as a document can hold are rendered", () => {
  const many = 150_000;
  const loose = Array.from({ length: many }, (_, at) => ({ type: at % 2 === 0 ? "bulletListItem" : "numberedListItem" }));
  expect(blocksOf(loose)).toHaveLength(many);
  const nodes = Array.from({ length: many }, () => ({ type: "horizontalRule" }));
  expect(blocksOf([{ type: "blockGroup", content: nodes }])).toHaveLength(many);
  const breaks = Array.from({ length: many }, () => ({ type: "hardBreak" }));
  expect(blocksOf([{ type: "paragraph", content: [{ type: "span", content: breaks }] }])).toMatchObject([{ content: { length: many } }]);
  expect(
    render(
      stateOf((doc) => doc.getText("q").insert(0, "\n".repeat(many))),
      "html",
    ).match(/<p>/g),
  ).toHaveLength(many);
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
  const longName = "\u0001".repeat(50_000);
  const marked = (name: string, value: object): Uint8Array =>
    stateOf((doc) => {
      const repeated = new Y.XmlText();
      doc.getXmlFragment("default").insert(0, [repeated]);
      repeated.insert(0, "ab".repeat(150), { [name]: value });
      for (let at = 0; at < 300; at += 2) repeated.format(at, 1, { bold: {} });
    });
  const quill = stateOf((doc) => doc.getText("q").insert(0, "\n".repeat(600_000), { list: "unchecked" }));
  const named = xml(["\u0001".repeat(12 * 1024 ** 2), {}]);
  for (const state of [long, marked(longName, {}), marked("m", { [longName]: 1 }), quill, named])
    for (const format of ["prosemirror", "html", "markdown"] as const)
      expect(renderedAs(state, format, undefined)).toEqual({ kind: "unfit", why: expect.stringContaining("longer than about") });
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
