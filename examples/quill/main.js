/** Quill on a shared text. `?user=ada` sets the user. */

import "quill/dist/quill.snow.css";
import { CoroomProvider } from "@coroom/client";
import Quill from "quill";
import QuillCursors from "quill-cursors";
import { QuillBinding } from "y-quill";
import * as Y from "yjs";

const search = new URLSearchParams(location.search);
const user = search.get("user") ?? `guest-${Math.floor(Math.random() * 1_000)}`;
const url = search.get("coroom") ?? "ws://127.0.0.1:8080";

const doc = new Y.Doc();
const provider = new CoroomProvider({ url, room: "notes-quill", doc, token });
const color = `hsl(${[...user].reduce((sum, letter) => sum + letter.codePointAt(0) * 47, 0) % 360} 70% 45%)`;
provider.awareness.setLocalStateField("user", { name: user, color });

/** The client calls this again if it throws. */
async function token() {
  const response = await fetch(`/token?user=${encodeURIComponent(user)}`);
  if (!response.ok) throw new Error(`cannot get a token: HTTP ${response.status}`);
  return response.text();
}

Quill.register("modules/cursors", QuillCursors);
const quill = new Quill("#editor", {
  theme: "snow",
  modules: {
    cursors: true,
    toolbar: [["bold", "italic"], [{ list: "bullet" }]],
    history: { userOnly: true }, // Undoes only the user's own edits.
  },
});
new QuillBinding(doc.getText("quill"), quill, provider.awareness);

const show = () => {
  document.querySelector("#here").textContent = [...provider.participants.values()].map(({ name }) => name).join(", ");
  document.querySelector("#status").textContent = provider.status !== "connected" ? provider.status : provider.saved ? "saved" : "saving…";
};
for (const event of ["participants", "status", "saved"]) provider.on(event, show);
