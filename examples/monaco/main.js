/** Monaco on a shared text. `?user=ada` sets the user. */

import { CoroomProvider } from "@coroom/client";
import * as monaco from "monaco-editor";
// oxlint-disable-next-line import/default -- Vite makes the default export for "?worker".
import EditorWorker from "monaco-editor/esm/vs/editor/editor.worker?worker";
import { MonacoBinding } from "y-monaco";
import * as Y from "yjs";

const search = new URLSearchParams(location.search);
const user = search.get("user") ?? `guest-${Math.floor(Math.random() * 1_000)}`;
const url = search.get("coroom") ?? "ws://127.0.0.1:8080";

const doc = new Y.Doc();
const text = doc.getText("monaco");
const provider = new CoroomProvider({ url, room: "notes-monaco", doc, token });
const color = `hsl(${[...user].reduce((sum, letter) => sum + letter.codePointAt(0) * 47, 0) % 360} 70% 45%)`;
provider.awareness.setLocalStateField("user", { name: user, color });

/** The client calls this again if it throws. */
async function token() {
  const response = await fetch(`/token?user=${encodeURIComponent(user)}`);
  if (!response.ok) throw new Error(`cannot get a token: HTTP ${response.status}`);
  return response.text();
}

self.MonacoEnvironment = { getWorker: () => new EditorWorker() };
const model = monaco.editor.createModel("", "markdown");
model.setEOL(monaco.editor.EndOfLineSequence.LF); // Yjs counts "\r\n" as two characters.
const editor = monaco.editor.create(document.querySelector("#editor"), { model, minimap: { enabled: false }, automaticLayout: true });
const binding = new MonacoBinding(text, model, new Set([editor]), provider.awareness);

// Monaco's own undo would undo the edits of others.
const undo = new Y.UndoManager(text, { trackedOrigins: new Set([binding]) });
const { KeyMod, KeyCode } = monaco;
editor.addCommand(KeyMod.CtrlCmd | KeyCode.KeyZ, () => undo.undo());
editor.addCommand(KeyMod.CtrlCmd | KeyCode.KeyY, () => undo.redo());
editor.addCommand(KeyMod.CtrlCmd | KeyMod.Shift | KeyCode.KeyZ, () => undo.redo());

/** y-monaco gives each caret a class with its client's id. The names come from these styles. */
const styles = document.head.appendChild(document.createElement("style"));
provider.awareness.on("change", () => {
  const others = [...provider.awareness.getStates()].filter(([client]) => client !== doc.clientID);
  styles.textContent = others
    .map(([client, { user }]) => {
      const shown = typeof user?.color === "string" && CSS.supports("color", user.color) && !/[;{}]/.test(user.color) ? user.color : "gray";
      const name = JSON.stringify(String(user?.name ?? client)).replaceAll("<", "");
      return `.yRemoteSelectionHead-${client} { --caret: ${shown}; } .yRemoteSelectionHead-${client}::after { content: ${name}; }`;
    })
    .join("\n");
});

const show = () => {
  document.querySelector("#here").textContent = [...provider.participants.values()].map(({ name }) => name).join(", ");
  document.querySelector("#status").textContent = provider.status !== "connected" ? provider.status : provider.saved ? "saved" : "saving…";
};
for (const event of ["participants", "status", "saved"]) provider.on(event, show);
