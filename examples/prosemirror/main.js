/** ProseMirror on a shared document. `?user=ada` sets the user. */

import "prosemirror-view/style/prosemirror.css";
import { CoroomProvider } from "@coroom/client";
import { exampleSetup } from "prosemirror-example-setup";
import { keymap } from "prosemirror-keymap";
import { schema } from "prosemirror-schema-basic";
import { EditorState } from "prosemirror-state";
import { EditorView } from "prosemirror-view";
import { redo, undo, yCursorPlugin, ySyncPlugin, yUndoPlugin } from "y-prosemirror";
import * as Y from "yjs";

const search = new URLSearchParams(location.search);
const user = search.get("user") ?? `guest-${Math.floor(Math.random() * 1_000)}`;
const url = search.get("coroom") ?? "ws://127.0.0.1:8080";

const doc = new Y.Doc();
const provider = new CoroomProvider({ url, room: "notes-prosemirror", doc, token });
const hue = [...user].reduce((sum, letter) => sum + letter.codePointAt(0) * 47, 0) % 360;
provider.awareness.setLocalStateField("user", { name: user, color: hexOf(hue) }); // y-prosemirror accepts only #rrggbb.

/** The client calls this again if it throws. */
async function token() {
  const response = await fetch(`/token?user=${encodeURIComponent(user)}`);
  if (!response.ok) throw new Error(`cannot get a token: HTTP ${response.status}`);
  return response.text();
}

/** A colour of medium lightness as #rrggbb. */
function hexOf(hue) {
  const channel = (offset) => {
    const part = (offset + hue / 30) % 12;
    return Math.round(255 * (0.45 - 0.32 * Math.max(-1, Math.min(part - 3, 9 - part, 1))))
      .toString(16)
      .padStart(2, "0");
  };
  return `#${channel(0)}${channel(8)}${channel(4)}`;
}

new EditorView(document.querySelector("#root"), {
  state: EditorState.create({
    schema,
    plugins: [
      ySyncPlugin(doc.getXmlFragment("prosemirror")),
      yCursorPlugin(provider.awareness),
      yUndoPlugin(), // Undoes only the user's own edits.
      keymap({ "Mod-z": undo, "Mod-y": redo, "Mod-Shift-z": redo }),
      ...exampleSetup({ schema, menuBar: false, history: false }),
    ],
  }),
});

const show = () => {
  document.querySelector("#here").textContent = [...provider.participants.values()].map(({ name }) => name).join(", ");
  document.querySelector("#status").textContent = provider.status !== "connected" ? provider.status : provider.saved ? "saved" : "saving…";
};
for (const event of ["participants", "status", "saved"]) provider.on(event, show);
