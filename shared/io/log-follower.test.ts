import { expect, test } from "vitest";

import { encodeDeletedRecord, LogEndLost, placeOf, type ReadPosition, type StoredRecord } from "../bus/record.ts";
import type { RoomKey, UnixMillis } from "../ids.ts";
import { followRecords, type LogReads } from "./log-follower.ts";

const ROOM = "acme.notes" as RoomKey;

function record(streamSeq: number, id = `server.${streamSeq}`): StoredRecord {
  const time = 0 as UnixMillis;
  return { room: ROOM, streamSeq, time, bytes: encodeDeletedRecord({ id, time }) };
}

/** A log that a test changes while it is read. Each rest takes a second, and the test decides what happens in it. */
class TestLog {
  records: StoredRecord[];
  now = 0;

  constructor(...records: readonly StoredRecord[]) {
    this.records = [...records];
  }

  /** Returns the ids of the records read until `rests` rests were made. */
  async read(from: ReadPosition, rests: (rest: number) => void, restsMax = 3, areRecords = true): Promise<number[]> {
    const ending = new AbortController();
    let rested = 0;
    const reads: LogReads = {
      name: "log_0",
      areRecords,
      read: (after) => {
        const records = this.records.filter(({ streamSeq }) => streamSeq > after).slice(0, 2);
        const through = records.at(-1)?.streamSeq ?? after;
        return Promise.resolve({ records, through, isMore: this.records.some(({ streamSeq }) => streamSeq > through) });
      },
      end: () => Promise.resolve(this.records.at(-1)?.streamSeq ?? 0),
      rest: () => {
        this.now += 1_000;
        rests(++rested);
        if (rested >= restsMax) ending.abort();
        return Promise.resolve();
      },
      now: () => this.now,
    };
    const read: number[] = [];
    for await (const { streamSeq } of followRecords(reads, from, ending.signal)) read.push(streamSeq);
    return read;
  }
}

const nothing = (): void => {};

test("[LOGREAD3] a reader reads each record once, and skips trimmed records", async () => {
  const log = new TestLog(record(1), record(2), record(4));
  const grow = (rest: number): void => void (rest === 1 && log.records.push(record(7), record(8), record(9)));
  expect(await log.read({ after: 0 }, grow)).toEqual([1, 2, 4, 7, 8, 9]);
  expect(await log.read({ after: 4, last: placeOf(record(9)) }, nothing)).toEqual([7, 8, 9]);
});

test("[LOGREAD4] a log that has another record at the number of the last record read has lost its end", async () => {
  const log = new TestLog(record(1), record(2), record(3));
  const loseEnd = (): void => void (log.records = [record(1), record(2), record(3, "other.1"), record(4, "other.2")]);
  await expect(log.read({ after: 0 }, loseEnd)).rejects.toMatchObject({ isCertain: true });
  await expect(log.read({ after: 1, last: placeOf(record(3)) }, nothing), "a new holder of the lease").rejects.toThrow(LogEndLost);
});

test("[LOGREAD7] a reader starts again if its last record was removed with its room, because a lost end can look the same", async () => {
  const log = new TestLog(record(1), record(2), record(3));
  const deleteRoom = (): void => void (log.records = [record(1), record(4)]);
  await expect(log.read({ after: 0 }, deleteRoom)).rejects.toMatchObject({
    message: expect.stringMatching(/no longer has record 3, .*: its room was deleted, or the log lost its end/) as string,
    isCertain: false,
  });
});

test("[LOGREAD5] a log that has no record at the last position for 5 s has lost its end; before that a replica may lag", async () => {
  const log = new TestLog(record(1), record(2));
  const whole = log.records;
  const lag = (rest: number): void => void (log.records = rest < 4 ? [record(1)] : [...whole, record(3)]);
  expect(await log.read({ after: 0 }, lag, 6)).toEqual([1, 2, 3]);
  await expect(log.read({ after: 2, last: placeOf(record(2)) }, () => void (log.records = [record(1)]), 9)).rejects.toThrow(LogEndLost);
  log.records = [record(1)];
  expect(await log.read({ after: 2, last: placeOf(record(2)) }, lag, 6), "a new holder of the lease").toEqual([3]);
});

test("[LOGREAD8] messages that are not records may be removed at any time, so the last one is not read again", async () => {
  const log = new TestLog(record(1), record(2));
  const remove = (rest: number): void => void (rest === 1 && (log.records = [record(4)]));
  expect(await log.read({ after: 0 }, remove, 3, false)).toEqual([1, 2, 4]);
});

test("[LOGREAD9] a reader that ends takes no further record of a batch, and waits for other work when enough time has passed", async () => {
  const ending = new AbortController();
  const steps: (string | number)[] = [];
  const reads: LogReads = {
    name: "log_0",
    areRecords: true,
    read: () => Promise.resolve({ records: [record(1), record(2), record(3)], through: 3, isMore: false }),
    end: () => Promise.resolve(3),
    rest: () => Promise.resolve(),
    yieldTime: () => Promise.resolve().then(() => void steps.push("others work")),
    now: () => 0,
  };
  for await (const { streamSeq } of followRecords(reads, { after: 0 }, ending.signal)) {
    steps.push(streamSeq);
    if (streamSeq === 2) ending.abort();
  }
  expect(steps).toEqual([1, "others work", 2, "others work"]);
});

test("[LOGREAD6] a position of an earlier build, without a record, is believed unless the log ends before it", async () => {
  const log = new TestLog(record(1), record(2));
  expect(await log.read({ after: 2 }, nothing)).toEqual([]);
  await expect(log.read({ after: 3 }, nothing)).rejects.toThrow(LogEndLost);
});
