/** Events by which operators learn of rooms whose edits cannot be merged, or are left out. */

import { expect, test } from "vitest";

import { type StoredRecord, encodeEditsRecord } from "../../shared/bus/record.ts";
import type { Epoch, Millis, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import { mergeEdits } from "../merge.ts";
import { ann, recordsOf, ROOM, RoomRun, Stores } from "../testing/one-room.ts";

test("[DMEV1] a room that cannot be merged is reported once with its main writers, however often it is tried, and once when it is merged", async () => {
  let isStalling = true;
  const stores = new Stores();
  stores.ports.merging.merge = (base, edits) => Promise.resolve(isStalling ? "overran" : mergeEdits(base, edits));
  const run = new RoomRun(stores);
  await run.take(...recordsOf("abcd", (seq) => (seq === 1 ? "ann" : "mallory")));
  for (let second = 0; second < 20; second++) {
    run.now = (second * 1_000) as Millis;
    if (second === 0 || run.room.state.isSaveDue(run.now, true)) await run.save();
  }
  expect((await run.metrics.mergesOverrun.get()).values[0]?.value).toBeGreaterThan(2);
  expect(run.reported).toEqual([{ kind: "room_unmerged", room: ROOM, state: "stalled", users: ["mallory", "ann"] }]);
  isStalling = false;
  run.now = 60_000 as Millis;
  await run.save();
  expect(run.reported.slice(1)).toEqual([{ kind: "room_unmerged", room: ROOM, state: "merged", users: [] }]);
});

test("[DMEV3] the report of a room that cannot be merged ends when the room is deleted or closed, and does not begin again", async () => {
  for (const end of [(run: RoomRun) => run.room.receiveDeleted(100), (run: RoomRun) => run.room.close()]) {
    const stores = new Stores();
    const overruns: (() => void)[] = [];
    stores.ports.merging.merge = () => new Promise((resolve) => overruns.push(() => resolve("overran")));
    const run = new RoomRun(stores);
    const states = () => run.reported.map((report) => report.kind === "room_unmerged" && report.state);
    await run.take(...recordsOf("ab", () => "mallory"));
    const overrun = async (meanwhile: () => void): Promise<void> => {
      const saving = run.save();
      while (overruns.length === 0) await new Promise(setImmediate);
      meanwhile();
      overruns.pop()!();
      await saving;
    };
    await overrun(() => {});
    expect(states()).toEqual(["stalled"]);
    run.now = 60_000 as Millis;
    await overrun(() => {
      end(run);
      expect(states()).toEqual(["stalled", "merged"]);
    });
    expect(states()).toEqual(["stalled", "merged"]);
  }
});

/** A record with a payload that is no Yjs update. */
function rawRecord(seq: number): StoredRecord {
  const payload = new TextEncoder().encode("{}");
  const edits = { epoch: 1 as Epoch, firstSeq: seq as Seq, edits: [{ client: ann, counter: seq, parentSeq: (seq - 1) as Seq, payload }] };
  const users = new Map([[ann, "mallory" as UserId]]);
  const bytes = encodeEditsRecord({ id: `server.${seq}`, time: 0 as UnixMillis, users, edits });
  return { room: ROOM, streamSeq: 10 * seq, time: 0 as UnixMillis, bytes };
}

test("[DMEV2] edits that are left out are reported with their writers, at most once a minute, and all are counted", async () => {
  const run = new RoomRun(new Stores());
  for (const [seq, second] of [
    [1, 0],
    [2, 30],
    [3, 60],
  ] as const) {
    run.now = (second * 1_000) as Millis;
    await run.take(rawRecord(seq));
    await run.served();
  }
  const report = { kind: "edits_left_out", room: ROOM, count: 1, users: ["mallory"] };
  expect(run.reported).toEqual([report, { ...report, count: 2 }]);
  expect((await run.metrics.refusedEdits.get()).values[0]?.value).toBe(3);
});
