import { expect, test } from "vitest";

import { decodeRecord, encodeEpochRecord } from "../shared/bus/record.ts";
import type { Epoch, Seq, UnixMillis, UserId } from "../shared/ids.ts";
import { NOTHING_APPLIED } from "./board.ts";
import { BATCH_USERS_MAX, RoomProjection } from "./room-projection.ts";
import { recordOf } from "./testing/records.ts";

const SCORING = { boardEditPointsSmall: 1, boardEditPointsMedium: 2, boardEditPointsLarge: 5, boardEditMediumBytesMin: 10, boardEditLargeBytesMin: 30, boardPointsPerMinuteMax: 7 };
const NOON = Date.UTC(2026, 6, 1, 12) as UnixMillis;
const HOUR_MS = 3_600_000;
const NO_USE = { minute: 0, points: new Map<UserId, number>() };

const fresh = () => new RoomProjection(NOTHING_APPLIED, NO_USE, SCORING);
const records = (firstSeq: number, users: readonly string[], time: UnixMillis = NOON) => decodeRecord(recordOf(firstSeq, users.map((user) => ({ user: user as UserId, bytes: 1, time }))))!;

test("[PROJ1] a record's edits become points of their users, each reached at its last edit", () => {
  const projection = fresh();
  expect(projection.receiveRecord(records(1, ["ann", "bob", "ann"]), 9, NOON)).toEqual({ kind: "counted", missing: 0 });
  const batch = projection.takeBatch()!;
  expect(batch.after).toBe(0);
  expect(batch.applied).toEqual({ epoch: 1, seq: 3, streamSeq: 9, time: NOON, missing: 0 });
  expect(batch.awards.get("everyone")).toEqual([{ member: "ann", points: 2, reachedAt: 3 }, { member: "bob", points: 1, reachedAt: 2 }]);
  expect(batch.awards.get("commenters")).toBeUndefined();
  expect(projection.takeBatch()).toBeUndefined();
  expect(projection.edits).toBe(0);
});

test("[PROJ2] what is counted is passed over, and of a record counted in part the rest is counted", () => {
  const projection = new RoomProjection({ ...NOTHING_APPLIED, seq: 2 as Seq }, NO_USE, SCORING);
  expect(projection.receiveRecord(records(1, ["ann", "bob"]), 1, NOON)).toEqual({ kind: "known" });
  expect(projection.receiveRecord(records(2, ["bob", "cy"]), 2, NOON)).toEqual({ kind: "counted", missing: 0 });
  expect(projection.takeBatch()).toMatchObject({ after: 2, applied: { seq: 3, missing: 0 } });
});

test("[PROJ3] edits that the log has lost are owned up to, and the rest counts", () => {
  const projection = fresh();
  projection.receiveRecord(records(1, ["ann"]), 1, NOON);
  expect(projection.receiveRecord(records(5, ["ann"]), 7, NOON)).toEqual({ kind: "counted", missing: 3 });
  expect(projection.takeBatch()).toMatchObject({ after: 0, applied: { seq: 5, missing: 3 } });
});

test("[PROJ4] a batch ends with the hour, so that all of it lies in the same windows", () => {
  const projection = fresh();
  projection.receiveRecord(records(1, ["ann"], (NOON - 1) as UnixMillis), 1, (NOON - 1) as UnixMillis);
  projection.receiveRecord(records(2, ["ann"]), 2, NOON);
  expect([projection.takeBatch(), projection.takeBatch()].map((batch) => [batch?.windows[0]?.id, batch?.after, batch?.applied.seq])).toEqual([["2026-07-01T11", 0, 1], ["2026-07-01T12", 1, 2]]);
});

test("[PROJ5] a log whose clock goes back counts into no window that is past", () => {
  const projection = fresh();
  projection.receiveRecord(records(1, ["ann"]), 1, NOON);
  projection.receiveRecord(records(2, ["ann"]), 2, (NOON - HOUR_MS) as UnixMillis);
  expect(projection.takeBatch()).toMatchObject({ after: 0, applied: { seq: 2, time: NOON } });
  expect(projection.takeBatch()).toBeUndefined();
});

test("[PROJ6] more users than one script call may carry go into several batches", () => {
  const projection = fresh();
  projection.receiveRecord(records(1, Array.from({ length: BATCH_USERS_MAX + 1 }, (_, index) => `user-${index}`)), 1, NOON);
  expect([projection.takeBatch(), projection.takeBatch()].map((batch) => batch?.awards.get("everyone")?.length)).toEqual([BATCH_USERS_MAX, 1]);
});

test("[PROJ7] an epoch that begins counts for nobody", () => {
  const projection = fresh();
  const epoch = decodeRecord(encodeEpochRecord({ id: "s.1", time: NOON, epoch: 3 as Epoch, head: 0 as Seq }))!;
  expect(projection.receiveRecord(epoch, 1, NOON)).toEqual({ kind: "known" });
  expect(projection.takeBatch()).toBeUndefined();
});

test("[PROJ8] edits over the cap move the room on, and nobody's moment", () => {
  const projection = fresh();
  projection.receiveRecord(records(1, Array.from({ length: 9 }, () => "ann")), 1, NOON);
  const batch = projection.takeBatch()!;
  expect(batch.applied.seq).toBe(9);
  expect(batch.awards.get("everyone")).toEqual([{ member: "ann", points: 7, reachedAt: 7 }]);
  expect(batch.minute).toEqual({ minute: NOON / 60_000, hasBegun: true, points: new Map([["ann", 7]]) });
});
