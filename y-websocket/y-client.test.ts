import * as encoding from "lib0/encoding";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import * as Y from "yjs";

import { FakeClock } from "../shared/testing/fake-clock.ts";
import { SILENT } from "../shared/testing/silent-log.ts";
import { HeldBudget } from "./held-budget.ts";
import { yWebsocketMetrics } from "./metrics.ts";
import { decodeYMessage, encodeAwareness, encodeSyncRequest, encodeUpdate } from "./protocol.ts";
import { YClient, type YRoom } from "./y-client.ts";

const OWN = 42;
const hello = encodeAwareness([{ client: OWN, clock: 1, json: "{}" }]);
const updateOf = (text: string): Uint8Array => {
  const doc = new Y.Doc();
  doc.getText("t").insert(0, text);
  return Y.encodeStateAsUpdate(doc);
};

/** A room that is in step when the test says so, and saves when it does. */
class FakeRoom {
  readonly room = "notes";
  rights = { read: true, write: true };
  readonly status = "connected";
  unsavedEdits = 1;
  readonly awareness = {
    clientID: OWN,
    states: new Map<number, Record<string, unknown>>(),
    setLocalState: (state: unknown) => void (this.shown = state),
    on: () => {},
  };
  shown: unknown;
  saved = true;
  synced = false;
  isDestroyed = false;
  #tell: Readonly<Record<string, (value: never) => void>> = {};

  on(name: string, tell: (value: never) => void): void {
    this.#tell = { ...this.#tell, [name]: tell };
  }

  refuse(kind: string): void {
    this.#tell["refused"]!({ kind, message: "no" } as never);
  }

  comeInStep(): void {
    this.synced = true;
    this.#tell["synced"]!(true as never);
  }

  destroy(): void {
    this.isDestroyed = true;
  }
}

function rig({ budget = new HeldBudget(1_000_000) }: { readonly budget?: HeldBudget } = {}) {
  const clock = new FakeClock(0);
  const room = new FakeRoom();
  const docs: { readonly doc: Y.Doc; readonly number: number }[] = [];
  const sent: string[] = [];
  const warnings: string[] = [];
  const log = { ...SILENT, warn: (_: object, sentence: string) => void warnings.push(sentence) };
  const closed: number[] = [];
  const socket = {
    send: (bytes: Uint8Array) => void sent.push(decodeYMessage(bytes)?.kind ?? "none"),
    close: (code: number) => void closed.push(code),
    waitingBytes: 0,
  };
  const openRoom = (doc: Y.Doc): YRoom => {
    docs.push({ doc, number: doc.clientID });
    return room as unknown as YRoom;
  };
  const client = new YClient(
    socket,
    {
      yHelloMsMax: 10_000,
      yWaitingBytesMax: 1_000,
      yAnswerBytesBurst: 100_000,
      yAnswerBytesPerSecond: 10_000,
      yUpdateBytesBurst: 200_000,
      yUpdateBytesPerSecond: 20_000,
      ySaveMsMax: 5_000,
    },
    { openRoom, budget, clock, log, metrics: yWebsocketMetrics(new Registry()) },
  );
  return { client, clock, room, docs, sent, warnings, closed, socket };
}

test("[YCL1] it enters under its own number, and its document never writes under that", () => {
  const { client, docs } = rig();
  client.receive(encodeSyncRequest(new Uint8Array([0])));
  expect(docs).toEqual([]);
  client.receive(hello);
  expect(docs.map(({ number }) => number)).toEqual([OWN]);
  expect(docs[0]!.doc.clientID).not.toBe(OWN);
});

test("[YCL2] a client that shows nothing is let in all the same, a moment after its first words, however late those come", () => {
  const { client, clock, docs } = rig();
  clock.turn(9_999);
  client.receive(encodeSyncRequest(new Uint8Array([0])));
  clock.turn(49);
  expect(docs).toHaveLength(0);
  clock.turn(1);
  expect(docs).toHaveLength(1);
});

test("[YCL3] it is told nothing, and writes nothing, before its document is the room's", () => {
  const { client, room, docs, sent } = rig();
  for (const bytes of [hello, encodeSyncRequest(new Uint8Array([0])), encodeUpdate(updateOf("mine"))]) client.receive(bytes);
  expect(sent).toEqual([]);
  expect(docs[0]!.doc.getText("t").toJSON()).toBe("");
  Y.applyUpdate(docs[0]!.doc, updateOf("the room's "));
  room.comeInStep();
  expect(sent).toEqual(["sync-request", "awareness", "update"]); // The update answers its request.
  expect(docs[0]!.doc.getText("t").toJSON()).toHaveLength("the room's mine".length);
});

test("[YCL4] it hears something every 15 s, for it takes a silent server for gone after 30", () => {
  const { client, clock, room, sent } = rig();
  client.receive(hello);
  room.comeInStep();
  sent.length = 0;
  clock.turn(45_000);
  expect(sent).toEqual(["awareness", "awareness", "awareness"]);
});

test("[YCL5] one that does not take what it is sent is closed, to come again; but not for the length of one answer", () => {
  const { client, room, docs, socket, closed } = rig();
  client.receive(hello);
  room.comeInStep();
  socket.waitingBytes = 1_000;
  Y.applyUpdate(docs[0]!.doc, updateOf("a long document ".repeat(1_000)));
  expect(closed).toEqual([]);
  socket.waitingBytes = 1_001;
  Y.applyUpdate(docs[0]!.doc, updateOf("more"));
  expect(closed).toEqual([1013]);
});

test("[YCL6] once it is gone its document stays until what it wrote is saved, for so long and no longer", async () => {
  for (const [savedAtMs, waitedMs] of [
    [2_000, 2_000],
    [60_000, 5_000],
  ] as const) {
    const { client, clock, room } = rig();
    client.receive(hello);
    room.comeInStep();
    room.saved = false;
    clock.after(savedAtMs, () => (room.saved = true));
    const left = client.receiveClosed();
    await clock.advance(waitedMs - 200);
    expect(room.isDestroyed).toBe(false);
    await clock.advance(400);
    await left;
    expect(room.isDestroyed).toBe(true);
  }
});

test.each([
  { unsavedEdits: 1, words: "not all that it wrote was saved" },
  { unsavedEdits: 0, words: "what it wrote may build upon edits that were not saved" },
])("[YCL21] of one that left with $unsavedEdits edits unacknowledged the log says: $words", async ({ unsavedEdits, words }) => {
  const { client, clock, room, warnings } = rig();
  client.receive(hello);
  room.comeInStep();
  Object.assign(room, { saved: false, unsavedEdits });
  const left = client.receiveClosed();
  await clock.advance(5_200);
  await left;
  expect(warnings).toEqual([expect.stringContaining(words)]);
});

test("[YCL7] what is no update, or none that Yjs takes, closes it, and nothing that it says throws", () => {
  const deep = `{"a":${"[".repeat(4_000)}${"]".repeat(4_000)}}`;
  const hostile = [
    saidUpdate(updateOf("half of it").subarray(0, -1)),
    saidUpdate(itsOwnOrigin()),
    encodeSyncRequest(new Uint8Array([9, 1])),
  ];
  for (const bytes of hostile) {
    const { client, room, docs, closed } = rig();
    client.receive(hello);
    room.comeInStep();
    expect(() => client.receive(bytes)).not.toThrow();
    expect(closed).toEqual([4400]);
    expect(docs[0]!.doc.getText("t").toJSON()).toBe("");
  }
  const { client, room } = rig();
  client.receive(hello);
  room.comeInStep();
  expect(() => client.receive(encodeAwareness([{ client: OWN, clock: 2, json: deep }]))).not.toThrow();
});

/** An item that stands behind one of its own client that comes after it. */
function itsOwnOrigin(): Uint8Array {
  return encoding.encode((output) => {
    for (const number of [1, 1, 7, 0]) encoding.writeVarUint(output, number); // One client, one struct: client 7 from clock 0.
    encoding.writeUint8(output, 0x80 | 4); // A text, with an origin.
    for (const number of [7, 5]) encoding.writeVarUint(output, number); // Behind 7's fifth.
    encoding.writeVarString(output, "x");
    encoding.writeVarUint(output, 0); // Nothing deleted.
  });
}

test("[YCL8] who may not write for a time gives all that it wrote once it may again", () => {
  const { client, clock, room, docs, sent } = rig();
  const mine = new Y.Doc();
  const updates: Uint8Array[] = [];
  mine.on("update", (update: Uint8Array) => void updates.push(update));
  mine.getText("t").insert(0, "while muted, ");
  mine.getText("t").insert(mine.getText("t").length, "and after");
  client.receive(hello);
  room.comeInStep();
  room.rights = { read: true, write: false };
  client.receive(encodeUpdate(updates[0]!));
  client.receive(encodeUpdate(updates[0]!));
  expect(
    sent.filter((kind) => kind === "unknown"),
    "told once",
  ).toHaveLength(1);
  room.rights = { read: true, write: true };
  sent.length = 0;
  clock.turn(15_000);
  expect(sent, "though it says nothing more").toContain("sync-request");
  sent.length = 0;
  client.receive(encodeUpdate(updates[1]!));
  expect(sent, "what it builds upon is missing").toEqual(["sync-request"]);
  client.receive(encodeUpdate(Y.encodeStateAsUpdate(mine)));
  expect(docs[0]!.doc.getText("t").toJSON()).toBe("while muted, and after");
});

test("[YCL9] a client that lacks itself what it builds upon is asked for it once", () => {
  const { client, room, sent } = rig();
  const mine = new Y.Doc();
  const updates: Uint8Array[] = [];
  mine.on("update", (update: Uint8Array) => void updates.push(update));
  for (const letter of "abc") mine.getText("t").insert(mine.getText("t").length, letter);
  client.receive(hello);
  room.comeInStep();
  sent.length = 0;
  for (const update of [updates[1]!, updates[2]!, updates[1]!]) client.receive(encodeUpdate(update));
  expect(sent).toEqual(["sync-request"]);
});

test("[YCL10] a token that held and has expired lets the client come again, any other refusal does not", () => {
  for (const [wasInStep, kind, code] of [
    [true, "token-expired", 4501],
    [false, "token-expired", 4401],
    [true, "room-refused", 4401],
  ] as const) {
    const { client, room, closed } = rig();
    client.receive(hello);
    if (wasInStep) room.comeInStep();
    room.refuse(kind);
    expect(closed).toEqual([code]);
  }
});

test("[YCL11] what clients say before their rooms are there is bounded for all of them, and given back", async () => {
  const budget = new HeldBudget(1_000);
  const [one, other] = [rig({ budget }), rig({ budget })];
  const long = encodeUpdate(updateOf("x".repeat(600)));
  one.client.receive(long);
  other.client.receive(long);
  expect([one.closed, other.closed]).toEqual([[], [1013]]);
  one.clock.turn(50);
  one.room.comeInStep();
  const third = rig({ budget });
  third.client.receive(long);
  expect(third.closed).toEqual([]);
});

test("[YCL20] what has come of a message that is not whole counts too, until it is, or its socket is closed", async () => {
  const budget = new HeldBudget(1_000);
  const [one, other] = [rig({ budget }), rig({ budget })];
  expect([one.client.receiveBytes(500), one.client.receiveBytes(300), other.client.receiveBytes(300)]).toEqual([true, true, false]);
  expect([one.closed, other.closed]).toEqual([[], [1013]]);
  one.client.receive(encodeUpdate(updateOf("x".repeat(100)))); // It is whole, and held.
  expect([one.client.receiveBytes(400), one.closed]).toEqual([true, []]);
  await other.client.receiveClosed();
  const third = rig({ budget });
  expect(third.client.receiveBytes(500)).toBe(false);
  one.clock.turn(50);
  one.room.comeInStep();
  expect([one.client.receiveBytes(100_000), rig({ budget }).client.receiveBytes(1_000)]).toEqual([true, true]);
});

test("[YCL20] the part of one that is refused counts until its socket is closed, which keeps it", async () => {
  const budget = new HeldBudget(1_000);
  const [one, other] = [rig({ budget }), rig({ budget })];
  one.client.receiveBytes(900);
  one.clock.turn(10_000);
  expect([one.closed, other.client.receiveBytes(900)]).toEqual([[4508], false]);
  await one.client.receiveClosed();
  expect(rig({ budget }).client.receiveBytes(900)).toBe(true);
});

test("[YCL12] who wrote before the room was there, and is gone, has it written all the same", async () => {
  const { client, clock, room, docs } = rig();
  room.saved = true;
  client.receive(encodeUpdate(updateOf("and gone")));
  const left = client.receiveClosed();
  await clock.advance(1_000);
  expect(room.isDestroyed).toBe(false);
  room.comeInStep();
  expect(docs[0]!.doc.getText("t").toJSON()).toBe("and gone");
  await clock.advance(200);
  await left;
  expect(room.isDestroyed).toBe(true);
});

test("[YCL13] of very many tiny messages each counts for more than its bytes", () => {
  const { client, closed } = rig({ budget: new HeldBudget(1_000) });
  const tiny = new Uint8Array([9]);
  for (let message = 0; message < 3; message++) client.receive(tiny);
  expect(closed).toEqual([]);
  client.receive(tiny);
  expect(closed).toEqual([1013]);
});

test("[YCL14] what is held is its own: not the rest of what was read with it, nor what that is overwritten with", () => {
  const { client, room, docs } = rig();
  const said = encodeUpdate(updateOf("mine"));
  const read = new Uint8Array(64 * 1024);
  read.set(said);
  client.receive(read.subarray(0, said.byteLength));
  client.receive(hello);
  read.fill(0xff);
  room.comeInStep();
  expect(docs[0]!.doc.getText("t").toJSON()).toBe("mine");
});

test("[YCL15] who is closed from here is not to be seen any more, though it never answers the close", () => {
  const { client, room, docs, socket, closed } = rig();
  client.receive(hello);
  room.comeInStep();
  expect(room.shown).toEqual({ "y-websocket": 1 });
  socket.waitingBytes = 1_001;
  Y.applyUpdate(docs[0]!.doc, updateOf("more than it takes"));
  expect(closed).toEqual([1013]);
  expect(room.shown).toBe(null);
});

test("[YCL16] who says nothing in time is closed, to come again, and who says something is not", () => {
  const [mute, speaking] = [rig(), rig()];
  speaking.client.receive(hello);
  for (const { clock } of [mute, speaking]) clock.turn(9_999);
  expect(mute.closed).toEqual([]);
  for (const { clock } of [mute, speaking]) clock.turn(60_000);
  expect([mute.closed, speaking.closed]).toEqual([[4508], []]);
  mute.client.receive(hello);
  expect(mute.docs).toEqual([]);
});

test("[YCL17] who asks for the whole document over and over is answered as fast as may be, and who is gone is not", async () => {
  const { client, clock, room, docs, sent } = rig();
  client.receive(hello);
  Y.applyUpdate(docs[0]!.doc, updateOf("a long document ".repeat(5_000)));
  room.comeInStep();
  const answers = () => sent.filter((kind) => kind === "update").length;
  for (let asked = 0; asked < 100; asked++) client.receive(encodeSyncRequest(new Uint8Array([0])));
  expect(answers()).toBe(2);
  clock.turn(60_000);
  expect(answers(), "the newest of those that waited").toBe(3);
  for (let asked = 0; asked < 100; asked++) client.receive(encodeSyncRequest(new Uint8Array([0])));
  const before = answers();
  await client.receiveClosed();
  clock.turn(60_000);
  expect(answers()).toBe(before);
});

test("[YCL18] who writes too fast is closed, to come again with all that it has; who writes as fast as it may is not", () => {
  const [fast, honest] = [rig(), rig()];
  for (const { client, room } of [fast, honest]) {
    client.receive(hello);
    room.comeInStep();
  }
  const update = encodeUpdate(updateOf("a key"));
  for (let said = 0; said < 400; said++) {
    fast.client.receive(update);
    honest.client.receive(update);
    honest.clock.turn(100);
  }
  expect([fast.closed, honest.closed]).toEqual([[4529], []]);
});

test("[YCL19] what waits in Yjs for what is missing is counted with each update, and what was held of one who is gone is written", () => {
  const { client, room, closed } = rig();
  const mine = new Y.Doc();
  const updates: Uint8Array[] = [];
  mine.on("update", (update: Uint8Array) => void updates.push(update));
  for (const text of ["missing", "x".repeat(50_000), "y"]) mine.getText("t").insert(mine.getText("t").length, text);
  client.receive(hello);
  room.comeInStep();
  client.receive(encodeUpdate(updates[1]!));
  for (let said = 0; said < 10; said++) client.receive(encodeUpdate(updates[2]!));
  expect(closed).toEqual([4529]);

  const held = rig();
  held.client.receive(hello);
  for (let said = 0; said < 300; said++) held.client.receive(encodeUpdate(updateOf("x")));
  void held.client.receiveClosed();
  held.room.comeInStep();
  expect(held.docs[0]!.doc.getText("t").length).toBe(300);
});

function saidUpdate(update: Uint8Array): Uint8Array {
  return encoding.encode((output) => {
    for (const number of [0, 2]) encoding.writeVarUint(output, number);
    encoding.writeVarUint8Array(output, update);
  });
}
