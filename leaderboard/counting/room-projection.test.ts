import { expect, test } from "vitest";

import { encodeEpochRecord } from "../../shared/bus/record.ts";
import { ownersRecordOf } from "../../shared/testing/owners-record.ts";
import type { Epoch, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import { NO_USES, NOTHING_APPLIED } from "../boards/board.ts";
import { instantAfter } from "./received.ts";
import { RoomProjection, BATCH_USERS_MAX } from "./room-projection.ts";
import { recordOf, SCORING } from "../testing/records.ts";

const NOON = Date.UTC(2026, 6, 1, 12) as UnixMillis;
const HOUR_MS = 3_600_000;

/** The instant of the n-th edit of a room whose edits were all at noon. */
const editAt = (nth: number): number => (nth === 0 ? 0 : instantAfter(editAt(nth - 1), NOON, "edits"));
const fresh = () => new RoomProjection(NOTHING_APPLIED, NO_USES, SCORING);
const records = (firstSeq: number, users: readonly string[], time: UnixMillis = NOON) =>
  ownersRecordOf(
    recordOf(
      firstSeq,
      users.map((user) => ({ user: user as UserId, bytes: 1, time })),
    ),
  );

test("[PROJ1] the edits of a record become points of their users, reached at each user's last edit", () => {
  const projection = fresh();
  expect(projection.receiveRecord(records(1, ["ann", "bob", "ann"]), 9, NOON)).toEqual({ kind: "counted", missing: 0 });
  const batch = projection.takeBatch()!;
  expect(batch.after).toEqual({ seq: 0, activity: 0, time: 0 });
  expect(batch.applied).toEqual({ ...NOTHING_APPLIED, epoch: 1, seq: 3, streamSeq: 9, time: NOON, missing: 0, instant: editAt(3) });
  expect(batch.awards.get("everyone")).toEqual([
    { member: "ann", points: 2, reachedAt: editAt(3) },
    { member: "bob", points: 1, reachedAt: editAt(2) },
  ]);
  expect(batch.awards.get("commenters")).toBeUndefined();
  expect(projection.takeBatch()).toBeUndefined();
  expect(projection.entries).toBe(0);
});

test("[PROJ2] counted edits are skipped, and the rest of a partly counted record counts", () => {
  const projection = new RoomProjection({ ...NOTHING_APPLIED, epoch: 1 as Epoch, seq: 2 as Seq, time: NOON }, NO_USES, SCORING);
  expect(projection.receiveRecord(records(1, ["ann", "bob"]), 1, NOON)).toEqual({ kind: "known" });
  expect(projection.receiveRecord(records(2, ["bob", "cy"]), 2, NOON)).toEqual({ kind: "counted", missing: 0 });
  expect(projection.takeBatch()).toMatchObject({ after: { seq: 2 }, applied: { seq: 3, missing: 0 } });
});

test("[PROJ3] edits that the log has lost are reported as missing, and the other edits count", () => {
  const projection = fresh();
  projection.receiveRecord(records(1, ["ann"]), 1, NOON);
  expect(projection.receiveRecord(records(5, ["ann"]), 7, NOON)).toEqual({ kind: "counted", missing: 3 });
  expect(projection.takeBatch()).toMatchObject({ after: { seq: 0 }, applied: { seq: 5, missing: 3 } });
});

test("[PROJ4] a batch ends with the hour, so that it lies in the same windows", () => {
  const projection = fresh();
  projection.receiveRecord(records(1, ["ann"], (NOON - 1) as UnixMillis), 1, (NOON - 1) as UnixMillis);
  projection.receiveRecord(records(2, ["ann"]), 2, NOON);
  expect(
    [projection.takeBatch(), projection.takeBatch()].map((batch) => [batch?.windows[0]?.id, batch?.after.seq, batch?.applied.seq]),
  ).toEqual([
    ["2026-07-01T11", 0, 1],
    ["2026-07-01T12", 1, 2],
  ]);
});

test("[PROJ12] a batch counts only in the configured windows, and still ends with the hour", () => {
  const projection = new RoomProjection(NOTHING_APPLIED, NO_USES, { ...SCORING, boardWindows: ["month", "all"] });
  projection.receiveRecord(records(1, ["ann"], (NOON - 1) as UnixMillis), 1, (NOON - 1) as UnixMillis);
  projection.receiveRecord(records(2, ["ann"]), 2, NOON);
  projection.receiveRecord(records(3, ["ann"]), 3, NOON);
  expect([projection.takeBatch(), projection.takeBatch()].map((batch) => [batch?.windows.map(({ id }) => id), batch?.applied.seq])).toEqual(
    [
      [["2026-07", "all"], 1],
      [["2026-07", "all"], 3],
    ],
  );
});

test("[PROJ5] edits of a log whose clock moves backward count in no earlier window", () => {
  const projection = fresh();
  projection.receiveRecord(records(1, ["ann"]), 1, NOON);
  projection.receiveRecord(records(2, ["ann"]), 2, (NOON - HOUR_MS) as UnixMillis);
  expect(projection.takeBatch()).toMatchObject({ after: { seq: 0 }, applied: { seq: 2, time: NOON } });
  expect(projection.takeBatch()).toBeUndefined();
});

test("[PROJ6] users beyond the maximum of one script call go into further batches", () => {
  const projection = fresh();
  projection.receiveRecord(
    records(
      1,
      Array.from({ length: BATCH_USERS_MAX + 1 }, (_, index) => `user-${index}`),
    ),
    1,
    NOON,
  );
  expect([projection.takeBatch(), projection.takeBatch()].map((batch) => batch?.awards.get("everyone")?.length)).toEqual([
    BATCH_USERS_MAX,
    1,
  ]);
});

test("[PROJ7] an epoch record counts for no user", () => {
  const projection = fresh();
  const epoch = ownersRecordOf(encodeEpochRecord({ id: "s.1", time: NOON, epoch: 3 as Epoch, head: 0 as Seq }));
  expect(projection.receiveRecord(epoch, 1, NOON)).toEqual({ kind: "known" });
  expect(projection.takeBatch()).toBeUndefined();
});

test("[PROJ8] edits over the cap advance the room, and change no user's instant", () => {
  const projection = fresh();
  projection.receiveRecord(
    records(
      1,
      Array.from({ length: 9 }, () => "ann"),
    ),
    1,
    NOON,
  );
  const batch = projection.takeBatch()!;
  expect(batch.applied.seq).toBe(9);
  expect(batch.awards.get("everyone")).toEqual([{ member: "ann", points: 7, reachedAt: editAt(7) }]);
  expect(batch.uses.edits).toEqual({ period: NOON / 60_000, hasBegun: true, points: new Map([["ann", 7]]) });
});

test("[PROJ9] backends' activities and presence become points beside those of edits, each with its own cap", () => {
  const projection = fresh();
  projection.receiveRecord(records(1, ["ann"]), 1, NOON);
  const [ann, bob] = ["ann", "bob"] as [UserId, UserId];
  expect(
    projection.receiveActivity(
      {
        kind: "deeds",
        deeds: [
          { user: ann, kind: "comment", times: 2 },
          { user: bob, kind: "comment", times: 5 },
        ],
      },
      4,
      NOON,
    ),
  ).toEqual({ kind: "counted", missing: 0 });
  expect(projection.receiveActivity({ kind: "present", users: [ann, bob] }, 6, NOON).kind).toBe("counted");
  expect(projection.receiveActivity({ kind: "present", users: [ann] }, 6, NOON).kind).toBe("known");
  expect(projection.receiveActivity({ kind: "present", users: [ann] }, 7, NOON).kind).toBe("counted"); // A repeated report counts once.
  const batch = projection.takeBatch()!;
  expect(batch.applied).toMatchObject({ seq: 1, activity: 7 });
  expect(
    Object.fromEntries([...batch.awards].map(([role, awards]) => [role, awards.map(({ member, points }) => [member, points])])),
  ).toEqual({
    everyone: [
      ["ann", 9],
      ["bob", 11],
    ],
    editors: [["ann", 1]],
    commenters: [
      ["ann", 6],
      ["bob", 9],
    ],
  });
  expect(projection.takeBatch()).toBeUndefined();
});

test("[PROJ10] the two streams may be in different hours, each in its own windows", () => {
  const projection = fresh();
  projection.receiveRecord(records(1, ["ann"]), 1, NOON);
  projection.receiveActivity({ kind: "present", users: ["bob" as UserId] }, 1, (NOON - 1) as UnixMillis);
  projection.receiveRecord(records(2, ["ann"]), 2, NOON);
  expect([1, 2, 3].map(() => projection.takeBatch()).map((batch) => [batch?.windows[0]?.id, batch?.after, batch?.applied.seq])).toEqual([
    ["2026-07-01T12", { seq: 0, activity: 0, time: 0 }, 1],
    ["2026-07-01T11", { seq: 1, activity: 0, time: NOON }, 1],
    ["2026-07-01T12", { seq: 1, activity: 1, time: NOON }, 2],
  ]);
});

test("[PROJ11] after the log lost its end, edits under counted seqs count, whichever epoch they have", () => {
  const later = (NOON + 1) as UnixMillis;
  for (const lost of [1, 9]) {
    const projection = new RoomProjection({ ...NOTHING_APPLIED, epoch: lost as Epoch, seq: 5 as Seq, time: NOON }, NO_USES, SCORING);
    const again = records(3, ["ann", "bob"]);
    if (again.kind === "epoch") throw new Error("the record has edits");
    const record = { ...again, edits: { ...again.edits, epoch: 4 as Epoch } };
    expect(projection.receiveRecord(record, 2, later)).toEqual({ kind: "counted", missing: 0 });
    expect(projection.receiveRecord(record, 2, later), "again").toEqual({ kind: "known" });
    expect(projection.takeBatch()).toMatchObject({ after: { seq: 5 }, applied: { epoch: 4, seq: 4 } });
  }
});
