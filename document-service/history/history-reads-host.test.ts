import { expect, test } from "vitest";
import * as Y from "yjs";

import { decodeRecord, encodeEditsRecord, type StoredRecord } from "../../shared/bus/record.ts";
import type { Epoch, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import type { DocumentRoomHostOptions } from "../rooms/room-host.ts";
import { ann, recordsOf, ROOM, RoomRun, Stores } from "../testing/one-room.ts";
import { KEEP_ALL, readBackSession } from "../testing/recorded-session.ts";
import type { HistoryState } from "./history-reads.ts";

function textOf(earlier: HistoryState, name = "text"): string {
  if (earlier.kind !== "state") return earlier.kind;
  const doc = new Y.Doc();
  Y.applyUpdate(doc, earlier.state);
  return doc.getText(name).toString();
}

test("[PST1] any seq of a recorded session reads back as the text that the session had there", async () => {
  // A prime, so that the reads fall on every place in records, segments and versions. PAST_EVERY=1 reads all seqs.
  const { counts, wrong } = await readBackSession(new Stores(), {
    everySeqs: Number(process.env["PAST_EVERY"] ?? 499),
    savedEverySeqs: 3_000,
  });
  expect(Math.min(...Object.values(counts))).toBeGreaterThan(3);
  expect(wrong).toEqual([]);
});

/** Types one letter a second, and saves and trims after each. */
async function written(text: string, options: Partial<DocumentRoomHostOptions> = {}): Promise<{ stores: Stores; run: RoomRun }> {
  const stores = new Stores();
  const run = new RoomRun(stores, { ...KEEP_ALL, ...options });
  for (const [index, record] of recordsOf(text).entries()) {
    await run.saveAndTrim(index * 1_000);
    await run.take({ ...record, time: (index * 1_000) as UnixMillis });
  }
  return { stores, run };
}

test("[PST2] a time reads as the last seq that the log had then", async () => {
  const { stores, run } = await written("abcdefgh");
  expect(stores.history.segments.at(-1)?.lastSeq).toBeGreaterThan(2);
  const at = async (time: number) => textOf(await run.room.historyReads.readAt({ time: time as UnixMillis }));
  expect([await at(-1), await at(0), await at(2_999), await at(3_000), await at(99_000)]).toEqual(["", "a", "abc", "abcd", "abcdefgh"]);
  expect(await run.room.historyReads.readAt({ seq: 9 as Seq })).toEqual({ kind: "not-yet", head: 8 });
});

test("[PST3] writing sessions are read from segments and from the log", async () => {
  const { run } = await written("abcdef");
  const ends: unknown[] = [];
  for (let next = 1; next <= 6;) {
    const { sessions, through } = await run.room.historyReads.sessions(next as Seq);
    expect(sessions).toMatchObject([
      {
        user: "ann",
        client: ann,
        firstSeq: next,
        lastSeq: through,
        edits: through - next + 1,
        firstTime: (next - 1) * 1_000,
        lastTime: (through - 1) * 1_000,
      },
    ]);
    ends.push(through);
    next = through + 1;
  }
  expect([ends.length > 1, ends.at(-1)]).toEqual([true, 6]);
  expect(await run.room.historyReads.sessions(7 as Seq)).toEqual({ sessions: [], from: 7, through: 6 });
});

test("[PST4] an old state is restored by an ordinary edit, and the later edits stay in the history", async () => {
  const { run } = await written("abcd");
  const reverted = await run.room.historyReads.revert({ seq: 2 as Seq });
  expect(reverted.kind).toBe("edit");
  const payload = reverted.kind === "edit" ? reverted.edit : new Uint8Array();
  const edits = { epoch: 1 as Epoch, firstSeq: 5 as Seq, edits: [{ client: ann, counter: 5, parentSeq: 4 as Seq, payload }] };
  await run.take({
    room: ROOM,
    streamSeq: 50,
    time: 5_000 as UnixMillis,
    bytes: encodeEditsRecord({ id: "revert", time: 5_000 as UnixMillis, users: new Map([[ann, "ann" as UserId]]), edits }),
  });
  expect([
    await run.served(),
    textOf(await run.room.historyReads.readAt({ seq: 4 as Seq })),
    textOf(await run.room.historyReads.readAt({ seq: 5 as Seq })),
  ]).toEqual(["5 ab", "abcd", "ab"]);
  expect(await run.room.historyReads.revert({ seq: 5 as Seq })).toEqual({ kind: "unchanged" });
});

test("[PST5] a named version outlives the history around it until it is removed, and the number of named versions is limited", async () => {
  const { stores, run } = await written("abc");
  const named = await run.room.historyReads.name("before lunch");
  expect(named).toMatchObject({ kind: "named", version: { seq: 3, name: "before lunch" } });
  expect((await run.room.historyReads.name("two")).kind).toBe("named");
  expect(await run.room.historyReads.name("three")).toEqual({ kind: "too-many" });
  const later = new RoomRun(stores, { ...KEEP_ALL, historyMsMax: 1_000 });
  for (const record of recordsOf("abcdef").slice(2)) await later.take({ ...record, time: 90_000 as UnixMillis });
  await later.saveAndTrim(100_000);
  await later.saveAndTrim(110_000);
  expect([
    textOf(await later.room.historyReads.readAt({ seq: 1 as Seq })),
    textOf(await later.room.historyReads.readAt({ seq: 3 as Seq })),
  ]).toEqual(["not-kept", "abc"]);
  const id = named.kind === "named" ? named.version.id : "";
  expect([await later.room.historyReads.removeVersion(id), await later.room.historyReads.removeVersion(id)]).toEqual([true, false]);
  expect([...stores.objects.keys()].toSorted()).toEqual(
    [...stores.history.versions, ...stores.history.segments].map(({ object }) => object).toSorted(),
  );
});

test("[PST6] a state whose version is lost or damaged is built from other objects, and a state whose segment is lost is reported as missing", async () => {
  const { stores, run } = await written("abcdefgh", { historyVersionEditsMax: 2 });
  expect(stores.history.versions.length).toBeGreaterThan(1);
  for (const { object } of stores.history.versions) stores.objects.set(object, Uint8Array.of(1));
  expect(textOf(await run.room.historyReads.readAt({ seq: 7 as Seq }))).toBe("abcdefg");
  stores.objects.delete(stores.history.segments[0]!.object);
  expect(textOf(await run.room.historyReads.readAt({ seq: 7 as Seq }))).toBe("not-kept");
});

/** Objects that the history names and that are missing, and objects that it does not name. */
function mismatched({ history, objects }: Stores): string[] {
  const named = [...history.versions, ...history.segments].map(({ object }) => object);
  return [...named.filter((name) => !objects.has(name)), ...[...objects.keys()].filter((name) => !named.includes(name))];
}

test("[PST7] a version whose object was removed by a sweep before it was named is written again", async () => {
  const stores = new Stores();
  const [slow, next] = [new RoomRun(stores), new RoomRun(stores)];
  await slow.take(...recordsOf("abc"));
  await slow.room.historyReads.name("one");
  const release = stores.hold("history");
  const naming = slow.room.historyReads.name("two");
  await new Promise(setImmediate);
  expect(stores.objects.size).toBe(2);
  await next.room.sweepHistory([...stores.objects.keys()]);
  expect(stores.objects.size).toBe(1);
  release();
  expect(await naming).toMatchObject({ kind: "named", version: { seq: 3, name: "two" } });
  expect([stores.history.versions.length, mismatched(stores)]).toEqual([2, []]);
});

test.each(["before", "after"] as const)(
  "[PST11] a change of a history whose entry is not known to be written (%s) leaves no object behind that the entry does not name",
  async (when) => {
    const stores = new Stores();
    const run = new RoomRun(stores, { historyNamedMax: 9 });
    await run.take(...recordsOf("abc"));
    const named = await run.room.historyReads.name("one");
    const id = named.kind === "named" ? named.version.id : "";
    stores.failing = { step: "history", when };
    await expect(run.room.historyReads.removeVersion(id)).rejects.toThrow();
    for (let tries = 0; tries < 3; tries++) await expect(run.room.historyReads.name("two")).rejects.toThrow();
    stores.failing = undefined;
    expect(await run.room.historyReads.name("three")).toMatchObject({ kind: "named" });
    expect(mismatched(stores)).toEqual([]);
  },
);

test("[PST8] a save that checks whether a version is due does not change the entry that another job is about to replace", async () => {
  const stores = new Stores();
  const [earlier, next] = [new RoomRun(stores), new RoomRun(stores)];
  await earlier.take(...recordsOf("abc"));
  await earlier.room.historyReads.name("one");
  /** The first read of the entry waits, and so does each read of an object. */
  const held: Record<"entry" | "object", () => void> = { entry: () => {}, object: () => {} };
  const until = (what: keyof typeof held) => new Promise<void>((resolve) => (held[what] = resolve));
  let isFirst = true;
  const histories: Stores["ports"]["histories"] = {
    ...stores.ports.histories,
    read: async (room) => {
      const isHeld = isFirst;
      isFirst = false;
      if (isHeld) await until("entry");
      return stores.ports.histories.read(room);
    },
  };
  const history: Stores["ports"]["history"] = {
    ...stores.ports.history,
    read: async (name) => {
      const bytes = await stores.ports.history.read(name);
      await until("object");
      return bytes;
    },
  };
  const slow = new RoomRun(Object.assign(new Stores(), { ports: { ...stores.ports, histories, history } }));
  await slow.take(...recordsOf("abc"));
  const saving = slow.save();
  await new Promise(setImmediate);
  expect(isFirst).toBe(false);
  const naming = slow.room.historyReads.name("two");
  await new Promise(setImmediate);
  expect(stores.objects.size).toBe(2);
  await next.room.sweepHistory([...stores.objects.keys()]);
  held.entry();
  await saving;
  held.object();
  await new Promise(setImmediate);
  held.object();
  expect((await naming).kind).toBe("named");
  expect([stores.history.versions.length, mismatched(stores)]).toEqual([2, []]);
});

test.each([
  ["busy", "loading"],
  ["overran", "too-much"],
  ["unreadable", "unreadable"],
] as const)(
  "[PST9] a state that is not merged because it is %s is answered as %s, and so is the edit that brings it back",
  async (why, kind) => {
    const { stores } = await written("abc");
    const ports = { ...stores.ports, reverting: { ...stores.ports.reverting, mergeHistory: () => Promise.resolve(why) } };
    const run = new RoomRun(
      Object.assign(new Stores(), { ports, history: stores.history, log: stores.log, checkpoint: stores.checkpoint }),
    );
    expect([await run.room.historyReads.readAt({ seq: 2 as Seq }), await run.room.historyReads.revert({ seq: 2 as Seq })]).toEqual([
      { kind },
      { kind },
    ]);
  },
);

test("[PST10] a read takes only the records that it needs from a long log tail: versions there, and the seqs after them, are readable", async () => {
  const run = new RoomRun(new Stores(), { ...KEEP_ALL, historyReadBytesMax: 1_000 });
  const letters = Array.from({ length: 40 }, (_, index) => String.fromCharCode(97 + (index % 26)));
  const records = recordsOf(letters).map((record, index) => ({ ...record, time: index as UnixMillis }));
  await run.take(...records.slice(0, 30));
  expect((await run.room.historyReads.name("noon")).kind).toBe("named");
  await run.take(...records.slice(30));
  const text = letters.join("");
  const at = async (seq: number) => textOf(await run.room.historyReads.readAt({ seq: seq as Seq }));
  expect(await Promise.all([2, 29, 30, 32, 41].map(at))).toEqual([
    text.slice(0, 2),
    "too-much",
    text.slice(0, 30),
    text.slice(0, 32),
    "not-yet",
  ]);
  expect(textOf(await run.room.historyReads.readAt({ time: 31 as UnixMillis }))).toBe(text.slice(0, 32));
  const { sessions, through } = await run.room.historyReads.sessions(1 as Seq);
  expect(sessions).toMatchObject([{ firstSeq: 1, lastSeq: through, edits: through }]);
  expect([through > 1, through < 40]).toEqual([true, true]);
  expect((await run.room.historyReads.sessions((through + 1) as Seq)).sessions).toMatchObject([{ firstSeq: through + 1 }]);
});

test.each([
  ["a seq", (run: RoomRun, signal: AbortSignal) => run.room.historyReads.readAt({ seq: 20 as Seq }, signal)],
  ["a time", (run: RoomRun, signal: AbortSignal) => run.room.historyReads.readAt({ time: 20 as UnixMillis }, signal)],
  ["who wrote", (run: RoomRun, signal: AbortSignal) => run.room.historyReads.sessions(1 as Seq, signal)],
])("[PST12] a read of the log for %s ends when its client disconnects", async (_, ask) => {
  const [stores, asker] = [new Stores(), new AbortController()];
  const records = recordsOf("abcdefghijklmnopqrstuvwxyz").map((record, index) => ({ ...record, time: index as UnixMillis }));
  let read = 0;
  async function* readAll(): AsyncIterable<StoredRecord> {
    for (const record of records) {
      if (++read === 5) asker.abort();
      yield record;
    }
  }
  const run = new RoomRun(
    Object.assign(new Stores(), { ports: { ...stores.ports, log: { ...stores.ports.log, read: readAll } }, log: stores.log }),
    KEEP_ALL,
  );
  await run.take(...records);
  await ask(run, asker.signal);
  expect(read).toBe(5);
});

test("[PST11] a room is not trimmed if its log lost the record that its checkpoint names, or ends before it", async () => {
  const [lost, lagging] = [new Stores(), new Stores()];
  for (const stores of [lost, lagging]) {
    const run = new RoomRun(stores, KEEP_ALL);
    await run.take(...recordsOf("abc"));
    await run.saveAndTrim(1);
    const kept = stores.log.at(-1)!;
    stores.log = stores === lagging ? [{ ...kept, streamSeq: 10 }] : [];
    await run.saveAndTrim(5_000);
    expect(run.room.state.isTrimDue(60_000 as typeof run.now)).toBe(false);
  }
  expect([lost.trimmedBefore, lagging.trimmedBefore]).toEqual([0, 0]);
});

test.each([3, 0])(
  "[PST13] a restore and a named version include edits that the log has and the room, at seq %i, has not read yet",
  async (read) => {
    const stores = new Stores();
    const run = new RoomRun(stores, KEEP_ALL);
    const records = recordsOf("abcd");
    await run.take(...records.slice(0, read));
    stores.log.push(...records.slice(read));
    const reads = run.room.historyReads;
    const asked = Promise.all([reads.revert({ seq: 3 as Seq }), reads.revert({ seq: 1 as Seq }), reads.name("all of it")]);
    await new Promise(setImmediate);
    await run.take(...records.slice(read));
    const [toThree, toOne, named] = await asked;
    const textAfter = (reverted: typeof toThree): string => {
      const doc = new Y.Doc();
      for (const { bytes } of records) for (const { payload } of editsIn(bytes)) Y.applyUpdate(doc, payload);
      if (reverted.kind === "edit") Y.applyUpdate(doc, reverted.edit);
      return doc.getText("text").toString();
    };
    expect([textAfter(toThree), textAfter(toOne)]).toEqual(["abc", "a"]);
    expect(named).toMatchObject({ kind: "named", version: { seq: 4 } });
  },
);

function editsIn(bytes: Uint8Array) {
  const record = decodeRecord(bytes);
  return record?.kind === "edits" ? record.edits.edits : [];
}
