import fc from "fast-check";
import { expect, test } from "vitest";

import type { Millis, RoomKey, UnixMillis } from "../../shared/ids.ts";
import { isSnapshotDue } from "./snapshot-plan.ts";
import { TrimPlan } from "./trim-plan.ts";

const policy = { snapshotEditsMax: 100, snapshotBytesMax: 1_000, snapshotAgeMsMax: 30_000, snapshotIntervalMsMin: 5_000 };
const at = (millis: number) => millis as Millis;
const TRIM = { replayWindowMs: 1_000, boardsHoldMsMax: 60_000 };
const NO_BOARDS = Number.POSITIVE_INFINITY;
/** A checkpoint that this service knows since it was written. */
const checkpointAt = (streamSeq: number, since: Millis) => ({ streamSeq, since, writtenAt: since });
const few = { edits: 1, bytes: 10, since: at(0), fromStreamSeq: 1 };

/** A record that is read as soon as the log has it. */
const receive = (plan: TrimPlan, mark: { streamSeq: number; since: Millis }) =>
  plan.receiveRecord(mark, mark.since as number as UnixMillis, 100);

const NOTES = "demo.notes" as RoomKey;

test("[CMP1] a snapshot is due by edits, by bytes or by age", () => {
  const before = at(-60_000);
  expect(isSnapshotDue(NOTES, few, before, policy, at(29_999))).toBe(false);
  expect(isSnapshotDue(NOTES, few, before, policy, at(30_000))).toBe(true);
  expect(isSnapshotDue(NOTES, { ...few, edits: 100 }, undefined, policy, at(1))).toBe(true);
  expect(isSnapshotDue(NOTES, { ...few, bytes: 1_000 }, undefined, policy, at(1))).toBe(true);
});

test("[CMP2] a busy room is saved no more often than the minimum interval", () => {
  expect(isSnapshotDue(NOTES, { ...few, edits: 5_000 }, at(10_000), policy, at(14_999))).toBe(false);
  expect(isSnapshotDue(NOTES, { ...few, edits: 5_000 }, at(10_000), policy, at(15_000))).toBe(true);
});

test("[CMP11] rooms that begin together are first saved apart, each after half to all of the maximum age", () => {
  const rooms = Array.from({ length: 1_500 }, (_, index) => `demo.room-${index}` as RoomKey);
  const dueAt = (now: number) => rooms.filter((room) => isSnapshotDue(room, few, undefined, policy, at(now))).length;
  expect([dueAt(14_999), dueAt(30_000)]).toEqual([0, 1_500]);
  const inEachSecond = Array.from({ length: 15 }, (_, second) => dueAt(16_000 + second * 1_000) - dueAt(15_000 + second * 1_000));
  expect(Math.min(...inEachSecond)).toBeGreaterThan(50);
  expect(Math.max(...inEachSecond)).toBeLessThan(200);
});

test("[CMP3] records before the checkpoint's own are trimmed once they are older than the replay window", () => {
  const plan = new TrimPlan(TRIM);
  for (let second = 0; second < 10; second++) receive(plan, { streamSeq: 10 + second, since: at(second * 1_000) });
  const checkpoint = checkpointAt(15, at(5_500));
  expect(plan.before(checkpoint, NO_BOARDS, at(1_000))).toBeUndefined();
  expect(plan.before(checkpoint, NO_BOARDS, at(4_500))).toBe(13); // The record of second 3 is 1.5 s old and stays; the records before it may be trimmed.
  expect(plan.before(checkpoint, NO_BOARDS, at(60_000))).toBe(15);
});

test("[CMP4] records are trimmed once, and a silent room is trimmed up to its checkpoint", () => {
  const plan = new TrimPlan(TRIM);
  receive(plan, { streamSeq: 7, since: at(0) });
  receive(plan, { streamSeq: 8, since: at(1) }); // Too close to the record before to get a mark.
  const checkpoint = checkpointAt(8, at(500));
  expect(plan.before(checkpoint, NO_BOARDS, at(1_200))).toBe(7);
  plan.receiveTrimmed(7);
  expect(plan.before(checkpoint, NO_BOARDS, at(1_200))).toBeUndefined();
  expect(plan.before(checkpoint, NO_BOARDS, at(1_501))).toBe(8);
  plan.receiveTrimmed(8);
  expect(plan.before(checkpoint, NO_BOARDS, at(99_000))).toBeUndefined();
});

test("[CMP5] for any log, records after the checkpoint, recent records and the checkpoint's last record stay", () => {
  const log = fc.array(fc.record({ gap: fc.nat(3), wait: fc.nat(400) }), { minLength: 1, maxLength: 200 });
  fc.assert(
    fc.property(log, fc.nat(199), fc.nat(4_000), (steps, coveredIndex, later) => {
      const plan = new TrimPlan(TRIM);
      let [streamSeq, time] = [0, 0];
      const records = steps.map(({ gap, wait }) => ({ streamSeq: (streamSeq += 1 + gap), since: at((time += wait)) }));
      for (const record of records) receive(plan, record);
      const covered = records[Math.min(coveredIndex, records.length - 1)]!;
      const now = at(time + later);
      const before = plan.before(checkpointAt(covered.streamSeq, now), NO_BOARDS, now) ?? 0;
      expect(before).toBeLessThanOrEqual(covered.streamSeq);
      for (const record of records) if (record.streamSeq < before) expect(now - record.since).toBeGreaterThan(1_000);
    }),
  );
});

test("[CMP6] records that the boards' checkpoints lack stay until the maximum hold time of the settings", () => {
  const plan = new TrimPlan(TRIM);
  for (let second = 0; second < 10; second++) receive(plan, { streamSeq: 10 + second, since: at(second * 1_000) });
  const checkpoint = checkpointAt(19, at(9_000));
  expect(plan.before(checkpoint, 0, at(20_000))).toBeUndefined(); // A leaderboard that has not counted anything.
  expect(plan.before(checkpoint, 13, at(20_000))).toBe(14);
  expect(plan.before(checkpoint, 13, at(66_500))).toBe(16); // The boards are stuck at 13, and the record of second 6 was held for a minute.
  expect(plan.before(checkpoint, 19, at(20_000))).toBe(19);
});

test("[CMP7] even if the boards hold the log for very long, the number of marks is limited and no record is trimmed early", () => {
  const plan = new TrimPlan(TRIM);
  const records = Array.from({ length: 100_000 }, (_, index) => ({ streamSeq: index + 1, since: at(index * 100) }));
  for (const record of records) receive(plan, record);
  const now = records.at(-1)!.since;
  const before = plan.before(checkpointAt(100_000, now), 0, now)!;
  expect(before).toBeGreaterThan(1);
  for (const record of records) if (record.streamSeq < before) expect(now - record.since).toBeGreaterThan(TRIM.boardsHoldMsMax);
});

test("[CMP8] records that are read at once are trimmed one after the other, and none counts as older than its read", () => {
  const plan = new TrimPlan(TRIM);
  for (let second = 0; second < 10; second++)
    plan.receiveRecord({ streamSeq: 10 + second, since: at(50_000) }, (second * 1_000) as UnixMillis, 100);
  const checkpoint = checkpointAt(19, at(50_000));
  expect(plan.before(checkpoint, 13, at(51_000))).toBeUndefined();
  expect(plan.before(checkpoint, 13, at(51_001))).toBe(14);
});

test("[CMP9] the number of records in a trim is known approximately, for any rest of the window", () => {
  const plan = new TrimPlan(TRIM);
  for (let record = 1; record <= 100; record++) receive(plan, { streamSeq: record, since: at(record * 1_000) });
  expect(plan.recordsThrough(100)).toBe(100);
  expect(plan.recordsThrough(60)).toBeGreaterThan(40);
  expect(plan.recordsThrough(60)).toBeLessThanOrEqual(60);
  plan.receiveTrimmed(60);
  expect(plan.recordsThrough(60)).toBe(0);
  expect(plan.recordsThrough(100)).toBeGreaterThanOrEqual(40);
});

test("[CMP10] the bytes of the log that is not trimmed are known, with those of an earlier run until they are trimmed", () => {
  const plan = new TrimPlan(TRIM);
  plan.receiveLeft(5_000, 7);
  for (let record = 11; record <= 20; record++) receive(plan, { streamSeq: record, since: at(record * 1_000) });
  expect([plan.bytesThrough(10), plan.bytesThrough()]).toEqual([5_000, 6_000]);
  plan.receiveTrimmed(15);
  expect(plan.bytesThrough()).toBe(500);
});

test("[CMP12] a checkpoint whose date is far back does not end the boards' hold", () => {
  const plan = new TrimPlan(TRIM);
  receive(plan, { streamSeq: 7, since: at(0) });
  const checkpoint = { streamSeq: 8, since: at(500), writtenAt: at(-9e9) };
  expect(plan.before(checkpoint, 0, at(2_000))).toBeUndefined();
  expect(plan.before(checkpoint, NO_BOARDS, at(2_000))).toBe(8);
  expect(plan.before(checkpoint, 0, at(60_501))).toBe(8);
});
