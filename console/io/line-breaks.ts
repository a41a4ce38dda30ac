/**
 * Lines end as they do in the shared text: at "\n", and at nothing else. An editor that takes "\r\n" for one character,
 * where Yjs counts two, would put each edit behind it somewhere else than its writer sees it.
 */

import { EditorState, type Extension } from "@codemirror/state";
import { EditorView, highlightSpecialChars } from "@codemirror/view";

export const lineBreaks: Extension = [
  EditorState.lineSeparator.of("\n"),
  EditorView.clipboardInputFilter.of((pasted) => pasted.replace(/\r\n?/g, "\n")),
  highlightSpecialChars({ specialChars: /\r/g, render: () => document.createElement("span") }), // There, and nothing to see.
];
