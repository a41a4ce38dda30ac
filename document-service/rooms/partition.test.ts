import { expect, test } from "vitest";

import type { Millis, RoomKey, Seq } from "../../shared/ids.ts";
import { nextDeletionStep } from "./deletion.ts";
import { DocumentPartition, type DocumentPartitionEffect, type DocumentPartitionRoom, servedWithoutEdits } from "./partition.ts";

const LIMITS = { documentsBytesMax: 1_000, documentsMax: 10, documentOpeningsMax: 2, documentSavesMax: 2, documentsDrainMsMax: 1_000 };

type FakeRoom = { -readonly [Key in keyof DocumentPartitionRoom]: DocumentPartitionRoom[Key] } & { isLooked: boolean };

class Rig {
  readonly partition: DocumentPartition;
  now = 0 as Millis;

  constructor(limits: Partial<typeof LIMITS> = {}) {
    this.partition = new DocumentPartition({ ...LIMITS, ...limits });
  }

  add(name: string, facts: Partial<FakeRoom> = {}): FakeRoom {
    const room: FakeRoom = {
      key: (name.includes(".") ? name : `acme.${name}`) as RoomKey,
      heldBytes: 0,
      uncoveredFrom: undefined,
      uncoveredSince: undefined,
      readAgainFrom: undefined,
      lostSnapshot: undefined,
      isUndecodable: false,
      isStalled: false,
      isUnwiped: false,
      canBeCovered: true,
      isSaveDue: () => false,
      isWipeDue: () => false,
      isTrimDue: () => false,
      canRetire: () => false,
      isLooked: true,
      ...facts,
    };
    this.partition.receive({ kind: "room-created", room }, this.now);
    if (room.isLooked) this.partition.receive({ kind: "room-looked-up", room }, this.now);
    return room;
  }

  tick(): readonly string[] {
    return this.partition
      .receive({ kind: "tick" }, this.now)
      .flatMap((effect) => (effect.kind === "tick-rooms" ? this.partition.receive({ ...effect, kind: "rooms-ticked" }, this.now) : []))
      .map(textOf);
  }

  receive(kind: "drain-ticked" | "lease-given-back"): readonly string[] {
    return this.partition.receive({ kind }, this.now).map(textOf);
  }

  endJob(room = "acme.any"): readonly string[] {
    return this.partition.receive({ kind: "job-ended", room: room as RoomKey }, this.now).map(textOf);
  }

  stopReading({ isLeaseHeld = true } = {}): readonly string[] {
    return this.partition.receive({ kind: "reading-stopped", isLeaseHeld }, this.now).map(textOf);
  }
}

function textOf(effect: DocumentPartitionEffect): string {
  if (effect.kind === "tick-rooms" || effect.kind === "measure-rooms") return effect.kind;
  return `${effect.kind === "start-job" ? effect.job : effect.kind} ${effect.room.replace("acme.", "")}`;
}

const due = () => true;

test("[PTN1] rooms are saved oldest first within the limit of concurrent saves, and deleted rooms are wiped last", () => {
  const rig = new Rig();
  rig.add("wiped", { isUnwiped: true, isWipeDue: due });
  const young = rig.add("young", { isSaveDue: due, uncoveredSince: 3 as Millis });
  rig.add("old", { isSaveDue: due, uncoveredSince: 1 as Millis });
  rig.add("middle", { isSaveDue: due, uncoveredSince: 2 as Millis });
  expect(rig.tick()).toEqual(["save old", "save middle"]);
  expect([rig.endJob(), rig.endJob()]).toEqual([["save young"], ["wipe wiped"]]);
  young.isSaveDue = () => false;
  expect(rig.endJob()).toEqual([]);
});

test("[PTN13] tenants take turns with saves, so that an older room of a tenant with many running saves waits for one of another tenant", () => {
  const rig = new Rig();
  for (let age = 0; age < 6; age++) rig.add(`many.${age}`, { isSaveDue: due, uncoveredSince: age as Millis });
  expect(rig.tick()).toEqual(["save many.0", "save many.1"]);
  for (const room of [0, 1]) rig.partition.rooms.get(`many.${room}` as RoomKey)!.isSaveDue = () => false;
  for (const name of ["one.a", "one.b"]) rig.add(name, { isSaveDue: due, uncoveredSince: 100 as Millis });
  expect(rig.tick()).toEqual([]);
  const next = ["many.0", "many.1", "one.a", "many.2"].flatMap((ended) => rig.endJob(ended));
  expect(next).toEqual(["save one.a", "save one.b", "save many.2", "save many.3"]);
});

test("[PTN14] while draining too, rooms with nothing to save take no turns of their tenant", () => {
  const rig = new Rig();
  for (let room = 0; room < 4; room++) rig.add(`many.clean${room}`);
  const unsaved = (since: number) => ({ isSaveDue: due, uncoveredFrom: 5 as Seq, uncoveredSince: since as Millis });
  rig.add("many.old", unsaved(1));
  for (let age = 2; age < 5; age++) rig.add(`one.${age}`, unsaved(age));
  expect(rig.stopReading()).toEqual(["save many.old", "save one.2"]);
});

test("[PTN2] a room that is no longer due at its turn is skipped", () => {
  const rig = new Rig();
  for (const name of ["a", "b"]) rig.add(name, { isSaveDue: due });
  const third = rig.add("c", { isSaveDue: due });
  rig.add("d", { isSaveDue: due });
  expect(rig.tick()).toEqual(["save a", "save b"]);
  third.isSaveDue = () => false;
  expect(rig.endJob()).toEqual(["save d"]);
});

test("[PTN3] rooms release memory above half of it, are saved above four fifths, and reading stops above the limit", () => {
  const rig = new Rig();
  const room = rig.add("a", { isSaveDue: (_, isPressed) => isPressed });
  const pressures = [500, 501, 801, 1_001].map((heldBytes) => {
    room.heldBytes = heldBytes;
    rig.tick(); // Counts the bytes.
    const jobs = rig.tick();
    if (jobs.length > 0) rig.endJob();
    return [rig.partition.isReleasing, jobs.length > 0, rig.partition.isFull];
  });
  expect(pressures).toEqual([
    [false, false, false],
    [true, false, false],
    [true, true, false],
    [true, true, true],
  ]);
});

test("[PTN4] too many opening rooms, or rooms in memory, stop the reading, and undecodable rooms do not count", () => {
  const opening = new Rig();
  for (const name of ["a", "b", "c"]) opening.add(name, { isLooked: false });
  expect(opening.partition.isFull).toBe(true);
  const many = new Rig();
  const rooms = Array.from({ length: 11 }, (_, index) => many.add(`room${index}`));
  expect(many.partition.isFull).toBe(true);
  rooms[0]!.isUndecodable = true;
  many.tick();
  expect(many.partition.isFull).toBe(false);
  rooms[0]!.isUndecodable = false;
  many.tick();
  expect(many.partition.isFull, "repaired").toBe(true);
});

test("[PTN20] a room that leaves memory leaves no count and no job behind", () => {
  const leave: readonly [string, (rig: Rig, room: FakeRoom) => void][] = [
    ["retired", (rig, room) => (Object.assign(room, { canRetire: due, heldBytes: 900 }), rig.tick())],
    ["read again", (rig, room) => (Object.assign(room, { readAgainFrom: 1, heldBytes: 900 }), rig.tick())],
    ["the log lost its end", ({ partition, now }) => partition.receive({ kind: "log-end-lost" }, now)],
    ["released", ({ partition, now }) => partition.receive({ kind: "released" }, now)],
  ];
  for (const [name, leaves] of leave) {
    const rig = new Rig();
    const room = rig.add("a", { isUndecodable: true, heldBytes: 900 });
    rig.tick();
    leaves(rig, room);
    expect([rig.partition.rooms.size, rig.partition.heldBytes], name).toEqual([0, 0]);
    for (let index = 0; index < 11; index++) rig.add(`room${index}`);
    expect(rig.partition.isFull, name).toBe(true);
  }
  for (const job of ["isSaveDue", "isWipeDue"] as const) {
    const rig = new Rig();
    const rooms = ["a", "b", "c"].map((name) => rig.add(name, { [job]: due }));
    expect(rig.tick(), job).toHaveLength(2);
    for (const room of rooms.slice(0, 2)) room[job] = () => false; // Busy.
    rooms[2]!.readAgainFrom = 1;
    expect(rig.tick(), job).toEqual(["read-again c"]);
    expect(rig.endJob(), job).toEqual([]);
  }
});

test("[PTN5] the floor is before the first record that no snapshot covers, and rises to the last record received", () => {
  const rig = new Rig();
  rig.partition.receive({ kind: "held", from: { floor: 10 } }, rig.now);
  const room = rig.add("a", { uncoveredFrom: 12 });
  rig.add("b", { uncoveredFrom: 15 });
  rig.partition.receive({ kind: "record-read", room: "acme.a" as RoomKey, place: { streamSeq: 20, id: "rs.1" }, bytes: 5 }, rig.now);
  expect(rig.partition.floor).toBe(11);
  room.uncoveredFrom = undefined;
  expect(rig.partition.floor).toBe(14);
});

test("[PTN6] a room that can take its dropped records is forgotten, and the log is read again from the first of them", () => {
  const rig = new Rig();
  rig.partition.receive({ kind: "held", from: { floor: 100 } }, rig.now);
  rig.add("a", { readAgainFrom: 40, isSaveDue: due });
  expect(rig.tick()).toEqual(["read-again a"]);
  expect([rig.partition.received, rig.partition.rooms.size]).toEqual([39, 0]);
  rig.partition.receive({ kind: "record-read", room: "acme.a" as RoomKey, place: { streamSeq: 50, id: "server.50" }, bytes: 0 }, rig.now);
  expect(
    [rig.partition.reading("acme.a" as RoomKey).readAfter, rig.partition.reading("acme.b" as RoomKey).readAfter],
    "a new room a receives all of its records from 40 on",
  ).toEqual([39, 50]);
});

test("[PTN16] the log is read again from the first record that any of several rooms lacks", () => {
  const rig = new Rig();
  rig.partition.receive({ kind: "held", from: { floor: 100 } }, rig.now);
  rig.add("a", { readAgainFrom: 40 });
  rig.add("b", { readAgainFrom: 70 });
  expect(rig.tick()).toEqual(["read-again a", "read-again b"]);
  expect(rig.partition.received).toBe(39);
});

test("[PTN7] a drain ends once no job runs and every room that can be saved is saved", () => {
  const rig = new Rig();
  rig.add("stuck", { uncoveredFrom: 1, canBeCovered: false });
  const room = rig.add("a", { uncoveredFrom: 5, isSaveDue: (_, isPressed) => isPressed && room.uncoveredFrom !== undefined });
  expect([rig.stopReading(), rig.partition.isDraining]).toEqual([["save a"], true]);
  room.uncoveredFrom = undefined;
  expect([rig.receive("drain-ticked"), rig.partition.isDraining]).toEqual([[], true]);
  rig.endJob();
  expect([rig.receive("drain-ticked"), rig.partition.isDraining]).toEqual([[], false]);
});

test("[PTN9] a drain ends after its time limit, and a lost lease is not drained at all", () => {
  const isSaveDue = (_: Millis, isPressed: boolean) => isPressed;
  const slow = new Rig();
  slow.add("a", { uncoveredFrom: 5, isSaveDue });
  expect(slow.stopReading()).toEqual(["save a"]);
  slow.now = (LIMITS.documentsDrainMsMax - 1) as Millis;
  slow.endJob(); // The save failed.
  expect([slow.receive("drain-ticked"), slow.partition.isDraining]).toEqual([["save a"], true]);
  slow.now = LIMITS.documentsDrainMsMax as Millis;
  expect([slow.receive("drain-ticked"), slow.partition.isDraining]).toEqual([[], false]);
  const lost = new Rig();
  lost.add("a", { uncoveredFrom: 5, isSaveDue });
  expect([lost.stopReading({ isLeaseHeld: false }), lost.partition.isDraining]).toEqual([[], false]);
});

test("[PTN10] all records count as held for the boards until their floor is known, and none if no leaderboard ever ran", () => {
  const { partition, now } = new Rig();
  partition.receive({ kind: "held", from: { floor: 100 } }, now);
  const held = [undefined, 40, 120].map((floor, index) => {
    if (index > 0) partition.receive({ kind: "boards-lease-read", floor }, now);
    return [partition.boardsFloor, partition.heldForBoardsCount];
  });
  expect(held).toEqual([
    [0, 100],
    [40, 60],
    [120, 0],
  ]);
  partition.receive({ kind: "boards-lease-read", floor: undefined }, now);
  expect([partition.boardsFloor, partition.heldForBoardsCount]).toEqual([Number.POSITIVE_INFINITY, 0]);
});

test("[PTN8] no job starts after the lease is released", () => {
  const rig = new Rig();
  for (const name of ["a", "b", "c"]) rig.add(name, { isSaveDue: due });
  rig.tick();
  rig.receive("lease-given-back");
  expect(rig.endJob()).toEqual([]);
});

const empty = { kind: "empty" } as const;
const at = (seq: number) => ({ kind: "at", seq: seq as Seq }) as const;
const deleted = { kind: "deleted", streamSeq: 9 } as const;

test("[LGE1] a room of which no edit was read is behind its log while that has edits, and has no document otherwise", () => {
  expect([empty, at(0), at(1), deleted].map((end) => servedWithoutEdits(end).kind)).toEqual([
    "no-document",
    "no-document",
    "behind",
    "deleted",
  ]);
});

test("[LGE2] a room is deleted only once; a room that never existed is not deleted; a room whose log was lost is deleted if it has a checkpoint", () => {
  const steps = [
    nextDeletionStep({ isDeleted: false, appliedThrough: 0 }, empty),
    nextDeletionStep({ isDeleted: false, appliedThrough: 7 }, empty),
    nextDeletionStep({ isDeleted: false, appliedThrough: 0 }, at(0)),
    nextDeletionStep({ isDeleted: true, appliedThrough: 0 }, empty),
    nextDeletionStep({ isDeleted: false, appliedThrough: 7 }, deleted),
  ];
  expect(steps).toEqual([
    { kind: "no-room" },
    { kind: "append", streamSeq: undefined },
    { kind: "append", streamSeq: undefined },
    { kind: "deleted", streamSeq: undefined },
    { kind: "deleted", streamSeq: 9 },
  ]);
});

test("[PTN11] after the log lost its end no room stays in memory, and the log is read from its first record", () => {
  const rig = new Rig();
  rig.partition.receive({ kind: "held", from: { floor: 10, last: { streamSeq: 12, id: "rs.1" } } }, rig.now);
  expect(rig.partition.position).toEqual({ after: 10, last: { streamSeq: 12, id: "rs.1" } });
  rig.add("a", { uncoveredFrom: 12 });
  rig.partition.receive({ kind: "record-read", room: "acme.a" as RoomKey, place: { streamSeq: 20, id: "rs.2" }, bytes: 5 }, rig.now);
  expect(rig.partition.facts).toEqual({ floor: 11, last: { streamSeq: 20, id: "rs.2" } });
  rig.partition.receive({ kind: "log-end-lost" }, rig.now);
  expect([rig.partition.position, rig.partition.rooms.size, rig.partition.floor]).toEqual([{ after: 0, last: undefined }, 0, 0]);
});

test("[PTN15] no job starts in a room that was forgotten because the log lost its end", () => {
  const rig = new Rig();
  for (const name of ["a", "b", "c"]) rig.add(name, { isSaveDue: due });
  expect(rig.tick()).toEqual(["save a", "save b"]);
  rig.partition.receive({ kind: "log-end-lost" }, rig.now);
  expect(rig.endJob()).toEqual([]);
});

test("[PTN12] a drain ends if the log turns out to have lost its end", () => {
  const rig = new Rig();
  rig.add("a", { uncoveredFrom: 5, isSaveDue: due });
  rig.stopReading();
  rig.partition.receive({ kind: "log-end-lost" }, rig.now);
  expect([rig.partition.isDraining, rig.receive("drain-ticked"), rig.partition.floor]).toEqual([false, [], 0]);
});

test("[PTN18] of many rooms each has one tick in ten, and all have each tick while memory is short", () => {
  const rig = new Rig({ documentsMax: 5_000 });
  const rooms = Array.from({ length: 1_005 }, (_, number) => rig.add(String(number)));
  const ticked = (): readonly DocumentPartitionRoom[] =>
    rig.partition.receive({ kind: "tick" }, rig.now).flatMap((effect) => (effect.kind === "tick-rooms" ? effect.rooms : []));
  const turns = Array.from({ length: 10 }, ticked);
  expect(turns.every(({ length }) => length <= 101)).toBe(true);
  expect(new Set(turns.flat()).size).toBe(rooms.length);
  rooms[7]!.heldBytes = 501;
  for (let tick = 0; tick < 10; tick++) rig.tick();
  expect(new Set(ticked()).size).toBe(rooms.length);
  rooms[7]!.heldBytes = 0;
  rig.tick();
  expect(ticked()).toHaveLength(101);
});

test("[PTN22] each room is measured once in ten ticks, also while every room has each tick", () => {
  const rig = new Rig({ documentsMax: 5_000 });
  const rooms = Array.from({ length: 1_005 }, (_, number) => rig.add(String(number)));
  const measured = (): readonly DocumentPartitionRoom[] =>
    rig.partition.receive({ kind: "tick" }, rig.now).flatMap((effect) => (effect.kind === "measure-rooms" ? effect.rooms : []));
  for (const heldBytes of [0, 501]) {
    rooms[7]!.heldBytes = heldBytes;
    for (let tick = 0; tick < 10; tick++) rig.tick();
    const turns = Array.from({ length: 10 }, measured);
    expect(turns.every(({ length }) => length <= 101)).toBe(true);
    expect(turns.flat()).toHaveLength(rooms.length);
    expect(new Set(turns.flat()).size).toBe(rooms.length);
  }
});

test("[PTN19] a room that is to be saved keeps its place until a save starts, although its next tick comes later", () => {
  const rig = new Rig({ documentsMax: 5_000 });
  const rooms = Array.from({ length: 1_000 }, (_, number) => rig.add(String(number)));
  for (const name of [3, 1, 2]) Object.assign(rooms[name]!, { isSaveDue: due, uncoveredSince: name as Millis });
  expect(rig.tick()).toEqual(["save 1", "save 2"]);
  for (const name of [1, 2]) rooms[name]!.isSaveDue = () => false;
  expect(rig.tick()).toEqual([]);
  expect(rig.endJob()).toEqual(["save 3"]);
});

test("[PTN21] while hundreds of rooms wait for a save, they are put in order once in ten ticks, and saves go on between", () => {
  const rig = new Rig({ documentsMax: 5_000 });
  const rooms = Array.from({ length: 400 }, (_, number) => rig.add(String(number), { isSaveDue: due, uncoveredSince: number as Millis }));
  for (let tick = 0; tick < 20; tick++) rig.tick();
  for (const saving of [0, 1]) rooms[saving]!.isSaveDue = () => false;
  let looks = 0;
  rooms[399]!.isSaveDue = () => ((looks += 1), true);
  for (let tick = 0; tick < 20; tick++) rig.tick();
  expect(looks, "two of its ticks, and two plans").toBe(4);
  expect([rig.endJob(), rig.endJob()].flat()).toEqual(["save 2", "save 3"]);
});

test("[PTN17] a record counts towards the bytes in memory at once, and the room's own count replaces it at its tick", () => {
  const rig = new Rig();
  const room = rig.add("a");
  rig.partition.receive({ kind: "record-read", room: room.key, place: { streamSeq: 1, id: "rs.1" }, bytes: 30 }, rig.now);
  rig.partition.receive({ kind: "record-read", room: room.key, place: { streamSeq: 2, id: "rs.2" }, bytes: 40 }, rig.now);
  expect(rig.partition.heldBytes).toBe(70);
  room.heldBytes = 55;
  rig.tick();
  expect(rig.partition.heldBytes).toBe(55);
  room.canRetire = due;
  rig.tick();
  expect(rig.partition.heldBytes).toBe(0);
});
