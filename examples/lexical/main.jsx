/** Lexical on a shared document. `?user=ada` sets the user. */

import { CoroomProvider } from "@coroom/client";
import { LexicalCollaboration } from "@lexical/react/LexicalCollaborationContext";
import { CollaborationPlugin } from "@lexical/react/LexicalCollaborationPlugin";
import { LexicalComposer } from "@lexical/react/LexicalComposer";
import { ContentEditable } from "@lexical/react/LexicalContentEditable";
import { LexicalErrorBoundary } from "@lexical/react/LexicalErrorBoundary";
import { RichTextPlugin } from "@lexical/react/LexicalRichTextPlugin";
import { StrictMode, useCallback, useState } from "react";
import { createRoot } from "react-dom/client";
import * as Y from "yjs";

const search = new URLSearchParams(location.search);
const user = search.get("user") ?? `guest-${Math.floor(Math.random() * 1_000)}`;
const url = search.get("coroom") ?? "ws://127.0.0.1:8080";
const color = `hsl(${[...user].reduce((sum, letter) => sum + letter.codePointAt(0) * 47, 0) % 360} 70% 45%)`;

/** The client calls this again if it throws. */
async function token() {
  const response = await fetch(`/token?user=${encodeURIComponent(user)}`);
  if (!response.ok) throw new Error(`cannot get a token: HTTP ${response.status}`);
  return response.text();
}

const lexical = {
  editorState: null, // The content comes from the room.
  namespace: "notes",
  onError: (error) => console.error(error),
};

function Page() {
  const [facts, setFacts] = useState({ names: "", status: "connecting" });
  /** Lexical connects the provider when the editor is mounted, and disconnects it when the editor is unmounted. */
  const openRoom = useCallback((id, docs) => {
    const doc = docs.get(id) ?? new Y.Doc();
    docs.set(id, doc);
    const provider = new CoroomProvider({ url, room: id, doc, token, connect: false });
    const show = () => {
      const names = [...provider.participants.values()].map(({ name }) => name).join(", ");
      setFacts({ names, status: provider.status !== "connected" ? provider.status : provider.saved ? "saved" : "saving…" });
    };
    for (const event of ["participants", "status", "saved"]) provider.on(event, show);
    return provider;
  }, []);
  return (
    <>
      <p>
        <b id="here">{facts.names}</b> <span id="status">{facts.status}</span>
      </p>
      <LexicalCollaboration>
        <LexicalComposer initialConfig={lexical}>
          <div className="editor">
            <RichTextPlugin contentEditable={<ContentEditable aria-label="Notes" />} ErrorBoundary={LexicalErrorBoundary} />
            <CollaborationPlugin
              id="notes-lexical"
              providerFactory={openRoom}
              shouldBootstrap={false}
              username={user}
              cursorColor={color}
            />
          </div>
        </LexicalComposer>
      </LexicalCollaboration>
    </>
  );
}

createRoot(document.querySelector("#root")).render(
  <StrictMode>
    <Page />
  </StrictMode>,
);
