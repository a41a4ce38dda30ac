import { expect, test } from "vitest";
import { decodeRecord, encodeEditsRecord, type StoredRecord } from "../../shared/bus/record.ts";
import type { Epoch, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import { EMPTY_STATE, mergeEdits } from "../merge.ts";
import type { Merging, Unread } from "../ports.ts";
import { ann, recordsOf, ROOM, RoomRun, Stores } from "../testing/one-room.ts";
import { restoreRoom } from "./restore-host.ts";
import { encodeSegment } from "./segments.ts";

/** More elements than a call takes arguments. */
const EDITS = 140_000;

/** One edit for each record, at the stream sequence ten times its seq. */
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
])("[RSTH1] a room is rebuilt even if its %s has very many records", async (_, fill) => {
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

test("[RSTH2] a restored version is as old as the segment around it, in any order of discovery; without a segment it counts as new", async () => {
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
  "[RSTH3] a snapshot that could not be checked (%s) does not count as damaged, and no older one takes its place",
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

test("[RSTH4] a room whose deletion is only in its history stays deleted, even if a backup brought back other data", async () => {
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

test("[RSTH5] edits that a history names and no object contains are counted as missing, and the room is not reported as complete", async () => {
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

/** One edit for each record, at the stream sequence ten times its seq. */
const typed = recordsOf("abcdef");
function stateAt(seq: number): Uint8Array {
  const payloads = typed.slice(0, seq).flatMap(({ bytes }) => {
    const record = decodeRecord(bytes);
    return record?.kind === "edits" ? record.edits.edits.map(({ payload }) => payload) : [];
  });
  return mergeEdits(EMPTY_STATE, payloads).state;
}

const MINUTE_MS = 60_000;

/** The checkpoint covers seq 2 and its snapshot is gone. The log goes from there to the given seq. */
function rolledBack(logHas: number): Stores {
  const stores = new Stores();
  stores.checkpoint = {
    epoch: 1 as Epoch,
    seq: 2 as Seq,
    streamSeq: 20,
    time: 0 as UnixMillis,
    clients: [],
    epochs: [1, 0],
    snapshot: { object: `${ROOM}/1-2-gone`, bytes: 1, sha256: "" },
  };
  stores.revision = 1;
  stores.log = typed.slice(0, logHas);
  stores.trimmedBefore = 20;
  return stores;
}

test.each([
  ["a snapshot, the log rolled back as well", 4, (stores: Stores) => void stores.snapshots.set(`${ROOM}/1-6-later`, stateAt(6))],
  ["a snapshot, the log complete", 6, (stores: Stores) => void stores.snapshots.set(`${ROOM}/1-6-later`, stateAt(6))],
  [
    "history, the log rolled back as well",
    4,
    (stores: Stores) => void stores.objects.set(`${ROOM}/edits-1-6-x`, encodeSegment(ROOM, typed)),
  ],
])(
  "[RSTH6] the new checkpoint of a room whose old one is behind %s fits the log: no gap is found, and no seq is assigned again",
  async (_, logHas, fill) => {
    const stores = rolledBack(logHas);
    fill(stores);
    const restored = await restoreRoom(
      ROOM,
      { snapshots: [...stores.snapshots.keys()], history: [...stores.objects.keys()] },
      stores.ports,
      {
        newName: () => "anew",
        wallNow: () => 0 as UnixMillis,
      },
    );
    expect(restored).toEqual({ kind: "rebuilt", seq: 6, missing: 0 });
    const run = new RoomRun(stores);
    await run.take(...typed.slice(1, logHas));
    await run.saveAndTrim(MINUTE_MS);
    expect([await run.served(), stores.checkpoint?.seq, stores.checkpoint?.leftOut]).toEqual(["6 abcdef", 6, undefined]);
  },
);

test("[RSTH7] a restored history entry names the objects that are there, and keeps the names that people gave", async () => {
  const stores = new Stores();
  const version = (seq: number, name?: string) => ({
    object: `${ROOM}/version-1-${seq}-v${seq}`,
    id: `v${seq}`,
    bytes: EMPTY_STATE.byteLength,
    sha256: stores.ports.digest(EMPTY_STATE),
    epoch: 1 as Epoch,
    seq: seq as Seq,
    time: 7 as UnixMillis,
    ...(name === undefined ? {} : { name }),
  });
  const segment = { bytes: 9, sha256: "", firstSeq: 1 as Seq, lastSeq: 2 as Seq, firstTime: 0 as UnixMillis, lastTime: 0 as UnixMillis };
  stores.history = {
    versions: [version(1, "draft"), version(2)],
    segments: [{ object: `${ROOM}/edits-1-2-gone`, ...segment }],
    through: 20,
  };
  stores.historyRevision = 1;
  stores.objects.set(version(1).object, EMPTY_STATE);
  stores.objects.set(version(4).object, EMPTY_STATE);
  stores.objects.set(`${ROOM}/edits-1-5-later`, encodeSegment(ROOM, typed.slice(0, 5)));
  const names = [...stores.objects.keys()];
  const restore = () =>
    restoreRoom(ROOM, { snapshots: [...stores.snapshots.keys()], history: names }, stores.ports, {
      newName: () => "anew",
      wallNow: () => 0 as UnixMillis,
    });
  await restore();
  expect(stores.history).toMatchObject({
    versions: [version(1, "draft"), { object: version(4).object }],
    segments: [{ object: `${ROOM}/edits-1-5-later`, firstSeq: 1, lastSeq: 5 }],
    through: 50,
  });
  await new RoomRun(stores).room.sweepHistory(names);
  expect([...stores.objects.keys()]).toEqual(names);

  const revision = stores.historyRevision;
  await restore();
  expect(stores.historyRevision).toBe(revision);
});

test("[RSTH8] the seq that only a history entry names is still known after a failed restore", async () => {
  const stores = new Stores();
  const segment = { bytes: 9, sha256: "", firstTime: 0 as UnixMillis, lastTime: 0 as UnixMillis };
  const lost = { object: `${ROOM}/edits-1-6-lost`, firstSeq: 1 as Seq, lastSeq: 6 as Seq, ...segment };
  stores.history = { versions: [], segments: [lost], through: 60 };
  stores.historyRevision = 1;
  stores.objects.set(`${ROOM}/edits-1-4-left`, encodeSegment(ROOM, typed.slice(0, 4)));
  const restore = (merging: Merging) =>
    restoreRoom(
      ROOM,
      { snapshots: [], history: [...stores.objects.keys()] },
      { ...stores.ports, merging },
      {
        newName: () => "anew",
        wallNow: () => 0 as UnixMillis,
      },
    );
  await expect(restore({ merge: () => Promise.resolve("overran") })).rejects.toThrow("could not be merged");
  expect(await restore(stores.ports.merging)).toEqual({ kind: "rebuilt", seq: 6, missing: 2 });
  expect(stores.history).toMatchObject({ segments: [{ object: `${ROOM}/edits-1-4-left` }], through: 60 });
});
