// @vitest-environment happy-dom
/**
 * How often editors change the caret that they show to others. Most bindings store a caret as the Yjs position of the
 * character to its right, which stays the same while its author types. ADR 80 relies on these counts.
 */

import { EditorView } from "@codemirror/view";
import * as yTiptap from "@tiptap/y-tiptap";
import { schema } from "prosemirror-schema-basic";
import { EditorState as RichState, TextSelection } from "prosemirror-state";
import { EditorView as RichView } from "prosemirror-view";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { yCollab } from "y-codemirror.next";
import * as yProsemirror from "y-prosemirror";
import * as Y from "yjs";

import { ClientFakeClock } from "../testing/fake-clock.ts";
import { RoomAwareness } from "./awareness.ts";

const LETTERS = 50;

/** An editor that has the focus, with the text "hello world". `at`: a place in this text. */
type Editor = { select(at: number): void; type(letter: string): void; erase(): void; text(): string };
type OpenEditor = (doc: Y.Doc, awareness: RoomAwareness) => Editor;

const nextTask = (): Promise<void> => new Promise((resolve) => setTimeout(resolve));

beforeEach(() => document.body.replaceChildren());

const codeMirror: OpenEditor = (doc, awareness) => {
  const text = doc.getText("text");
  text.insert(0, "hello world");
  const view = new EditorView({ parent: document.body, doc: text.toString(), extensions: yCollab(text, awareness) });
  onTestFinished(() => view.destroy());
  // With the real focus, happy-dom would report a selection to CodeMirror while CodeMirror is setting it.
  Object.defineProperty(view, "hasFocus", { value: true });
  const caret = (): number => view.state.selection.main.head;
  return {
    select: (at) => view.dispatch({ selection: { anchor: at } }),
    type: (letter) => view.dispatch(view.state.replaceSelection(letter)),
    erase: () => view.dispatch({ changes: { from: caret() - 1, to: caret() } }),
    text: () => text.toString(),
  };
};

const proseMirror =
  ({ ySyncPlugin, yCursorPlugin }: Pick<typeof yProsemirror | typeof yTiptap, "ySyncPlugin" | "yCursorPlugin">): OpenEditor =>
  (doc, awareness) => {
    const fragment = doc.getXmlFragment("prosemirror");
    const paragraph = new Y.XmlElement("paragraph");
    paragraph.insert(0, [new Y.XmlText("hello world")]);
    fragment.insert(0, [paragraph]);
    const view = new RichView(document.body, {
      state: RichState.create({ schema, plugins: [ySyncPlugin(fragment), yCursorPlugin(awareness)] }),
    });
    onTestFinished(() => view.destroy());
    view.focus();
    return {
      select: (at) => view.dispatch(view.state.tr.setSelection(TextSelection.create(view.state.doc, at + 1))),
      type: (letter) => view.dispatch(view.state.tr.insertText(letter)),
      erase: () => view.dispatch(view.state.tr.delete(view.state.selection.head - 1, view.state.selection.head)),
      text: () => fragment.toString().replace(/<[^>]*>/g, ""),
    };
  };

test.each([
  ["y-codemirror.next", codeMirror, 0],
  ["y-prosemirror", proseMirror(yProsemirror), 0],
  // TipTap stores the character to the left of the caret: the one that was typed last.
  ["@tiptap/y-tiptap", proseMirror(yTiptap), 2 * LETTERS],
] as const)("[CARET1] %s changes the caret once for each move, and as often as known while its author types", async (_, open, known) => {
  const doc = new Y.Doc();
  let carets = 0;
  const show = (fields: readonly { readonly name: string }[]): void => {
    carets += fields.filter(({ name }) => name === "cursor").length;
  };
  const reportError = (error: unknown): never => {
    throw error;
  };
  const awareness = new RoomAwareness(doc, { participants: new Map(), show }, { clock: new ClientFakeClock(), reportError });
  const editor = open(doc, awareness);
  await nextTask(); // Bindings of ProseMirror show the document then.
  const caretsOf = (act: () => void): number => {
    carets = 0;
    act();
    return carets;
  };
  const typing = (): void => {
    for (let letter = 0; letter < LETTERS; letter++) editor.type("a");
    for (let letter = 0; letter < LETTERS; letter++) editor.erase();
  };
  const counts = {
    intoTheMiddle: caretsOf(() => editor.select(5)),
    typingInTheMiddle: caretsOf(typing),
    toTheEnd: caretsOf(() => editor.select(11)),
    typingAtTheEnd: caretsOf(typing),
    tenMoves: caretsOf(() => {
      for (let at = 10; at >= 1; at--) editor.select(at);
    }),
  };
  await nextTask(); // Bindings of ProseMirror draw carets then.
  expect(counts).toEqual({
    intoTheMiddle: 1,
    typingInTheMiddle: known,
    toTheEnd: 1,
    typingAtTheEnd: known,
    tenMoves: 10,
  });
  expect(editor.text()).toBe("hello world");
});
