import { expect, test } from "vitest";

import { hasDocument } from "../../shared/bus/checkpoint.ts";
import { UndecodableEntry } from "../../shared/bus/json-messages.ts";
import { type StoredRecord, encodeEditsRecord, encodeEpochRecord } from "../../shared/bus/record.ts";
import type { Epoch, Millis, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import { mergeEdits } from "../merge.ts";
import type { Unread } from "../ports.ts";
import { afterCrash, CRASHES, NOTHING_LOST } from "../testing/crash.ts";
import { ann, deletedRecord, recordsOf, ROOM, RoomRun, Stores } from "../testing/one-room.ts";
import type { DocumentRoomPorts } from "./room-host.ts";

test.each(CRASHES)(
  "[RMH1] a service that dies $when the step '$step' leaves the complete document and history to the next one",
  async (crash) => {
    expect(await afterCrash(new Stores(), crash)).toEqual(NOTHING_LOST);
  },
);

test.each(CRASHES)("[RMH2] a service that survives a failure of '$step' $when its effect repeats the step", async (failing) => {
  const stores = new Stores();
  const run = new RoomRun(stores);
  await run.take(...recordsOf("abcd"));
  stores.failing = failing;
  await run.save();
  await run.trim();
  stores.failing = undefined;
  for (let tries = 0; tries < 2; tries++) {
    run.now = (run.now + 5_000) as Millis;
    if (run.room.state.isSaveDue(run.now, false)) await run.save();
    if (run.room.state.isTrimDue(run.now)) await run.trim();
  }
  expect(stores.checkpoint).toMatchObject({ seq: 4, streamSeq: 40 });
  expect(stores.trimmedBefore).toBe(40);
  expect(await run.served()).toBe("4 abcd");
});

test("[RMH11] a clock that is set back delays neither the next snapshot nor the next trim", async () => {
  const stores = new Stores();
  const run = new RoomRun(stores);
  const records = recordsOf("ab");
  await run.take(records[0]!);
  await run.save();
  run.dateAheadMs = -3_600_000;
  await run.take(records[1]!);
  run.now = 60_000 as Millis;
  expect([run.room.state.isSaveDue(run.now, false), run.room.state.isTrimDue(run.now)]).toEqual([true, true]);
});

test("[RMH48] a sweep by a machine whose date is years ahead drops no history that the store's date keeps", async () => {
  const sweep = async (storeDate: number) => {
    const stores = new Stores();
    const run = new RoomRun(stores, { historyMsMax: 60_000 });
    await run.take(...recordsOf("abcd"));
    await run.save();
    run.now = 60_000 as Millis;
    await run.trim();
    stores.date = storeDate as UnixMillis;
    run.dateAheadMs = 10 ** 12;
    await run.room.sweepHistory([]);
    return stores.history.segments.length;
  };
  expect([await sweep(60_000), await sweep(10 ** 12)]).toEqual([1, 0]);
});

test("[RMH3] a checkpoint never names a snapshot that reads back different from what was written", async () => {
  const stores = new Stores();
  const damaged: DocumentRoomPorts["snapshots"] = {
    ...stores.ports.snapshots,
    write: (name, bytes) => stores.ports.snapshots.write(name, bytes.slice(1)),
  };
  const run = new RoomRun(Object.assign(new Stores(), { ports: { ...stores.ports, snapshots: damaged } }));
  await run.take(...recordsOf("abcd"));
  await run.save();
  expect(stores.checkpoint).toBeUndefined();
  expect(await run.served()).toBe("4 abcd");
});

test("[RMH4] a gap in the log that a newer checkpoint covers is filled from that checkpoint", async () => {
  const stores = new Stores();
  const records = recordsOf("abcd");
  const slow = new RoomRun(stores);
  await slow.take(records[0]!);
  const other = new RoomRun(stores);
  await other.take(...records.slice(0, 3));
  await other.save(); // A save also trims the records that it covers, before the slow service has read them.
  await slow.take(records[3]!);
  expect(await slow.served()).toBe("4 abcd");
  await slow.save();
  expect(stores.checkpoint).toMatchObject({ seq: 4 });
  expect(stores.checkpoint?.leftOut).toBeUndefined();
});

test("[RMH5] a gap that no checkpoint covers is counted, the existing edits are served, and the log is never trimmed again", async () => {
  const stores = new Stores();
  const [a, , c] = recordsOf("abc");
  const run = new RoomRun(stores);
  await run.take(a!, c!);
  expect(await run.served()).toBe("3 a"); // Yjs keeps c until b arrives.
  await run.save();
  expect(stores.checkpoint).toMatchObject({ seq: 3, leftOut: 1 });
  run.now = 60_000 as Millis;
  expect(run.room.state.isTrimDue(run.now)).toBe(false);
  expect((await run.metrics.gaps.get()).values[0]?.value).toBe(1);
});

test("[RMH6] a service whose save is older than another service's checkpoint continues from that checkpoint, and removes its own snapshot", async () => {
  const stores = new Stores();
  const records = recordsOf("abcd");
  const [stale, fresh] = [new RoomRun(stores), new RoomRun(stores)];
  await stale.take(records[0]!);
  await fresh.take(...records);
  await fresh.save();
  await stale.save();
  expect(stores.checkpoint?.seq).toBe(4);
  expect([...stores.snapshots.keys()]).toEqual([stores.checkpoint?.snapshot.object]);
  expect(await stale.served()).toBe("4 abcd");
});

test("[RMH8] a save that began before a newer checkpoint was found does not replace it", async () => {
  const stores = new Stores();
  const records = recordsOf("abcd");
  const slow = new RoomRun(stores);
  await slow.take(records[0]!);
  const other = new RoomRun(stores);
  await other.take(...records.slice(0, 3));
  const letGo = stores.hold("read back");
  const saving = slow.save();
  await new Promise(setImmediate);
  await other.save();
  const held = stores.checkpoint; // The slow service finds a gap, reads the newer checkpoint and continues from it.
  await slow.take(records[3]!);
  letGo();
  await saving;
  expect(stores.checkpoint).toBe(held);
  expect(await slow.served()).toBe("4 abcd");
});

test("[RMH7] snapshots left by a crash are removed, and a slow writer can no longer name its own", async () => {
  const stores = new Stores();
  const records = recordsOf("abcd");
  const slow = new RoomRun(stores);
  await slow.take(...records.slice(0, 2));
  await slow.save();
  await slow.take(...records.slice(2));
  const next = new RoomRun(stores);
  await next.room.opened;
  const letGo = stores.hold("checkpoint");
  const saving = slow.save();
  await new Promise(setImmediate);
  await next.room.sweepSnapshots([...stores.snapshots.keys()]);
  letGo();
  await saving;
  expect([...stores.snapshots.keys()]).toEqual([stores.checkpoint?.snapshot.object]);
  expect(stores.checkpoint?.seq).toBe(2);
});

test("[RMH9] a room whose payloads are no Yjs updates has no document, and its checkpoint shows that", async () => {
  const stores = new Stores();
  const run = new RoomRun(stores);
  const payload = new TextEncoder().encode("{}");
  const edits = { epoch: 1 as Epoch, firstSeq: 1 as Seq, edits: [{ client: ann, counter: 1, parentSeq: 0 as Seq, payload }] };
  await run.take({
    room: ROOM,
    streamSeq: 10,
    time: 0 as UnixMillis,
    bytes: encodeEditsRecord({ id: "server.1", time: 0 as UnixMillis, users: new Map([[ann, "ann" as UserId]]), edits }),
  });
  await run.save();
  expect([await run.served(), hasDocument(stores.checkpoint!)]).toEqual(["not-a-document", false]);
});

/** A record like those of `recordsOf`, with a payload that is no Yjs update. */
function rawRecord(seq: number): StoredRecord {
  const payload = new TextEncoder().encode("{}");
  const edits = { epoch: 1 as Epoch, firstSeq: seq as Seq, edits: [{ client: ann, counter: seq, parentSeq: (seq - 1) as Seq, payload }] };
  const users = new Map([[ann, "ann" as UserId]]);
  const bytes = encodeEditsRecord({ id: `server.${seq}`, time: 0 as UnixMillis, users, edits });
  return { room: ROOM, streamSeq: 10 * seq, time: 0 as UnixMillis, bytes };
}

test("[RMH41] edits that are not Yjs updates go into the history, and the log is trimmed, also by the next service", async () => {
  const stores = new Stores();
  const records = [...recordsOf("abc"), rawRecord(4)];
  const run = new RoomRun(stores);
  await run.take(...records);
  await run.save();
  expect(stores.checkpoint).toMatchObject({ seq: 4, leftOut: 1, refused: 1 });
  const next = new RoomRun(stores);
  expect(await next.served()).toBe("4 abc");
  for (const service of [run, next]) {
    service.now = (service.now + 60_000) as Millis;
    expect(service.room.state.isTrimDue(service.now)).toBe(true);
  }
  await run.trim();
  expect(stores.trimmedBefore).toBe(40);
});

test("[RMH42] the log of a room whose edits are mostly not Yjs updates is not trimmed, because only its clients can read the content", async () => {
  const stores = new Stores();
  const run = new RoomRun(stores);
  await run.take(recordsOf("a")[0]!, rawRecord(2));
  await run.save();
  run.now = 60_000 as Millis;
  expect(run.room.state.isTrimDue(run.now)).toBe(false);
});

test("[RMH43] with a retention, edits of such a room move to the history once they are old, also at the next service", async () => {
  const stores = new Stores();
  const run = new RoomRun(stores, { opaqueLogMsMax: 30_000 });
  await run.take(rawRecord(1), rawRecord(2));
  await run.save();
  run.now = 29_000 as Millis;
  expect(run.room.state.isTrimDue(run.now)).toBe(false);
  const next = new RoomRun(stores, { opaqueLogMsMax: 30_000 });
  await next.take(rawRecord(3));
  expect(await next.served()).toBe("not-a-document");
  expect(next.room.storedBytes!.log, "with what the run before left").toBe(run.room.storedBytes!.log + rawRecord(3).bytes.byteLength);
  for (const service of [run, next]) {
    service.now = (service.now + 60_000) as Millis;
    expect(service.room.state.isTrimDue(service.now)).toBe(true);
  }
  await run.trim();
  expect(stores.trimmedBefore).toBe(20);
  expect(stores.history.segments).toMatchObject([{ firstSeq: 1, lastSeq: 1 }]);
});

test("[RMH10] a thousand concurrent requests cause one merge, and a second one only if edits arrived during the first", async () => {
  const stores = new Stores();
  let merges = 0;
  let finish: () => void = () => {};
  const counting: Stores["ports"] = {
    ...stores.ports,
    merging: { merge: (state, edits) => (merges++, new Promise((resolve) => (finish = () => resolve(mergeEdits(state, edits))))) },
  };
  const run = new RoomRun(Object.assign(new Stores(), { ports: counting }));
  const [one, two, three] = recordsOf("abc") as [StoredRecord, StoredRecord, StoredRecord];
  await run.take(one, two);

  const crowd = Array.from({ length: 1_000 }, () => run.served());
  await new Promise(setImmediate);
  await run.take(three);
  const late = Array.from({ length: 1_000 }, () => run.served());
  await new Promise(setImmediate);
  finish();
  await new Promise(setImmediate);
  finish();

  expect(new Set(await Promise.all(crowd))).toEqual(new Set(["2 ab"]));
  expect(new Set(await Promise.all(late))).toEqual(new Set(["3 abc"]));
  expect(merges).toBe(2);
});

/** Stores whose merges fail with `why` while `isStalling`. */
function stallingStores(why: Unread = "overran"): { stores: Stores; state: { isStalling: boolean; tries: number } } {
  const stores = new Stores();
  const state = { isStalling: false, tries: 0 };
  const merge: Stores["ports"]["merging"]["merge"] = (base, edits) => {
    state.tries += 1;
    return Promise.resolve(state.isStalling ? why : mergeEdits(base, edits));
  };
  return { stores: Object.assign(new Stores(), { ports: { ...stores.ports, merging: { merge } } }), state };
}

test.each([
  ["takes too long", "overran"],
  ["ends its thread", "busy"],
  ["is of what cannot be read", "unreadable"],
] as const)("[RMH12] a room whose merge %s serves its last state, keeps its log, and retries after pauses that double", async (_, why) => {
  const { stores, state } = stallingStores(why);
  const run = new RoomRun(stores);
  const records = recordsOf("abcd");
  await run.take(...records.slice(0, 2));
  await run.save();
  await run.take(...records.slice(2));
  state.isStalling = true;
  state.tries = 0;
  expect([await run.served(), run.room.state.isStalled]).toEqual(["2 ab", true]);
  await run.save();
  expect(run.room.state.uncoveredFrom).toBe(30);
  const triedAt = [];
  for (let second = 0; second < 20; second++) {
    run.now = (second * 1_000) as Millis;
    const before = state.tries;
    if (run.room.state.isSaveDue(run.now, true)) await run.save();
    if (state.tries > before) triedAt.push(second);
  }
  expect(triedAt).toEqual([2, 6, 14]);
  state.isStalling = false;
  run.now = 60_000 as Millis;
  await run.save();
  expect([await run.served(), run.room.state.isStalled, run.room.state.uncoveredFrom]).toEqual(["4 abcd", false, undefined]);
});

test("[RMH43] a room that was never merged is reported as stalled, and its readers do not wait", async () => {
  const { stores, state } = stallingStores();
  const run = new RoomRun(stores);
  state.isStalling = true;
  await run.take(...recordsOf("ab"));
  expect(await run.served()).toBe("stalled");
  expect(await run.served()).toBe("stalled");
});

test("[RMH44] readers of a stalled room do not wait for the merge that is tried again, which may wait long for its thread", async () => {
  const { stores, state } = stallingStores();
  const run = new RoomRun(stores);
  const [first, ...rest] = recordsOf("abc");
  await run.take(first!);
  await run.save();
  state.isStalling = true;
  await run.take(...rest);
  expect(await run.served()).toBe("1 a");

  const { merge } = stores.ports.merging;
  let endWait = (): void => {};
  const waiting = new Promise<void>((resolve) => (endWait = resolve));
  stores.ports.merging.merge = async (...args) => {
    await waiting;
    return merge(...args);
  };
  run.now = 60_000 as Millis;
  const tries = state.tries;
  const saving = run.save();
  expect([await run.served(), await run.room.serve("newest", 3), await run.served()]).toEqual(["1 a", { kind: "stalled" }, "1 a"]);
  expect(await run.room.historyReads.name("now")).toEqual({ kind: "loading" });
  expect(state.tries).toBe(tries);

  state.isStalling = false;
  endWait();
  await saving;
  expect(await run.served()).toBe("3 abc");
});

test("[RMH45] the last state of a stalled room is neither kept as a version of now, nor compared with an earlier state", async () => {
  const stores = new Stores();
  let isStalling = false;
  stores.ports.merging.merge = (base, edits) => Promise.resolve(isStalling ? "overran" : mergeEdits(base, edits));
  const run = new RoomRun(stores);
  const records = recordsOf("abc");
  await run.take(...records.slice(0, 2));
  await run.save();
  isStalling = true;
  await run.take(records[2]!);
  expect(await run.served()).toBe("2 ab");
  const { historyReads } = run.room;
  const earlier = [1, 2].map((seq) => historyReads.revert({ seq: seq as Seq }));
  expect(await Promise.all([historyReads.name("now"), ...earlier])).toEqual([1, 2, 3].map(() => ({ kind: "loading" })));

  isStalling = false;
  run.now = 60_000 as Millis;
  expect(await historyReads.revert({ seq: 1 as Seq })).toMatchObject({ kind: "edit" });
  expect(await historyReads.name("now")).toMatchObject({ kind: "named", version: { seq: 3 } });
});

test("[RMH49] a room that is closed before it has all edits of the log neither names nor restores a state", async () => {
  const stores = new Stores();
  const run = new RoomRun(stores);
  const [first, second, third] = recordsOf("abc");
  await run.take(first!, second!);
  stores.log.push(third!);
  const { historyReads } = run.room;
  const answers = [historyReads.name("now"), historyReads.revert({ seq: 1 as Seq })];
  await new Promise(setImmediate);
  run.room.close();
  expect(await Promise.all(answers)).toEqual([{ kind: "loading" }, { kind: "loading" }]);
  expect(await historyReads.name("later")).toEqual({ kind: "loading" });
});

test("[RMH13] edits of a stalled room over their limit stay in the log, and the next run reads from the same place", async () => {
  const { stores, state } = stallingStores();
  const run = new RoomRun(stores);
  const records = recordsOf("abcdefghijklmnopqrst");
  await run.take(...records.slice(0, 2));
  await run.save();
  state.isStalling = true;
  await run.take(...records.slice(2, 4));
  await run.served();
  await run.take(...records.slice(4));
  run.room.tick(false);
  expect(run.room.state.heldBytes).toBeLessThan(400);
  await run.take(...records.slice(10));
  expect([run.room.state.uncoveredFrom, await run.served(), run.room.state.isSaveDue(99_999 as Millis, true)]).toEqual([30, "2 ab", false]);

  state.isStalling = false;
  const next = new RoomRun(stores);
  await next.take(...records.filter(({ streamSeq }) => streamSeq >= 21));
  expect(await next.served()).toBe("20 abcdefghijklmnopqrst");
});

test("[RMH40] edits of a room without its snapshot stay in the log too, and the next run has all of them once it is restored", async () => {
  const stores = new Stores();
  const records = recordsOf("abcdefghijklmnopqrst");
  const first = new RoomRun(stores);
  await first.take(...records.slice(0, 2));
  await first.save();
  const [[name, bytes] = ["", new Uint8Array(0)]] = [...stores.snapshots];
  stores.snapshots.clear();
  stores.trimmedBefore = 20;

  const run = new RoomRun(stores);
  await run.take(...records.slice(2, 10));
  expect([await run.served(), run.room.state.isStalled, run.room.state.canBeCovered]).toEqual(["stalled", true, false]);
  run.room.tick(false);
  await run.take(...records.slice(10));
  expect([run.room.state.heldBytes, run.room.state.uncoveredFrom]).toEqual([0, 30]);

  stores.snapshots.set(name, bytes);
  const next = new RoomRun(stores);
  await next.take(...records.filter(({ streamSeq }) => streamSeq >= 30));
  expect([await next.served(), next.room.state.isStalled]).toEqual(["20 abcdefghijklmnopqrst", false]);
});

test("[RMH14] a joining client receives a long document that lacks few edits without a merge, unless it asks for the newest", async () => {
  const stores = new Stores();
  let merges = 0;
  const counting: Stores["ports"] = {
    ...stores.ports,
    merging: { merge: (state, edits) => (merges++, Promise.resolve(mergeEdits(state, edits))) },
  };
  const [long, ...few] = recordsOf(["long ".repeat(250_000), ..."abcdef"]);
  const run = new RoomRun(Object.assign(new Stores(), { ports: counting }), { snapshotLagBytesMax: 2 * few[0]!.bytes.byteLength });
  const seqFor = async (freshness: "newest" | "joinable") => Number((await run.served(freshness)).split(" ")[0]);
  await run.take(long!, few[0]!);
  expect([await seqFor("joinable"), merges]).toEqual([2, 1]);
  await run.take(few[1]!);
  expect([await seqFor("joinable"), await seqFor("joinable"), merges]).toEqual([2, 2, 1]);
  expect([await seqFor("newest"), await seqFor("joinable"), merges]).toEqual([3, 3, 2]);
  await run.take(...few.slice(2));
  expect([await seqFor("joinable"), merges]).toEqual([7, 3]);
});

test("[RMH15] a long document's state behind the newest checkpoint is not served, because the edits after it may be trimmed", async () => {
  const stores = new Stores();
  const records = recordsOf(["long ".repeat(250_000), "a", "b"]);
  const [slow, other] = [new RoomRun(stores), new RoomRun(stores)];
  await slow.take(records[0]!);
  await slow.save();
  await slow.take(records[1]!, records[2]!);
  expect((await slow.served("joinable")).slice(0, 2)).toBe("1 ");
  await other.take(records[1]!);
  await other.save();
  await slow.room.sweepSnapshots(["acme.notes/none"]); // The sweep finds the other service's checkpoint.
  expect((await slow.served("joinable")).slice(0, 2)).toBe("3 ");
});

const WIPE_STEPS = ["tell owner", "checkpoint", "remove", "history", "remove archive", "trim"].flatMap((step) => [
  { step, when: "before" as const },
  { step, when: "after" as const },
]);

/** A deleted room that has a snapshot, a history segment and a named version. */
async function deletedRoom(): Promise<{ stores: Stores; run: RoomRun }> {
  const stores = new Stores();
  const run = new RoomRun(stores);
  await run.take(...recordsOf("abcd"));
  await run.saveAndTrim(5_000);
  await run.saveAndTrim(9_000);
  await run.room.historyReads.name("first draft");
  expect([stores.snapshots.size, stores.objects.size]).toEqual([1, 2]);
  await run.take(deletedRecord(50));
  return { stores, run };
}

function expectNothingLeft(stores: Stores): void {
  expect([...stores.snapshots.keys(), ...stores.objects.keys()]).toEqual([]);
  expect([stores.trimmedBefore, stores.history]).toEqual([50, { versions: [], segments: [], through: 0, deleted: true }]);
  expect(stores.deleted).toMatchObject({ deleted: true });
  expect(stores.deleted?.wiping).toBeUndefined();
}

test.each(WIPE_STEPS)(
  "[RMH16] after a service dies $when the step '$step' of a wipe, the next one finishes it and nothing is left",
  async (failing) => {
    const { stores, run } = await deletedRoom();
    stores.failing = failing;
    await run.wipe(10_000);
    expect(await run.served()).toBe("deleted");

    stores.failing = undefined;
    const next = new RoomRun(stores);
    await next.take(deletedRecord(50));
    expect(await next.served()).toBe("deleted");
    await next.wipe(10_000);
    expectNothingLeft(stores);
    expect([next.room.state.isUnwiped, next.room.state.uncoveredFrom]).toEqual([false, undefined]);
  },
);

test("[RMH34] objects that a crash left of a deleted room are removed after everything else", async () => {
  const { stores, run } = await deletedRoom();
  stores.snapshots.set("acme.notes/left", stores.snapshots.values().next().value!);
  expect(await run.room.sweepSnapshots(["acme.notes/left"])).toBe(false);
  await run.wipe(10_000);
  expect(await run.room.sweepSnapshots(["acme.notes/left"])).toBe(true);
  expectNothingLeft(stores);
});

test.each(["checkpoint", "history"])(
  "[RMH38] a deleted room's objects are removed even where it is unknown if its %s names them",
  async (step) => {
    const stores = new Stores();
    const run = new RoomRun(stores);
    await run.take(...recordsOf("abcd"));
    stores.failing = { step, when: "before" };
    await run.save();
    await run.room.historyReads.name("first draft").catch(() => {});
    expect(stores.snapshots.size + stores.objects.size).toBeGreaterThan(0);
    stores.failing = undefined;
    await run.take(deletedRecord(50));
    await run.wipe(10_000);
    expectNothingLeft(stores);
  },
);

test("[RMH17] a deleted room is wiped once no room server holds it; until then the next service reads its record again", async () => {
  const { stores, run } = await deletedRoom();
  stores.isOwned = true;
  await run.wipe(10_000);
  expect([run.room.state.isUnwiped, run.room.state.uncoveredFrom, stores.snapshots.size]).toEqual([true, 50, 0]);
  stores.isOwned = false;
  await run.wipe(10_100);
  expect(run.room.state.isUnwiped, "it waits a little between two tries").toBe(true);
  await run.wipe(10_600);
  expectNothingLeft(stores);
});

test("[RMH18] a late snapshot or version of a deleted room restores nothing", async () => {
  const stores = new Stores();
  const late = new RoomRun(stores);
  await late.take(...recordsOf("abcd"));
  await late.saveAndTrim(5_000);
  const letGo = stores.hold("history");
  const naming = late.room.historyReads.name("too late");
  await new Promise(setImmediate);

  const other = new RoomRun(stores);
  await other.take(deletedRecord(50));
  await other.wipe(6_000);
  letGo();
  expect(await naming).toEqual({ kind: "deleted" });
  await late.take(...recordsOf("abcde").slice(4));
  await late.save();
  expect(await late.served()).toBe("deleted");
  expectNothingLeft(stores);
});

test("[RMH36] a snapshot names its last edit, both merged in memory and loaded from the store", async () => {
  const stores = new Stores();
  const run = new RoomRun(stores);
  await run.take(...recordsOf("abc"));
  expect(await run.room.serve("newest")).toMatchObject({ position: { seq: 3 }, last: { client: ann, counter: 3 } });
  await run.save();
  expect(await new RoomRun(stores).room.serve("newest")).toMatchObject({ position: { seq: 3 }, last: { client: ann, counter: 3 } });
});

test.each(["before", "after"] as const)(
  "[RMH37] however often a checkpoint write has an unknown outcome (%s), a state has one snapshot, and only the named one remains",
  async (when) => {
    const stores = new Stores();
    const run = new RoomRun(stores);
    const records = recordsOf("abcd");
    await run.take(...records.slice(0, 2));
    stores.failing = { step: "checkpoint", when };
    for (let tries = 0; tries < 5; tries++) await run.save();
    expect(stores.snapshots.size).toBe(1);
    await run.take(records[2]!);
    await run.save();
    stores.failing = undefined;
    await run.take(records[3]!);
    for (let tries = 0; tries < 2; tries++) await run.save();
    expect([[...stores.snapshots.keys()], stores.checkpoint?.seq]).toEqual([[stores.checkpoint?.snapshot.object], 4]);
  },
);

test("[RMH37] a damaged snapshot is removed after the next successful save", async () => {
  const stores = new Stores();
  let isDamaging = true;
  const damaged: DocumentRoomPorts["snapshots"] = {
    ...stores.ports.snapshots,
    write: (name, bytes) => stores.ports.snapshots.write(name, isDamaging ? bytes.slice(1) : bytes),
  };
  const run = new RoomRun(Object.assign(new Stores(), { ports: { ...stores.ports, snapshots: damaged } }));
  await run.take(...recordsOf("ab"));
  await run.save();
  expect(stores.snapshots.size).toBe(1);
  isDamaging = false;
  await run.save();
  expect([...stores.snapshots.keys()]).toEqual([stores.checkpoint?.snapshot.object]);
});

test("[RMH39] a room whose history does not decode is retried rarely, because there may be many", async () => {
  const stores = new Stores();
  const histories: Stores["ports"]["histories"] = {
    ...stores.ports.histories,
    read: () => Promise.reject(new UndecodableEntry("it does not decode")),
  };
  const run = new RoomRun(Object.assign(new Stores(), { ports: { ...stores.ports, histories } }));
  await run.take(...recordsOf("abcd"));
  await run.save();
  const due = [];
  for (let second = 20; second < 50; second++) {
    run.now = (second * 1_000) as Millis;
    if (!run.room.state.isTrimDue(run.now)) continue;
    due.push(second);
    await run.trim();
  }
  expect(due).toEqual([20, 30, 40]);
});

test("[RMH35] a request for a seq that was not read yet causes no merge", async () => {
  const stores = new Stores();
  let merges = 0;
  const counting: Stores["ports"] = {
    ...stores.ports,
    merging: { merge: (state, edits) => (merges++, Promise.resolve(mergeEdits(state, edits))) },
  };
  const run = new RoomRun(Object.assign(new Stores(), { ports: counting }));
  await run.take(...recordsOf("abc"));
  expect([await run.room.serve("newest", 9e15), merges]).toEqual([{ kind: "loading" }, 0]);
  expect([await run.room.serve("newest", 3), merges]).toMatchObject([{ kind: "snapshot", position: { seq: 3 } }, 1]);
});

test("[RMH40] a room without edits is forgotten early, any other after the idle time of the settings", async () => {
  const options = { documentIdleMsMax: 60_000 };
  const epochRecord: StoredRecord = {
    ...recordsOf("a")[0]!,
    bytes: encodeEpochRecord({ id: "epoch", time: 0 as UnixMillis, epoch: 1 as Epoch, head: 0 as Seq }),
  };
  const blank = new RoomRun(new Stores(), options);
  await blank.take(epochRecord);
  const written = new RoomRun(new Stores(), options);
  await written.take(...recordsOf("ab"));
  await written.saveAndTrim(10_000);
  await written.saveAndTrim(20_000);
  const retiring = (now: number): boolean[] => [blank, written].map(({ room }) => room.state.canRetire(now as Millis, false));
  expect([retiring(10_000), retiring(10_001), retiring(80_001)]).toEqual([
    [false, false],
    [true, false],
    [true, true],
  ]);
});

test("[RMH42] a Yjs client id under which another user writes is counted and reported as an event", async () => {
  const run = new RoomRun(new Stores());
  await run.take(...recordsOf("ab", (seq) => (seq === 1 ? "ann" : "mallory")));
  await run.save();
  expect(run.reported).toMatchObject([{ kind: "yjs_id_disputed", room: "acme.notes", user: "mallory", introducedBy: "ann" }]);
  expect((await run.metrics.disputedYjsIds.get()).values[0]?.value).toBe(1);
});

test("[RMH46] a sweep gives a room the edits that only a lost checkpoint covered", async () => {
  const stores = new Stores();
  const records = (stores.log = recordsOf("abcd"));
  const run = new RoomRun(stores);
  await run.take(...records.slice(0, 2));
  await run.save();
  const earlier = { checkpoint: stores.checkpoint, snapshots: [...stores.snapshots] };
  await run.take(...records.slice(2));
  await run.save();
  // The room has left memory, and the stores lose their ends.
  stores.checkpoint = earlier.checkpoint;
  for (const [name, bytes] of earlier.snapshots) stores.snapshots.set(name, bytes);
  const next = new RoomRun(stores);
  expect(await next.served()).toBe("2 ab");
  const position = { after: 40, last: { streamSeq: 40, id: "last" } };
  await next.room.takeMissing(position, () => Promise.resolve(false)); // Others may have the numbers.
  expect(await next.served()).toBe("2 ab");
  await next.room.takeMissing(position, () => Promise.resolve(true));
  expect(await next.served()).toBe("4 abcd");
});

test("[RMH47] a sweep reads no records for a room that is stalled", async () => {
  const stores = new Stores();
  const records = (stores.log = recordsOf("abcd"));
  const run = new RoomRun(stores);
  await run.take(...records.slice(0, 2));
  await run.save();
  stores.snapshots.clear();
  let reads = 0;
  const { read } = stores.ports.log;
  const counted = { ...stores.ports, log: { ...stores.ports.log, read: (...range: Parameters<typeof read>) => (reads++, read(...range)) } };
  const next = new RoomRun(Object.assign(stores, { ports: counted }));
  stores.trimmedBefore = records[1]!.streamSeq; // The log no longer has every edit.
  expect(await next.served()).toBe("stalled");
  reads = 0;
  await next.room.takeMissing({ after: 40, last: { streamSeq: 40, id: "last" } }, () => Promise.resolve(true));
  expect(reads).toBe(0);
});
