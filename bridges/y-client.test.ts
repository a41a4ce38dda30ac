import { Registry } from "prom-client";
import { expect, test } from "vitest";
import * as Y from "yjs";

import type { Epoch, RoomKey, Seq, TenantId } from "../shared/ids.ts";
import type { RoomConnection } from "../client/room/room-connection-host.ts";
import type { KnownEdit } from "../client/room/room-messages.ts";
import { conflictBomb, nestingBomb } from "../shared/testing/yjs-bombs.ts";
import { FakeClock } from "../shared/testing/fake-clock.ts";
import { CLOSE } from "../shared/wire/close-codes.ts";
import { AnswerTurns } from "./answer-turns.ts";
import { yWebsocketMetrics } from "./metrics.ts";
import { hocuspocusDialect } from "./hocuspocus-protocol.ts";
import type { YjsWork } from "./ports.ts";
import { SharedRooms } from "./room-copy.ts";
import { synchronousYjsWork } from "./testing/synchronous-yjs-work.ts";
import {
  decodeYMessage,
  encodeAwareness,
  encodeSyncAnswer,
  encodeStateless,
  encodeSyncRequest,
  encodeUpdate,
  type YDialect,
  yWebsocketDialect,
} from "./y-websocket-protocol.ts";
import { YClient, type YRoom } from "./y-client.ts";
import { EarlyMessagesBudget, UnfinishedMessages } from "./held-messages.ts";

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
  status: RoomConnection["status"] = "connected";
  outage: RoomConnection["outage"];
  unsavedEdits = 0;
  position = { epoch: 1 as Epoch, seq: 0 as Seq };
  readonly awareness = {
    clientID: OWN,
    states: new Map<number, Record<string, unknown>>(),
    setLocalState: (state: unknown) => void (this.shown = state),
    change: undefined as ((updated: number[]) => void) | undefined,
    on: (_: string, listener: (change: Record<"added" | "updated" | "removed", number[]>) => void) => {
      this.awareness.change = (updated) => listener({ added: [], updated, removed: [] });
    },
  };
  shown: unknown;
  synced = false;
  isDestroyed = false;
  readonly written: Uint8Array[] = [];
  #listeners: Readonly<Record<string, (value: never) => void>> = {};

  on(name: string, listener: (value: never) => void): void {
    this.#listeners = { ...this.#listeners, [name]: listener };
  }

  send(update: Uint8Array): void {
    this.written.push(update);
  }

  /** The text of all that the client wrote. */
  get text(): string {
    return textOf(this.written);
  }

  /** The log has this edit. */
  deliver(payload: Uint8Array): void {
    const seq = (this.position.seq + 1) as Seq;
    this.position = { epoch: 1 as Epoch, seq };
    this.#listeners["edits"]!([{ seq, client: "other", counter: seq, payload, own: false }] as never);
  }

  snapshot(payload: Uint8Array, seq: number): void {
    this.position = { epoch: 1 as Epoch, seq: seq as Seq };
    this.#listeners["snapshot"]!({ position: this.position, payload } as never);
  }

  emit(name: "saved" | "rolled-back"): void {
    this.#listeners[name]!(true as never);
  }

  refuse(kind: string): void {
    this.#listeners["refused"]!({ kind, message: "no" } as never);
  }

  closeConnection(code: number): void {
    this.synced = false;
    this.#listeners["connection-close"]!({ code, reason: "" } as never);
  }

  report(kind: string, reason?: string): void {
    this.#listeners["error"]!({ kind, reason, message: "no" } as never);
  }

  comeInStep(): void {
    this.synced = true;
    this.#listeners["synced"]!(true as never);
  }

  destroy(): void {
    this.isDestroyed = true;
  }
}

function textOf(updates: readonly Uint8Array[]): string {
  const doc = new Y.Doc();
  for (const update of updates) Y.applyUpdate(doc, update);
  return doc.getText("t").toJSON();
}

type Given = {
  readonly budget?: EarlyMessagesBudget;
  readonly rooms?: SharedRooms;
  readonly dialect?: YDialect;
  readonly work?: YjsWork;
  readonly clock?: FakeClock;
  readonly turns?: AnswerTurns;
};

const sharedRooms = (yRoomBytesMax = 1_000_000, work: YjsWork = synchronousYjsWork): SharedRooms =>
  new SharedRooms({ yRoomBytesMax }, { workOf: () => work, reportLeftOut: () => {}, reportRooms: () => {} });

function rig({
  budget = new EarlyMessagesBudget(1_000_000),
  rooms = sharedRooms(),
  dialect = yWebsocketDialect,
  work = synchronousYjsWork,
  clock = new FakeClock(0),
  turns = new AnswerTurns(1_000_000, clock),
}: Given = {}) {
  const room = new FakeRoom();
  const opened: { readonly number: number | undefined; readonly since: KnownEdit | undefined }[] = [];
  const sent: string[] = [];
  const received: Uint8Array[] = [];
  const warnings: string[] = [];
  const warn = (_: object, sentence: string): void => void warnings.push(sentence);
  const closed: number[] = [];
  const accepted: true[] = [];
  const socket = {
    send: (bytes: Uint8Array) => {
      const message = decodeYMessage(bytes);
      sent.push(message?.kind ?? "none");
      if (message?.kind === "update") received.push(message.update);
    },
    close: (code: number) => void closed.push(code),
    waitingBytes: 0,
  };
  const openRoom = (number: number | undefined, since: KnownEdit | undefined): YRoom => {
    opened.push({ number, since });
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
    {
      openRoom,
      takeCopy: () => rooms.take("acme.notes" as RoomKey),
      receiveAccepted: () => void accepted.push(true),
      dialect,
      budget,
      clock,
      warn,
      metrics: yWebsocketMetrics(new Registry()),
      work,
      turns,
      owner: { tenant: "acme" as TenantId, user: "ann" },
    },
  );
  return { client, clock, room, opened, sent, received, warnings, closed, accepted, socket };
}

test("[YCL1] a client joins with its own Yjs client id", () => {
  const { client, opened } = rig();
  client.receiveMessage(encodeSyncRequest(new Uint8Array([0])));
  expect(opened).toEqual([]);
  client.receiveMessage(hello);
  expect(opened.map(({ number }) => number)).toEqual([OWN]);
});

test("[YCL2] a client without awareness is admitted shortly after its first message", () => {
  const { client, clock, opened } = rig();
  clock.turn(9_999);
  client.receiveMessage(encodeSyncRequest(new Uint8Array([0])));
  clock.turn(49);
  expect(opened).toHaveLength(0);
  clock.turn(1);
  expect(opened).toHaveLength(1);
});

test("[YCL3] until the copy equals the room, a client receives no content and none of its updates is written", () => {
  const { client, room, sent, received } = rig();
  for (const bytes of [hello, encodeSyncRequest(new Uint8Array([0])), encodeUpdate(updateOf("mine"))]) client.receiveMessage(bytes);
  room.deliver(updateOf("the room's"));
  expect([sent, room.written]).toEqual([[], []]);
  room.comeInStep();
  expect(sent).toEqual(["sync-request", "awareness", "update"]); // The update answers its request.
  expect([textOf(received), room.text]).toEqual(["the room's", "mine"]);
});

test("[YCL4] a client is sent a message every 15 s, because it closes a connection that is silent for 30 s", () => {
  const { client, clock, room, sent } = rig();
  client.receiveMessage(hello);
  room.comeInStep();
  sent.length = 0;
  clock.turn(45_000);
  expect(sent).toEqual(["awareness", "awareness", "awareness"]);
});

test("[YCL5] a client that does not read is closed with a retry, but not because of a single long answer", () => {
  const { client, room, socket, closed } = rig();
  client.receiveMessage(hello);
  room.comeInStep();
  socket.waitingBytes = 1_000;
  room.deliver(updateOf("a long document ".repeat(1_000)));
  expect(closed).toEqual([]);
  socket.waitingBytes = 1_001;
  room.deliver(updateOf("more"));
  expect(closed).toEqual([1013]);
});

test("[YCL6] after a client left its room stays open until its edits are saved, up to a limit", async () => {
  for (const [savedAtMs, waitedMs] of [
    [2_000, 2_000],
    [60_000, 5_000],
  ] as const) {
    const { client, clock, room } = rig();
    client.receiveMessage(hello);
    room.comeInStep();
    room.unsavedEdits = 1;
    clock.after(savedAtMs, () => (room.unsavedEdits = 0));
    const left = leave(client);
    await clock.advance(waitedMs - 200);
    expect(room.isDestroyed).toBe(false);
    await clock.advance(400);
    await left;
    expect(room.isDestroyed).toBe(true);
  }
});

test("[YCL21] the log reports a client that left with unacknowledged edits", async () => {
  const { client, clock, room, warnings } = rig();
  client.receiveMessage(hello);
  room.comeInStep();
  room.unsavedEdits = 1;
  const left = leave(client);
  await clock.advance(5_200);
  await left;
  expect(warnings).toEqual([expect.stringContaining("not all its edits were saved")]);
});

test("[YCL7] a message without a valid update closes the client, and no message makes the bridge throw", () => {
  const deep = `{"a":${"[".repeat(4_000)}${"]".repeat(4_000)}}`;
  const hostile = [encodeUpdate(updateOf("half of it").subarray(0, -1)), encodeSyncRequest(new Uint8Array([9, 1]))];
  for (const bytes of hostile) {
    const { client, room, closed } = rig();
    client.receiveMessage(hello);
    room.comeInStep();
    expect(() => client.receiveMessage(bytes)).not.toThrow();
    expect([closed, room.written]).toEqual([[4400], []]);
  }
  const { client, room } = rig();
  client.receiveMessage(hello);
  room.comeInStep();
  expect(() => client.receiveMessage(encodeAwareness([{ client: OWN, clock: 2, json: deep }]))).not.toThrow();
});

test("[YCL8] a client that temporarily had no write permission sends all its edits once it has the permission again", () => {
  const { client, clock, room, sent } = rig();
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
  client.receiveMessage(encodeSyncAnswer(Y.encodeStateAsUpdate(mine)));
  expect(room.text).toBe("while muted, and after");
});

test("[YCL9] the bridge requests the base of an update only once, because the client may lack it too", () => {
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

test("[YCL39] once a base has arrived, the bridge requests the base of the next update that lacks one", () => {
  const { client, room, sent } = rig();
  const mine = new Y.Doc();
  const updates: Uint8Array[] = [];
  mine.on("update", (update: Uint8Array) => void updates.push(update));
  const type = (text: string): void => [...text].forEach((letter) => mine.getText("t").insert(mine.getText("t").length, letter));
  type("ab");
  client.receiveMessage(hello);
  room.comeInStep();
  client.receiveMessage(encodeUpdate(updates[1]!));
  client.receiveMessage(encodeSyncAnswer(Y.encodeStateAsUpdate(mine)));
  type("cd");
  sent.length = 0;
  client.receiveMessage(encodeUpdate(updates[3]!));
  expect(sent).toEqual(["sync-request"]);
});

test("[YCL40] a client is sent the changed presence of others at once, and nothing for its own", () => {
  const { client, room, sent } = rig();
  client.receiveMessage(hello);
  room.comeInStep();
  sent.length = 0;
  room.awareness.states.set(7, { user: "bob" });
  room.awareness.change?.([7]);
  expect(sent).toEqual(["awareness"]);
  room.awareness.change?.([OWN]);
  expect(sent).toEqual(["awareness"]);
});

test("[YCL29] content that waits for a lost edit is written once, however often clients connect with it", () => {
  const rooms = sharedRooms();
  const author = new Y.Doc();
  const updates: Uint8Array[] = [];
  author.on("update", (update: Uint8Array) => void updates.push(update));
  for (const text of ["never arrives", "pending"]) author.getText("t").insert(0, text);
  const theirs = new Y.Doc();
  Y.applyUpdate(theirs, updates[1]!);
  const written = [1, 2].map(() => {
    const { client, room } = rig({ rooms });
    client.receiveMessage(hello);
    room.comeInStep();
    client.receiveMessage(encodeSyncAnswer(Y.encodeStateAsUpdate(theirs)));
    for (const update of room.written) room.deliver(update);
    return room.written.length;
  });
  expect(written).toEqual([1, 0]);
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

test("[YUN1] above the budget of unfinished messages the oldest one is cut, even if another client sends more", () => {
  const cutOff: string[] = [];
  const unfinished = new UnfinishedMessages(10_000, (sender) => sender.cut(0, ""));
  const sender = (name: string) => ({ cut: () => void cutOff.push(name) });
  const [ann, bob, eve] = [sender("ann"), sender("bob"), sender("eve")];
  unfinished.receiveBytes(ann, 4_000);
  unfinished.forget(ann); // The message is complete.
  unfinished.receiveBytes(eve, 4_000);
  unfinished.receiveBytes(ann, 4_000);
  expect(cutOff).toEqual([]);
  unfinished.receiveBytes(bob, 4_000);
  expect(cutOff).toEqual(["eve"]);
  for (let piece = 0; piece < 30; piece++) unfinished.receiveBytes(bob, 1);
  expect(cutOff, "pieces cost more than their bytes").toEqual(["eve", "ann", "bob"]);
  expect(unfinished.bytes).toBeLessThan(10_000);
});

test("[YUN2] a ping or its answer is no unfinished message, and makes no room for one", () => {
  const unfinished = new UnfinishedMessages(10_000, () => {});
  const sender = { cut: () => {} };
  for (let minute = 0; minute < 100; minute++) {
    unfinished.receiveBytes(sender, 6);
    unfinished.receiveControlFrame(sender, 6);
  }
  expect(unfinished.bytes).toBe(0);
  unfinished.receiveBytes(sender, 1_000);
  const before = unfinished.bytes;
  unfinished.receiveBytes(sender, 16);
  unfinished.receiveControlFrame(sender, 6);
  expect(unfinished.bytes).toBeGreaterThan(before + 10);
  unfinished.forget(sender);
  unfinished.receiveControlFrame(sender, 6); // In the bytes that completed a message.
  expect(unfinished.bytes).toBe(0);
});

test("[YCL12] edits of a client that left before the room was joined are still written", async () => {
  const { client, clock, room } = rig();
  client.receiveMessage(encodeUpdate(updateOf("and gone")));
  const left = leave(client);
  await clock.advance(1_000);
  expect(room.isDestroyed).toBe(false);
  room.comeInStep();
  expect(room.text).toBe("and gone");
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
  const { client, room } = rig();
  const update = encodeUpdate(updateOf("mine"));
  const read = new Uint8Array(64 * 1024);
  read.set(update);
  client.receiveMessage(read.subarray(0, update.byteLength));
  client.receiveMessage(hello);
  read.fill(0xff);
  room.comeInStep();
  expect(room.text).toBe("mine");
});

test("[YCL15] a client that the bridge closes disappears at once, though it never answers the close", () => {
  const { client, room, socket, closed } = rig();
  client.receiveMessage(hello);
  room.comeInStep();
  expect(room.shown).toEqual({ "y-websocket": 1 });
  socket.waitingBytes = 1_001;
  room.deliver(updateOf("more than it takes"));
  expect(closed).toEqual([1013]);
  expect(room.shown).toBe(null);
});

test("[YCL16] a client that sends no message in time is closed with a retry, and other clients are not", () => {
  const [mute, speaking] = [rig(), rig()];
  speaking.client.receiveMessage(hello);
  for (const { clock } of [mute, speaking]) clock.turn(9_999);
  expect(mute.closed).toEqual([]);
  for (const { clock } of [mute, speaking]) clock.turn(60_000);
  expect([mute.closed, speaking.closed]).toEqual([[4508], []]);
  mute.client.receiveMessage(hello);
  expect(mute.opened).toEqual([]);
});

test("[YCL17] repeated requests for the complete document are answered at the allowed rate, and not after the client left", async () => {
  const { client, clock, room, sent } = rig();
  client.receiveMessage(hello);
  room.deliver(updateOf("a long document ".repeat(5_000)));
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

test("[YCL18] a client that writes too fast is closed with a retry and keeps its data; a client at the limit is not closed", () => {
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

test("[YCL19] held updates of a departed client are written", () => {
  const held = rig();
  held.client.receiveMessage(hello);
  for (let sent = 0; sent < 300; sent++) held.client.receiveMessage(encodeUpdate(updateOf("x")));
  void leave(held.client);
  held.room.comeInStep();
  expect(held.room.text.length).toBe(300);
});

/** Closes the client's socket. Resolves once the client has left. */
function leave(client: YClient): Promise<void> {
  return new Promise((resolve) => client.receiveClosed(resolve));
}

test.each([
  ["nested too deeply", nestingBomb(5_000)],
  ["in conflict with each other", conflictBomb(6_000)],
])("[YCL22] updates %s close the connection, and none of them is applied", (_, bomb) => {
  const { client, room, closed } = rig();
  client.receiveMessage(hello);
  room.comeInStep();
  client.receiveMessage(encodeUpdate(bomb));
  expect([closed, room.written]).toEqual([[4400], []]);
});

test("[YCL23] clients of a room share its content: the second joins from the copy's position, and each edit is sent once", () => {
  const rooms = sharedRooms();
  const [ann, bob] = [rig({ rooms }), rig({ rooms })];
  ann.client.receiveMessage(hello);
  ann.room.snapshot(updateOf("a snapshot"), 7);
  ann.room.deliver(updateOf("an edit"));
  ann.room.comeInStep();
  bob.client.receiveMessage(hello);
  expect([ann, bob].map(({ opened }) => opened[0]!.since?.position.seq)).toEqual([undefined, 8]);
  bob.room.position = ann.room.position;
  bob.room.comeInStep();
  bob.client.receiveMessage(encodeSyncRequest(new Uint8Array([0])));
  expect(textOf(bob.received)).toHaveLength("a snapshotan edit".length);
  const edit = updateOf("of others");
  for (const { room } of [ann, bob]) room.deliver(edit);
  expect([ann.received.length, bob.received.length]).toEqual([1, 2]);
});

test("[YCL24] a client is informed when the log has its update, or is asked for the missing content", () => {
  const { client, room, sent } = rig({ dialect: hocuspocusDialect });
  client.receiveMessage(hello);
  room.comeInStep();
  const reports = (): number => sent.splice(0).filter((kind) => kind === "unknown").length;
  expect(reports(), "the scope").toBe(1);
  const mine = new Y.Doc();
  const updates: Uint8Array[] = [];
  mine.on("update", (update: Uint8Array) => void updates.push(update));
  for (const letter of "abc") mine.getText("t").insert(mine.getText("t").length, letter);
  room.unsavedEdits = 1;
  client.receiveMessage(encodeUpdate(updates[0]!));
  expect(reports()).toBe(0);
  room.unsavedEdits = 0;
  room.deliver(updates[0]!);
  expect(reports()).toBe(1);
  client.receiveMessage(encodeUpdate(updates[2]!)); // The update before this one is missing.
  expect(reports()).toBe(0);
  client.receiveMessage(encodeSyncAnswer(Y.encodeStateAsUpdate(mine)));
  expect([reports(), room.written.length]).toEqual([2, 2]);
  for (const payload of room.written.slice(1)) room.deliver(payload);
  sent.length = 0;
  client.receiveMessage(encodeSyncAnswer(Y.encodeStateAsUpdate(mine))); // Nothing new.
  expect([reports(), room.written.length]).toEqual([1, 2]);
  room.report("edit-too-large");
  room.unsavedEdits = 0;
  room.emit("saved");
  expect(reports()).toBe(0);
});

test("[YCL31] an edit that does not fit into the outbox is not reported as saved", () => {
  const { client, room, sent } = rig({ dialect: hocuspocusDialect });
  client.receiveMessage(hello);
  room.comeInStep();
  sent.length = 0;
  room.send = () => room.report("outbox-full");
  client.receiveMessage(encodeUpdate(updateOf("one too many")));
  room.emit("saved");
  expect(sent.filter((kind) => kind === "unknown")).toEqual([]);
});

test("[YCL32] a client whose update could not be checked may connect again, because the update may be valid", () => {
  const { client, room, closed, warnings } = rig({ work: { ...synchronousYjsWork, check: (_, receive) => receive(undefined) } });
  client.receiveMessage(hello);
  room.comeInStep();
  client.receiveMessage(encodeUpdate(updateOf("valid")));
  const left: true[] = [];
  client.receiveClosed(() => void left.push(true));
  expect([closed, room.written, left]).toEqual([[1013], [], [true]]);
  expect(warnings).toEqual([expect.stringContaining("could not be checked")]);
});

test("[YCL34] an update whose client left before its check failed is checked again, and a second failure is reported", async () => {
  for (const [outcomes, text, warned] of [
    [["none", "facts"], "valid", []],
    [["none", "none", "facts"], "", [expect.stringContaining("could not be checked")]],
  ] as const) {
    const checks: (() => void)[] = [];
    const check: YjsWork["check"] = (update, receive) => {
      const outcome = outcomes[checks.length];
      checks.push(() => (outcome === "none" ? receive(undefined) : synchronousYjsWork.check(update, receive)));
    };
    const { client, clock, room, warnings } = rig({ work: { ...synchronousYjsWork, check } });
    client.receiveMessage(hello);
    room.comeInStep();
    client.receiveMessage(encodeUpdate(updateOf("valid")));
    const left = leave(client);
    checks[0]!();
    await clock.advance(200);
    expect(room.isDestroyed).toBe(false);
    checks[1]!();
    await clock.advance(200);
    await left;
    expect([room.text, warnings, checks.length]).toEqual([text, warned, 2]);
  }
});

test("[YCL33] a client of a user who is banned from the room is refused, and a client whose room is full waits", () => {
  const { client, room, closed } = rig();
  client.receiveMessage(hello);
  room.report("room-unavailable", "room-full");
  expect(closed).toEqual([]);
  room.report("room-unavailable", "not-allowed");
  expect(closed).toEqual([4401]);
});

test("[YCL35] a client of a banned user gives its place free at once, although not all its edits are saved", async () => {
  for (const [reason, isFree] of [
    ["room-full", false],
    ["not-allowed", true],
  ] as const) {
    const { client, clock, room, warnings } = rig();
    client.receiveMessage(hello);
    room.comeInStep();
    room.unsavedEdits = 1;
    room.status = "waiting";
    room.outage = { why: "no", retryInMs: 60_000, reason };
    room.report("room-unavailable", reason);
    const left = leave(client);
    await clock.advance(200);
    expect([room.isDestroyed, warnings.some((text) => text.includes("not all its edits were saved"))]).toEqual([isFree, isFree]);
    await clock.advance(5_200);
    await left;
  }
});

test("[YCL36] a client of a banned user is closed, and receives nothing of the room until the ban has ended", () => {
  const rooms = sharedRooms();
  const [ann, eve, again] = [rig({ rooms }), rig({ rooms }), rig({ rooms })];
  for (const { client, room } of [ann, eve]) {
    client.receiveMessage(hello);
    room.comeInStep();
  }
  eve.room.closeConnection(CLOSE.goingAway.code);
  expect(eve.closed).toEqual([]);
  eve.room.closeConnection(CLOSE.banned.code);
  expect(eve.closed).toEqual([1013]);
  again.client.receiveMessage(hello);
  again.room.closeConnection(CLOSE.banned.code);
  ann.room.deliver(updateOf("secret"));
  expect([eve.sent.includes("update"), again.sent, again.closed]).toEqual([false, [], []]);
  again.client.receiveMessage(encodeSyncRequest(new Uint8Array([0])));
  again.room.comeInStep();
  expect(textOf(again.received)).toBe("secret");
});

test("[YCL37] a client whose room is lost while its copy is read does not begin before the room is back", () => {
  const answers: (() => void)[] = [];
  const open: YjsWork["open"] = (content, receive) => void answers.push(() => synchronousYjsWork.open(content, receive));
  const { client, room, sent } = rig({ rooms: sharedRooms(1_000_000, { ...synchronousYjsWork, open }) });
  client.receiveMessage(hello);
  room.snapshot(updateOf("old"), 1);
  room.comeInStep();
  room.closeConnection(CLOSE.banned.code);
  answers[0]!();
  expect(sent).toEqual([]);
  room.comeInStep();
  expect(sent).toEqual(["sync-request", "awareness"]);
});

test("[YCL38] a client that leaves before its room is joined gives its place free at once, if it has not written", async () => {
  for (const [last, isFree] of [
    [encodeSyncRequest(new Uint8Array([0])), true],
    [encodeUpdate(updateOf("mine")), false],
  ] as const) {
    const { client, clock, room, warnings } = rig();
    for (const message of [hello, last]) client.receiveMessage(message);
    const left = leave(client);
    await clock.advance(100);
    expect([room.isDestroyed, warnings]).toEqual([isFree, []]);
    await clock.advance(5_200);
    await left;
    expect(warnings.length).toBe(isFree ? 0 : 1);
  }
});

test("[YCL41] held messages no longer count once the time for saving is over", async () => {
  const update = encodeUpdate(updateOf("mine"));
  const budget = new EarlyMessagesBudget(hello.byteLength + update.byteLength + 2 * 256);
  const { client, clock } = rig({ budget });
  for (const message of [hello, update]) client.receiveMessage(message);
  const left = leave(client);
  await clock.advance(5_200);
  await left;
  const next = rig({ budget });
  for (const message of [hello, update]) next.client.receiveMessage(message);
  expect(next.closed).toEqual([]);
});

test("[YCL25] after the log lost its end all clients of the room start again", () => {
  const rooms = sharedRooms();
  const [ann, bob, entering] = [rig({ rooms }), rig({ rooms }), rig({ rooms })];
  for (const { client } of [ann, bob, entering]) client.receiveMessage(hello);
  for (const { room } of [ann, bob]) room.comeInStep();
  bob.room.emit("rolled-back");
  expect([ann.closed, bob.closed, entering.closed]).toEqual([[1013], [1013], [1013]]);
  const again = rig({ rooms });
  again.client.receiveMessage(hello);
  again.room.comeInStep();
  expect(again.closed).toEqual([]);
});

test("[YCL28] a client that enters starts again if the log does not have the copy's newest edit, and the others stay", () => {
  const rooms = sharedRooms();
  const [ann, entering] = [rig({ rooms }), rig({ rooms })];
  ann.client.receiveMessage(hello);
  ann.room.comeInStep();
  entering.client.receiveMessage(hello);
  entering.room.emit("rolled-back");
  entering.room.comeInStep();
  expect([ann.closed, entering.closed, entering.sent]).toEqual([[], [1013], []]);
  for (const { client } of [ann, entering]) client.receiveClosed(() => {});
  const again = rig({ rooms });
  again.client.receiveMessage(hello);
  expect(again.opened).toEqual([{ number: expect.any(Number), since: undefined }]);
});

test("[YCL26] stateless messages reach the other Hocuspocus clients of the room, from writers only and within the rate", () => {
  const rooms = sharedRooms();
  const [ann, bob, other] = [rig({ rooms, dialect: hocuspocusDialect }), rig({ rooms, dialect: hocuspocusDialect }), rig({ rooms })];
  for (const { client, room } of [ann, bob, other]) {
    client.receiveMessage(hello);
    room.comeInStep();
  }
  const relayed = (): number[] => [ann, bob, other].map(({ sent }) => sent.filter((kind) => kind === "stateless").length);
  ann.client.receiveMessage(encodeStateless("saved"));
  expect(relayed()).toEqual([0, 1, 0]);
  for (let sent = 0; sent < 10; sent++) ann.client.receiveMessage(encodeStateless("x".repeat(50_000)));
  expect(relayed()).toEqual([0, 5, 0]);
  bob.room.rights = { read: true, write: false };
  bob.client.receiveMessage(encodeStateless("by a reader"));
  expect(relayed()).toEqual([0, 5, 0]);
});

test("[YCL42] stateless messages cost the room their bytes for each client that gets them, whoever writes", async () => {
  const rooms = sharedRooms();
  const clients = Array.from({ length: 101 }, () => rig({ rooms, dialect: hocuspocusDialect }));
  for (const { client, room } of clients) {
    client.receiveMessage(hello);
    room.comeInStep();
  }
  const relayed = (): number => clients.flatMap(({ sent }) => sent.filter((kind) => kind === "stateless")).length;
  for (const { client } of clients) for (let sent = 0; sent < 5; sent++) client.receiveMessage(encodeStateless("x"));
  expect(relayed()).toBeGreaterThan(7_000);
  expect(relayed()).toBeLessThan(9_000);
  const before = relayed();
  for (const { clock } of clients.slice(0, 2)) await clock.advance(4_000); // The burst of the room is full again.
  clients[0]!.client.receiveMessage(encodeStateless("x".repeat(100_000)));
  clients[1]!.client.receiveMessage(encodeStateless("x".repeat(50_000)));
  expect(relayed()).toBe(before + 100);
});

test("[YCL43] one saved edit reports many updates in batches, so that a client cannot fill the bridge's memory at once", () => {
  const { client, clock, room, sent } = rig({ dialect: hocuspocusDialect });
  client.receiveMessage(hello);
  room.comeInStep();
  room.unsavedEdits = 1;
  client.receiveMessage(encodeUpdate(updateOf("x")));
  for (let repeated = 0; repeated < 2_499; repeated++) client.receiveMessage(encodeUpdate(Uint8Array.of(0, 0)));
  sent.length = 0;
  room.unsavedEdits = 0;
  room.emit("saved");
  const counts = [sent.length];
  for (let batch = 0; batch < 3; batch++) {
    clock.turn(100);
    counts.push(sent.length);
  }
  expect(counts).toEqual([1_000, 2_000, 2_500, 2_500]);
});

test("[YCL44] the answers to a user's sockets with a long document wait until the one before has been read", () => {
  const [rooms, clock] = [sharedRooms(10_000_000), new FakeClock(0)];
  const turns = new AnswerTurns(100_000_000, clock);
  const clients = [1, 2, 3].map(() => rig({ rooms, clock, turns }));
  for (const { client, room } of clients) {
    client.receiveMessage(hello);
    room.comeInStep();
  }
  clients[0]!.room.deliver(updateOf("x".repeat(2_000_000)));
  for (const { sent, socket } of clients) {
    const { send } = socket;
    sent.length = 0;
    socket.send = (bytes) => {
      send(bytes);
      socket.waitingBytes += bytes.byteLength;
    };
  }
  const answers = (): number[] => clients.map(({ sent }) => sent.filter((kind) => kind === "update").length);
  for (const { client } of clients) client.receiveMessage(encodeSyncRequest(Uint8Array.of(0)));
  expect(answers()).toEqual([1, 0, 0]);
  clock.turn(1_000);
  expect(answers()).toEqual([1, 0, 0]);
  clients[0]!.socket.waitingBytes = 0;
  clock.turn(100);
  expect(answers()).toEqual([1, 1, 0]);
  clients[1]!.client.receiveClosed(() => {});
  clients[1]!.socket.waitingBytes = 0;
  clock.turn(100);
  expect(answers()).toEqual([1, 1, 1]);
});

test("[YCL27] a request costs the bytes of the room's content, and an answer the number of deletions that it is compared with", () => {
  const { client, clock, room, sent, closed } = rig();
  client.receiveMessage(hello);
  const doc = new Y.Doc();
  const text = doc.getText("t");
  text.insert(0, "ab".repeat(200_000));
  for (let range = 0; range < 2_000; range++) text.delete(range, 1);
  const content = Y.encodeStateAsUpdate(doc);
  room.deliver(content);
  room.comeInStep();
  sent.length = 0;
  for (let asked = 0; asked < 10; asked++) client.receiveMessage(encodeSyncRequest(Y.encodeStateVector(doc)));
  expect(sent.filter((kind) => kind === "update").length).toBeLessThan(5);
  clock.turn(60_000);
  for (let answered = 0; answered < 10; answered++)
    client.receiveMessage(encodeSyncAnswer(Y.encodeStateAsUpdate(doc, Y.encodeStateVector(doc))));
  expect([closed, room.written]).toEqual([[4529], []]);
});

test("[YCL28] a client is accepted once a gateway has admitted it, and not by its first messages", () => {
  const { client, room, accepted } = rig();
  client.receiveMessage(encodeSyncRequest(new Uint8Array([0])));
  client.receiveMessage(hello);
  expect(accepted).toEqual([]);
  room.comeInStep();
  expect(accepted).toEqual([true]);
});

test("[YCL30] a request for which edits are integrated costs more than the bytes of a small room", () => {
  const { client, room, sent } = rig();
  client.receiveMessage(hello);
  const doc = new Y.Doc();
  const nested = doc.getMap("m").set("k", new Y.Text());
  const before = Y.encodeStateVector(doc);
  doc.clientID += 1;
  nested.insert(0, "waits for the text that it is in");
  const waiting = Y.encodeStateAsUpdate(doc, before);
  room.comeInStep();
  const answersTo = (update: Uint8Array): number => {
    sent.length = 0;
    for (let asked = 0; asked < 10; asked++) {
      room.deliver(update);
      client.receiveMessage(encodeSyncRequest(Uint8Array.of(0)));
    }
    return sent.filter((kind) => kind === "update").length - 10;
  };
  expect(answersTo(updateOf("known"))).toBe(10);
  expect(answersTo(waiting)).toBeLessThan(5);
});
