/** TipTap on a shared document. `?user=ada` sets the user. */

import { CoroomProvider, useParticipants, useRoom, useSaved, useStatus } from "@coroom/react";
import Collaboration from "@tiptap/extension-collaboration";
import CollaborationCaret from "@tiptap/extension-collaboration-caret";
import { EditorContent, useEditor } from "@tiptap/react";
import StarterKit from "@tiptap/starter-kit";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

const search = new URLSearchParams(location.search);
const user = search.get("user") ?? `guest-${Math.floor(Math.random() * 1_000)}`;
const url = search.get("coroom") ?? "ws://127.0.0.1:8080";
/** The carets' extension accepts only #rrggbb. */
const COLORS = ["#0d7a6f", "#b3261e", "#4a57c4", "#8a5a00", "#7a3e9d", "#2e7d32"];
const color = COLORS[[...user].reduce((sum, letter) => sum + letter.codePointAt(0), 0) % COLORS.length];

/** The client calls this again if it throws. */
async function token() {
  const response = await fetch(`/token?user=${encodeURIComponent(user)}`);
  if (!response.ok) throw new Error(`cannot get a token: HTTP ${response.status}`);
  return response.text();
}

function Editor({ room }) {
  const { doc, provider } = room;
  const editor = useEditor(
    {
      extensions: [
        StarterKit.configure({ undoRedo: false }), // Collaboration undoes only the user's own edits.
        Collaboration.configure({ document: doc }),
        CollaborationCaret.configure({ provider, user: { name: user, color } }),
      ],
    },
    [room],
  );
  return <EditorContent editor={editor} />;
}

function Page() {
  const room = useRoom("notes-tiptap");
  const { status } = useStatus(room);
  const { saved } = useSaved(room);
  const names = useParticipants(room).map(({ name }) => name);
  return (
    <>
      <p>
        <b id="here">{names.join(", ")}</b> <span id="status">{status !== "connected" ? status : saved ? "saved" : "saving…"}</span>
      </p>
      <Editor room={room} />
    </>
  );
}

createRoot(document.querySelector("#root")).render(
  <StrictMode>
    <CoroomProvider url={url} token={token}>
      <Page />
    </CoroomProvider>
  </StrictMode>,
);
