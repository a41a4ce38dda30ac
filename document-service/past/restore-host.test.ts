import { expect, test } from "vitest";

import type { StoredRecord } from "../../shared/bus/stored-record.ts";
import { encodeEditsRecord } from "../../shared/bus/record.ts";
import type { Epoch, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import { EMPTY_STATE, mergeEdits } from "../merge.ts";
import type { Merging, Unread } from "../ports.ts";
import { ann, ROOM, Stores } from "../testing/one-room.ts";
import { restoreRoom } from "./restore-host.ts";
import { encodeSegment } from "./segments.ts";

/** More than a call takes arguments. */
const EDITS = 140_000;

/** Of an edit each, at the stream sequence ten times its seq. */
function records(count: number): StoredRecord[] {
  const users = new Map([[ann, "ann" as UserId]]);
  return Array.from({ length: count }, (_, index) => {
    const edits = [{ client: ann, counter: index + 1, parentSeq: index as Seq, payload: EMPTY_STATE }];
    const bytes = encodeEditsRecord({
      id: `server.${index}`,
      time: 0 as UnixMillis,
      users,
      edits: { epoch: 3 as Epoch, firstSeq: (index + 1) as Seq, edits },
    });
    return { room: ROOM, streamSeq: (index + 1) * 10, time: 0 as UnixMillis, bytes };
  });
}

test.each([
  ["history", (stores: Stores) => void stores.objects.set(`${ROOM}/edits-1`, encodeSegment(ROOM, records(EDITS)))],
  [
    "log",
    (stores: Stores) => {
      stores.snapshots.set(`${ROOM}/1-0-first`, EMPTY_STATE);
      stores.log = records(EDITS);
    },
  ],
])("[RSTH1] a room is made anew however many records its %s has", async (_, fill) => {
  const stores = new Stores();
  fill(stores);
  const restored = await restoreRoom(ROOM, { snapshots: [...stores.snapshots.keys()], history: [...stores.objects.keys()] }, stores.ports, {
    newName: () => "anew",
    wallNow: () => 0 as UnixMillis,
  });
  expect(restored).toEqual({ kind: "rebuilt", seq: EDITS, missing: 0 });
  expect(stores.checkpoint).toMatchObject({ epoch: 3, seq: EDITS, streamSeq: EDITS * 10 });
  expect(stores.history.through).toBe(stores.objects.size > 0 ? EDITS * 10 : 0);
});

test("[RSTH2] a version whose age nothing tells is kept as if it were new; any other is as old as its segment, in whatever order they are found", async () => {
  const stores = new Stores();
  const [first, second] = [
    records(2),
    records(4)
      .slice(2)
      .map((record) => ({ ...record, time: 900 as UnixMillis })),
  ];
  stores.objects.set(`${ROOM}/edits-3`, encodeSegment(ROOM, second));
  stores.objects.set(
    `${ROOM}/edits-1`,
    encodeSegment(
      ROOM,
      first.map((record) => ({ ...record, time: 100 as UnixMillis })),
    ),
  );
  for (const seq of [0, 2, 4, 9]) stores.objects.set(`${ROOM}/version-3-${seq}-v${seq}`, EMPTY_STATE);
  await restoreRoom(ROOM, { snapshots: [], history: [...stores.objects.keys()] }, stores.ports, {
    newName: () => "anew",
    wallNow: () => 5_000 as UnixMillis,
  });
  expect(stores.history.versions.map(({ seq, time }) => [seq, time])).toEqual([
    [0, 5_000],
    [2, 100],
    [4, 900],
    [9, 5_000],
  ]);
});

test.each(["busy", "overran"] as const)(
  "[RSTH3] a snapshot that is not read, for it is %s, is not taken for a damaged one: nothing older takes its place",
  async (why) => {
    const stores = new Stores();
    for (const seq of [1, 2]) stores.snapshots.set(`${ROOM}/1-${seq}-first`, Uint8Array.of(seq));
    const restoring = (newest: Unread) => {
      const merge: Merging["merge"] = (state, edits) =>
        Promise.resolve(state[0] === 2 ? newest : mergeEdits(edits.length === 0 && state[0] === 1 ? EMPTY_STATE : state, edits));
      return restoreRoom(
        ROOM,
        { snapshots: [...stores.snapshots.keys()], history: [] },
        { ...stores.ports, merging: { merge } },
        { newName: () => "anew", wallNow: () => 0 as UnixMillis },
      );
    };
    await expect(restoring(why)).rejects.toThrow(`${ROOM}/1-2-first`);
    expect(stores.checkpoint).toBeUndefined();
    expect(await restoring("unreadable")).toMatchObject({ kind: "rebuilt", seq: 1 });
  },
);

test("[RSTH4] a room that its history alone knows to be deleted stays so, whatever a backup brought back of it", async () => {
  const stores = new Stores();
  stores.history = { versions: [], segments: [], through: 0, deleted: true };
  stores.historyRevision = 1;
  stores.snapshots.set(`${ROOM}/1-1-first`, EMPTY_STATE);
  const restored = await restoreRoom(ROOM, { snapshots: [...stores.snapshots.keys()], history: [] }, stores.ports, {
    newName: () => "anew",
    wallNow: () => 0 as UnixMillis,
  });
  expect([restored, stores.deleted]).toEqual([{ kind: "deleted" }, { deleted: true, time: 0, wiping: true }]);
});

test("[RSTH5] what a history names and nothing has any more is missing, and the room is not called whole", async () => {
  const stores = new Stores();
  stores.history = {
    versions: [],
    segments: [
      {
        object: `${ROOM}/edits-1-4-lost`,
        bytes: 9,
        sha256: "",
        firstSeq: 1 as Seq,
        lastSeq: 4 as Seq,
        firstTime: 0 as UnixMillis,
        lastTime: 0 as UnixMillis,
      },
    ],
    through: 40,
  };
  stores.historyRevision = 1;
  stores.log = records(6).slice(4);
  const restored = await restoreRoom(ROOM, { snapshots: [], history: [] }, stores.ports, {
    newName: () => "anew",
    wallNow: () => 0 as UnixMillis,
  });
  expect([restored, stores.checkpoint]).toMatchObject([
    { kind: "rebuilt", seq: 6, missing: 4 },
    { seq: 6, leftOut: 4 + 2, streamSeq: 60 },
  ]);
});
