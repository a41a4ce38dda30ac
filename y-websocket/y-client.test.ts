import * as encoding from "lib0/encoding";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import * as Y from "yjs";

import { conflictBomb, nestingBomb } from "../shared/testing/yjs-bombs.ts";
import { FakeClock } from "../shared/testing/fake-clock.ts";
import { yWebsocketMetrics } from "./metrics.ts";
import { decodeYMessage, encodeAwareness, encodeSyncRequest, encodeUpdate } from "./protocol.ts";
import { YClient, type YRoom } from "./y-client.ts";
import { EarlyMessagesBudget } from "./held-messages.ts";

const OWN = 42;
const hello = encodeAwareness([{ client: OWN, clock: 1, json: "{}" }]);
const updateOf = (text: string): Uint8Array => {
  const doc = new Y.Doc();
  doc.getText("t").insert(0, text);
  return Y.encodeStateAsUpdate(doc);
};

/** A room that the test controls: when it is synced and when it saves. */
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
  #listeners: Readonly<Record<string, (value: never) => void>> = {};

  on(name: string, listener: (value: never) => void): void {
    this.#listeners = { ...this.#listeners, [name]: listener };
  }

  refuse(kind: string): void {
    this.#listeners["refused"]!({ kind, message: "no" } as never);
  }

  report(kind: string): void {
    this.#listeners["error"]!({ kind, message: "no" } as never);
  }

  comeInStep(): void {
    this.synced = true;
    this.#listeners["synced"]!(true as never);
  }

  destroy(): void {
    this.isDestroyed = true;
  }
}

function rig({ budget = new EarlyMessagesBudget(1_000_000) }: { readonly budget?: EarlyMessagesBudget } = {}) {
  const clock = new FakeClock(0);
  const room = new FakeRoom();
  const docs: { readonly doc: Y.Doc; readonly number: number }[] = [];
  const sent: string[] = [];
  const warnings: string[] = [];
  const warn = (_: object, sentence: string): void => void warnings.push(sentence);
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
    { openRoom, budget, clock, warn, metrics: yWebsocketMetrics(new Registry()) },
  );
  return { client, clock, room, docs, sent, warnings, closed, socket };
}

test("[YCL1] a client joins under its own number, and its document never writes under that number", () => {
  const { client, docs } = rig();
  client.receiveMessage(encodeSyncRequest(new Uint8Array([0])));
  expect(docs).toEqual([]);
  client.receiveMessage(hello);
  expect(docs.map(({ number }) => number)).toEqual([OWN]);
  expect(docs[0]!.doc.clientID).not.toBe(OWN);
});

test("[YCL2] a client without awareness is admitted shortly after its first message", () => {
  const { client, clock, docs } = rig();
  clock.turn(9_999);
  client.receiveMessage(encodeSyncRequest(new Uint8Array([0])));
  clock.turn(49);
  expect(docs).toHaveLength(0);
  clock.turn(1);
  expect(docs).toHaveLength(1);
});

test("[YCL3] a client is sent nothing, and writes nothing, before its document equals the room's", () => {
  const { client, room, docs, sent } = rig();
  for (const bytes of [hello, encodeSyncRequest(new Uint8Array([0])), encodeUpdate(updateOf("mine"))]) client.receiveMessage(bytes);
  expect(sent).toEqual([]);
  expect(docs[0]!.doc.getText("t").toJSON()).toBe("");
  Y.applyUpdate(docs[0]!.doc, updateOf("the room's "));
  room.comeInStep();
  expect(sent).toEqual(["sync-request", "awareness", "update"]); // The update answers its request.
  expect(docs[0]!.doc.getText("t").toJSON()).toHaveLength("the room's mine".length);
});

test("[YCL4] a client is sent a message every 15 s, because it closes a connection that is silent for 30 s", () => {
  const { client, clock, room, sent } = rig();
  client.receiveMessage(hello);
  room.comeInStep();
  sent.length = 0;
  clock.turn(45_000);
  expect(sent).toEqual(["awareness", "awareness", "awareness"]);
});

test("[YCL5] a client that does not read is closed with a retry; but not because of a single long answer", () => {
  const { client, room, docs, socket, closed } = rig();
  client.receiveMessage(hello);
  room.comeInStep();
  socket.waitingBytes = 1_000;
  Y.applyUpdate(docs[0]!.doc, updateOf("a long document ".repeat(1_000)));
  expect(closed).toEqual([]);
  socket.waitingBytes = 1_001;
  Y.applyUpdate(docs[0]!.doc, updateOf("more"));
  expect(closed).toEqual([1013]);
});

test("[YCL6] after a client left its document stays until its edits are saved, up to a limit", async () => {
  for (const [savedAtMs, waitedMs] of [
    [2_000, 2_000],
    [60_000, 5_000],
  ] as const) {
    const { client, clock, room } = rig();
    client.receiveMessage(hello);
    room.comeInStep();
    room.saved = false;
    clock.after(savedAtMs, () => (room.saved = true));
    const left = leave(client);
    await clock.advance(waitedMs - 200);
    expect(room.isDestroyed).toBe(false);
    await clock.advance(400);
    await left;
    expect(room.isDestroyed).toBe(true);
  }
});

test.each([
  { unsavedEdits: 1, warning: "not all its edits were saved" },
  { unsavedEdits: 0, warning: "its edits may depend on edits that are not saved" },
])("[YCL21] the log reports a client that left with $unsavedEdits unacknowledged edits as: $warning", async ({ unsavedEdits, warning }) => {
  const { client, clock, room, warnings } = rig();
  client.receiveMessage(hello);
  room.comeInStep();
  Object.assign(room, { saved: false, unsavedEdits });
  const left = leave(client);
  await clock.advance(5_200);
  await left;
  expect(warnings).toEqual([expect.stringContaining(warning)]);
});

test("[YCL7] a message without a valid update closes the client, and no message makes the bridge throw", () => {
  const deep = `{"a":${"[".repeat(4_000)}${"]".repeat(4_000)}}`;
  const hostile = [
    saidUpdate(updateOf("half of it").subarray(0, -1)),
    saidUpdate(itsOwnOrigin()),
    encodeSyncRequest(new Uint8Array([9, 1])),
  ];
  for (const bytes of hostile) {
    const { client, room, docs, closed } = rig();
    client.receiveMessage(hello);
    room.comeInStep();
    expect(() => client.receiveMessage(bytes)).not.toThrow();
    expect(closed).toEqual([4400]);
    expect(docs[0]!.doc.getText("t").toJSON()).toBe("");
  }
  const { client, room } = rig();
  client.receiveMessage(hello);
  room.comeInStep();
  expect(() => client.receiveMessage(encodeAwareness([{ client: OWN, clock: 2, json: deep }]))).not.toThrow();
});

/** An item whose origin is a later item of the same client. */
function itsOwnOrigin(): Uint8Array {
  return encoding.encode((output) => {
    for (const number of [1, 1, 7, 0]) encoding.writeVarUint(output, number); // One client, one struct: client 7 from clock 0.
    encoding.writeUint8(output, 0x80 | 4); // A text, with an origin.
    for (const number of [7, 5]) encoding.writeVarUint(output, number); // After the fifth item of client 7.
    encoding.writeVarString(output, "x");
    encoding.writeVarUint(output, 0); // No deletions.
  });
}

test("[YCL8] a client without write permission for a time sends all its edits once it has the permission again", () => {
  const { client, clock, room, docs, sent } = rig();
  const mine = new Y.Doc();
  const updates: Uint8Array[] = [];
  mine.on("update", (update: Uint8Array) => void updates.push(update));
  mine.getText("t").insert(0, "while muted, ");
  mine.getText("t").insert(mine.getText("t").length, "and after");
  client.receiveMessage(hello);
  room.comeInStep();
  room.rights = { read: true, write: false };
  client.receiveMessage(encodeUpdate(updates[0]!));
  client.receiveMessage(encodeUpdate(updates[0]!));
  expect(
    sent.filter((kind) => kind === "unknown"),
    "sent once",
  ).toHaveLength(1);
  room.rights = { read: true, write: true };
  sent.length = 0;
  clock.turn(15_000);
  expect(sent, "though it says nothing more").toContain("sync-request");
  sent.length = 0;
  client.receiveMessage(encodeUpdate(updates[1]!));
  expect(sent, "what it builds upon is missing").toEqual(["sync-request"]);
  client.receiveMessage(encodeUpdate(Y.encodeStateAsUpdate(mine)));
  expect(docs[0]!.doc.getText("t").toJSON()).toBe("while muted, and after");
});

test("[YCL9] a client that lacks the base of its own update is asked for it once", () => {
  const { client, room, sent } = rig();
  const mine = new Y.Doc();
  const updates: Uint8Array[] = [];
  mine.on("update", (update: Uint8Array) => void updates.push(update));
  for (const letter of "abc") mine.getText("t").insert(mine.getText("t").length, letter);
  client.receiveMessage(hello);
  room.comeInStep();
  sent.length = 0;
  for (const update of [updates[1]!, updates[2]!, updates[1]!]) client.receiveMessage(encodeUpdate(update));
  expect(sent).toEqual(["sync-request"]);
});

test("[YCL10] a client whose valid token expired may return; any other rejection is final", () => {
  for (const [wasInStep, kind, code] of [
    [true, "token-expired", 4501],
    [false, "token-expired", 4401],
    [true, "room-refused", 4401],
  ] as const) {
    const { client, room, closed } = rig();
    client.receiveMessage(hello);
    if (wasInStep) room.comeInStep();
    room.refuse(kind);
    expect(closed).toEqual([code]);
  }
});

test("[YCL11] messages that arrive before their rooms are joined are bounded in total, and released", async () => {
  const budget = new EarlyMessagesBudget(1_000);
  const [one, other] = [rig({ budget }), rig({ budget })];
  const long = encodeUpdate(updateOf("x".repeat(600)));
  one.client.receiveMessage(long);
  other.client.receiveMessage(long);
  expect([one.closed, other.closed]).toEqual([[], [1013]]);
  one.clock.turn(50);
  one.room.comeInStep();
  const third = rig({ budget });
  third.client.receiveMessage(long);
  expect(third.closed).toEqual([]);
});

test("[YCL20] received parts of an incomplete message count too, until it is complete or its socket is closed", async () => {
  const budget = new EarlyMessagesBudget(1_000);
  const [one, other] = [rig({ budget }), rig({ budget })];
  expect([one.client.receiveBytes(500), one.client.receiveBytes(300), other.client.receiveBytes(300)]).toEqual([true, true, false]);
  expect([one.closed, other.closed]).toEqual([[], [1013]]);
  one.client.receiveMessage(encodeUpdate(updateOf("x".repeat(100)))); // The message is complete, and held.
  expect([one.client.receiveBytes(400), one.closed]).toEqual([true, []]);
  await leave(other.client);
  const third = rig({ budget });
  expect(third.client.receiveBytes(500)).toBe(false);
  one.clock.turn(50);
  one.room.comeInStep();
  expect([one.client.receiveBytes(100_000), rig({ budget }).client.receiveBytes(1_000)]).toEqual([true, true]);
});

test("[YCL20] the parts of a rejected message count until their socket is closed, because the socket holds them", async () => {
  const budget = new EarlyMessagesBudget(1_000);
  const [one, other] = [rig({ budget }), rig({ budget })];
  one.client.receiveBytes(900);
  one.clock.turn(10_000);
  expect([one.closed, other.client.receiveBytes(900)]).toEqual([[4508], false]);
  await leave(one.client);
  expect(rig({ budget }).client.receiveBytes(900)).toBe(true);
});

test("[YCL12] edits of a client that left before the room was joined are still written", async () => {
  const { client, clock, room, docs } = rig();
  room.saved = true;
  client.receiveMessage(encodeUpdate(updateOf("and gone")));
  const left = leave(client);
  await clock.advance(1_000);
  expect(room.isDestroyed).toBe(false);
  room.comeInStep();
  expect(docs[0]!.doc.getText("t").toJSON()).toBe("and gone");
  await clock.advance(200);
  await left;
  expect(room.isDestroyed).toBe(true);
});

test("[YCL13] each of many tiny messages counts for more than its bytes", () => {
  const { client, closed } = rig({ budget: new EarlyMessagesBudget(1_000) });
  const tiny = new Uint8Array([9]);
  for (let message = 0; message < 3; message++) client.receiveMessage(tiny);
  expect(closed).toEqual([]);
  client.receiveMessage(tiny);
  expect(closed).toEqual([1013]);
});

test("[YCL14] a held message is a copy: it keeps no other read bytes, and later reads do not overwrite it", () => {
  const { client, room, docs } = rig();
  const update = encodeUpdate(updateOf("mine"));
  const read = new Uint8Array(64 * 1024);
  read.set(update);
  client.receiveMessage(read.subarray(0, update.byteLength));
  client.receiveMessage(hello);
  read.fill(0xff);
  room.comeInStep();
  expect(docs[0]!.doc.getText("t").toJSON()).toBe("mine");
});

test("[YCL15] a client that the bridge closes disappears at once, though it never answers the close", () => {
  const { client, room, docs, socket, closed } = rig();
  client.receiveMessage(hello);
  room.comeInStep();
  expect(room.shown).toEqual({ "y-websocket": 1 });
  socket.waitingBytes = 1_001;
  Y.applyUpdate(docs[0]!.doc, updateOf("more than it takes"));
  expect(closed).toEqual([1013]);
  expect(room.shown).toBe(null);
});

test("[YCL16] a client that sends nothing in time is closed with a retry, and one that sends something is not", () => {
  const [mute, speaking] = [rig(), rig()];
  speaking.client.receiveMessage(hello);
  for (const { clock } of [mute, speaking]) clock.turn(9_999);
  expect(mute.closed).toEqual([]);
  for (const { clock } of [mute, speaking]) clock.turn(60_000);
  expect([mute.closed, speaking.closed]).toEqual([[4508], []]);
  mute.client.receiveMessage(hello);
  expect(mute.docs).toEqual([]);
});

test("[YCL17] repeated requests for the whole document are answered at the allowed rate, and not after the client left", async () => {
  const { client, clock, room, docs, sent } = rig();
  client.receiveMessage(hello);
  Y.applyUpdate(docs[0]!.doc, updateOf("a long document ".repeat(5_000)));
  room.comeInStep();
  const answers = () => sent.filter((kind) => kind === "update").length;
  for (let asked = 0; asked < 100; asked++) client.receiveMessage(encodeSyncRequest(new Uint8Array([0])));
  expect(answers()).toBe(2);
  clock.turn(60_000);
  expect(answers(), "the newest of those that waited").toBe(3);
  for (let asked = 0; asked < 100; asked++) client.receiveMessage(encodeSyncRequest(new Uint8Array([0])));
  const before = answers();
  await leave(client);
  clock.turn(60_000);
  expect(answers()).toBe(before);
});

test("[YCL18] a client that writes too fast is closed with a retry and its data; one at the limit is not", () => {
  const [fast, honest] = [rig(), rig()];
  for (const { client, room } of [fast, honest]) {
    client.receiveMessage(hello);
    room.comeInStep();
  }
  const update = encodeUpdate(updateOf("a key"));
  for (let sent = 0; sent < 400; sent++) {
    fast.client.receiveMessage(update);
    honest.client.receiveMessage(update);
    honest.clock.turn(100);
  }
  expect([fast.closed, honest.closed]).toEqual([[4529], []]);
});

test("[YCL19] updates that Yjs holds for a missing base count with each update, and held edits of a departed client are written", () => {
  const { client, room, closed } = rig();
  const mine = new Y.Doc();
  const updates: Uint8Array[] = [];
  mine.on("update", (update: Uint8Array) => void updates.push(update));
  for (const text of ["missing", "x".repeat(50_000), "y"]) mine.getText("t").insert(mine.getText("t").length, text);
  client.receiveMessage(hello);
  room.comeInStep();
  client.receiveMessage(encodeUpdate(updates[1]!));
  for (let sent = 0; sent < 10; sent++) client.receiveMessage(encodeUpdate(updates[2]!));
  expect(closed).toEqual([4529]);

  const held = rig();
  held.client.receiveMessage(hello);
  for (let sent = 0; sent < 300; sent++) held.client.receiveMessage(encodeUpdate(updateOf("x")));
  void leave(held.client);
  held.room.comeInStep();
  expect(held.docs[0]!.doc.getText("t").length).toBe(300);
});

function saidUpdate(update: Uint8Array): Uint8Array {
  return encoding.encode((output) => {
    for (const number of [0, 2]) encoding.writeVarUint(output, number);
    encoding.writeVarUint8Array(output, update);
  });
}

/** Closes the client's socket. Resolves once the client has left. */
function leave(client: YClient): Promise<void> {
  return new Promise((resolve) => client.receiveClosed(resolve));
}

test.each([
  ["nested too deeply", nestingBomb(5_000)],
  ["in conflict with each other", conflictBomb(6_000)],
])("[YCL22] updates %s close the connection before any of them is applied", (_, bomb) => {
  const { client, room, docs, closed } = rig();
  client.receiveMessage(hello);
  room.comeInStep();
  client.receiveMessage(encodeUpdate(bomb));
  expect([closed, docs[0]!.doc.store.clients.size]).toEqual([[4400], 0]);
});

test("[YCL23] a client whose document the SDK reports as stuck is closed with a retry", () => {
  const { client, room, closed } = rig();
  client.receiveMessage(hello);
  room.comeInStep();
  room.report("document-stuck");
  expect(closed).toEqual([1013]);
});
