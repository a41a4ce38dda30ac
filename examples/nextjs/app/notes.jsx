/** TipTap on a shared document. The server renders it without a connection, and the browser joins the room. */
"use client";

import { CoroomProvider, useParticipants, useRoom, useSaved, useStatus } from "@coroom/react";
import Collaboration from "@tiptap/extension-collaboration";
import CollaborationCaret from "@tiptap/extension-collaboration-caret";
import { EditorContent, useEditor } from "@tiptap/react";
import StarterKit from "@tiptap/starter-kit";

/** The carets' extension accepts only #rrggbb. */
const COLORS = ["#0d7a6f", "#b3261e", "#4a57c4", "#8a5a00", "#7a3e9d", "#2e7d32"];

/** The client calls this again if it throws. */
async function fetchToken(user) {
  const response = await fetch(`/token?user=${encodeURIComponent(user)}`);
  if (!response.ok) throw new Error(`cannot get a token: HTTP ${response.status}`);
  return response.text();
}

function Editor({ room, user }) {
  const { doc, provider } = room;
  const color = COLORS[[...user].reduce((sum, letter) => sum + letter.codePointAt(0), 0) % COLORS.length];
  const editor = useEditor(
    {
      immediatelyRender: false, // The server has no editor, so the first render of the browser has none either.
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

function Room({ user }) {
  const room = useRoom("notes-nextjs");
  const { status } = useStatus(room);
  const { saved } = useSaved(room);
  const names = useParticipants(room).map(({ name }) => name);
  return (
    <>
      <p>
        <b id="here">{names.join(", ")}</b> <span id="status">{status !== "connected" ? status : saved ? "saved" : "saving…"}</span>
      </p>
      <Editor room={room} user={user} />
    </>
  );
}

export function Notes({ user, url }) {
  return (
    <CoroomProvider url={url} token={() => fetchToken(user)}>
      <Room user={user} />
    </CoroomProvider>
  );
}
