/** Documents that real Lexical editors write, as ProseMirror JSON, HTML and Markdown. */

import { $createCodeNode, CodeNode } from "@lexical/code-core";
import { $createLinkNode, LinkNode } from "@lexical/link";
import { $createListItemNode, $createListNode, ListItemNode, ListNode } from "@lexical/list";
import { $createHeadingNode, $createQuoteNode, HeadingNode, QuoteNode } from "@lexical/rich-text";
import { $createTableCellNode, $createTableNode, $createTableRowNode, TableCellNode, TableNode, TableRowNode } from "@lexical/table";
import { createBinding, type Provider, syncLexicalUpdateToYjs } from "@lexical/yjs";
import {
  $createLineBreakNode,
  $createParagraphNode,
  $createTextNode,
  $getRoot,
  createEditor,
  ElementNode,
  type LexicalNode,
  type TextFormatType,
} from "lexical";
import { getSchema } from "@tiptap/core";
import StarterKit from "@tiptap/starter-kit";
import { Node } from "prosemirror-model";
import { expect, test } from "vitest";
import * as Y from "yjs";

import type { DocumentFormat } from "../content.ts";
import { renderedAs } from "./rendering.ts";
import { DEPTH_MAX, RESULT_BYTES_MAX } from "./rich-text.ts";

/** As the nodes of @lexical/mark, around commented text. */
class CommentedNode extends ElementNode {
  static override getType = () => "mark";
  static override clone = ({ __key }: CommentedNode) => new CommentedNode(__key);
  override isInline = () => true;
}
const NODES = [CommentedNode, CodeNode, HeadingNode, LinkNode, ListItemNode, ListNode, QuoteNode, TableCellNode, TableNode, TableRowNode];

/** The Yjs document of an editor in which `write` makes the content. */
function written(write: () => LexicalNode[]): Y.Doc {
  const editor = createEditor({
    nodes: NODES,
    onError: (error) => {
      throw error;
    },
  });
  Object.assign(editor, { _headless: true }); // As @lexical/headless does: the editor works without a page.
  const doc = new Y.Doc();
  const awareness = { getLocalState: () => null, setLocalState: () => {}, getStates: () => new Map(), on: () => {}, off: () => {} };
  const provider = { awareness, connect: () => {}, disconnect: () => {}, on: () => {}, off: () => {} } as unknown as Provider;
  const binding = createBinding(editor, provider, "main", doc, new Map([["main", doc]]));
  editor.registerUpdateListener(({ prevEditorState, editorState, dirtyElements, dirtyLeaves, normalizedNodes, tags }) =>
    syncLexicalUpdateToYjs(binding, provider, prevEditorState, editorState, dirtyElements, dirtyLeaves, normalizedNodes, tags),
  );
  editor.update(
    () =>
      void $getRoot()
        .clear()
        .append(...write()),
    { discrete: true },
  );
  return doc;
}

function render(doc: Y.Doc, format: DocumentFormat): string {
  const made = renderedAs(Y.encodeStateAsUpdate(doc), format, undefined);
  return made.kind === "rendered" ? new TextDecoder().decode(made.body) : JSON.stringify(made);
}

function text(value: string, ...formats: TextFormatType[]): LexicalNode {
  return formats.reduce((node, format) => node.toggleFormat(format), $createTextNode(value));
}

function filled<Node extends ElementNode>(node: Node, ...content: LexicalNode[]): Node {
  return node.append(...content);
}

const paragraph = (...content: LexicalNode[]) => filled($createParagraphNode(), ...content);
const item = (checked: boolean | undefined, ...content: LexicalNode[]) => filled($createListItemNode(checked), ...content);
const cell = (header: 0 | 1, value: string) => filled($createTableCellNode(header), paragraph(text(value)));

test("[LXT1] Lexical's headings, formats, links, lists, code, quotes and tables keep their form", () => {
  const doc = written(() => [
    filled($createHeadingNode("h2"), text("Plan & <goals>")),
    paragraph(
      text("Plain, "),
      text("bold", "bold"),
      text(" both", "bold", "italic"),
      $createLineBreakNode(),
      text("x < 1", "code"),
      text(" "),
      filled($createLinkNode("https://example.org/"), text("a "), text("link", "bold")),
    ),
    filled(
      $createListNode("bullet"),
      item(undefined, text("one")),
      item(undefined, filled($createListNode("number", 3), item(undefined, text("in one")))),
    ),
    filled($createListNode("check"), item(true, text("done")), item(false, text("open"))),
    filled($createQuoteNode(), text("said")),
    filled($createCodeNode("js"), text("let a;"), $createLineBreakNode(), text("a < b;")),
    filled(
      $createTableNode(),
      filled($createTableRowNode(), cell(1, "head"), cell(1, "top")),
      filled($createTableRowNode(), cell(0, "left"), cell(0, "right")),
    ),
  ]);
  expect(render(doc, "markdown")).toMatchInlineSnapshot(`
    "## Plan & &lt;goals>

    Plain, **bol&#x64;_&#x20;both_**\\
    \`x < 1\` [a **link**](https://example.org/)

    - one

      3. in one

    * [x] done
    * [ ] open

    > said

    \`\`\`js
    let a;
    a < b;
    \`\`\`

    | head | top |
    | --- | --- |
    | left | right |
    "
  `);
  expect(render(doc, "html")).toMatchInlineSnapshot(`
    "<h2>Plan &amp; &lt;goals&gt;</h2>
    <p>Plain, <strong>bold<em> both</em></strong><br><code>x &lt; 1</code> <a href="https://example.org/" rel="noopener noreferrer nofollow">a <strong>link</strong></a></p>
    <ul>
    <li>one
    <ol start="3">
    <li>in one</li>
    </ol>
    </li>
    </ul>
    <ul>
    <li><input type="checkbox" disabled checked> done</li>
    <li><input type="checkbox" disabled> open</li>
    </ul>
    <blockquote>
    <p>said</p>
    </blockquote>
    <pre><code class="language-js">let a;
    a &lt; b;</code></pre>
    <table>
    <tr><th>head</th><th>top</th></tr>
    <tr><td>left</td><td>right</td></tr>
    </table>
    "
  `);
  const { content } = JSON.parse(render(doc, "prosemirror")) as { content: { type: string }[] };
  const blocks = ["heading", "paragraph", "bulletList", "taskList", "blockquote", "codeBlock", "table"];
  expect(content.map(({ type }) => type)).toEqual(blocks);
  const schema = getSchema([StarterKit]); // Tables and task lists are extensions of their own.
  for (const node of content) if (schema.nodes[node.type] !== undefined) Node.fromJSON(schema, node).check();
});

test("[LXT2] a root with properties of its own is still found without naming its type", () => {
  const doc = written(() => [paragraph(text("words"))]);
  doc.get("root", Y.XmlText).setAttribute("__dir", "ltr");
  expect(render(doc, "markdown")).toBe("words\n");
});

test("[LXT6] text around which a comment lies stays in its line", () => {
  const commented = (...content: LexicalNode[]) => filled(new CommentedNode(), ...content);
  const doc = written(() => [
    paragraph(text("one "), commented(text("two", "bold"), commented(text(" three"))), text(" four")),
    filled($createListNode("bullet"), item(undefined, text("five "), commented(text("six")))),
  ]);
  expect(render(doc, "html")).toBe("<p>one <strong>two</strong> three four</p>\n<ul>\n<li>five six</li>\n</ul>\n");
});

test("[LXT3] properties of any type make no invalid result", () => {
  const doc = written(() => [filled($createHeadingNode("h2"), text("a")), filled($createListNode("number"), item(undefined, text("b")))]);
  const [heading, list] = doc
    .get("root", Y.XmlText)
    .toDelta()
    .map(({ insert }: { insert: Y.XmlText }) => insert);
  for (const [name, value] of Object.entries({ __tag: { toString: 1 }, __format: [], __dir: 1n }))
    heading!.setAttribute(name, value as unknown as string);
  for (const [name, value] of Object.entries({ __listType: "number", __start: { a: 1 }, __tag: null }))
    list!.setAttribute(name, value as unknown as string);
  expect(render(doc, "markdown")).toBe("# a\n\n1. b\n");
  expect(render(doc, "html")).toBe("<h1>a</h1>\n<ol>\n<li>b</li>\n</ol>\n");
});

test("[LXT4] many texts in one link are counted, and the document is refused", () => {
  const url = `https://example.org/${"a".repeat(20_000)}`;
  const doc = written(() => [
    paragraph(
      filled($createLinkNode(url), ...Array.from({ length: 2_000 }, (_, at) => text("x", ...(at % 2 === 0 ? [] : (["bold"] as const))))),
    ),
  ]);
  expect(render(doc, "html")).toMatch(/"kind":"unfit".*longer than about/);
});

test("[LXT5] properties and nesting are counted as in other documents", () => {
  const long = written(() => [filled($createCodeNode("x"), text("a"))]);
  const [code] = long
    .get("root", Y.XmlText)
    .toDelta()
    .map(({ insert }: { insert: Y.XmlText }) => insert) as [Y.XmlText];
  code.setAttribute("__language", "\u0001".repeat(RESULT_BYTES_MAX / 6));
  expect(render(long, "prosemirror")).toMatch(/"kind":"unfit".*longer than about/);
  const nested = (depth: number): ElementNode =>
    depth === 0 ? paragraph(text("deep")) : filled($createListNode("bullet"), item(undefined, nested(depth - 1)));
  expect(
    render(
      written(() => [nested(DEPTH_MAX / 2 - 1)]),
      "html",
    ),
  ).toContain("deep");
  expect(
    render(
      written(() => [nested(DEPTH_MAX / 2 + 1)]),
      "html",
    ),
  ).toMatch(/"kind":"unfit".*nested more than/);
});
