/** The document as an editor: CodeMirror on a Y.Text, with Markdown styles and the carets of all people. */

import { defaultKeymap } from "@codemirror/commands";
import { markdown, markdownLanguage } from "@codemirror/lang-markdown";
import { syntaxHighlighting } from "@codemirror/language";
import { Compartment, EditorState, type Extension } from "@codemirror/state";
import { EditorView, keymap, placeholder, ViewPlugin } from "@codemirror/view";
import type { RoomAwareness } from "@coroom/client";
import { type Highlighter, tagHighlighter, tags } from "@lezer/highlight";
import { yCollab, yUndoManagerKeymap } from "y-codemirror.next";
import * as Y from "yjs";

import { caretsOf } from "../carets.ts";
import { lineBreaks, lineDirections } from "./editor-lines.ts";

/** More names beside their carets would cover the text. */
const FLAGS_MAX = 10;
/** A name covers words, so it disappears when its caret has not moved for this time. */
const FLAG_SHOWN_MS = 2000;

type Editor = { setWritable(writable: boolean): void; selectAll(): void; focus(): void };

export function openEditor(parent: HTMLElement, text: Y.Text, awareness: RoomAwareness, more: Extension): Editor {
  const access = new Compartment();
  const fading = new FlagFading(() => flagsIn(view));
  const view: EditorView = new EditorView({
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
          "tabindex": "0", // Otherwise text that cannot be edited has no focus, and keys select, copy and scroll nothing.
          "spellcheck": "true",
          "autocorrect": "on",
          "autocapitalize": "sentences",
        }),
        more,
        yCollab(
          text,
          caretsOf(awareness, text, (name) => fading.receiveMove(name)),
          { undoManager: new Y.UndoManager(text) },
        ),
        flagsInSight,
      ],
    }),
  });
  awareness.on("change", () => {
    const carets = [...awareness.getStates().values()].filter(({ cursor }) => (cursor ?? undefined) !== undefined);
    parent.dataset["crowd"] = carets.length > FLAGS_MAX ? "many" : "few";
    fading.mark(); // The editor may have drawn flags again.
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

/** CSS classes for the parts of Markdown. styles/editor.css defines their look. */
const markdownStyle: Highlighter = tagHighlighter([
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

/** Keeps the name flags of other people's carets inside the editor: a flag that would pass the edge is moved back. */
type Shift = { readonly flag: HTMLElement; readonly leftPx: number };

/** The flag starts at the border of the caret. */
const BORDER_PX = -1;

const flagsInSight: Extension = ViewPlugin.define((view) => {
  const measure = { key: flagsIn, read: shiftsIn, write: (shifts: readonly Shift[]) => shifts.forEach(move) };
  view.requestMeasure(measure);
  return { update: () => view.requestMeasure(measure) };
});

function shiftsIn(view: EditorView): Shift[] {
  const paper = view.scrollDOM.getBoundingClientRect();
  return flagsIn(view).map((flag) => {
    const caretLeft = flag.parentElement!.getBoundingClientRect().left;
    const overhang = caretLeft + BORDER_PX + flag.offsetWidth - paper.right;
    return { flag, leftPx: BORDER_PX - Math.ceil(Math.max(0, Math.min(overhang, caretLeft - paper.left))) };
  });
}

function move({ flag, leftPx }: Shift): void {
  if (flag.style.left === `${leftPx}px`) return;
  flag.style.left = `${leftPx}px`;
  flag.dataset["shifted"] = String(leftPx < BORDER_PX);
}

/** Hides the name of a caret that rests. Carets of the same name are shown and hidden together. */
class FlagFading {
  readonly #flags: () => readonly HTMLElement[];
  readonly #hiding = new Map<string, ReturnType<typeof setTimeout>>();

  constructor(flags: () => readonly HTMLElement[]) {
    this.#flags = flags;
  }

  receiveMove(name: string): void {
    clearTimeout(this.#hiding.get(name));
    const hide = (): void => {
      this.#hiding.delete(name);
      this.mark();
    };
    this.#hiding.set(name, setTimeout(hide, FLAG_SHOWN_MS));
    this.mark();
  }

  mark(): void {
    for (const flag of this.#flags()) flag.dataset["resting"] = String(!this.#hiding.has(flag.textContent));
  }
}

function flagsIn({ contentDOM }: EditorView): HTMLElement[] {
  return [...contentDOM.querySelectorAll<HTMLElement>(".cm-ySelectionInfo")];
}
