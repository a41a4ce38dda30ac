/** Documents whose room contains edits that harm Yjs, or edits that complete content of another provider. */

import { expect, test } from "vitest";
import * as Y from "yjs";

import type { ClientId, Epoch, RoomId, Seq } from "../../shared/ids.ts";
import { conflictBomb, HALF_UPDATES, NESTING_FUSE, nestingBomb, slowUpdates } from "../../shared/testing/yjs-bombs.ts";
import { ClientFakeClock } from "../testing/fake-clock.ts";
import { MemoryStore } from "../testing/memory-store.ts";
import { ModelServer } from "../testing/model-server.ts";
import { TestPage } from "../testing/test-page.ts";
import { YjsProvider } from "./yjs-provider.ts";

class Member {
  readonly doc = new Y.Doc();
  readonly provider: YjsProvider;
  readonly reported: string[] = [];

  constructor(server: ModelServer, seed: number) {
    this.provider = new YjsProvider({ url: "ws://h", token: "t", room: "notes", doc: this.doc }, server.world(seed));
    this.provider.on("error", ({ kind }) => this.reported.push(kind));
  }

  get text(): string {
    return this.doc.getText("t").toString();
  }

  type(text: string): void {
    this.doc.getText("t").insert(this.text.length, text);
  }
}

function serverOn(): ModelServer {
  const server = new ModelServer(new ClientFakeClock(), { faults: { delayMsMax: 5 } });
  server.snapshotOf = (edits) => Y.mergeUpdates(edits.map(({ payload }) => payload));
  return server;
}

/** Edits of a client without an SDK. The log contains them, and the server does not check their content. */
async function sendRaw(server: ModelServer, ...payloads: readonly Uint8Array[]): Promise<void> {
  await sendRawFrom(1, server, ...payloads);
}

async function sendRawFrom(firstSeq: number, server: ModelServer, ...payloads: readonly Uint8Array[]): Promise<void> {
  const edits = payloads.map((payload, index) => ({
    client: "hostile_________" as ClientId,
    counter: firstSeq + index,
    parentSeq: 0 as Seq,
    payload,
  }));
  server.send({ type: "committed", channel: 1, edits: { epoch: 1 as Epoch, firstSeq: firstSeq as Seq, edits } });
  await server.clock.advance(100);
}

function typed(text: string): Uint8Array {
  const doc = new Y.Doc();
  doc.getText("t").insert(0, text);
  return Y.encodeStateAsUpdate(doc);
}

test.each([
  ["nested 5,000 deep", [nestingBomb(5_000), NESTING_FUSE]],
  ["nested 5,000 deep by five updates", [...[0, 1, 2, 3, 4].map((part) => nestingBomb(1_000, 1_000 * part)), NESTING_FUSE]],
  ["nested 1,200 deep by small updates", [...[0, 1, 2].map((part) => nestingBomb(400, 400 * part)), NESTING_FUSE]],
  ["in conflict with each other", [conflictBomb(6_000)]],
])("[YJS18] edits %s are left out; the document continues and reports them", async (_, bomb) => {
  const server = serverOn();
  const ann = new Member(server, 1);
  await server.clock.advance(1_000);
  await sendRaw(server, ...bomb, typed("fine"));
  expect([ann.text, new Set(ann.reported)]).toEqual(["fine", new Set(["edit-unreadable"])]);
  const emitted: unknown[] = [];
  ann.doc.on("update", () => emitted.push(1));
  ann.type("!");
  expect([emitted.length, ann.provider.unsavedEdits]).toEqual([1, 1]);
});

test("[YJS19] a document that can take only a part of an edit reports itself as stuck, and nothing as saved", async () => {
  const server = serverOn();
  const ann = new Member(server, 1);
  await server.clock.advance(1_000);
  expect(ann.provider.saved).toBe(true);
  await sendRaw(server, nestingBomb(300, 300), nestingBomb(300), typed("later"));
  expect(ann.reported).toEqual(["edit-unreadable", "document-stuck"]);
  expect([ann.provider.saved, ann.provider.stored, ann.provider.synced, ann.text]).toEqual([false, false, false, ""]);
  ann.type("lost");
  await server.clock.advance(5_000);
  expect([ann.provider.saved, ann.reported.length]).toEqual([false, 2]);
});

test.each(HALF_UPDATES)("[YJS30] an edit that Yjs applies only in part is left out completely: %s", async (_, half) => {
  const server = serverOn();
  const ann = new Member(server, 1);
  await server.clock.advance(1_000);
  await sendRaw(server, half, typed("fine"));
  expect([ann.text, ann.doc.getText("text").toString(), ann.reported]).toEqual(["fine", "", ["edit-unreadable"]]);
});

test.each([
  ["nested 5,000 deep", nestingBomb(5_000)],
  ["nested 600 deep", nestingBomb(600)],
  ["in conflict with each other", conflictBomb(3_000)],
  ...HALF_UPDATES,
] as const)("[YJS33] an edit that was left out is not stored, so the next page shows the room: %s", async (_, bomb) => {
  const server = serverOn();
  const device = new MemoryStore();
  const room = server.room();
  const pages = [new TestPage(server, device, 1)];
  await server.clock.advance(1_000);
  for (const [index, payload] of [bomb, typed("fine")].entries()) {
    room.receiveEdit({ client: "hostile_________" as ClientId, counter: index + 1, ackedThrough: 0, parentSeq: 0 as Seq, payload });
  }
  server.commit("notes" as RoomId);
  await server.clock.advance(1_000);
  server.reachable = false;
  pages[0]!.type(" offline");
  await server.clock.advance(1_000);
  pages[0]!.close();
  pages.push(new TestPage(server, device, 2));
  await server.clock.advance(1_000);
  expect(pages.map(({ text, events }) => [text, events])).toEqual([
    ["fine offline", ["restored", "edit-unreadable"]],
    ["fine offline", ["restored"]],
  ]);
});

test("[YJS20] a listener of the document's update that throws is named as a possible cause", async () => {
  const server = serverOn();
  const ann = new Member(server, 1);
  await server.clock.advance(1_000);
  const messages: string[] = [];
  ann.provider.on("error", ({ message }) => messages.push(message));
  ann.doc.on("update", () => {
    throw new Error("the application's");
  });
  expect(() => ann.type("typed")).toThrow("the application's");
  await server.clock.advance(1_000);
  expect(messages).toEqual([expect.stringContaining("listener of the document's event `update` may have thrown")]);
});

test("[YJS20] a transaction of the application that breaks Yjs is noticed, and nothing is reported as saved", async () => {
  const server = serverOn();
  const ann = new Member(server, 1);
  await server.clock.advance(1_000);
  const failing = (): void => {
    throw new RangeError("Maximum call stack size exceeded");
  };
  ann.doc.on("afterTransactionCleanup", failing); // Runs where Yjs has removed deleted content.
  expect(() => ann.type("lost")).toThrow(RangeError);
  ann.doc.off("afterTransactionCleanup", failing);
  await server.clock.advance(1_000);
  expect([ann.provider.saved, ann.reported]).toEqual([false, ["document-stuck"]]);
});

test.each(["before it joins", "after it has joined"])(
  "[YJS21] a change that no other document accepts is not sent, and reported: made %s",
  async (when) => {
    const server = serverOn();
    const [ann, bob] = [new Member(server, 1), new Member(server, 2)];
    if (when === "after it has joined") await server.clock.advance(1_000);
    ann.doc.transact(() => {
      let map = ann.doc.getMap("root");
      for (let level = 0; level < 600; level++) map = map.set("a", new Y.Map());
    });
    await server.clock.advance(1_000);
    expect([server.room().head, ann.provider.saved, ann.provider.synced, ann.reported, bob.reported]).toEqual([
      0,
      false,
      false,
      ["document-stuck"],
      [],
    ]);
  },
);

/** Two updates of one writer: the second builds on the first. */
function twoUpdates(): readonly [Uint8Array, Uint8Array] {
  const doc = new Y.Doc();
  const updates: Uint8Array[] = [];
  doc.on("update", (update: Uint8Array) => updates.push(update));
  doc.getText("t").insert(0, "one");
  doc.getText("t").insert(3, " two");
  return [updates[0]!, updates[1]!];
}

test.each(["before it joins", "after it has joined"])(
  "[YJS22] content of another provider that an edit of the room completes is sent: %s",
  async (when) => {
    const server = serverOn();
    const [first, second] = twoUpdates();
    const [ann, bob] = [new Member(server, 1), new Member(server, 2)];
    if (when === "before it joins") Y.applyUpdate(ann.doc, second, "local store");
    await server.clock.advance(1_000);
    Y.applyUpdate(ann.doc, second, "local store");
    Y.applyUpdate(bob.doc, first, "another peer");
    await server.clock.advance(1_000);
    expect([ann.text, bob.text, ann.provider.saved]).toEqual(["one two", "one two", true]);
    ann.type(" three");
    await server.clock.advance(1_000);
    const late = new Member(server, 3);
    await server.clock.advance(1_000);
    expect([bob.text, late.text]).toEqual(["one two three", "one two three"]);
  },
);

test("[YJS23] a deletion of another provider that an edit of the room completes is sent", async () => {
  const server = serverOn();
  const [first] = twoUpdates();
  const reader = new Y.Doc();
  Y.applyUpdate(reader, first);
  const before = Y.encodeStateVector(reader);
  reader.getText("t").delete(0, 2);
  const [ann, bob] = [new Member(server, 1), new Member(server, 2)];
  await server.clock.advance(1_000);
  Y.applyUpdate(ann.doc, Y.encodeStateAsUpdate(reader, before), "local store");
  Y.applyUpdate(bob.doc, first, "another peer");
  await server.clock.advance(1_000);
  expect([ann.text, bob.text]).toEqual(["e", "e"]);
});

test("[YJS24] content that the room itself completes is not sent again", async () => {
  const server = serverOn();
  const [first, second] = twoUpdates();
  const whole = new Y.Doc();
  for (const update of [first, second]) Y.applyUpdate(whole, update);
  const before = Y.encodeStateVector(whole);
  whole.getText("t").delete(0, 1);
  const ann = new Member(server, 1);
  await server.clock.advance(1_000);
  await sendRawFrom(1, server, second, Y.encodeStateAsUpdate(whole, before));
  await sendRawFrom(3, server, first);
  await server.clock.advance(1_000);
  expect([ann.text, ann.provider.unsavedEdits, server.room().head]).toEqual(["ne two", 0, 0]); // The model's log has none of them.
});

test("[YJS34] content that the room itself cannot complete is not sent again by documents with changes of their own", async () => {
  const server = serverOn();
  const whole = new Y.Doc();
  const updates: Uint8Array[] = [];
  whole.on("update", (update: Uint8Array) => void updates.push(update));
  for (const part of ["never arrives", "pending"]) whole.getText("t").insert(0, part);
  whole.getText("t").delete(0, 1);
  const room = server.room();
  for (const [index, payload] of updates.slice(1).entries()) {
    room.receiveEdit({ client: "author__________" as ClientId, counter: index + 1, ackedThrough: 0, parentSeq: 0 as Seq, payload });
  }
  server.commit("notes" as RoomId);
  const [ann, bob] = [new Member(server, 1), new Member(server, 2)];
  ann.type("ann");
  bob.doc.getText("t").insert(0, "x".repeat(6_000)); // More than one edit may have.
  await server.clock.advance(5_000);
  const sent = room.log
    .slice(2)
    .flatMap(({ payload }) => [...Y.parseUpdateMeta(payload).from.keys(), ...Y.decodeUpdate(payload).ds.clients.keys()]);
  expect([ann.text.length, sent.includes(whole.clientID)]).toEqual([6_003, false]);

  server.cut();
  Y.applyUpdate(ann.doc, updates[0]!, "another provider");
  await server.clock.advance(5_000);
  expect([bob.text === ann.text, ann.text.includes("endingnever arrives"), ann.provider.saved]).toEqual([true, true, true]);
});

test("[YJS35] a document that gets stuck by what it sends when it is synced is never reported as synced", async () => {
  const server = serverOn();
  server.rights = { read: true, write: false };
  const viewer = new Member(server, 1);
  await server.clock.advance(1_000);
  for (const [index, payload] of slowUpdates(400, 2).entries()) {
    server
      .room()
      .receiveEdit({ client: "hostile_________" as ClientId, counter: index + 1, ackedThrough: 0, parentSeq: 0 as Seq, payload });
  }
  server.setSaving("notes" as RoomId, "saving");
  await server.clock.advance(1_000);
  server.room().failOver(); // The log never has these edits.
  server.setSaving("notes" as RoomId, "saved");
  await server.clock.advance(60_000);
  expect(viewer.doc.getText("text").length, "it shows them").toBeGreaterThan(400);
  for (const name of ["synced", "sync"] as const) viewer.provider.on(name, (synced) => viewer.reported.push(`${name} ${synced}`));
  server.rights = { read: true, write: true };
  server.cut();
  await server.clock.advance(10_000);
  expect([viewer.reported, viewer.provider.synced]).toEqual([["synced false", "sync false", "document-stuck"], false]);
  server.cut();
  await server.clock.advance(10_000);
  expect(viewer.reported.length, "nothing has changed").toBe(3);
});
