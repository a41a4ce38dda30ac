/**
 * A shared text with comments in threads. A thread is stored in the document, beside the text, so it is saved, undone,
 * kept offline and deleted with it. `?user=ada` sets the user.
 *
 *   threads: Y.Map  thread id -> Y.Map { from, to: relative positions, quote, messages: Y.Array of { author, words, time } }
 */

import { defaultKeymap } from "@codemirror/commands";
import { EditorState, StateEffect, StateField } from "@codemirror/state";
import { Decoration, EditorView, keymap } from "@codemirror/view";
import { CoroomProvider } from "@coroom/client";
import { yCollab, yUndoManagerKeymap } from "y-codemirror.next";
import * as Y from "yjs";

const search = new URLSearchParams(location.search);
const user = search.get("user") ?? `guest-${Math.floor(Math.random() * 1_000)}`;
const url = search.get("coroom") ?? "ws://127.0.0.1:8080";

const doc = new Y.Doc();
const text = doc.getText("text");
const threads = doc.getMap("threads");
const provider = new CoroomProvider({ url, room: "notes-comments", doc, token });
provider.awareness.setLocalStateField("user", { name: user, color: "#4a57c4" });

/** The client calls this again if it throws. */
async function token() {
  const response = await fetch(`/token?user=${encodeURIComponent(user)}`);
  if (!response.ok) throw new Error(`cannot get a token: HTTP ${response.status}`);
  return response.text();
}

/** Relative positions stay at their characters while anybody types. A place whose text is deleted has no length. */
const placeAt = (index, association) => Y.relativePositionToJSON(Y.createRelativePositionFromTypeIndex(text, index, association));
const indexOf = (place) => Y.createAbsolutePositionFromRelativePosition(Y.createRelativePositionFromJSON(place), doc)?.index ?? 0;
const [BEHIND, BEFORE] = [0, -1];

function commentOn(from, to, words) {
  const thread = new Y.Map();
  doc.transact(() => {
    threads.set(crypto.randomUUID(), thread);
    thread.set("from", placeAt(from, BEHIND));
    thread.set("to", placeAt(to, BEFORE));
    thread.set("quote", text.toString().slice(from, to));
    thread.set("messages", new Y.Array());
    reply(thread, words);
  });
}

function reply(thread, words) {
  thread.get("messages").push([{ author: user, words, time: Date.now() }]);
}

const setMarks = StateEffect.define();
const marks = StateField.define({
  create: () => Decoration.none,
  update: (shown, { changes, effects }) => effects.findLast((effect) => effect.is(setMarks))?.value ?? shown.map(changes),
  provide: (field) => EditorView.decorations.from(field),
});
const view = new EditorView({
  parent: document.querySelector("#editor"),
  doc: text.toString(),
  extensions: [
    EditorState.lineSeparator.of("\n"), // Otherwise CodeMirror counts "\r\n" as one character, and Yjs as two.
    keymap.of([...yUndoManagerKeymap, ...defaultKeymap]),
    EditorView.lineWrapping,
    marks,
    yCollab(text, provider.awareness, { undoManager: new Y.UndoManager([text, threads]) }),
  ],
});

const rangeOf = (thread) => ({ from: indexOf(thread.get("from")), to: indexOf(thread.get("to")) });
function showMarks() {
  const ranges = [...threads.values()].map(rangeOf).filter(({ from, to }) => from < to && to <= view.state.doc.length);
  const mark = Decoration.mark({ class: "commented" });
  const value = Decoration.set(
    ranges.map(({ from, to }) => mark.range(from, to)),
    true,
  );
  view.dispatch({ effects: setMarks.of(value) });
}

function element(tag, content, more = {}) {
  const made = Object.assign(document.createElement(tag), more);
  made.append(...content);
  return made;
}

/** The elements of each thread. They stay while others write, so that a reply that is being typed is kept. */
const shown = new Map();

function threadElement(id, thread) {
  const words = element("input", [], { ariaLabel: "Reply", required: true });
  const form = element("form", [words, element("button", ["Reply"])]);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    reply(threads.get(id), words.value); // Not `thread`: "Resolve" and undo make another map of the same content.
    form.reset();
  });
  const resolve = element("button", ["Resolve"], { type: "button", onclick: () => threads.delete(id) });
  const messages = element("div", []);
  const section = element("section", [element("blockquote", [thread.get("quote")]), messages, form, resolve], { className: "thread" });
  return { section, messages };
}

function showThreads() {
  const inOrder = [...threads].toSorted(([, a], [, b]) => rangeOf(a).from - rangeOf(b).from);
  const sections = inOrder.map(([id, thread]) => {
    if (!shown.has(id)) shown.set(id, threadElement(id, thread));
    const { section, messages } = shown.get(id);
    const written = thread.get("messages").map(({ author, words, time }) => {
      const at = element("time", [new Date(time).toLocaleString()], { dateTime: new Date(time).toISOString() });
      return element("p", [element("b", [author]), " ", at, ` ${words}`]);
    });
    messages.replaceChildren(...written);
    return section;
  });
  const list = document.querySelector("#threads");
  const isSame = list.children.length === sections.length && sections.every((section, index) => list.children[index] === section);
  if (!isSame) list.replaceChildren(...sections); // Moving an element takes the focus from it.
}

threads.observeDeep(() => {
  showThreads();
  showMarks();
});

document.querySelector("#new").addEventListener("submit", (event) => {
  event.preventDefault();
  const { from, to } = view.state.selection.main;
  document.querySelector("#hint").textContent = from === to ? "Select the text that you comment on." : "";
  if (from === to) return;
  commentOn(from, to, event.target.words.value);
  event.target.reset();
});

const show = () => {
  document.querySelector("#here").textContent = [...provider.participants.values()].map(({ name }) => name).join(", ");
  document.querySelector("#status").textContent = provider.status !== "connected" ? provider.status : provider.saved ? "saved" : "saving…";
};
for (const event of ["participants", "status", "saved"]) provider.on(event, show);
