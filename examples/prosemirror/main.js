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
/** y-prosemirror accepts only #rrggbb. */
const COLORS = ["#0d7a6f", "#b3261e", "#4a57c4", "#8a5a00", "#7a3e9d", "#2e7d32"];
const color = COLORS[[...user].reduce((sum, letter) => sum + letter.codePointAt(0), 0) % COLORS.length];
provider.awareness.setLocalStateField("user", { name: user, color });

/** The client calls this again if it throws. */
async function token() {
  const response = await fetch(`/token?user=${encodeURIComponent(user)}`);
  if (!response.ok) throw new Error(`cannot get a token: HTTP ${response.status}`);
  return response.text();
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
