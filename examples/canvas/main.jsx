/** A canvas with notes and the pointers of all people, in React. `?user=ada` sets the user. */

import { CoroomProvider, useParticipants, usePresence, useRoom, useSaved, useStatus } from "@coroom/react";
import { StrictMode, useCallback, useEffect, useMemo, useState, useSyncExternalStore } from "react";
import { createRoot } from "react-dom/client";
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

/** The notes in the document: a map from note id to `{ x, y, text }`. A new array after each change. */
function useNotes(doc) {
  const notes = useMemo(() => {
    const map = doc.getMap("notes");
    let list = [];
    const read = () => (list = [...map].map(([id, note]) => ({ id, ...note })));
    read();
    return {
      map,
      undo: new Y.UndoManager(map), // Only the user's own edits.
      get: () => list,
      subscribe: (onChange) => {
        const observer = () => (read(), onChange());
        map.observe(observer);
        return () => map.unobserve(observer);
      },
    };
  }, [doc]);
  return { notes: useSyncExternalStore(notes.subscribe, notes.get), map: notes.map, undo: notes.undo };
}

function Canvas({ room }) {
  const { notes, map, undo } = useNotes(room.doc);
  const { others, set } = usePresence(room);
  const [held, setHeld] = useState();

  // The server sends only pointers inside or near the visible part.
  useEffect(() => {
    const show = () => set({ viewport: { x: 0, y: 0, width: innerWidth, height: innerHeight } });
    show();
    addEventListener("resize", show);
    return () => removeEventListener("resize", show);
  }, [set]);

  const placeOf = ({ currentTarget, clientX, clientY }) => {
    const { left, top } = currentTarget.getBoundingClientRect();
    return { x: Math.round(clientX - left), y: Math.round(clientY - top) };
  };
  const point = useCallback(
    (event) => {
      const at = placeOf(event);
      set({ cursor: at });
      if (held !== undefined) setHeld({ ...held, ...at });
    },
    [set, held],
  );
  const drop = () => {
    if (held === undefined) return;
    map.set(held.id, { x: held.x, y: held.y, text: held.text }); // One edit for the whole drag.
    setHeld(undefined);
  };
  const add = (event) => map.set(crypto.randomUUID(), { ...placeOf(event), text: `${user}'s note` });

  return (
    <>
      <button id="undo" onClick={() => undo.undo()}>
        Undo
      </button>
      <div
        id="canvas"
        onPointerMove={point}
        onPointerUp={drop}
        onPointerCancel={drop}
        onPointerLeave={() => set({ cursor: null })}
        onDoubleClick={add}
      >
        {notes.map((note) => {
          const { id, x, y, text } = held?.id === note.id ? held : note;
          return (
            <div
              key={id}
              className="note"
              style={{ left: x, top: y }}
              onPointerDown={({ currentTarget, pointerId }) => {
                currentTarget.setPointerCapture(pointerId); // The note is also dropped outside of the canvas.
                setHeld({ id, x, y, text });
              }}
            >
              {text}
            </div>
          );
        })}
        {others.map(({ client, name, cursor }) =>
          cursor === undefined ? null : (
            <div key={client} className="pointer" style={{ left: cursor.x, top: cursor.y }}>
              {name}
            </div>
          ),
        )}
      </div>
    </>
  );
}

function Page() {
  const room = useRoom("notes-canvas");
  const { status } = useStatus(room);
  const { saved } = useSaved(room);
  const names = useParticipants(room).map(({ name }) => name);
  return (
    <>
      <p>
        <b id="here">{names.join(", ")}</b> <span id="status">{status !== "connected" ? status : saved ? "saved" : "saving…"}</span> Double
        click to add a note.
      </p>
      <Canvas room={room} />
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
