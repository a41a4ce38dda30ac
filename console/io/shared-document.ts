/** The document over @coroom/client, and the facts about it that the page shows. */

import { CoroomProvider } from "@coroom/client";
import { indexedDbStore } from "@coroom/client/indexeddb";
import type * as Y from "yjs";

import type { Facts } from "../status.ts";

/** `asksToWrite`: who only reads keeps nothing, and leaves what a writer's tab left behind to one that may send it. */
export type SharedDocument = {
  readonly room: string;
  readonly doc: Y.Doc;
  readonly token: () => Promise<string>;
  readonly asksToWrite: boolean;
};

/** There are no accounts here: what is kept belongs to whoever uses this browser, under whatever name. An application names who is signed in. */
const OWNER = "demo";
/** Something waits and nothing of the room was stored for so long: told even where the server cannot tell it. */
const STANDSTILL_MS = 3000;

export function openSharedDocument({ room, doc, token, asksToWrite }: SharedDocument): CoroomProvider {
  const provider = new CoroomProvider({
    url: location.origin.replace(/^http/, "ws"),
    room,
    doc,
    token,
    ...(asksToWrite ? { store: indexedDbStore({ owner: OWNER }) } : {}),
  });
  provider.on("refused", ({ message }) => console.error(message));
  provider.on("error", ({ message }) => console.warn(message));
  window.addEventListener("beforeunload", (event) => {
    if (!provider.stored) event.preventDefault(); // The browser asks before it closes the tab.
  });
  return provider;
}

/** Tells them at once, and whenever they change. `asksToWrite`: what is gone by until the server has told the rights. */
export function watchFacts(provider: CoroomProvider, asksToWrite: boolean, receiveFacts: (facts: Facts) => void): void {
  let loaded = false;
  let deleted = false;
  let tooLarge = false;
  let lacksContent = false;
  let keptHere = true;
  let standsStill = false;
  let standstill: ReturnType<typeof setTimeout> | undefined;
  let unsavedSince: number | undefined;
  let lastSaveMs: number | undefined;

  const tell = (): void => {
    const { status, outage, saving, rights, client, saved, unsavedEdits, seq } = provider;
    const mayWrite = client === undefined ? asksToWrite : rights.write;
    receiveFacts({
      status,
      loaded,
      putOff: outage?.reason,
      deleted,
      lacksContent,
      saving: standsStill && saving === "saved" ? "saving" : saving,
      mayWrite,
      keptHere,
      saved,
      unsavedEdits,
      tooLarge,
      seq,
      lastSaveMs,
    });
  };
  const moves = (): void => {
    clearTimeout(standstill);
    standsStill = false;
    if (!provider.saved) {
      standstill = setTimeout(() => {
        standsStill = true;
        tell();
      }, STANDSTILL_MS);
    }
    tell();
  };
  const receiveSaved = (saved: boolean): void => {
    if (saved) tooLarge = false;
    if (saved && unsavedSince !== undefined) lastSaveMs = performance.now() - unsavedSince;
    unsavedSince = saved ? undefined : performance.now();
    moves();
  };
  provider.on("status", moves);
  provider.on("seq", moves);
  provider.on("saved", receiveSaved);
  provider.on("saving", tell);
  provider.on("stored", (stored) => {
    if (stored && !provider.saved) keptHere = true; // It works again.
    tell();
  });
  provider.on("restored", () => {
    loaded ||= provider.doc.store.clients.size > 0; // It was here before: no need to wait for a connection.
    tell();
  });
  provider.on("synced", (synced) => {
    loaded ||= synced;
    if (synced) lacksContent = false;
    tell();
  });
  provider.on("refused", (refusal) => {
    deleted = refusal.kind === "room-refused" && refusal.reason === "deleted";
    tell();
  });
  provider.on("error", ({ kind }) => {
    lacksContent ||= kind === "snapshot-unavailable";
    tooLarge ||= kind === "edit-too-large";
    keptHere &&= kind !== "storage-failed";
    tell();
  });
  provider.doc.on("update", tell); // One more edit may be unsaved; "saved" tells only the first.
  tell();
}
