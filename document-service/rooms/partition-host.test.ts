import { Registry } from "prom-client";
import { expect, test } from "vitest";

import { LogEndLost } from "../../shared/bus/record.ts";
import type { Millis, RoomKey, Seq, TenantId } from "../../shared/ids.ts";
import { NO_HOLDER } from "../../shared/cluster/lease.ts";
import { documentServiceMetrics } from "../metrics.ts";
import { BROKEN, OnePartition } from "../testing/one-partition.ts";
import { deletedRecord, recordsOf, ROOM, RoomRun } from "../testing/one-room.ts";
import { DocumentPartitionHost, type DocumentPartitionPorts } from "./partition-host.ts";

function hostOf({ ports, options, deps }: OnePartition): DocumentPartitionHost {
  return new DocumentPartitionHost(0, ports, options, deps);
}

test("[PTH1] a partition whose lease is lost while one of its rooms does not open is held again later, and released at the end", async () => {
  const rig = new OnePartition();
  const host = hostOf(rig);
  const run = host.run();
  await rig.until(() => host.isHeld);
  rig.setLease("other");
  await rig.until(() => !host.isHeld);
  rig.setLease(NO_HOLDER);
  await rig.until(() => host.isHeld);

  let hasEnded = false;
  void run.then(() => (hasEnded = true));
  host.stop();
  await rig.until(() => hasEnded);
  expect(rig.lease?.holder).toBe(NO_HOLDER);
});

test("[PTH2] a sweep skips a room that does not open", async () => {
  const rig = new OnePartition(...recordsOf("ab"));
  const { stores } = rig;
  const earlier = new RoomRun(stores);
  await earlier.take(...recordsOf("ab"));
  await earlier.save();
  const orphan = `${ROOM}/1-1-older`;
  stores.snapshots.set(orphan, Uint8Array.of(1));
  void hostOf(rig).run();
  await rig.until(() => !stores.snapshots.has(orphan));
  expect([...stores.snapshots.keys()]).toEqual([`${BROKEN}/1-1-older`, stores.checkpoint?.snapshot.object]);
});

test("[PTH3] any number of rooms with undecodable checkpoints leaves all other rooms readable", async () => {
  const [record] = recordsOf("a");
  const broken = Array.from({ length: 100 }, (_, index) => ({ ...record!, room: `${BROKEN}${index}` as RoomKey, streamSeq: index + 1 }));
  const rig = new OnePartition(...broken, { ...record!, streamSeq: 200 });
  const host = hostOf(rig);
  void host.run();
  await rig.until(() => rig.stores.checkpoint?.streamSeq === 200);
  expect(broken.length).toBeGreaterThan(rig.options.documentOpeningsMax);
  expect(rig.lease?.floor).toBe(0);
});

test("[PTH7] rooms with undecodable checkpoints do not count towards the maximum of rooms in memory", async () => {
  const [record] = recordsOf("a");
  const broken = Array.from({ length: 30 }, (_, index) => ({ ...record!, room: `${BROKEN}${index}` as RoomKey, streamSeq: index + 1 }));
  const rig = new OnePartition(...broken, { ...record!, streamSeq: 200 });
  const host = new DocumentPartitionHost(0, rig.ports, { ...rig.options, documentsMax: 10 }, rig.deps);
  void host.run();
  await rig.until(() => rig.stores.checkpoint?.streamSeq === 200);
});

test("[PTH4] deleted rooms with undecodable checkpoints do not delay the saves of other rooms", async () => {
  const [record] = recordsOf("a");
  const broken = Array.from({ length: 10 }, (_, index) => ({ ...deletedRecord(index + 1), room: `${BROKEN}${index}` as RoomKey }));
  const rig = new OnePartition(...broken, { ...record!, streamSeq: 200 });
  void hostOf(rig).run();
  await rig.until(() => rig.stores.checkpoint?.streamSeq === 200);
  expect(broken.length).toBeGreaterThan(rig.options.documentSavesMax);
});

test("[PTH6] a busy room with an undecodable checkpoint does not stop other rooms, and is complete once the checkpoint decodes", async () => {
  const [room, other] = [`${BROKEN}1`, `${BROKEN}2`] as [RoomKey, RoomKey];
  const records = recordsOf("abcdefghijklmnopqrstuvwxyz").map((record) => ({ ...record, room }));
  const bytes = records.reduce((sum, record) => sum + record.bytes.byteLength, 0);
  const rig = new OnePartition(...records, { ...records[0]!, room: other, streamSeq: 1_000 });
  const host = new DocumentPartitionHost(0, rig.ports, { ...rig.options, documentsBytesMax: bytes / 4 }, rig.deps);
  void host.run();
  const read = async () => (await rig.deps.metrics.records.get()).values[0]?.value;
  let last: number | undefined;
  await rig.until(() => (void read().then((records) => (last = records)), last === records.length + 1));
  rig.repaired.add(room);
  await rig.until(() => rig.stores.checkpoint?.streamSeq === records.at(-1)!.streamSeq);
  expect(rig.stores.checkpoint).toMatchObject({ seq: records.length });
  expect(rig.stores.checkpoint?.leftOut).toBeUndefined();
  const served = await host.serve(room, "newest");
  expect(served).toMatchObject({ kind: "snapshot", position: { seq: records.length } });
});

test("[PTH5] each sweep asks the stores to remove the unfinished objects of dead writers", async () => {
  const rig = new OnePartition();
  const swept: string[] = [];
  const sweeping = (store: "snapshots" | "history") => ({ ...rig.ports[store], sweep: () => Promise.resolve(swept.push(store)) });
  const host = new DocumentPartitionHost(
    0,
    { ...rig.ports, snapshots: sweeping("snapshots"), history: sweeping("history") },
    { ...rig.options, documentsSweepMs: 1_000 },
    rig.deps,
  );
  void host.run();
  await rig.until(() => swept.length === 4);
  expect(swept).toEqual(["snapshots", "history", "snapshots", "history"]);
});

/**
 * Runs until the records are read. The returned function stops the host, and expects that the stop waits for nothing
 * that cannot be saved.
 */
async function onceRead(rig: OnePartition, ports: DocumentPartitionPorts, records: number): Promise<() => Promise<void>> {
  const host = new DocumentPartitionHost(0, ports, { ...rig.options, documentsDrainMsMax: 30_000 }, rig.deps);
  let hasEnded = false;
  void host.run().then(() => (hasEnded = true));
  const read = async () => (await rig.deps.metrics.records.get()).values[0]?.value;
  let last: number | undefined;
  await rig.until(() => (void read().then((count) => (last = count)), last === records));
  return async () => {
    const stoppedAt = rig.clock.now();
    host.stop();
    await rig.until(() => hasEnded);
    expect(rig.clock.now() - stoppedAt).toBeLessThan(1_000);
    expect(rig.lease).toEqual({ holder: NO_HOLDER, floor: 0 });
  };
}

test("[PTH8] a room with an undecodable checkpoint does not delay a stop: other rooms are saved, and the next reader reads its records", async () => {
  const [record] = recordsOf("a");
  const rig = new OnePartition({ ...record!, room: `${BROKEN}1` as RoomKey, streamSeq: 1 }, { ...record!, streamSeq: 200 });
  const stopsAtOnce = await onceRead(rig, rig.ports, 2);
  expect(rig.stores.checkpoint).toBeUndefined();
  await stopsAtOnce();
  expect(rig.stores.checkpoint?.streamSeq).toBe(200);
});

test("[PTH9] a room that cannot be merged does not delay a stop", async () => {
  const [record] = recordsOf("a");
  const rig = new OnePartition(record!);
  const merging = { ...rig.ports.merging, merge: () => Promise.resolve("overran" as const) };
  const stopsAtOnce = await onceRead(rig, { ...rig.ports, merging }, 1);
  await stopsAtOnce();
});

test("[PTH10] a room whose snapshot is lost does not delay a stop", async () => {
  const [first, second] = recordsOf("ab");
  const rig = new OnePartition(second!);
  const before = new RoomRun(rig.stores);
  await before.take(first!);
  await before.save();
  rig.stores.snapshots.clear();
  const stopsAtOnce = await onceRead(rig, rig.ports, 1);
  await stopsAtOnce();
});

test("[PTH11] a room whose snapshot is restored has all edits that stayed in the log, in the same run, once a client requests it", async () => {
  const [first, ...rest] = recordsOf("abcdefghijklmnopqrst");
  const rig = new OnePartition(...rest);
  const before = new RoomRun(rig.stores);
  await before.take(first!);
  await before.save();
  const kept = [...rig.stores.snapshots];
  rig.stores.snapshots.clear();
  const host = new DocumentPartitionHost(0, rig.ports, { ...rig.options, stalledBytesMax: 100 }, rig.deps);
  void host.run();
  const observed = { records: 0, heldBytes: 0, stalled: 0 };
  const look = async (): Promise<void> => {
    const { records, heldBytes, stalledRooms } = rig.deps.metrics;
    const [read, held, stalled] = await Promise.all([records.get(), heldBytes.get(), stalledRooms.get()]);
    Object.assign(observed, {
      records: read.values[0]?.value ?? 0,
      heldBytes: held.values[0]?.value ?? 0,
      stalled: stalled.values[0]?.value ?? 0,
    });
  };
  await rig.until(() => (void look(), observed.records === rest.length));
  expect(await host.serve(first!.room, "newest")).toEqual({ kind: "stalled" });
  await rig.until(() => (void look(), observed.stalled === 1 && observed.heldBytes === 0));

  for (const [name, bytes] of kept) rig.stores.snapshots.set(name, bytes);
  await host.serve(first!.room, "newest");
  await rig.until(() => rig.stores.checkpoint?.seq === rest.length + 1);
  expect(rig.stores.checkpoint?.leftOut).toBeUndefined();
});

test("[PTH14] a room whose snapshot is lost is read again from a log that has every record, and saved again", async () => {
  const records = recordsOf("abc");
  const rig = new OnePartition(...records);
  const before = new RoomRun(rig.stores);
  await before.take(...records.slice(0, 2));
  await before.save();
  rig.stores.snapshots.clear();
  rig.lease = { holder: NO_HOLDER, floor: 20 };
  const host = new DocumentPartitionHost(0, rig.ports, rig.options, rig.deps);
  void host.run();
  await rig.until(() => rig.stores.checkpoint?.seq === 3);
  const next = new RoomRun(rig.stores);
  expect(await next.served()).toBe("3 abc");
  expect([rig.stores.checkpoint?.leftOut, rig.stores.snapshots.size]).toEqual([undefined, 1]);
});

test("[PTH12] a room that is forgotten during its deletion is still wiped", async () => {
  const rig = new OnePartition();
  rig.stores.snapshots.clear(); // A sweep would otherwise visit the room of this snapshot.
  let [append, isDeleted] = [(_streamSeq: number): void => {}, false];
  const deletions = { ...rig.ports.deletions, append: () => new Promise<number>((appended) => (append = appended)) };
  const end = () => Promise.resolve({ kind: "at" as const, seq: 1 as Seq }); // The log has an edit that was not read yet.
  const host = new DocumentPartitionHost(0, { ...rig.ports, log: { ...rig.ports.log, end }, deletions }, rig.options, rig.deps);
  void host.run();
  await rig.until(() => host.isHeld);
  const rooms = async () => (await rig.deps.metrics.rooms.get()).values[0]?.value;
  const deleting = host.delete(ROOM);
  let known: number | undefined;
  await rig.until(() => (void rooms().then((value) => (known = value)), known === 1));
  await rig.until(() => (void rooms().then((value) => (known = value)), known === 0));
  append(9);
  void deleting.then((deletion) => deletion.kind === "deleted" && deletion.wiped.then(() => (isDeleted = true)));
  await rig.until(() => isDeleted);
  expect(rig.stores.deleted).toMatchObject({ deleted: true });
  expect(rig.stores.deleted?.wiping).toBeUndefined();
});

test("[PTH13] a room that was not in memory counts for nothing once it is deleted: neither its snapshot nor its history", async () => {
  const rig = new OnePartition();
  const { stores } = rig;
  stores.snapshots.clear(); // Another room's, which would stay in memory.
  const earlier = new RoomRun(stores);
  await earlier.take(...recordsOf(["x".repeat(10_000), "y"]));
  await earlier.save();
  earlier.now = 60_000 as Millis;
  await earlier.trim();
  expect(stores.history.segments).toHaveLength(1);

  const deletions = { ...rig.ports.deletions, append: () => Promise.resolve(30) };
  const host = new DocumentPartitionHost(0, { ...rig.ports, deletions }, { ...rig.options, documentIdleMsMax: 1_000 }, rig.deps);
  void host.run();
  await rig.until(() => host.stored.tenants !== undefined);
  let rooms: number | undefined;
  await rig.until(() => (void rig.deps.metrics.rooms.get().then(({ values }) => (rooms = values[0]?.value)), rooms === 0));
  const bytes = () => host.stored.tenants?.get("acme" as TenantId) ?? 0;
  expect(bytes()).toBeGreaterThan(20_000);
  let isDeleted = false;
  void host.delete(ROOM).then((deletion) => deletion.kind === "deleted" && deletion.wiped.then(() => (isDeleted = true)));
  await rig.until(() => isDeleted);
  await rig.until(() => bytes() === 0);
});

test("[PTH18] a room in memory is measured again after its snapshot is written", async () => {
  const records = recordsOf(["x".repeat(2_000)]);
  const roomBytesMax = records.reduce((sum, { bytes }) => sum + bytes.byteLength, 0) + 1;
  const rig = new OnePartition(...records);
  const host = new DocumentPartitionHost(0, rig.ports, { ...rig.options, roomBytesMax }, rig.deps);
  void host.run();
  await rig.until(() => host.stored.full.has(ROOM));
  expect(host.takeLimitChanges()).toMatchObject([{ room: ROOM, isReached: true }]);
  expect(host.takeLimitChanges()).toEqual([]);
});

test("[PTH15] a record that is gone with its room is reported as information, and a certain loss as an error", async () => {
  for (const isCertain of [true, false]) {
    const rig = new OnePartition();
    const written: string[] = [];
    const note = (level: string) => (_: object, sentence: string) => void written.push(`${level} ${sentence}`);
    let reads = 0;
    const follow: typeof rig.ports.log.follow = async function* (...given) {
      if (++reads === 1) throw new LogEndLost("the record is gone", isCertain);
      yield* rig.ports.log.follow(...given);
    };
    const log = { debug: note("debug"), info: note("info"), warn: note("warn"), error: note("error") };
    const host = new DocumentPartitionHost(0, { ...rig.ports, log: { ...rig.ports.log, follow } }, rig.options, { ...rig.deps, log });
    void host.run();
    await rig.until(() => reads === 2);
    expect(written.filter((line) => line.includes("read again"))).toEqual([
      `${isCertain ? "error" : "info"} the last record is gone: rooms are read again`,
    ]);
    host.stop();
  }
});

test("[PTH21] memory that is full of edits that the log lost does not stop the check that finds the loss", async () => {
  const [first, second, third] = recordsOf("abc");
  const rig = new OnePartition(first!, second!, third!);
  const reads: number[] = [];
  const follow: typeof rig.ports.log.follow = async function* (partition, from, signal) {
    reads.push(from.after);
    if (reads.length === 2) throw new LogEndLost("the record is gone", true);
    if (reads.length === 1) yield* rig.ports.log.follow(partition, from, signal);
    else await new Promise((resolve) => signal.addEventListener("abort", resolve));
  };
  const log = { ...rig.ports.log, follow, at: () => Promise.resolve(undefined) }; // So nothing can be saved.
  const options = { ...rig.options, documentsBytesMax: 1 };
  void new DocumentPartitionHost(0, { ...rig.ports, log }, options, rig.deps).run();
  await rig.until(() => reads.length === 3);
  expect(reads).toEqual([0, first!.streamSeq, 0]);
});

test("[PTH16] a snapshot of this run whose checkpoint is lost before the room's deletion does not outlive the deletion", async () => {
  const rig = new OnePartition(...recordsOf("ab"));
  const { stores } = rig;
  stores.snapshots.clear(); // Another room's.
  const deletions = { ...rig.ports.deletions, append: () => Promise.resolve(30) };
  const options = { ...rig.options, documentsSweepMs: 1_000 };
  const host = new DocumentPartitionHost(0, { ...rig.ports, deletions }, options, rig.deps);
  void host.run();
  await rig.until(() => stores.checkpoint?.seq === 2);
  stores.checkpoint = undefined;
  let isDeleted = false;
  void host.delete(ROOM).then((deletion) => deletion.kind === "deleted" && deletion.wiped.then(() => (isDeleted = true)));
  await rig.until(() => isDeleted);
  expect(stores.snapshots.size).toBe(1);
  await rig.until(() => stores.snapshots.size === 0);
});

test("[PTH17] a sweep leaves the unnamed objects of this run in a room that was saved, because its writer may be about to name them", async () => {
  const rig = new OnePartition(...recordsOf("ab"));
  const { stores } = rig;
  void new DocumentPartitionHost(0, rig.ports, { ...rig.options, documentsSweepMs: 1_000 }, rig.deps).run();
  await rig.until(() => stores.checkpoint?.seq === 2);
  stores.historyRevision = 1; // An entry that names neither.
  const [own, older] = [`${ROOM}/edits-1-1-this-0-1-9`, `${ROOM}/edits-1-1-older`];
  for (const name of [own, older]) stores.objects.set(name, Uint8Array.of(1));
  await rig.until(() => !stores.objects.has(older));
  expect([...stores.objects.keys()]).toContain(own);
});

test("[PTH19] a scrape counts the records that no snapshot covers at that moment, once the partition was held", async () => {
  const records = recordsOf("ab");
  const rig = new OnePartition(...records);
  const registry = new Registry();
  const host = new DocumentPartitionHost(0, rig.ports, rig.options, { ...rig.deps, metrics: documentServiceMetrics(registry) });
  const uncovered = async (): Promise<string | undefined> =>
    /^coroom_documents_uncovered_records\{partition="0"\} (\d+)$/m.exec(await registry.metrics())?.[1];
  expect(await uncovered()).toBeUndefined();
  void host.run();
  await rig.until(() => host.isHeld);
  expect(await uncovered()).toBe(String(records.at(-1)!.streamSeq - records[0]!.streamSeq + 1));
  await rig.until(() => rig.stores.checkpoint !== undefined);
  await rig.clock.advance(1_000);
  expect(await uncovered()).toBe("0");
});

test("[PTH20] a sweep removes the unnamed objects that the same process wrote under an earlier lease", async () => {
  const rig = new OnePartition(...recordsOf("ab"));
  const { stores } = rig;
  const host = new DocumentPartitionHost(0, rig.ports, { ...rig.options, documentsSweepMs: 1_000 }, rig.deps);
  void host.run();
  await rig.until(() => stores.checkpoint?.seq === 2);
  stores.historyRevision = 1; // An entry that names no object.
  const own = `${ROOM}/edits-1-1-this-0-1-9`;
  stores.objects.set(own, Uint8Array.of(1));
  rig.setLease("other");
  await rig.until(() => !host.isHeld);
  rig.setLease(NO_HOLDER);
  await rig.until(() => !stores.objects.has(own));
  host.stop();
});
