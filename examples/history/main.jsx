/** A shared text with its history: save versions, compare one with the text, restore it. `?user=ada` sets the user. */

import { defaultKeymap } from "@codemirror/commands";
import { MergeView } from "@codemirror/merge";
import { EditorState } from "@codemirror/state";
import { EditorView, keymap } from "@codemirror/view";
import { CoroomProvider, useHistory, useParticipants, useRoom, useSaved, useStatus } from "@coroom/react";
import { StrictMode, useEffect, useRef, useState } from "react";
import { createRoot } from "react-dom/client";
import { yCollab, yUndoManagerKeymap } from "y-codemirror.next";
import * as Y from "yjs";

const search = new URLSearchParams(location.search);
const user = search.get("user") ?? `guest-${Math.floor(Math.random() * 1_000)}`;
const url = search.get("coroom") ?? "ws://127.0.0.1:8080";

/** The client calls this again if it throws. */
async function token() {
  const response = await fetch(`/token?user=${encodeURIComponent(user)}`);
  if (!response.ok) throw new Error(`cannot get a token: HTTP ${response.status}`);
  return response.text();
}

/** Shows a view in an element as long as the component exists. `make`: creates the view in the given parent. */
function View({ id, make, of }) {
  const parent = useRef(null);
  useEffect(() => {
    const view = make(parent.current);
    return () => view.destroy();
  }, [of]);
  return <div id={id} ref={parent} />;
}

function Editor({ room: { doc, provider } }) {
  const make = (parent) => {
    const text = doc.getText("text");
    const extensions = [
      EditorState.lineSeparator.of("\n"), // Otherwise CodeMirror counts "\r\n" as one character, and Yjs as two.
      keymap.of([...yUndoManagerKeymap, ...defaultKeymap]),
      EditorView.lineWrapping,
      yCollab(text, provider.awareness),
    ];
    provider.awareness.setLocalStateField("user", { name: user, color: "#4a57c4" });
    return new EditorView({ parent, doc: text.toString(), extensions });
  };
  return <View id="editor" make={make} of={provider} />;
}

/** The version beside the text as it is now. Later edits are not shown in it. */
function Comparison({ version, now }) {
  const readOnly = [EditorState.readOnly.of(true), EditorView.lineWrapping];
  const make = (parent) => new MergeView({ parent, a: { doc: version, extensions: readOnly }, b: { doc: now, extensions: readOnly } });
  return <View id="comparison" make={make} of={`${version}\n${now}`} />;
}

function History({ room }) {
  const history = useHistory(room);
  const [name, setName] = useState("");
  const [shown, setShown] = useState();
  const [failure, setFailure] = useState();
  const carryOut = (action) => {
    setFailure(undefined);
    action().catch((error) => setFailure(error));
  };
  const show = (version) =>
    carryOut(async () => {
      const past = new Y.Doc();
      Y.applyUpdate(past, await history.contentAt(version.seq));
      setShown({ version, text: past.getText("text").toString(), now: room.doc.getText("text").toString() });
    });
  const save = (event) => {
    event.preventDefault();
    carryOut(async () => {
      await history.saveVersion(name);
      setName("");
    });
  };
  const restore = () =>
    carryOut(async () => {
      await history.restore(shown.version.seq);
      setShown(undefined);
    });

  return (
    <aside>
      <h2>Versions</h2>
      <form onSubmit={save}>
        <input aria-label="Name of the version" value={name} onChange={(event) => setName(event.target.value)} required />{" "}
        <button id="save">Save a version</button>
      </form>
      {(failure ?? history.error) && <p role="alert">{(failure ?? history.error).message}</p>}
      <ol id="versions">
        {history.versions.toReversed().map((version) => (
          <li key={version.id}>
            <button aria-pressed={shown?.version.id === version.id} onClick={() => show(version)}>
              {version.name ?? "automatic"}, {new Date(version.time).toLocaleString()}
            </button>
          </li>
        ))}
      </ol>
      {shown && (
        <section>
          <p>
            <button id="restore" onClick={restore}>
              Restore this version
            </button>{" "}
            <button onClick={() => setShown(undefined)}>Close</button>
          </p>
          <Comparison version={shown.text} now={shown.now} />
        </section>
      )}
    </aside>
  );
}

function Page() {
  const room = useRoom("notes-history");
  const { status } = useStatus(room);
  const { saved } = useSaved(room);
  const names = useParticipants(room).map((participant) => participant.name);
  return (
    <>
      <p>
        <b id="here">{names.join(", ")}</b> <span id="status">{status !== "connected" ? status : saved ? "saved" : "saving…"}</span>
      </p>
      <main>
        <Editor room={room} />
        <History room={room} />
      </main>
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
