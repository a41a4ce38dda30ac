import { Registry } from "prom-client";
import { expect, test } from "vitest";

import type { StoredRecord } from "../../shared/bus/record.ts";
import type { RoomKey, UnixMillis } from "../../shared/ids.ts";
import { documentServiceMetrics } from "../metrics.ts";
import { OnePartition } from "../testing/one-partition.ts";
import type { DocumentRoomHost } from "./room-host.ts";
import { ReadAheadHost, TrimRoundsHost } from "./trim-rounds-host.ts";
import { TrimRounds } from "./trim-rounds.ts";
import type { RoomRange } from "./read-ahead.ts";

const ROOMS = 10;
const RECORDS = 200;
const BYTES = 100;
/** A record takes 512 bytes beside its own. */
const HELD_BYTES = BYTES + 512;

/** Rooms write in turn: the record at `streamSeq` belongs to room `streamSeq % ROOMS`. */
class Rig {
  readonly metrics = documentServiceMetrics(new Registry());
  /** The reads of the log, and the position of the last one. */
  readonly asked: string[] = [];
  askedAfter: number | undefined;
  failing = false;
  /** A replica that answers a read of one room has no records after this one. */
  shownThrough = RECORDS;
  readonly host: ReadAheadHost;
  readonly stopping = new AbortController();

  constructor(options: { trimReadOverlapMin?: number; trimReadBytesMax?: number } = {}) {
    const { ports, deps } = new OnePartition();
    const records = Array.from({ length: RECORDS }, (_, index) => recordOf(index + 1));
    const read = (name: string, after: number, through: number): StoredRecord[] => {
      this.asked.push(name);
      this.askedAfter = after;
      if (this.failing) throw new Error("the log does not answer");
      return records.filter(({ room, streamSeq }) => (name === "all" || room === name) && streamSeq > after && streamSeq <= through);
    };
    const log = {
      ...ports.log,
      read: async function* (this: Rig, room: RoomKey, after: number, through: number) {
        yield* read(room, after, Math.min(through, this.shownThrough));
      }.bind(this),
      readAll: async function* (_: number, after: number, through: number) {
        yield* read("all", after, through);
      },
    };
    this.host = new ReadAheadHost(
      0,
      log,
      { trimReadOverlapMin: 5, trimReadBytesMax: 1_000_000, ...options },
      { log: deps.log, metrics: this.metrics },
    );
  }

  read(...ranges: RoomRange[]): ReturnType<ReadAheadHost["readAhead"]> {
    return this.host.readAhead(ranges, this.stopping.signal);
  }

  async seqs(room: RoomKey, after: number, through: number): Promise<number[]> {
    const seqs: number[] = [];
    for await (const record of this.host.log.read(room, after, through)) {
      expect(record).toEqual(recordOf(record.streamSeq));
      seqs.push(record.streamSeq);
    }
    return seqs;
  }

  async passes(): Promise<unknown[]> {
    return (await this.metrics.trimPasses.get()).values.map(({ labels, value }) => [labels.outcome, value]);
  }
}

const roomAt = (index: number): RoomKey => `acme.${index}` as RoomKey;
const recordOf = (streamSeq: number): StoredRecord => ({
  room: roomAt(streamSeq % ROOMS),
  streamSeq,
  time: 0 as UnixMillis,
  bytes: new Uint8Array(BYTES).fill(streamSeq),
});
const rangeOf = (index: number, after = 0, through = 100 + index): RoomRange => ({
  room: roomAt(index),
  after,
  from: after,
  through,
  records: 10,
});
const allRooms = Array.from({ length: ROOMS }, (_, index) => rangeOf(index));

test("[AHD1] rooms with records in the same part of the log are read in one pass, each completely", async () => {
  const rig = new Rig();
  const { ends, isCut } = await rig.read(...allRooms);
  expect([ends.get(roomAt(3)), ends.size, isCut]).toEqual([103, ROOMS, false]);
  expect(await rig.seqs(roomAt(3), 0, 103)).toEqual([3, 13, 23, 33, 43, 53, 63, 73, 83, 93, 103]);
  expect(await rig.seqs(roomAt(3), 50, 103), "as often as it is asked for, and from anywhere").toEqual([53, 63, 73, 83, 93, 103]);
  expect(rig.asked).toEqual(["all"]);
  expect(await rig.passes()).toEqual([["whole", 1]]);
});

test("[AHD2] reads with another end, an earlier start or a forgotten room come from the log", async () => {
  const rig = new Rig();
  await rig.read(...allRooms.map((range) => ({ ...range, after: 20, from: 20 })));
  expect((await rig.seqs(roomAt(3), 20, 123)).at(-1)).toBe(123);
  expect((await rig.seqs(roomAt(3), 10, 103)).at(0)).toBe(13);
  rig.host.forgetRoom(roomAt(4));
  expect((await rig.seqs(roomAt(4), 20, 104)).at(0)).toBe(24);
  expect(rig.asked).toEqual(["all", roomAt(3), roomAt(3), roomAt(4)]);
});

test("[AHD3] few rooms, and rooms with few records in a long part of the log, are read separately", async () => {
  const rig = new Rig();
  expect((await rig.read(...allRooms.slice(0, 5))).ends.size).toBe(0);
  const rare = Array.from({ length: 100 }, (_, index) => ({ room: roomAt(index), after: 0, from: 0, through: 1_000_000, records: 2 }));
  expect((await rig.read(...rare)).ends.size).toBe(0);
  expect(rig.asked).toEqual([]);
  await rig.read(...rare, ...allRooms.map((range) => ({ ...range, after: 999_900, from: 999_900, through: 1_000_000 })));
  expect(rig.askedAfter, "a pass for others does not begin as early as they do").toBe(999_900);
});

test("[AHD4] a pass reads at most its maximum bytes, and each room is trimmed as far as it was read", async () => {
  const rig = new Rig({ trimReadBytesMax: 35 * HELD_BYTES });
  const { ends, isCut } = await rig.read(...allRooms);
  expect([ends.get(roomAt(5)), ends.get(roomAt(6)), isCut]).toEqual([35, 26, true]);
  expect(await rig.seqs(roomAt(6), 0, 26)).toEqual([6, 16, 26]);
  expect(await rig.passes()).toEqual([["cut", 1]]);
});

test("[AHD5] a room with one record in a cut pass is read separately, and a room that the pass did not reach waits", async () => {
  const few = new Rig({ trimReadBytesMax: 5 * HELD_BYTES });
  expect((await few.read(...allRooms)).ends).toEqual(new Map([6, 7, 8, 9, 0].map((index) => [roomAt(index), "next-round"])));
  const rig = new Rig({ trimReadBytesMax: 15 * HELD_BYTES });
  const { ends } = await rig.read(...allRooms);
  expect([ends.get(roomAt(5)), ends.get(roomAt(6))]).toEqual([15, undefined]);
  expect(await rig.seqs(roomAt(6), 0, 106)).toHaveLength(11);
  expect(rig.asked).toEqual(["all", roomAt(6)]);
});

test("[AHD6] after a failed pass each room is read separately", async () => {
  const rig = new Rig();
  rig.failing = true;
  expect((await rig.read(...allRooms)).ends.size).toBe(0);
  rig.failing = false;
  expect(await rig.seqs(roomAt(3), 0, 103)).toHaveLength(11);
  expect(await rig.passes()).toEqual([["failed", 1]]);
});

test("[AHD7] the records of a pass replace those of the previous pass", async () => {
  const rig = new Rig();
  await rig.read(...allRooms);
  await rig.read(rangeOf(3));
  await rig.seqs(roomAt(3), 0, 103);
  expect(rig.asked).toEqual(["all", roomAt(3)]);
});

test("[AHD8] a room with few records of an earlier run takes part in a pass: its earlier records are read from the log first", async () => {
  const rig = new Rig();
  const { ends } = await rig.read(...allRooms.map((range) => ({ ...range, after: 0, from: 60 })));
  expect(ends.get(roomAt(3))).toBe(103);
  expect(rig.askedAfter).toBe(60);
  expect(await rig.seqs(roomAt(3), 0, 103)).toEqual([3, 13, 23, 33, 43, 53, 63, 73, 83, 93, 103]);
  expect(rig.asked).toEqual(["all", roomAt(3)]);
  expect(await rig.seqs(roomAt(3), 63, 103)).toEqual([73, 83, 93, 103]);
  expect(rig.asked).toEqual(["all", roomAt(3)]);
});

test("[AHD9] a read fails where a lagging replica omits records of an earlier run", async () => {
  const rig = new Rig();
  await rig.read(...allRooms.map((range) => ({ ...range, after: 0, from: 60 })));
  rig.shownThrough = 40;
  await expect(rig.seqs(roomAt(3), 0, 103)).rejects.toThrow("does not show record 63");
  rig.shownThrough = RECORDS;
  expect(await rig.seqs(roomAt(3), 0, 103)).toHaveLength(11);
});

test("[AHD10] a trim begins before another job of its room can begin, also after a trim that took longer than its turn", async () => {
  const { clock } = new OnePartition();
  const began: [room: RoomKey, isSaving: boolean][] = [];
  let isSaving = false;
  const [slow, busy] = [roomAt(1), roomAt(2)];
  const hostOf = (key: RoomKey) => ({
    trimRange: () => Promise.resolve(undefined),
    runJob: async () => {
      began.push([key, isSaving]);
      await clock.advance(key === slow ? 1_000 : 0);
      return true;
    },
  });
  const hosts = new Map([slow, busy].map((key) => [key, hostOf(key) as unknown as DocumentRoomHost]));
  const isTrimDue = (key: RoomKey): boolean => {
    if (key === busy && began.length > 0) queueMicrotask(() => (isSaving = true)); // A save starts in the room when it can.
    return !began.some(([room]) => room === key);
  };
  const rooms = new Map([slow, busy].map((key) => [key, { key, isTrimDue: () => isTrimDue(key) }]));
  const stopping = new AbortController();
  const ahead = new Rig().host;
  const running = new TrimRoundsHost(() => new TrimRounds(rooms, { historySegmentMsMin: 1_000 }), hosts, ahead, clock).run(stopping.signal);
  while (began.length < 2) await clock.advance(100);
  stopping.abort();
  await clock.advance(10_000);
  await running;
  expect(began).toEqual([
    [slow, false],
    [busy, false],
  ]);
});
