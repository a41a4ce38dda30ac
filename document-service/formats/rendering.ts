/** A document's rich text in a format for other programs. Runs in a thread, as content.ts does. */

import type * as Y from "yjs";

import { type DocumentFormat, inDocument, jsonValue, kindOf, type Wanted } from "../content.ts";
import { blocksOf } from "./blocks.ts";
import { htmlOf } from "./html.ts";
import { isLexical, lexicalTextOf } from "./lexical-text.ts";
import { markdownOf } from "./markdown.ts";
import { quillTextOf } from "./quill-text.ts";
import { ResultBudget, type RichNode, richTextOf } from "./rich-text.ts";

/** `names`: the types that can be rendered, with their kinds. `why`: the limit that the document exceeds. */
export type Rendering =
  | { readonly kind: "rendered"; readonly body: Uint8Array }
  | { readonly kind: "no-such-text"; readonly names: readonly string[] }
  | { readonly kind: "unfit"; readonly why: string };

/** `wanted` undefined: the document's only text or XML. */
export function renderedAs(state: Uint8Array, format: DocumentFormat, wanted: Wanted | undefined): Rendering {
  return inDocument(state, (doc) => {
    const found = [...doc.share.keys()].sort().map((name) => ({ name, kind: kindOf(doc.get(name)) }));
    const texts = found.filter(({ kind }) => kind === "text" || kind === "xml");
    const chosen = wanted ?? (texts.length === 1 ? texts[0] : undefined);
    const isThere = found.some(({ name, kind }) => name === chosen?.name && (kind === chosen.kind || kind === "empty"));
    if (chosen === undefined || !isThere) return { kind: "no-such-text", names: texts.map(({ name, kind }) => `${name}:${kind}`) };
    const budget = new ResultBudget();
    const rich = chosen.kind === "text" ? quillTextOf(doc.getText(chosen.name), budget) : xmlOf(doc.getXmlFragment(chosen.name), budget);
    if (budget.exceeded !== undefined) return { kind: "unfit", why: budget.exceeded };
    return { kind: "rendered", body: new TextEncoder().encode(writtenAs(format, rich)) };
  });
}

function xmlOf(fragment: Y.XmlFragment, budget: ResultBudget): RichNode {
  return isLexical(fragment) ? lexicalTextOf(fragment, budget) : richTextOf(fragment, budget);
}

function writtenAs(format: DocumentFormat, rich: RichNode): string {
  switch (format) {
    case "prosemirror":
      return JSON.stringify(rich, (_, value: unknown) => jsonValue(value));
    case "html":
      return htmlOf(blocksOf(rich.content));
    case "markdown":
      return markdownOf(blocksOf(rich.content));
  }
}
