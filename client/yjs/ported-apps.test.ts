/** The parts of a provider that applications and bindings for y-websocket or Hocuspocus use, and subdocuments. */

import { expect, test } from "vitest";
import * as Y from "yjs";

import type { Awareness } from "y-protocols/awareness";
import { CLOSE } from "../../shared/wire/close-codes.ts";
import { ConnectionHost } from "../connection/connection-host.ts";
import { ClientFakeClock } from "../testing/fake-clock.ts";
import { ModelServer } from "../testing/model-server.ts";
import { MINUTE } from "../testing/test-page.ts";
import { RoomConnection } from "../room/room-connection-host.ts";
import { YjsProvider } from "./yjs-provider.ts";

const serverOn = (): ModelServer => new ModelServer(new ClientFakeClock(), { faults: { delayMsMax: 5 } });

test("[YJS25] isSynced, unsyncedChanges and hasUnsyncedChanges follow synced, unsavedEdits and saved", async () => {
  const server = serverOn();
  const { provider, type } = pageOn(server);
  const numbers: number[] = [];
  provider.on("unsyncedChanges", ({ number }) => {
    expect(number).toBe(provider.unsyncedChanges);
    numbers.push(number);
  });
  await server.clock.advance(1_000);
  expect([provider.isSynced, provider.hasUnsyncedChanges, provider.unsyncedChanges]).toEqual([true, false, 0]);
  server.cut();
  type("a");
  type("b");
  expect([provider.isSynced, provider.hasUnsyncedChanges, provider.unsyncedChanges]).toEqual([false, true, 2]);
  await server.clock.advance(MINUTE);
  expect([provider.hasUnsyncedChanges, provider.unsyncedChanges, numbers.at(-1)]).toEqual([false, 0, 0]);
  expect(numbers.slice(0, 2)).toEqual([1, 2]);
});

test("[YJS25] content that is not compared with the room yet counts as one unsynced change", async () => {
  const server = serverOn();
  const doc = new Y.Doc();
  doc.getText("t").insert(0, "imported");
  const { provider } = pageOn(server, { doc });
  expect([provider.unsavedEdits, provider.unsyncedChanges, provider.hasUnsyncedChanges]).toEqual([0, 1, true]);
  await server.clock.advance(1_000);
  expect([provider.unsyncedChanges, provider.hasUnsyncedChanges]).toEqual([0, false]);
});

test("[YJS26] a broken socket emits connection-error and connection-close, a close by the server connection-close only", async () => {
  const server = serverOn();
  const { provider } = pageOn(server);
  const events: unknown[] = [];
  provider.on("connection-error", (close, source) => events.push(["error", close.code, source === provider]));
  provider.on("connection-close", (close, source) => events.push(["close", close?.code, source === provider]));
  await server.clock.advance(1_000);
  server.cut();
  await server.clock.advance(MINUTE);
  server.cut(CLOSE.overloaded.code);
  await server.clock.advance(MINUTE);
  provider.disconnect();
  expect(events).toEqual([
    ["error", 1006, true],
    ["close", 1006, true],
    ["close", CLOSE.overloaded.code, true],
    ["close", undefined, true],
  ]);
});

test.each([
  { how: "the token is refused", cut: CLOSE.unauthorized.code, failures: 1 },
  { how: "the token does not admit to the room", cut: undefined, failures: 1 },
  { how: "the client was kicked", cut: CLOSE.kicked.code, failures: 0 },
])("[YJS27] authenticationFailed is emitted before refused, unless the cause is another: $how", async ({ cut, failures }) => {
  const server = serverOn();
  if (cut === undefined) server.refuseJoins = { reason: "not-allowed", retryAfterMs: 0 };
  const { provider } = pageOn(server);
  const events: string[] = [];
  provider.on("authenticationFailed", ({ reason }) => events.push(reason));
  provider.on("refused", ({ message }) => events.push(message));
  await server.clock.advance(1_000);
  if (cut !== undefined) server.cut(cut);
  await server.clock.advance(1_000);
  expect([events.length, new Set(events).size, provider.status]).toEqual([failures + 1, 1, "stopped"]);
});

test("[YJS29] fields of a typed awareness have their types, and bindings accept it", async () => {
  type Shown = { user: { name: string }; isTyping: boolean };
  const server = serverOn();
  const provider = new YjsProvider<Shown>({ url: "ws://h", token: "t", room: "notes", doc: new Y.Doc() }, server.world(1));
  provider.awareness.setLocalStateField("isTyping", true);
  // @ts-expect-error the field has another type
  provider.awareness.setLocalStateField("isTyping", "yes");
  // @ts-expect-error there is no such field
  provider.awareness.setLocalStateField("color", "red");
  provider.awareness.getLocalState()?.user?.name satisfies string | undefined;
  const forBindings: Awareness = provider.awareness;
  await server.clock.advance(1_000);
  expect(forBindings.getLocalState()).toEqual({ isTyping: "yes", color: "red" });
  provider.destroy();
});

test("[YJS28] a subdocument has a room of its own, named after its guid, on the same connection", async () => {
  const server = serverOn();
  const memberOn = (seed: number): { doc: Y.Doc; connection: ConnectionHost } => {
    const connection = new ConnectionHost({ url: "ws://h", token: "t" }, server.world(seed));
    const doc = new Y.Doc();
    doc.on("subdocs", ({ loaded }: { loaded: Set<Y.Doc> }) => {
      for (const part of loaded) new YjsProvider({ connection, room: `notes/${part.guid}`, doc: part }, server.world(seed));
    });
    new YjsProvider({ connection, room: "notes", doc }, server.world(seed));
    return { doc, connection };
  };
  const [ann, bob] = [memberOn(1), memberOn(2)];
  await server.clock.advance(1_000);
  const page = new Y.Doc({ guid: "page-1" });
  ann.doc.getMap<Y.Doc>("pages").set("first", page);
  page.getText("t").insert(0, "in the subdocument");
  await server.clock.advance(1_000);
  const copy = bob.doc.getMap<Y.Doc>("pages").get("first")!;
  expect([copy.guid, copy.getText("t").toString()], "a subdocument is loaded on demand").toEqual(["page-1", ""]);
  copy.load();
  await server.clock.advance(1_000);
  expect(copy.getText("t").toString()).toBe("in the subdocument");
  expect([server.room("notes" as never).head, server.room("notes/page-1" as never).head, server.connections.size]).toEqual([1, 1, 2]);
  copy.destroy();
  for (const { doc, connection } of [ann, bob]) {
    doc.destroy();
    connection.disconnect();
  }
  await server.clock.advance(MINUTE);
  expect([server.connections.size, server.clock.pending], "destroyed with their documents").toEqual([0, 0]);
});

function pageOn(server: ModelServer, { doc = new Y.Doc() } = {}): { provider: YjsProvider; type: (text: string) => void } {
  const provider = new YjsProvider({ url: "ws://h", token: "t", room: "notes", doc }, server.world(1));
  return { provider, type: (text) => doc.getText("t").insert(0, text) };
}

/** As `client/README.md` shows it. */
class Messages {
  readonly room: RoomConnection;
  readonly received: unknown[] = [];

  constructor(server: ModelServer, seed: number) {
    const connection = new ConnectionHost({ url: "ws://h", token: () => "t.o.k" }, server.world(seed));
    new YjsProvider({ connection, room: "notes", doc: new Y.Doc() }, server.world(seed * 100));
    this.room = new RoomConnection({ connection, room: "notes/messages" }, server.world(seed * 1_000));
    let arrivedAt = Infinity;
    this.room.once("synced", () => (arrivedAt = this.room.seq));
    this.room.on("edit", ({ seq, payload, own }) => {
      if (!own && seq > arrivedAt) this.received.push(JSON.parse(new TextDecoder().decode(payload)));
    });
  }

  send(message: unknown): void {
    this.room.send(new TextEncoder().encode(JSON.stringify(message)));
  }
}

test("[YJS31] messages over a second room arrive once and in order, also across lost connections, and nothing from before", async () => {
  const server = serverOn();
  const [ann, bob] = [new Messages(server, 1), new Messages(server, 2)];
  await server.clock.advance(1_000);
  ann.send("first");
  ann.send({ number: 2 });
  await server.clock.advance(1_000);
  expect([bob.received, ann.received, ann.room.saved]).toEqual([["first", { number: 2 }], [], true]);
  server.reachable = false;
  server.cut();
  ann.send("while away");
  expect(ann.room.saved).toBe(false);
  await server.clock.advance(MINUTE);
  server.reachable = true;
  await server.clock.advance(MINUTE);
  const cid = new Messages(server, 3);
  await server.clock.advance(1_000);
  bob.send("last");
  await server.clock.advance(1_000);
  expect([bob.received, cid.received, ann.received]).toEqual([["first", { number: 2 }, "while away"], ["last"], ["last"]]);
  expect([ann.room.saved, bob.room.saved]).toEqual([true, true]);
});
