/** The document as an editor: CodeMirror on a Y.Text, Markdown set as it will read, with everybody's carets. */

import { defaultKeymap } from "@codemirror/commands";
import { markdown, markdownLanguage } from "@codemirror/lang-markdown";
import { syntaxHighlighting } from "@codemirror/language";
import { Compartment, EditorState, type Extension } from "@codemirror/state";
import { EditorView, keymap, placeholder } from "@codemirror/view";
import type { RoomAwareness } from "@coroom/client";
import { yCollab, yUndoManagerKeymap } from "y-codemirror.next";
import * as Y from "yjs";

import { caretsOf } from "../carets.ts";
import { flagsInSight } from "./flags-in-sight.ts";
import { lineBreaks } from "./line-breaks.ts";
import { lineDirections } from "./line-directions.ts";
import { markdownStyle } from "./markdown-style.ts";

/** More names than that beside their carets would cover the text. */
const FLAGS_MAX = 10;

export type Editor = { setWritable(writable: boolean): void; selectAll(): void; focus(): void };

export function openEditor(parent: HTMLElement, text: Y.Text, awareness: RoomAwareness, more: Extension): Editor {
  const access = new Compartment();
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: text.toString(),
      extensions: [
        access.of(accessOf(false)),
        lineBreaks,
        lineDirections,
        keymap.of([...yUndoManagerKeymap, ...defaultKeymap]),
        markdown({ base: markdownLanguage }),
        syntaxHighlighting(markdownStyle),
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({
          "aria-label": "Document",
          "spellcheck": "true",
          "autocorrect": "on",
          "autocapitalize": "sentences",
        }),
        more,
        yCollab(text, caretsOf(awareness), { undoManager: new Y.UndoManager(text) }),
        flagsInSight,
      ],
    }),
  });
  awareness.on("change", () => {
    const carets = [...awareness.getStates().values()].filter(({ cursor }) => (cursor ?? undefined) !== undefined);
    parent.dataset["crowd"] = carets.length > FLAGS_MAX ? "many" : "few";
  });
  return {
    setWritable: (writable) => {
      if (view.state.facet(EditorView.editable) !== writable) view.dispatch({ effects: access.reconfigure(accessOf(writable)) });
    },
    selectAll: () => {
      view.focus();
      view.dispatch({ selection: { anchor: 0, head: view.state.doc.length } });
    },
    focus: () => view.focus(),
  };
}

function accessOf(writable: boolean): Extension {
  return [EditorView.editable.of(writable), EditorState.readOnly.of(!writable), writable ? placeholder("Start writing…") : []];
}
