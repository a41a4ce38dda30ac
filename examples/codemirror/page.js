/** A shared editor: CodeMirror on the text of a Yjs document. `?user=ada` sets the user, `&devtools` shows the developer panel. */

import { defaultKeymap } from "@codemirror/commands";
import { EditorView, keymap } from "@codemirror/view";
import { CoroomProvider } from "@coroom/client";
import { yCollab, yUndoManagerKeymap } from "y-codemirror.next";
import * as Y from "yjs";

import { lineEnds } from "./line-ends.js";

const search = new URLSearchParams(location.search);
const user = search.get("user") ?? `guest-${Math.floor(Math.random() * 1_000)}`;
const url = search.get("coroom") ?? "ws://127.0.0.1:8080";

const doc = new Y.Doc();
const text = doc.getText("text");
const provider = new CoroomProvider({ url, room: "notes", doc, token });
provider.awareness.setLocalStateField("user", {
  name: user,
  color: `hsl(${[...user].reduce((sum, letter) => sum + letter.codePointAt(0) * 47, 0) % 360} 70% 45%)`,
}); // What others see at the caret.

/** The client calls this again if it throws. A value that is no token would be rejected permanently. */
async function token() {
  const response = await fetch(`/token?user=${encodeURIComponent(user)}`);
  if (!response.ok) throw new Error(`cannot get a token: HTTP ${response.status}`);
  return response.text();
}

new EditorView({
  parent: document.querySelector("#editor"),
  doc: text.toString(),
  extensions: [lineEnds, keymap.of([...yUndoManagerKeymap, ...defaultKeymap]), EditorView.lineWrapping, yCollab(text, provider.awareness)],
});

const show = () => {
  document.querySelector("#here").textContent = [...provider.participants.values()].map(({ name }) => name).join(", ");
  document.querySelector("#status").textContent =
    provider.status !== "connected" ? `${provider.status} ${provider.outage?.why ?? ""}` : provider.saved ? "saved" : "saving…";
};
provider.on("participants", show);
provider.on("status", show);
provider.on("saved", show);
provider.on("refused", ({ message }) => (document.querySelector("#status").textContent = message));
if (search.has("devtools")) import("@coroom/client/devtools").then(({ showDevtools }) => showDevtools(provider, { isOpen: true }));
addEventListener("beforeunload", (event) => provider.saved || event.preventDefault());
