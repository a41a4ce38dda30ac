import { expect, test } from "vitest";

import type { OwnerReply, SubmittedEdit } from "../../shared/bus/envelope.ts";
import { type EpochHistory, EPOCHS_MAX } from "../../shared/bus/epoch-history.ts";
import { decodeRecord, type EditsRecord } from "../../shared/bus/record.ts";
import type { ClientId, Epoch, GatewayId, Millis, Position, RoomKey, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import type { TentativeEdit } from "../../shared/wire/frames.ts";
import { Backlog, BacklogBudget } from "./backlog.ts";
import type { OwnedRoomEffect } from "./room-messages.ts";
import { OwnedRoom, type OwnedRoomOptions, type OwnedRoomStart } from "./owned-room.ts";
import { Sequencer } from "./sequencer.ts";

const ann = { user: "ann" as UserId, client: "annannannannann1" as ClientId };
const bob = { user: "bob" as UserId, client: "bobbobbobbobbob1" as ClientId };
const gateway = "gw" as GatewayId;
const epoch = 4 as Epoch;
const at = (ms: number) => ms as Millis;
const MAC = new Uint8Array(16).fill(7);

const OPTIONS: OwnedRoomOptions = {
  unackedEditsMax: 5,
  unackedBytesMax: 1_000,
  recordBytesMax: 100,
  answerBytesMax: 1_000,
  savingAfterMs: 100,
  refusingAfterMs: 10_000,
  refusedRetryMs: 1_000,
  gapQuietMs: 200,
  beaconMs: 1_000,
  beaconsWhenQuiet: 2,
  idleMsMax: 300_000,
  deferredCatchUpsMax: 2,
};

function startAt(head: number, epochs: EpochHistory = [3, 0, epoch, head]): OwnedRoomStart {
  const sequencer = new Sequencer({ dedupeMsMin: 300_000, writersMax: 100, runsPerWriterMax: 8 }, head as Seq);
  const backlog = new Backlog({ backlogMsMax: 300_000, backlogBytesMax: 100_000 }, new BacklogBudget({ bytesMax: 1_000_000 }), head as Seq);
  const own = epochs.at(-2) as Epoch;
  return { key: "acme.notes" as RoomKey, epoch: own, last: { id: "s.0", streamSeq: 10 }, sequencer, backlog, epochs };
}

function roomAt(head = 0, more: Partial<OwnedRoomOptions> = {}, epochs?: EpochHistory): OwnedRoom {
  const seal = { sealOf: () => MAC, isGenuine: (_: RoomKey, edit: TentativeEdit) => edit.mac[0] === MAC[0] };
  let records = 0;
  const deps = { seal, nextStamp: () => ({ id: `s.${++records}`, time: 0 as UnixMillis }) };
  return new OwnedRoom(startAt(head, epochs), { ...OPTIONS, ...more }, deps, at(0));
}

const edit = (author: typeof ann, counter: number, more: Partial<SubmittedEdit> = {}): SubmittedEdit => ({
  author,
  counter,
  ackedThrough: 0,
  parentSeq: 0 as Seq,
  payload: new Uint8Array([counter]),
  ...more,
});
const send = (room: OwnedRoom, now: number, ...edits: SubmittedEdit[]) => room.receiveRoomInput({ kind: "edits", gateway, edits }, at(now));
const appended = (room: OwnedRoom, now: number, streamSeq = 11) => room.receiveRoomInput({ kind: "appended", streamSeq }, at(now));
const tick = (room: OwnedRoom, now: number) => room.receiveRoomInput({ kind: "tick" }, at(now));
const catchUp = (room: OwnedRoom, position: Position, through = 0) =>
  room.receiveRoomInput({ kind: "catch-up-request", gateway, request: 1, after: position, through: through as Seq }, at(0));
const position = (seq: number, of: number = epoch): Position => ({ epoch: of as Epoch, seq: seq as Seq });

const kinds = (effects: readonly OwnedRoomEffect[]) => effects.map(({ kind }) => kind);
const answers = (effects: readonly OwnedRoomEffect[]): OwnerReply[] =>
  effects.flatMap((effect) => (effect.kind === "answer" ? [effect.answer] : []));
const broadcasts = (effects: readonly OwnedRoomEffect[]) =>
  effects.flatMap((effect) => (effect.kind === "broadcast" ? [effect.message] : []));

function appends(effects: readonly OwnedRoomEffect[]): (EditsRecord & { expected: number })[] {
  return effects.flatMap((effect) =>
    effect.kind === "append" ? [{ ...(decodeRecord(effect.record.bytes) as EditsRecord), expected: effect.record.expectedStreamSeq }] : [],
  );
}

test("[RRM1] edits are appended after the room's last record, with their authors, and nothing is announced before the log contains them", () => {
  const room = roomAt(40);
  const effects = send(room, 0, edit(ann, 1), edit(bob, 1));
  expect(kinds(effects)).toEqual(["append"]);
  const [record] = appends(effects);
  expect(record).toMatchObject({
    id: "s.1",
    expected: 10,
    edits: {
      epoch: 4,
      firstSeq: 41,
      edits: [
        { client: ann.client, counter: 1 },
        { client: bob.client, counter: 1 },
      ],
    },
  });
  expect([...record!.users]).toEqual([
    [ann.client, "ann"],
    [bob.client, "bob"],
  ]);
  expect(room.head).toBe(40);
  expect(appended(room, 1)).toEqual([]);
  expect(room.head).toBe(42);
});

test("[RRM2] edits that arrive during an append share the next record, which expects the one in flight", () => {
  const room = roomAt();
  send(room, 0, edit(ann, 1));
  expect(send(room, 0, edit(ann, 2))).toEqual([]);
  expect(send(room, 0, edit(bob, 1))).toEqual([]);
  const [record] = appends(appended(room, 1, 17));
  expect(record).toMatchObject({ expected: 17, edits: { firstSeq: 2, edits: [{ counter: 2 }, { counter: 1 }] } });
});

test("[RRM3] a repeat gets no answer while its first copy waits, and the seq once the log contains that copy", () => {
  const room = roomAt();
  send(room, 0, edit(ann, 1));
  expect(send(room, 0, edit(ann, 1))).toEqual([]);
  appended(room, 1);
  expect(answers(send(room, 2, edit(ann, 1)))).toEqual([{ kind: "acked", epoch: 4, client: ann.client, counter: 1, seq: 1, exact: true }]);
});

test("[RRM4] a gap is refused with the missing counter, once, however many edits follow it", () => {
  const room = roomAt();
  expect(answers(send(room, 0, edit(ann, 3), edit(ann, 4), edit(ann, 5)))).toEqual([
    { kind: "refused", epoch: 4, client: ann.client, counter: 3, reason: "gap", expected: 1, retryAfterMs: 0 },
  ]);
  expect(send(room, 199, edit(ann, 6))).toEqual([]);
  expect(answers(send(room, 200, edit(ann, 6)))).toMatchObject([{ reason: "gap", expected: 1 }]);
});

test("[RRM5] over the limit an edit is refused with a retry time, together with all later edits", () => {
  const room = roomAt();
  const effects = send(room, 0, ...[1, 2, 3, 4, 5, 6, 7].map((counter) => edit(ann, counter)));
  expect(answers(effects)).toMatchObject([{ counter: 6, reason: "write-backpressure", expected: 6, retryAfterMs: 1_000 }]);
  expect(kinds(effects)).toContain("limit-reached");
  appended(room, 1);
  expect(answers(send(room, 500, edit(ann, 7)))).toEqual([]);
  expect(appends(send(room, 1_000, edit(ann, 6), edit(ann, 7)))).toHaveLength(1);
});

test("[RRM6] an edit too large for a record is refused permanently, and a smaller one takes its number", () => {
  const room = roomAt();
  expect(answers(send(room, 0, edit(ann, 1, { payload: new Uint8Array(101) })))).toMatchObject([{ reason: "too-large", retryAfterMs: 0 }]);
  expect(appends(send(room, 0, edit(ann, 1)))).toHaveLength(1);
});

test("[RRM7] a parent that is not before its edit is replaced by the edit before", () => {
  const room = roomAt(5);
  const [record] = appends(send(room, 0, edit(ann, 1, { parentSeq: 99 as Seq }), edit(ann, 2, { parentSeq: 3 as Seq })));
  expect(record!.edits.edits.map(({ parentSeq }) => parentSeq)).toEqual([5, 3]);
});

test("[RRM8] while the log is slow the room is saving: unacked edits are shown once each, and new ones at once", () => {
  const room = roomAt();
  send(room, 0, edit(ann, 1));
  send(room, 50, edit(ann, 2));
  expect(tick(room, 100)).toEqual([]);
  expect(broadcasts(tick(room, 101))).toMatchObject([
    { kind: "saving", epoch: 4, state: "saving" },
    { kind: "tentative", edit: { epoch: 4, user: "ann", client: ann.client, counter: 1, mac: MAC } },
    { kind: "tentative", edit: { counter: 2 } },
  ]);
  expect(tick(room, 151)).toEqual([]);
  expect(broadcasts(send(room, 160, edit(bob, 1)))).toMatchObject([{ kind: "tentative", edit: { client: bob.client, counter: 1 } }]);
});

test("[RRM9] after ten seconds new edits are refused; accepted ones stay, and are committed when the log answers", () => {
  const room = roomAt(0, { beaconMs: 1_000_000 });
  send(room, 0, edit(ann, 1));
  send(room, 9_000, edit(ann, 2));
  expect(broadcasts(tick(room, 10_001))).toMatchObject([{ state: "refusing" }, { kind: "tentative" }, { kind: "tentative" }]);
  expect(answers(send(room, 10_002, edit(ann, 3)))).toMatchObject([
    { counter: 3, reason: "log-stalled", expected: 3, retryAfterMs: 1_000 },
  ]);
  const back = appended(room, 12_000);
  expect(appends(back)).toMatchObject([{ edits: { firstSeq: 2, edits: [{ counter: 2 }] } }]);
  expect(broadcasts(back)).toMatchObject([{ state: "saving" }]);
  expect(broadcasts(appended(room, 12_001, 12))).toEqual([{ kind: "saving", epoch: 4, state: "saved" }]);
  expect(appends(send(room, 12_002, edit(ann, 3)))).toHaveLength(1);
});

test("[RRM10] a tentative edit is submitted again by any client with its seal, and by no other", () => {
  const room = roomAt();
  const tentative: TentativeEdit = {
    epoch: 3 as Epoch,
    ...ann,
    counter: 1,
    ackedThrough: 0,
    parentSeq: 0 as Seq,
    mac: MAC,
    payload: new Uint8Array([1]),
  };
  const resubmit = (edit: TentativeEdit) => room.receiveRoomInput({ kind: "resubmit", gateway, edit }, at(0));
  expect(answers(resubmit({ ...tentative, mac: new Uint8Array(16) }))).toMatchObject([
    { kind: "refused", reason: "forged", client: ann.client, counter: 1 },
  ]);
  expect(appends(resubmit(tentative))).toMatchObject([{ edits: { edits: [{ client: ann.client, counter: 1 }] } }]);
  appended(room, 1);
  expect(answers(resubmit(tentative))).toMatchObject([{ kind: "acked", counter: 1, seq: 1 }]);
});

test("[RRM27] while the log is slow the oldest tentative edits are sent again, because a client that missed one shows no later edit of its author", () => {
  const room = roomAt(0, { recordBytesMax: 10 });
  const large = { payload: new Uint8Array(8) };
  send(room, 0, edit(ann, 1, large), edit(ann, 2, large));
  const shown = (ms: number) =>
    broadcasts(tick(room, ms)).flatMap((message) => (message.kind === "tentative" ? [message.edit.counter] : []));
  expect([101, 200, 1_101, 1_200, 2_101].map(shown)).toEqual([[1, 2], [], [1], [], [1]]);
});

test("[RRM31] a first edit is never shown as tentative, however long the log stays slow: another client could submit it after a different one", () => {
  const room = roomAt();
  room.receiveRoomInput({ kind: "first-edit", gateway, edit: edit(ann, 1) }, at(0));
  send(room, 0, edit(bob, 1));
  const shown = (ms: number) => broadcasts(tick(room, ms)).flatMap((message) => (message.kind === "tentative" ? [message.edit.user] : []));
  expect([101, 200, 1_101, 2_101].map(shown)).toEqual([["bob"], [], ["bob"], ["bob"]]);
});

test("[RRM11] a catch-up returns the edits after the position, and the head", () => {
  const room = roomAt();
  send(room, 0, edit(ann, 1), edit(ann, 2), edit(ann, 3));
  appended(room, 0);
  expect(answers(catchUp(room, position(1)))).toMatchObject([
    { kind: "catch-up", request: 1, epoch: 4, head: 3, answer: { kind: "edits", parts: [expect.any(Uint8Array)] } },
  ]);
  expect(answers(catchUp(room, position(3)))).toMatchObject([{ answer: { kind: "edits", parts: [] } }]);
  expect(answers(catchUp(room, position(4)))).toMatchObject([{ answer: { kind: "resync", reason: "ahead" } }]);
  expect(answers(catchUp(room, position(2, 3)))).toMatchObject([{ answer: { kind: "resync", reason: "other-epoch" } }]);
});

test("[RRM40] a catch-up from a position of an epoch that the log has lost is refused, even if its edits or its head are here", () => {
  const ask = (seq: number, of: number) => answers(catchUp(roomAt(40, {}, [3, 0, epoch, 30]), position(seq, of)));
  for (const [seq, of] of [
    [20, 2],
    [40, 2],
    [31, 3],
    [40, 3],
  ] as const)
    expect(ask(seq, of)).toMatchObject([{ answer: { kind: "resync", reason: "other-epoch" } }]);
  expect(ask(40, 4)).toMatchObject([{ answer: { kind: "edits", parts: [] } }]);
});

test("[RRM41] a catch-up from before all known epochs is refused, and counted: the epochs are bounded", () => {
  const many = Array.from({ length: EPOCHS_MAX }, (_, index) => [index + 10, index]).flat();
  expect(catchUp(roomAt(40, {}, many), position(1, 9))).toMatchObject([
    { kind: "limit-reached", limit: "epochs" },
    { kind: "answer", answer: { answer: { kind: "resync", reason: "other-epoch" } } },
  ]);
});

test("[RRM12] a new room's start is its head; edits before the backlog are read from the log", () => {
  expect(answers(catchUp(roomAt(), position(0, 0)))).toMatchObject([{ head: 0, answer: { kind: "edits", parts: [] } }]);
  expect(catchUp(roomAt(40), position(12))).toMatchObject([
    { kind: "read-log", request: { after: { seq: 12 }, through: 40 }, epoch: 4, head: 40, streamSeq: 10 },
  ]);
});

test("[RRM13] a catch-up from a position in the record in flight waits for it, because gateways may see a record before its owner does", () => {
  const room = roomAt();
  send(room, 0, edit(ann, 1), edit(ann, 2));
  expect(catchUp(room, position(2))).toEqual([]);
  expect(catchUp(room, position(1))).toEqual([]);
  expect(kinds(catchUp(room, position(1)))).toEqual(["limit-reached"]);
  expect(answers(appended(room, 1))).toMatchObject([{ answer: { parts: [] } }, { answer: { parts: [expect.any(Uint8Array)] } }]);
  send(room, 2, edit(ann, 3));
  expect(answers(appended(room, 3, 12)), "each request is answered once").toEqual([]);
});

test("[RRM14] a position of a later epoch makes the owner check its ownership", () => {
  expect(kinds(catchUp(roomAt(), position(0, 5)))).toEqual(["check-ownership"]);
});

test("[RRM15] a quiet room announces its head a few times and then rests", () => {
  const room = roomAt();
  send(room, 0, edit(ann, 1));
  appended(room, 5);
  expect([500, 1_005, 2_005, 3_005].map((ms) => broadcasts(tick(room, ms)))).toEqual([
    [],
    [{ kind: "beacon", epoch: 4, head: 1 }],
    [{ kind: "beacon", epoch: 4, head: 1 }],
    [],
  ]);
  expect(room.tickUrgency).toBe("never");
  send(room, 5_000, edit(ann, 2));
  appended(room, 5_005, 12);
  expect(
    [6_004, 6_005, 7_005, 8_005].map((ms) => broadcasts(tick(room, ms)).length),
    "again after the next edit",
  ).toEqual([0, 1, 1, 0]);
});

test("[RRM47] a room forgets with time what it keeps for catch-ups", () => {
  const room = roomAt();
  send(room, 0, edit(ann, 1));
  appended(room, 0);
  tick(room, 300_000);
  expect(kinds(catchUp(room, position(0)))).toEqual(["answer"]);
  tick(room, 306_000);
  expect(kinds(catchUp(room, position(0)))).toEqual(["read-log"]);
});

test("[RRM48] a record in flight at a reconnect proves the log's end when it settles, so the next record follows at once", () => {
  const room = roomAt();
  send(room, 0, edit(ann, 1));
  room.receiveReconnect();
  send(room, 1, edit(ann, 2));
  expect(kinds(appended(room, 2))).toEqual(["append"]);
});

test("[RRM49] after a reconnect a room without waiting edits does not make the log be checked", () => {
  const room = roomAt();
  send(room, 0, edit(ann, 1));
  appended(room, 0);
  room.receiveReconnect();
  expect(tick(room, 100)).toEqual([]);
  expect(kinds(send(room, 200, edit(ann, 2)))).toEqual(["check-ownership"]);
});

test("[SAV7] an edit that waits while the log is asked for its end is announced as delayed, as one in flight is", () => {
  const room = roomAt();
  send(room, 0, edit(ann, 1));
  appended(room, 0);
  room.receiveReconnect();
  expect(tick(room, 100)).toEqual([]);
  send(room, 200, edit(ann, 2));
  expect(broadcasts(tick(room, 300))).not.toContainEqual({ kind: "saving", epoch: 4, state: "saving" });
  expect(broadcasts(tick(room, 301))).toContainEqual({ kind: "saving", epoch: 4, state: "saving" });
});

test("[RRM16] a room is idle while no edit and no catch-up arrives, and never while an edit waits for the log", () => {
  const room = roomAt();
  expect(room.idleMs(at(700))).toBe(700);
  send(room, 1_000, edit(ann, 1));
  expect(room.idleMs(at(9_000))).toBe(0);
  appended(room, 9_000);
  expect(room.idleMs(at(9_500))).toBe(8_500);
});

test("[RRM17] a catch-up of many edits is answered with as many as fit a message, and its gateway then requests the rest", () => {
  const room = roomAt(0, { answerBytesMax: 150, unackedEditsMax: 100 });
  for (let counter = 1; counter <= 4; counter++) {
    send(room, 0, edit(ann, counter, { payload: new Uint8Array(60) }));
    appended(room, 0, 10 + counter);
  }
  const partsAfter = (seq: number) =>
    answers(catchUp(room, position(seq))).map((answer) =>
      answer.kind === "catch-up" && answer.answer.kind === "edits" ? answer.answer.parts.length : answer,
    );
  expect([0, 1, 2, 3, 4].map(partsAfter)).toEqual([[1], [1], [1], [1], [0]]);
});

test("[RRM17] a throttled room appends gathered edits at a tick, refuses none, and is not saving", () => {
  const room = roomAt();
  room.receiveRoomInput({ kind: "gather", everyMs: 80 }, at(0));
  send(room, 0, edit(ann, 1));
  appended(room, 1);
  expect(kinds([...send(room, 20, edit(ann, 2)), ...tick(room, 50), ...send(room, 70, edit(bob, 1))])).toEqual([]);
  expect(room.tickUrgency).toBe("soon");
  const effects = tick(room, 100);
  expect(appends(effects).map(({ edits }) => edits.edits.length)).toEqual([2]);
  expect(broadcasts(effects)).toEqual([]);
  appended(room, 101, 12);
  send(room, 110, edit(ann, 3));
  expect(kinds(room.receiveRoomInput({ kind: "gather", everyMs: 0 }, at(111))), "released, it appends at once").toEqual(["append"]);
});

test("[ROOM39] a room without edits for a while continues: its numbers, its knowledge of repeats, and its gathering while throttled", () => {
  const room = roomAt(40);
  send(room, 0, edit(ann, 1));
  appended(room, 1);
  for (let now = 1_000; now <= 20_000; now += 1_000) tick(room, now);
  expect(room.tickUrgency).toBe("never");
  expect(answers(send(room, 21_000, edit(ann, 1)))).toMatchObject([{ kind: "acked", seq: 41, exact: true }]);
  room.receiveRoomInput({ kind: "gather", everyMs: 500 }, at(21_000));
  for (let now = 22_000; now <= 40_000; now += 1_000) tick(room, now);
  expect(appends(send(room, 41_000, edit(ann, 2)))).toMatchObject([{ expected: 11, edits: { firstSeq: 42 } }]);
  appended(room, 41_010, 12);
  expect(appends(send(room, 41_020, edit(ann, 3)))).toEqual([]);
  expect(appends(tick(room, 41_600))).toMatchObject([{ expected: 12, edits: { firstSeq: 43 } }]);
});

test("[ROOM45] when the storage of the log is full the room refuses new edits at once, keeps what it accepted, and continues when there is space", () => {
  const room = roomAt();
  send(room, 0, edit(ann, 1));
  const refusing = { kind: "saving", epoch, state: "refusing" };
  expect(broadcasts(room.receiveRoomInput({ kind: "log-full" }, at(5)))).toContainEqual(refusing);
  expect(answers(send(room, 10, edit(bob, 1)))).toMatchObject([{ kind: "refused", reason: "log-stalled" }]);
  expect(broadcasts(room.receiveRoomInput({ kind: "log-full" }, at(100))), "announced once").not.toContainEqual(refusing);
  expect(room.unacked).toBe(1);
  expect(broadcasts(appended(room, 5_000))).toContainEqual({ ...refusing, state: "saved" });
  expect(room.unacked).toBe(0);
  expect(kinds(send(room, 6_100, edit(bob, 1)))).toContain("append");
});

test("[ROOM46] a refusal that arrives after its append settled does not stop the room", () => {
  const room = roomAt();
  send(room, 0, edit(ann, 1));
  appended(room, 5);
  room.receiveRoomInput({ kind: "log-full" }, at(6));
  expect(kinds(send(room, 10, edit(ann, 2)))).toEqual(["append"]);
});
