/** BlockNote on a shared document. `?user=ada` sets the user. */

import "@blocknote/mantine/style.css";
import { BlockNoteView } from "@blocknote/mantine";
import { useCreateBlockNote } from "@blocknote/react";
import { CoroomProvider, useParticipants, useRoom, useSaved, useStatus } from "@coroom/react";
import { StrictMode, useEffect } from "react";
import { createRoot } from "react-dom/client";
import { yUndoPluginKey } from "y-prosemirror";

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

function Editor({ room: { doc, provider } }) {
  const fragment = doc.getXmlFragment("blocks");
  const collaboration = { provider, fragment, user: { name: user, color }, showCursorLabels: "always" };
  const editor = useCreateBlockNote({ collaboration }, [provider]);
  useEffect(() => keepUndo(editor, doc), [editor, doc]);
  return <BlockNoteView editor={editor} />;
}

/** BlockNote ends its undo manager when it adds its menus (github.com/TypeCellOS/BlockNote/issues/2244). */
function keepUndo(editor, doc) {
  const { undoManager } = yUndoPluginKey.getState(editor.prosemirrorState);
  doc.off("afterTransaction", undoManager.afterTransactionHandler);
  doc.on("afterTransaction", undoManager.afterTransactionHandler);
  undoManager.trackedOrigins.add(undoManager);
  undoManager.destroy = () => {}; // It ends with the document.
}

function Page() {
  const room = useRoom("notes-blocknote");
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
