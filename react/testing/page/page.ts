/** A small page in React: a shared text, the present users and their presence, and stored versions. With `people`, the people of the tenant. Under StrictMode. */

import { type ChangeEvent, createElement as h, type ReactNode, StrictMode, useState, useSyncExternalStore } from "react";
import { createRoot } from "react-dom/client";

import { CoroomProvider, useHistory, useParticipants, usePresence, useRoom, useSaved, useStatus, useTenantBoard } from "../../index.ts";

const query = new URLSearchParams(location.search);
const url = query.get("url")!;
const token = query.get("token")!;

function Notes(): ReactNode {
  const room = useRoom(query.get("room")!);
  const { status } = useStatus(room);
  const { saved } = useSaved(room);
  const names = useParticipants(room).map(({ name }) => name);
  const { others, set } = usePresence<{ mood: string }>(room);
  const { state, versions, saveVersion, restore } = useHistory(room);
  const [error, setError] = useState("");
  const showError = (cause: unknown): void => setError(String(cause));
  const first = versions.find(({ name }) => name === "first");
  const text = room.doc.getText("text");
  const content = useSyncExternalStore(
    (onChange) => {
      text.observe(onChange);
      return () => text.unobserve(onChange);
    },
    () => text.toString(),
  );
  const facts = { status, saved, names: names.toSorted(), content, moods: others.map(({ fields }) => fields.mood), state, error };
  return h(
    "main",
    null,
    h("textarea", {
      value: content,
      onChange: ({ target: { value } }: ChangeEvent<HTMLTextAreaElement>) => text.insert(text.length, value.slice(content.length)),
    }),
    h("button", { id: "mood", onClick: () => set({ mood: "calm" }) }),
    h("button", { id: "save", onClick: () => saveVersion("first").catch(showError) }),
    h("button", { id: "restore", disabled: !first, onClick: () => first && restore(first.seq).catch(showError) }),
    h("pre", null, JSON.stringify({ ...facts, versions: versions.map(({ name }) => name) })),
  );
}

function People(): ReactNode {
  const { ranking, state } = useTenantBoard({ board: "people", window: "year" });
  return h("p", { id: "people" }, `${state} ${ranking.map(({ name }) => name).join()}`);
}

createRoot(document.getElementById("root")!).render(
  h(StrictMode, null, h(CoroomProvider, { url, token: () => Promise.resolve(token) }, h(Notes), query.has("people") && h(People))),
);
