/** Markdown's parts as CSS classes; styles/editor.css says how each looks. */

import { type Highlighter, tagHighlighter, tags } from "@lezer/highlight";

export const markdownStyle: Highlighter = tagHighlighter([
  { tag: tags.heading1, class: "md-heading md-heading-1" },
  { tag: tags.heading2, class: "md-heading md-heading-2" },
  { tag: tags.heading3, class: "md-heading md-heading-3" },
  { tag: tags.heading, class: "md-heading" },
  { tag: [tags.processingInstruction, tags.contentSeparator, tags.labelName], class: "md-mark" },
  { tag: tags.strong, class: "md-strong" },
  { tag: tags.emphasis, class: "md-emphasis" },
  { tag: tags.strikethrough, class: "md-struck" },
  { tag: tags.monospace, class: "md-code" },
  { tag: [tags.link, tags.url], class: "md-link" },
  { tag: tags.quote, class: "md-quote" },
]);
