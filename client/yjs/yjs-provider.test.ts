/** Documents on a model server, through the complete client. */

import { expect, test } from "vitest";
import * as Y from "yjs";

import type { ClientId, Epoch, RoomId, Seq } from "../../shared/ids.ts";
import { STRUCTS_MAX } from "../../shared/yjs/checked-update.ts";
import { ConnectionHost } from "../connection/connection-host.ts";
import { ClientFakeClock } from "../testing/fake-clock.ts";
import { LIMITS } from "../testing/model-connection.ts";
import { ModelServer } from "../testing/model-server.ts";
import type { ProviderOptions } from "./provider-events.ts";
import { YjsProvider } from "./yjs-provider.ts";

const MINUTE = 60_000;

function serverOn(): ModelServer {
  const server = new ModelServer(new ClientFakeClock(), { faults: { delayMsMax: 5 } });
  server.snapshotOf = (edits) => Y.mergeUpdates(edits.map(({ payload }) => payload));
  return server;
}

class Writer {
  readonly doc: Y.Doc;
  readonly provider: YjsProvider;
  readonly events: string[] = [];

  constructor(server: ModelServer, seed: number, { doc = new Y.Doc(), ...options }: Partial<ProviderOptions> = {}) {
    this.doc = doc;
    this.provider = new YjsProvider({ url: "ws://h", token: "t", room: "notes", doc, ...options } as ProviderOptions, server.world(seed));
    this.provider.on("synced", (synced) => this.events.push(synced ? "synced" : "not synced"));
    this.provider.on("saved", (saved) => this.events.push(saved ? "saved" : "unsaved"));
    this.provider.on("error", ({ kind }) => this.events.push(kind));
  }

  get text(): string {
    return this.doc.getText("t").toString();
  }

  type(text: string): void {
    this.doc.getText("t").insert(this.doc.getText("t").length, text);
  }

  erase(from: number, length: number): void {
    this.doc.getText("t").delete(from, length);
  }
}

test("[YJS1] two documents converge, and each provider knows when its changes are saved", async () => {
  const server = serverOn();
  const [ann, bob] = [new Writer(server, 1), new Writer(server, 2)];
  await server.clock.advance(1_000);
  ann.type("hello");
  bob.type("world");
  expect([ann.provider.saved, ann.provider.unsavedEdits]).toEqual([false, 1]);
  await server.clock.advance(1_000);
  expect(ann.text).toBe(bob.text);
  expect([...ann.text].sort()).toEqual([..."helloworld"].sort());
  expect(ann.events).toEqual(["synced", "unsaved", "saved"]);
  expect([ann.provider.status, ann.provider.seq]).toEqual(["connected", 2]);
});

test("[YJS2] changes made before the room is joined reach it", async () => {
  const server = serverOn();
  const ann = new Writer(server, 1);
  ann.type("early");
  expect([ann.provider.saved, ann.provider.unsavedEdits]).toEqual([false, 1]);
  await server.clock.advance(1_000);
  const bob = new Writer(server, 2);
  await server.clock.advance(1_000);
  expect([bob.text, ann.provider.saved]).toEqual(["early", true]);
});

test("[YJS3] content that the document had before reaches the room, once", async () => {
  const server = serverOn();
  const doc = new Y.Doc();
  doc.getText("t").insert(0, "imported");
  const ann = new Writer(server, 1, { doc });
  expect(ann.provider.saved, "the content is not known yet").toBe(false);
  await server.clock.advance(1_000);
  expect([ann.provider.saved, server.room().head]).toEqual([true, 1]);
  ann.provider.destroy();

  const again = new Writer(server, 3, { doc });
  await server.clock.advance(1_000);
  expect([again.provider.saved, server.room().head], "nothing is sent anew").toEqual([true, 1]);
  expect(again.text).toBe("imported");
});

test("[YJS3] content loaded from elsewhere during the join is not sent again, except what is new in it", async () => {
  const server = serverOn();
  const ann = new Writer(server, 1);
  await server.clock.advance(1_000);
  ann.type("known ");
  await server.clock.advance(1_000);
  const stored = Y.encodeStateAsUpdate(ann.doc);

  const bob = new Writer(server, 2);
  Y.applyUpdate(bob.doc, stored, "local storage");
  await server.clock.advance(1_000);
  expect([server.room().head, bob.provider.saved]).toEqual([1, true]);

  const offline = new Y.Doc();
  Y.applyUpdate(offline, stored);
  offline.getText("t").delete(0, 1);
  offline.getText("t").insert(0, "K");
  const cid = new Writer(server, 3);
  Y.applyUpdate(cid.doc, Y.encodeStateAsUpdate(offline), "local storage");
  await server.clock.advance(1_000);
  expect([ann.text, bob.text, server.room().head]).toEqual(["Known ", "Known ", 2]);
});

test("[YJS4] offline edits are merged, sent on return, and survive a resync", async () => {
  const server = serverOn();
  const [ann, bob] = [new Writer(server, 1), new Writer(server, 2)];
  await server.clock.advance(1_000);
  ann.type("a");
  await server.clock.advance(1_000);
  ann.provider.disconnect();
  for (const letter of "offline") ann.type(letter);
  ann.erase(0, 1);
  expect(ann.provider.unsavedEdits).toBe(8);
  bob.type(" meanwhile");
  await server.clock.advance(1_000);
  server.room().trimmedThrough = server.room().head;
  bob.type("!");
  await server.clock.advance(1_000);
  const before = server.room().head;
  ann.provider.connect();
  await server.clock.advance(2_000);
  expect([ann.provider.saved, server.room().head - before]).toEqual([true, 1]);
  expect(ann.text).toBe(bob.text);
  expect(ann.text.replace(" meanwhile!", "")).toBe("offline");
});

test("[YJS5] the edits of a frame are one transaction", async () => {
  const server = serverOn();
  const ann = new Writer(server, 1);
  await server.clock.advance(1_000);
  for (const letter of "abcdef") {
    ann.type(letter);
    await server.clock.advance(200);
  }
  const bob = new Writer(server, 2);
  let transactions = 0;
  bob.doc.on("afterTransaction", () => (transactions += 1));
  await server.clock.advance(1_000);
  expect([bob.text, transactions]).toEqual(["abcdef", 1]);
});

test("[YJS5] edits from the room do not count as local changes, typed edits do", async () => {
  const server = serverOn();
  const [ann, bob] = [new Writer(server, 1), new Writer(server, 2)];
  await server.clock.advance(1_000);
  const local: [string, boolean][] = [];
  for (const [name, { doc }] of Object.entries({ ann, bob }))
    doc.on("afterTransaction", (transaction) => local.push([name, transaction.local]));
  ann.type("a");
  await server.clock.advance(1_000);
  expect(local).toEqual([
    ["ann", true],
    ["bob", false],
  ]);
});

test("[YJS6] bytes that are no Yjs update are skipped and reported; the room continues", async () => {
  const server = serverOn();
  const ann = new Writer(server, 1);
  await server.clock.advance(1_000);
  const other = new Y.Doc();
  other.getText("t").insert(0, "fine");
  const edit = (counter: number, payload: Uint8Array) => ({
    client: "hostile_________" as ClientId,
    counter,
    parentSeq: 0 as Seq,
    payload,
  });
  server.send({
    type: "committed",
    channel: 1,
    edits: { epoch: 1 as Epoch, firstSeq: 1 as Seq, edits: [edit(1, new Uint8Array([1, 9, 9, 9])), edit(2, Y.encodeStateAsUpdate(other))] },
  });
  await server.clock.advance(100);
  expect([ann.text, ann.provider.seq, ann.events]).toEqual(["fine", 2, ["synced", "edit-unreadable"]]);
});

test("[YJS7] a change too large to send is reported; later changes are not lost, and sending continues when it is undone", async () => {
  const server = serverOn();
  const [ann, bob] = [new Writer(server, 1), new Writer(server, 2)];
  await server.clock.advance(1_000);
  ann.type("before ");
  ann.doc.getArray("pictures").push([new Uint8Array(LIMITS.editBytesMax)]);
  await server.clock.advance(1_000);
  ann.type("behind");
  await server.clock.advance(1_000);
  expect([ann.provider.saved, ann.provider.stored, ann.events.filter((reported) => reported === "edit-too-large").length]).toEqual([
    false,
    false,
    1,
  ]);
  expect(bob.text).toBe("before ");
  ann.doc.getArray("pictures").delete(0);
  await server.clock.advance(1_000);
  expect([ann.provider.saved, ann.provider.unsavedEdits]).toEqual([true, 0]);
  expect(bob.text).toBe("before behind");
  bob.type("!");
  await server.clock.advance(1_000);
  expect(ann.text).toBe("before behind!");
});

test("[YJS7] a change that was too large and is undone without a connection is sent, with what follows it, after the reconnect", async () => {
  const server = serverOn();
  const [ann, bob] = [new Writer(server, 1), new Writer(server, 2)];
  await server.clock.advance(1_000);
  ann.doc.getArray("pictures").push([new Uint8Array(LIMITS.editBytesMax)]);
  await server.clock.advance(1_000);
  ann.provider.disconnect();
  ann.doc.getArray("pictures").delete(0);
  ann.type("offline");
  ann.provider.connect();
  await server.clock.advance(10_000);
  expect([ann.provider.saved, ann.provider.unsavedEdits, bob.text]).toEqual([true, 0, "offline"]);
});

test("[YJS7] a large text pasted at once is sent in pieces", async () => {
  const server = serverOn();
  const [ann, bob] = [new Writer(server, 1), new Writer(server, 2)];
  await server.clock.advance(1_000);
  ann.type("x".repeat(10 * LIMITS.editBytesMax));
  ann.type("behind");
  await server.clock.advance(30_000);
  expect([ann.provider.saved, bob.text === ann.text, ann.events.includes("edit-too-large")]).toEqual([true, true, false]);
});

test("[YJS7] a large document is sent in pieces", async () => {
  const server = serverOn();
  const doc = new Y.Doc();
  for (let index = 0; index < 500; index++) doc.getArray("a").insert(0, [`entry ${index} ${"x".repeat(50)}`]);
  const ann = new Writer(server, 1, { doc });
  await server.clock.advance(10_000);
  const bob = new Writer(server, 2);
  await server.clock.advance(1_000);
  expect(server.room().head).toBeGreaterThan(4);
  expect([ann.provider.saved, bob.doc.getArray("a").toJSON()]).toEqual([true, doc.getArray("a").toJSON()]);
});

/** Inserts more structs than a document accepts in one edit. */
function importTable(doc: Y.Doc): void {
  doc.getArray("rows").push(Array.from({ length: STRUCTS_MAX + 1 }, () => new Y.Map()));
}

test.each(["made here", "loaded by another provider before the join"])(
  "[YJS32] a change with more structs than an edit may have is sent as several edits: %s",
  async (how) => {
    const server = serverOn();
    server.limits = { ...LIMITS, frameBytesMax: 10_000_000, editBytesMax: 5_000_000, bytesBurst: 20_000_000 };
    const ann = new Writer(server, 1);
    if (how === "made here") {
      await server.clock.advance(1_000);
      importTable(ann.doc);
    } else {
      const stored = new Y.Doc();
      importTable(stored);
      Y.applyUpdate(ann.doc, Y.encodeStateAsUpdate(stored), "local storage");
    }
    await server.clock.advance(1_000);
    const structs = server.room().log.map(({ payload }) => Y.decodeUpdate(payload).structs.length);
    expect([ann.events.at(-1), ann.events.includes("document-stuck"), structs.length]).toEqual(["saved", false, 2]);
    expect([Math.max(...structs) < STRUCTS_MAX, structs.reduce((sum, count) => sum + count)]).toEqual([true, STRUCTS_MAX + 1]);
  },
);

test("[YJS8] edits that a log has lost are sent again by the clients that have them", async () => {
  const server = serverOn();
  const [ann, bob] = [new Writer(server, 1), new Writer(server, 2)];
  await server.clock.advance(1_000);
  ann.type("one ");
  await server.clock.advance(1_000);
  ann.type("two ");
  ann.erase(0, 1);
  await server.clock.advance(1_000);
  server.room().rollBackTo(1);
  server.room().trimmedThrough = 1;
  server.cut();
  await server.clock.advance(10_000);
  const cid = new Writer(server, 3);
  await server.clock.advance(1_000);
  expect([ann.text, bob.text, cid.text]).toEqual(["ne two ", "ne two ", "ne two "]);
  expect([ann.provider.saved, bob.provider.saved]).toEqual([true, true]);
});

test("[YJS9] a provider that is destroyed, directly or with its document, handles nothing more and leaves nothing running", async () => {
  const server = serverOn();
  const [ann, bob] = [new Writer(server, 1), new Writer(server, 2)];
  await server.clock.advance(1_000);
  ann.provider.destroy();
  ann.type("unheard");
  bob.doc.destroy();
  await server.clock.advance(MINUTE);
  expect([server.room().head, server.clock.pending, server.connections.size]).toEqual([0, 0, 0]);
});

test("[YJS10] tentative edits of a departed author, which no server takes from others, become an edit of a client that has them", async () => {
  const server = serverOn();
  const [ann, bob, cid] = [new Writer(server, 1), new Writer(server, 2), new Writer(server, 3)];
  await server.clock.advance(1_000);
  server.setSaving("notes" as RoomId, "saving");
  ann.type("farewell");
  await server.clock.advance(1_000);
  expect([bob.text, cid.text]).toEqual(["farewell", "farewell"]);
  ann.provider.destroy();
  server.takesResubmits = false;
  server.room("notes" as RoomId).failOver();
  server.setSaving("notes" as RoomId, "saved");
  await server.clock.advance(MINUTE);
  const dan = new Writer(server, 4);
  await server.clock.advance(1_000);
  expect([dan.text, bob.text, cid.text]).toEqual(["farewell", "farewell", "farewell"]);
  expect(server.room("notes" as RoomId).log).toHaveLength(1);
});

test("[YJS10] a read-only client makes no edit of a departed author's tentative edits", async () => {
  const server = serverOn();
  const ann = new Writer(server, 1);
  await server.clock.advance(1_000);
  server.rights = { read: true, write: false };
  const viewer = new Writer(server, 2);
  await server.clock.advance(1_000);
  server.setSaving("notes" as RoomId, "saving");
  ann.type("farewell");
  await server.clock.advance(1_000);
  ann.provider.destroy();
  server.room("notes" as RoomId).failOver();
  server.setSaving("notes" as RoomId, "saved");
  await server.clock.advance(MINUTE);
  expect([viewer.text, viewer.provider.saved, viewer.events]).toEqual(["farewell", true, ["synced"]]);
});

test("[YJS11] saved and stored are not emitted before the document's earlier content is in the room", async () => {
  const server = serverOn();
  const doc = new Y.Doc();
  doc.getText("t").insert(0, "imported");
  const ann = new Writer(server, 1, { doc });
  const heads: unknown[] = [];
  for (const name of ["saved", "stored"] as const) ann.provider.on(name, (is) => heads.push([name, is, server.room().head]));
  ann.provider.on("saved", (saved) => saved && ann.provider.destroy());
  await server.clock.advance(1_000);
  expect(heads).toEqual([
    ["stored", true, 1],
    ["saved", true, 1],
  ]);
});

test("[YJS12] a read-only client has nothing unsaved when Yjs cleans up formatting by itself", async () => {
  const server = serverOn();
  const [ann, bob] = [new Writer(server, 1), new Writer(server, 2)];
  await server.clock.advance(1_000);
  server.rights = { read: true, write: false };
  const viewer = new Writer(server, 3);
  expect(viewer.text, "Yjs has to know that it is a text").toBe("");
  await server.clock.advance(1_000);
  ann.type("some words");
  await server.clock.advance(1_000);
  // Both users format at the same time, so that the marks of one are redundant.
  for (const { doc } of [ann, bob]) doc.getText("t").format(0, 4, { bold: true });
  for (const { provider } of [ann, bob]) provider.once("seq", () => provider.destroy()); // Destroyed before they send their cleanup.
  await server.clock.advance(1_000);
  const late = new Writer(server, 4);
  expect(late.text).toBe("");
  let cleaned = 0;
  late.doc.on("update", (_, origin) => (cleaned += origin === null ? 1 : 0));
  await server.clock.advance(1_000);
  expect([cleaned, server.room().head]).toEqual([1, 3]);
  for (const { provider, events } of [viewer, late]) expect([provider.saved, provider.unsavedEdits, events]).toEqual([true, 0, ["synced"]]);
});

test("[YJS13] an error of a document observer is reported, and does not affect what is known of the room", async () => {
  const server = serverOn();
  const ann = new Writer(server, 1);
  await server.clock.advance(1_000);
  ann.type("known");
  await server.clock.advance(1_000);
  const errors: unknown[] = [];
  const doc = new Y.Doc();
  doc.getText("own").insert(0, "new");
  doc.getText("t").observe(() => {
    throw new Error("the application's");
  });
  const provider = new YjsProvider(
    { url: "ws://h", token: "t", room: "notes", doc },
    { ...server.world(2), reportError: (error) => errors.push(error) },
  );
  await server.clock.advance(1_000);
  expect([errors, doc.getText("t").toString(), provider.saved, provider.synced]).toEqual([
    [new Error("the application's")],
    "known",
    true,
    true,
  ]);
  const sent = server.room().log.at(-1)!.payload;
  expect([server.room().head, Y.decodeUpdate(sent).structs.length], "only what the room lacked").toEqual([2, 1]);
  provider.destroy();
});

test("[YJS14] several providers for a room on one connection converge, also with one document, and each can be destroyed", async () => {
  const server = serverOn();
  const connection = new ConnectionHost({ url: "ws://h", token: "t" }, server.world(1));
  const shared = { connection, url: undefined, token: undefined } as unknown as Partial<ProviderOptions>;
  const ann = new Writer(server, 2, shared);
  const [bob, again] = [new Writer(server, 3, shared), new Writer(server, 4, { ...shared, doc: ann.doc })];
  await server.clock.advance(1_000);
  ann.type("hello");
  bob.type("world");
  await server.clock.advance(1_000);
  expect([bob.text.length, bob.text]).toEqual([10, ann.text]);
  ann.provider.destroy();
  ann.type("!");
  await server.clock.advance(1_000);
  expect([again.provider.saved, bob.text]).toEqual([true, ann.text]);
  expect([...bob.events, ...again.events].filter((event) => !/saved|synced/.test(event))).toEqual([]);
});

test("[YJS15] a `sync` listener, as bindings for y-websocket use, is called when the document is complete", async () => {
  const server = serverOn();
  const { provider } = new Writer(server, 1);
  const received: boolean[] = [];
  provider.on("sync", (synced) => received.push(synced));
  await server.clock.advance(1_000);
  expect(received).toEqual([true]);
  server.cut();
  await server.clock.advance(10_000);
  expect([received, provider.synced]).toEqual([[true, false, true], true]);
});

test("[YJS16] an edit typed after a tentative edit is not saved before it, so that late joiners can read it", async () => {
  const server = serverOn();
  const [ann, bob] = [new Writer(server, 1), new Writer(server, 2)];
  await server.clock.advance(1_000);
  server.setSaving("notes" as RoomId, "saving");
  ann.type("every ");
  await server.clock.advance(100);
  bob.type("word");
  await server.clock.advance(100);
  ann.provider.destroy();
  server.room("notes" as RoomId).failOver(); // Only bob has ann's edit.
  server.cut();
  server.setSaving("notes" as RoomId, "saved");
  bob.provider.on("saved", (saved) => saved && bob.provider.destroy());
  await server.clock.advance(MINUTE);
  const cid = new Writer(server, 3);
  await server.clock.advance(1_000);
  expect([bob.provider.saved, cid.text]).toEqual([true, "every word"]);
});

test.each([
  { when: "once it may write", text: "every word", waiting: 0 },
  { when: "before that was lost", text: "every word", waiting: 2 },
  { when: "before it may write", text: "every word", waiting: 2 },
  { when: "never", text: "every ", waiting: 0 },
])("[YJS17] edits of a departed author reach the room with a reader who becomes a writer and types $when", async (typing) => {
  const server = serverOn();
  const ann = new Writer(server, 1);
  await server.clock.advance(1_000);
  server.rights = { read: true, write: false };
  const bob = new Writer(server, 2);
  await server.clock.advance(1_000);
  server.setSaving("notes" as RoomId, "saving");
  ann.type("every ");
  await server.clock.advance(100);
  if (typing.when === "before that was lost") bob.type("word");
  ann.provider.destroy();
  server.room("notes" as RoomId).failOver();
  server.setSaving("notes" as RoomId, "saved");
  await server.clock.advance(MINUTE);
  if (typing.when === "before it may write") bob.type("word");
  expect(bob.provider.unsavedEdits, "typed edits wait with the edits that they depend on").toBe(typing.waiting);

  server.rights = { read: true, write: true };
  server.send({ type: "left", channel: 1, reason: "rights-changed" });
  await server.clock.advance(1_000);
  if (typing.when === "once it may write") bob.type("word");
  await server.clock.advance(1_000);
  const cid = new Writer(server, 3);
  await server.clock.advance(1_000);
  expect([bob.provider.saved, bob.text, cid.text]).toEqual([true, typing.text, typing.text]);
});

test("[YJS36] saved and stored are emitted as they are then, if a listener of an event before them makes a change", async () => {
  const server = serverOn();
  const ann = new Writer(server, 1);
  await server.clock.advance(1_000);
  const emitted: string[] = [];
  ann.provider.on("unsyncedChanges", ({ number }) => number === 0 && ann.text.length < 3 && ann.type("x"));
  for (const name of ["saved", "stored"] as const)
    ann.provider.on(name, (is) => {
      emitted.push(`${name} ${is}`);
      if (is !== ann.provider[name]) emitted.push("which it is not");
    });
  ann.type("x");
  await server.clock.advance(1_000);
  expect(emitted).toEqual(["stored false", "saved false", "stored true", "saved true"]);
  expect([ann.text, server.room().head]).toEqual(["xxx", 3]);
});

test("[YJS37] a change that a listener of `error` makes reaches the room", async () => {
  const server = serverOn();
  const ann = new Writer(server, 1);
  await server.clock.advance(1_000);
  ann.provider.on("error", ({ kind }) => ann.doc.getArray("errors").push([kind]));
  const edit = { client: "hostile_________" as ClientId, counter: 1, parentSeq: 0 as Seq, payload: new Uint8Array([1, 9, 9, 9]) };
  server.send({ type: "committed", channel: 1, edits: { epoch: 1 as Epoch, firstSeq: 1 as Seq, edits: [edit] } });
  await server.clock.advance(1_000);
  expect(ann.doc.getArray("errors").toJSON()).toEqual(["edit-unreadable"]);
  expect(server.receivedFrames.filter(({ type }) => type === "edit").length).toBe(1);
});
