// @vitest-environment happy-dom
/** Rooms of components with a store on the device. */

import { createElement as h, lazy, type ReactNode, Suspense } from "react";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import * as Y from "yjs";

import { CoroomProvider as Provider } from "../client/main.ts";
import { DeviceStore } from "../client/persistence/device-store.ts";
import { MemoryStore } from "../client/testing/memory-store.ts";
import { eventually } from "../test/system/eventually.ts";
import { CoroomProvider, type CoroomProviderProps, type OpenRoom, useRoom, useStatus } from "./index.ts";
import { endTimersWithFile, MountedTree, type ServedRooms, serveRooms } from "./testing/served-rooms.ts";

endTimersWithFile();
let served: ServedRooms;
beforeEach(async () => {
  served = await serveRooms();
});
afterEach(() => served.stop());

function mount(node: ReactNode): MountedTree {
  const tree = new MountedTree(node);
  onTestFinished(() => tree.unmount());
  return tree;
}

test.each([
  { change: "the token as a text", token: (user: string) => user, path: "" },
  { change: "the URL", token: (user: string) => () => `t.o.${user}`, path: "/other" },
])("[HOOK11] when $change and the store change together, neither user's rooms use what the other gave", async ({ token, path }) => {
  const stores: string[] = [];
  const given = (user: string): Pick<CoroomProviderProps, "token" | "store"> => {
    const memory = new MemoryStore();
    const open: MemoryStore["open"] = (room) => (stores.push(user), memory.open(room));
    return { token: token(user), store: new DeviceStore({ open }) };
  };
  const rooms = new Set<OpenRoom>();
  const Notes = (): ReactNode => {
    const room = useRoom("notes");
    rooms.add(room);
    return `${rooms.size} ${useStatus(room).status}`;
  };
  const tree = mount(h(CoroomProvider, { url: served.url, ...given("ada") }, h(Notes)));
  await eventually("ada is connected", () => tree.text === "1 connected");
  served.model.commits = false;
  [...rooms][0]!.doc.getText("t").insert(0, "unsaved");
  tree.show(h(CoroomProvider, { url: `${served.url}${path}`, ...given("bob") }, h(Notes)));
  await eventually("bob is connected", () => tree.text === "2 connected");
  served.model.cut();
  const users = (): string[] =>
    served.model.receivedFrames.flatMap((frame) => (frame.type === "hello" ? [frame.token.split(".").at(-1)!] : []));
  await eventually("both connect again, because ada's edit is not saved", () => users().length === 4);
  expect([stores, users().slice(0, 2), users().slice(2).toSorted()]).toEqual([
    ["ada", "bob"],
    ["ada", "bob"],
    ["ada", "bob"],
  ]);
});

test("[HOOK13] unsent edits of an earlier page are shown when the first render suspends above CoroomProvider", async () => {
  const store = new DeviceStore(new MemoryStore());
  const elsewhere = { url: "ws://127.0.0.1:9", token: "t", room: "notes", store }; // Nothing answers there.
  const doc = new Y.Doc();
  const earlier = new Provider({ ...elsewhere, doc });
  await eventually("the store is open", () => earlier.stored);
  doc.getText("t").insert(0, "offline");
  await eventually("the edit is stored", () => earlier.stored);
  earlier.destroy();

  let load: (loaded: { default: () => ReactNode }) => void = () => {};
  const Editor = lazy(() => new Promise<{ default: () => ReactNode }>((loaded) => (load = loaded)));
  const rooms = new Set<OpenRoom>();
  const Notes = (): ReactNode => {
    rooms.add(useRoom("notes"));
    return h(Editor);
  };
  const tree = mount(h(Suspense, { fallback: "loading" }, h(CoroomProvider, { url: elsewhere.url, token: "t", store }, h(Notes))));
  await eventually("it suspends", () => tree.text === "loading" && rooms.size > 0);
  load({ default: () => "loaded" });
  await eventually("it is shown", () => tree.text === "loaded");
  expect(rooms.size, "React has discarded the first render").toBeGreaterThan(1);
  await eventually("the edit is there", () => [...rooms].at(-1)!.doc.getText("t").toString() === "offline");
});
