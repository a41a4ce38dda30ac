/** Opens the document with @coroom/client, and derives the facts that the page shows. */

import { CoroomProvider } from "@coroom/client";
import { indexedDbStore } from "@coroom/client/indexeddb";
import type * as Y from "yjs";

import type { PageFacts } from "../status.ts";

/**
 * `asksToWrite`: a reader keeps no edits on the device, and leaves edits of an earlier writer to a tab that may send
 * them.
 */
type SharedDocument = {
  readonly room: string;
  readonly doc: Y.Doc;
  readonly token: () => Promise<string>;
  readonly asksToWrite: boolean;
};

/**
 * The demo has no accounts: kept edits belong to the browser, under any name. An application uses the id of the
 * signed-in user.
 */
const OWNER = "demo";
/**
 * Milliseconds with unsaved edits and no stored edit after which the page shows slow saving, even if the server does
 * not report it.
 */
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

/**
 * Publishes the facts immediately and after each change. `asksToWrite`: used as the right to write until the server has
 * sent the rights.
 */
export function watchFacts(provider: CoroomProvider, asksToWrite: boolean, receiveFacts: (facts: PageFacts) => void): void {
  let loaded = false;
  let deleted = false;
  let tooLarge = false;
  let lacksContent = false;
  let keptHere = true;
  let standsStill = false;
  let standstill: ReturnType<typeof setTimeout> | undefined;
  let unsavedSince: number | undefined;
  let lastSaveMs: number | undefined;

  const publishFacts = (): void => {
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
  const receiveProgress = (): void => {
    clearTimeout(standstill);
    standsStill = false;
    if (!provider.saved) {
      standstill = setTimeout(() => {
        standsStill = true;
        publishFacts();
      }, STANDSTILL_MS);
    }
    publishFacts();
  };
  const receiveSaved = (saved: boolean): void => {
    if (saved) tooLarge = false;
    if (saved && unsavedSince !== undefined) lastSaveMs = performance.now() - unsavedSince;
    unsavedSince = saved ? undefined : performance.now();
    receiveProgress();
  };
  provider.on("status", receiveProgress);
  provider.on("seq", receiveProgress);
  provider.on("saved", receiveSaved);
  provider.on("saving", publishFacts);
  provider.on("stored", (stored) => {
    if (stored && !provider.saved) keptHere = true; // Storage works again.
    publishFacts();
  });
  provider.on("restored", () => {
    loaded ||= provider.doc.store.clients.size > 0; // The device already has the document, so the page need not wait for a connection.
    publishFacts();
  });
  provider.on("synced", (synced) => {
    loaded ||= synced;
    if (synced) lacksContent = false;
    publishFacts();
  });
  provider.on("refused", (refusal) => {
    deleted = refusal.kind === "room-refused" && refusal.reason === "deleted";
    publishFacts();
  });
  provider.on("error", ({ kind }) => {
    lacksContent ||= kind === "snapshot-unavailable";
    tooLarge ||= kind === "edit-too-large";
    keptHere &&= kind !== "storage-failed";
    publishFacts();
  });
  provider.doc.on("update", publishFacts); // Counts further unsaved edits: "saved" fires only for the first.
  publishFacts();
}

type DemoTokenRequest = { readonly room: string; readonly user: string; readonly name: string; readonly rights: "read" | undefined };

/**
 * Requests a token from the server of this page. Only a local system provides one. In production, the application's
 * backend does this.
 */
export async function demoToken({ room, user, name, rights }: DemoTokenRequest): Promise<string> {
  const search = new URLSearchParams({ room, user, name, ...(rights === undefined ? {} : { rights }) });
  const answer = await fetch(`/demo/token?${search}`, { cache: "no-store" });
  if (answer.status === 404)
    throw new Error("cannot get a demo token: this server makes none. Start it with COROOM_DEMO on and COROOM_PRODUCTION off.");
  if (!answer.ok) throw new Error(`cannot get a demo token: the server, or a proxy before it, answered with status ${answer.status}`);
  const body: unknown = await answer.json().catch(() => undefined); // The page of a login or a proxy is no JSON.
  if (typeof body !== "object" || body === null || !("token" in body) || typeof body.token !== "string")
    throw new Error("cannot get a demo token: the answer contains none. It may be the login page of a network or a proxy");
  return body.token;
}
