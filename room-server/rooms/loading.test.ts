import { expect, test } from "vitest";

import type { Checkpoint } from "../../shared/bus/checkpoint.ts";
import { checkPosition } from "../../shared/bus/epoch-history.ts";
import { encodeEditsRecord, encodeEpochRecord, type OwnersRecord } from "../../shared/bus/record.ts";
import { ownersRecordOf } from "../../shared/testing/owners-record.ts";
import type { ClientId, Epoch, Millis, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import { BacklogBudget } from "./backlog.ts";
import { isFirstBehind, Loading } from "./loading.ts";

const ann = "annannannannann1" as ClientId;
const bob = "bobbobbobbobbob1" as ClientId;
const now = 1_000 as Millis;
/** The epoch of the new owner. */
const EPOCH = 50 as Epoch;
const claimedAt = { now, wallNow: 1_000 as UnixMillis };
const options = { dedupeMsMin: 1_000, writersMax: 100, runsPerWriterMax: 8, backlogMsMax: 1_000, backlogBytesMax: 100_000 };

function edits(firstSeq: number, authors: readonly (readonly [ClientId, number])[], time = 1_000): OwnersRecord {
  const users = new Map(authors.map(([client]) => [client, "someone" as UserId]));
  const list = authors.map(([client, counter]) => ({ client, counter, parentSeq: 0 as Seq, payload: new Uint8Array(3) }));
  return ownersRecordOf(
    encodeEditsRecord({
      id: `s.${firstSeq}`,
      time: time as UnixMillis,
      users,
      edits: { epoch: 1 as Epoch, firstSeq: firstSeq as Seq, edits: list },
    }),
  );
}

function checkpoint(seq: number, clients: readonly (readonly [ClientId, number, number])[]): Checkpoint {
  return {
    epoch: 1 as Epoch,
    seq: seq as Seq,
    streamSeq: seq,
    time: 0 as UnixMillis,
    clients: clients.map(([client, counter, at]) => ({
      client,
      user: "someone" as UserId,
      counter,
      seq: at as Seq,
      lastSeen: 0 as UnixMillis,
    })),
    snapshot: { object: "o", bytes: 1, sha256: "s" },
  };
}

function load(
  from: Checkpoint | undefined,
  log: readonly OwnersRecord[],
  head: number,
  budget = new BacklogBudget({ bytesMax: 1_000_000 }),
) {
  const loading = new Loading(from, options, budget, now);
  for (const record of log) loading.receiveRecord(record, claimedAt);
  return loading.receiveEnd(EPOCH, head as Seq, now);
}

test("[LOD1] every writer's progress is restored, from the checkpoint and from the log after it", () => {
  const { sequencer, hole } = load(
    checkpoint(2, [
      [ann, 1, 1],
      [bob, 1, 2],
    ]),
    [
      edits(3, [
        [ann, 2],
        [ann, 3],
      ]),
    ],
    4,
  );
  expect(hole).toBeUndefined();
  expect(sequencer.head).toBe(4);
  expect(sequencer.placeOf(ann, 3, 0, new Uint8Array(3), now)).toEqual({ kind: "committed", seq: 4, exact: true });
  expect(sequencer.placeOf(bob, 1, 0, new Uint8Array(3), now)).toEqual({ kind: "committed", seq: 2, exact: true });
  expect(sequencer.placeOf(bob, 2, 0, new Uint8Array(3), now)).toEqual({ kind: "next" });
});

test("[LOD2] records that the checkpoint covers are skipped", () => {
  const { sequencer, backlog, hole } = load(checkpoint(2, []), [edits(1, [[ann, 1]]), edits(2, [[ann, 2]]), edits(3, [[ann, 3]])], 3);
  expect(hole).toBeUndefined();
  expect(sequencer.head).toBe(3);
  expect(backlog.range(2 as Seq, 3 as Seq)).toMatchObject({ kind: "edits", parts: [expect.any(Uint8Array)] });
});

test("[LOD3] edits that neither the checkpoint nor the log contains are a hole, at the start, in the middle and at the end", () => {
  expect(load(undefined, [edits(3, [[ann, 3]])], 3).hole).toEqual({ after: 0, before: 3 });
  expect(load(undefined, [edits(1, [[ann, 1]]), edits(4, [[ann, 4]])], 4).hole).toEqual({ after: 1, before: 4 });
  expect(load(undefined, [edits(1, [[ann, 1]])], 5).hole).toEqual({ after: 1, before: 6 });
});

test("[LOD4] after a hole the seqs continue where the log continues, and the backlog begins there", () => {
  const { sequencer, backlog } = load(undefined, [edits(1, [[ann, 1]]), edits(4, [[ann, 4]])], 4);
  expect(sequencer.head).toBe(4);
  expect(backlog.range(0 as Seq, 4 as Seq)).toEqual({ kind: "older" });
  expect(load(undefined, [], 7).sequencer.head).toBe(7);
});

test("[LOD5] an abandoned load releases its memory", () => {
  const budget = new BacklogBudget({ bytesMax: 1_000_000 });
  const loading = new Loading(undefined, options, budget, now);
  loading.receiveRecord(edits(1, [[ann, 1]]), claimedAt);
  expect(budget.bytes).toBeGreaterThan(0);
  loading.clear();
  expect(budget.bytes).toBe(0);
});

test("[LOD6] an epoch record that begins before the loaded end is a hole: later records belong to a log that lost its end", () => {
  const begins = (head: number): OwnersRecord => ({
    kind: "epoch",
    id: "s.9",
    time: 1_000 as UnixMillis,
    epoch: 2 as Epoch,
    head: head as Seq,
  });
  expect(
    load(
      undefined,
      [
        edits(1, [
          [ann, 1],
          [ann, 2],
        ]),
        begins(2),
      ],
      2,
    ).hole,
  ).toBeUndefined();
  expect(
    load(
      undefined,
      [
        edits(1, [
          [ann, 1],
          [ann, 2],
        ]),
        begins(1),
        edits(2, [[bob, 1]]),
      ],
      2,
    ).hole,
  ).toEqual({ after: 1, before: 2 });
});

test("[LOD7] the log's epochs are known from the checkpoint on; a checkpoint of an earlier version contains only its own epoch", () => {
  const begins: OwnersRecord = { kind: "epoch", id: "s.9", time: 1_000 as UnixMillis, epoch: 7 as Epoch, head: 3 as Seq };
  const before = { ...checkpoint(2, []), epoch: 5 as Epoch };
  expect(load(before, [begins], 3).epochs).toEqual([5, 2, 7, 3, EPOCH, 3]);
  expect(load({ ...before, epochs: [3, 0, 5, 1] }, [begins], 3).epochs).toEqual([3, 0, 5, 1, 7, 3, EPOCH, 3]);
  expect(load(undefined, [edits(1, [[ann, 1]]), edits(2, [[ann, 2]]), edits(3, [[ann, 3]]), begins], 3).epochs).toEqual([
    1,
    0,
    7,
    3,
    EPOCH,
    3,
  ]);
});

test.each([1, 20, 31, 40])(
  "[LOD8] a client that loads the checkpoint's snapshot belongs to this log, after %i openings without edits",
  (openings) => {
    const from = { ...checkpoint(10, []), epoch: 5 as Epoch };
    const begins = (epoch: number): OwnersRecord => ({
      kind: "epoch",
      id: `s.${epoch}`,
      time: 0 as UnixMillis,
      epoch: epoch as Epoch,
      head: 10 as Seq,
    });
    const log = Array.from({ length: openings }, (_, index) => begins(6 + index));
    expect(checkPosition({ epoch: from.epoch, seq: from.seq }, load(from, log, 10).epochs, from.seq)).toBe("of-this-log");
  },
);

test("[LOD8] edits before a hole are not kept, and writers that are silent for too long are forgotten at the end", () => {
  const budget = new BacklogBudget({ bytesMax: 1_000_000 });
  const loading = new Loading(undefined, options, budget, now);
  loading.receiveRecord(edits(1, [[ann, 1]]), claimedAt);
  loading.receiveRecord(edits(3, [[bob, 1]]), claimedAt);
  const { sequencer } = loading.receiveEnd(EPOCH, 3 as Seq, 2_001 as Millis);
  expect(sequencer.writers).toBe(0);
  loading.clear();
  expect(budget.bytes).toBe(0);
});

test("[LOD9] a record of a server whose date is ahead counts as stored now", () => {
  const { backlog } = load(undefined, [edits(1, [[ann, 1]], 900_000)], 1);
  backlog.expire((now + options.backlogMsMax + 1) as Millis);
  expect(backlog.range(0 as Seq, 1 as Seq)).toEqual({ kind: "older" });
});

test("[LOD10] an epoch record shows that its owner knew the checkpoint only if it is later and begins at the checkpoint's seq", () => {
  const of = { ...checkpoint(4, []), epoch: 3 as Epoch, recordId: "gone.1" };
  const epochAt = (epoch: number, head: number) =>
    ownersRecordOf(
      encodeEpochRecord({ id: `e.${epoch}`, time: 0 as UnixMillis, epoch: epoch as Epoch, head: head as Seq, before: 0 as Epoch }),
    );
  const isFirst = (record: OwnersRecord) => isFirstBehind({ kind: "checkpoint", checkpoint: of }, record);
  expect([epochAt(4, 4), epochAt(3, 4), epochAt(4, 3), epochAt(4, 5)].map(isFirst)).toEqual([true, false, false, false]);
});
