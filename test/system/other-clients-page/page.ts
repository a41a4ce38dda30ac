/** A page with the unmodified provider of another server. It shows the provider's reports, and writes on request. */

import { HocuspocusProvider } from "@hocuspocus/provider";
import { WebsocketProvider } from "y-websocket";
import * as Y from "yjs";

const query = new URLSearchParams(location.search);
const [client, url, room, token] = ["client", "url", "room", "token"].map((name) => query.get(name) ?? "") as [
  string,
  string,
  string,
  string,
];
const doc = new Y.Doc();
const text = doc.getText("t");

function connect(): { isSynced: () => boolean; unsynced: () => number } {
  if (client === "hocuspocus") {
    const provider = new HocuspocusProvider({ url, name: room, document: doc, token });
    provider.setAwarenessField("name", client);
    names = () => [...(provider.awareness?.getStates().values() ?? [])].map((state) => String(state["name"]));
    return { isSynced: () => provider.isSynced, unsynced: () => provider.unsyncedChanges };
  }
  const provider = new WebsocketProvider(url, room, doc, { params: { token }, disableBc: true });
  provider.awareness.setLocalStateField("name", client);
  names = () => [...provider.awareness.getStates().values()].map((state) => String(state["name"]));
  return { isSynced: () => provider.synced, unsynced: () => 0 };
}

let names = (): string[] => [];
const { isSynced, unsynced } = connect();
const show = (): void => {
  const facts = { text: text.toJSON(), synced: isSynced(), unsynced: unsynced(), names: names().toSorted() };
  document.querySelector("pre")!.textContent = JSON.stringify(facts);
};
setInterval(show, 50);
Object.assign(globalThis, { write: (words: string) => text.insert(text.length, words) });
