import { expect, test } from "vitest";

import type { Checkpoint } from "../../shared/bus/checkpoint.ts";
import { encodeEditsRecord, encodeEpochRecord, type OwnersRecord } from "../../shared/bus/record.ts";
import { ownersRecordOf } from "../../shared/testing/owners-record.ts";
import type { ClientId, Epoch, Millis, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import { BacklogBudget } from "../rooms/backlog.ts";
import { Replica, type ReplicaEffect, type ReplicaInput } from "./replica.ts";

const OPTIONS = { dedupeMsMin: 300_000, writersMax: 100, runsPerWriterMax: 8, backlogMsMax: 300_000, backlogBytesMax: 100_000 };
const MOMENT = { now: 0 as Millis, wallNow: 0 as UnixMillis };
const client = "annannannannann1" as ClientId;

const epoch = (number: number, head: number, before = number - 1): OwnersRecord =>
  ownersRecordOf(
    encodeEpochRecord({ id: `s.e${number}`, time: 0 as UnixMillis, epoch: number as Epoch, head: head as Seq, before: before as Epoch }),
  );
const edits = (first: number, count = 1, of = 1): OwnersRecord =>
  ownersRecordOf(
    encodeEditsRecord({
      id: of === 1 ? `s.${first}` : `later.${first}`,
      time: 0 as UnixMillis,
      users: new Map([[client, "ann" as UserId]]),
      edits: {
        epoch: of as Epoch,
        firstSeq: first as Seq,
        edits: Array.from({ length: count }, (_, index) => ({
          client,
          counter: first + index,
          parentSeq: 0 as Seq,
          payload: new Uint8Array(1),
        })),
      },
    }),
  );
const stored = (record: OwnersRecord, streamSeq: number) => ({ record, streamSeq });

const checkpointAt = (seq: number, streamSeq: number): Checkpoint => ({
  epoch: 1 as Epoch,
  seq: seq as Seq,
  streamSeq,
  time: 0 as UnixMillis,
  clients: [],
  snapshot: { object: "o", bytes: 1, sha256: "s" },
});

function replica() {
  const budget = new BacklogBudget({ bytesMax: 1_000_000 });
  const copy = new Replica(OPTIONS, budget);
  const receive = (...inputs: ReplicaInput[]): ReplicaEffect[] => inputs.flatMap((input) => copy.receiveReplicaInput(input, MOMENT));
  const tickAt = (now: number): ReplicaEffect[] => copy.receiveReplicaInput({ kind: "tick" }, { ...MOMENT, now: now as Millis });
  return { copy, receive, budget, tickAt };
}

/** A replica with the epoch record at 5 and one edit at 7. */
function following() {
  const made = replica();
  made.receive({ kind: "attached" }, { kind: "log-end-read", last: stored(edits(1), 7), checkpoint: undefined });
  made.receive(
    { kind: "log-read", stored: stored(epoch(1, 0), 5) },
    { kind: "log-read", stored: stored(edits(1), 7) },
    { kind: "log-loaded" },
  );
  return made;
}

test("[REP1] a replica is complete once it has everything that the log had when it asked", () => {
  const { receive, copy } = replica();
  expect(receive({ kind: "attached" })).toEqual([{ kind: "read-log-end" }]);
  expect(receive({ kind: "log-end-read", last: stored(edits(1), 7), checkpoint: undefined })).toEqual([
    { kind: "load", after: 0, through: 7 },
  ]);
  expect(
    receive(
      { kind: "log-read", stored: stored(epoch(1, 0), 5) },
      { kind: "log-read", stored: stored(edits(1), 7) },
      { kind: "log-loaded" },
    ),
  ).toEqual([{ kind: "warm" }]);
  expect(copy.take()?.last).toMatchObject({ id: "s.1", streamSeq: 7 });
});

test("[REP2] a replica appends the records that it receives, and a repeated record changes nothing", () => {
  const { receive, copy } = following();
  expect(
    receive(
      { kind: "announced", stored: stored(edits(2, 3), 9) },
      { kind: "announced", stored: stored(edits(2, 3), 9) },
      { kind: "announced", stored: stored(epoch(2, 4), 10) },
    ),
  ).toEqual([]);
  const taken = copy.take();
  expect(taken?.last.streamSeq).toBe(10);
  expect(taken?.loading.head).toBe(4);
});

test("[REP3] a replica reads a gap from the log before it accepts any later record", () => {
  const { receive, copy } = following();
  expect(receive({ kind: "announced", stored: stored(edits(4), 12) })).toEqual([{ kind: "load", after: 6, through: 12 }]);
  expect(receive({ kind: "announced", stored: stored(edits(5), 13) })).toEqual([]);
  const read = [stored(edits(1), 7), stored(edits(2, 2), 11), stored(edits(4), 12)].map((one): ReplicaInput => ({
    kind: "log-read",
    stored: one,
  }));
  expect(receive(...read, { kind: "log-loaded" })).toEqual([{ kind: "load", after: 11, through: 13 }]);
  const rest = [stored(edits(4), 12), stored(edits(5), 13)].map((one): ReplicaInput => ({ kind: "log-read", stored: one }));
  expect(receive(...rest, { kind: "log-loaded" })).toEqual([{ kind: "warm" }]);
  expect(copy.take()?.loading.head).toBe(5);
});

test("[REP4] a replica reads the log after the owner's beacon shows a lost tail, and after a reconnect", () => {
  const { receive } = following();
  expect(receive({ kind: "beacon", head: 1 as Seq })).toEqual([]);
  expect(receive({ kind: "beacon", head: 2 as Seq })).toEqual([{ kind: "read-log-end" }]);
  expect(receive({ kind: "log-end-read", last: stored(edits(1), 7), checkpoint: undefined })).toEqual([{ kind: "warm" }]);
  expect(receive({ kind: "attached" })).toEqual([{ kind: "read-log-end" }]);
});

test("[REP5] a replica of records that the log has lost starts again", () => {
  const { receive, copy } = following();
  receive({ kind: "attached" });
  expect(receive({ kind: "log-end-read", last: stored(epoch(1, 0), 5), checkpoint: undefined })).toEqual([
    { kind: "load", after: 0, through: 5 },
  ]);
  receive({ kind: "log-read", stored: stored(epoch(1, 0), 5) }, { kind: "log-loaded" });
  expect(copy.take()).toMatchObject({ last: { streamSeq: 5 } });
});

test("[REP6] a replica that could not read tries again, and releases its memory when it is dropped", () => {
  const { receive, copy, budget } = replica();
  receive({ kind: "attached" }, { kind: "failed" });
  expect(receive({ kind: "tick" })).toEqual([{ kind: "read-log-end" }]);
  // Trimmed between the two reads, so that seq 2 is missing.
  receive({ kind: "log-end-read", last: stored(edits(3), 9), checkpoint: undefined }, { kind: "log-read", stored: stored(edits(3), 9) });
  expect(receive({ kind: "log-loaded" })).toEqual([]);
  expect(copy.isWarm).toBe(false);
  expect(copy.take()).toBeUndefined();
  expect(budget.bytes).toBe(0);
});

test("[REP7] a record that follows lost edits by seq, in another epoch, is not added: the replica's own last record must be found first", () => {
  const { receive, copy, budget } = following();
  receive({ kind: "announced", stored: stored(edits(2, 3), 9) });
  // The log has lost seqs 2 to 4, and epoch 2 has ordered other edits in their place. Only its last edit is announced.
  expect(receive({ kind: "announced", stored: stored(edits(5, 1, 2), 14) })).toEqual([{ kind: "load", after: 8, through: 14 }]);
  const log = [stored(epoch(2, 1), 10), stored(edits(2, 3, 2), 12), stored(edits(5, 1, 2), 14)];
  const read = log.map((one): ReplicaInput => ({ kind: "log-read", stored: one }));
  expect(receive(...read, { kind: "log-loaded" })).toEqual([]);
  expect([copy.isWarm, budget.bytes]).toEqual([false, 0]);
  expect(receive({ kind: "tick" })).toEqual([{ kind: "read-log-end" }]);
  expect(receive({ kind: "log-end-read", last: log[2], checkpoint: undefined })).toEqual([{ kind: "load", after: 0, through: 14 }]);
});

test("[REP8] a record in the place of lost edits is not skipped as known", () => {
  const { receive } = following();
  receive({ kind: "announced", stored: stored(edits(2, 3), 9) });
  expect(receive({ kind: "announced", stored: stored(edits(2, 1, 2), 14) })).toEqual([{ kind: "load", after: 8, through: 14 }]);
  const inItsPlace = following();
  expect(inItsPlace.receive({ kind: "announced", stored: stored(epoch(2, 0), 6) })).toEqual([{ kind: "read-log-end" }]);
  expect(inItsPlace.budget.bytes).toBe(0);
});

test.each([
  ["an epoch before it other than the replica's", epoch(3, 1, 2)],
  ["a seq before it other than the replica's", epoch(2, 2, 1)],
  [
    "no epoch before it, as an earlier version wrote it",
    ownersRecordOf(encodeEpochRecord({ id: "s.e2", time: 0 as UnixMillis, epoch: 2 as Epoch, head: 1 as Seq })),
  ],
])("[REP9] an epoch record with %s is read from the log after the replica's own record", (_, begins) => {
  const { receive, copy } = following();
  expect(receive({ kind: "announced", stored: stored(begins, 9) })).toEqual([{ kind: "load", after: 6, through: 9 }]);
  const log = [stored(edits(1), 7), stored(epoch(2, 1), 8), stored(begins, 9)];
  expect(receive(...log.map((one): ReplicaInput => ({ kind: "log-read", stored: one })), { kind: "log-loaded" })).toEqual([
    { kind: "warm" },
  ]);
  expect(copy.take()?.last.streamSeq).toBe(9);
});

test("[REP10] another record with the stream sequence of the replica's last record is no repeat: the log has lost that one", () => {
  const { receive } = following();
  receive({ kind: "announced", stored: stored(epoch(2, 1, 1), 8) }, { kind: "announced", stored: stored(edits(2, 1, 2), 9) });
  expect(receive({ kind: "announced", stored: stored(edits(2, 1), 8) })).toEqual([]);
  expect(receive({ kind: "announced", stored: stored(edits(3, 1), 9) })).toEqual([{ kind: "read-log-end" }]);
});

test("[REP11] a replica is not proven by a log that lacks records which a checkpoint covers", () => {
  const lookedAt = (streamSeq: number) => {
    const { receive, copy } = following();
    receive({ kind: "attached" }, { kind: "log-end-read", last: stored(edits(1), 7), checkpoint: checkpointAt(3, streamSeq) });
    return copy.take()?.last;
  };
  expect(lookedAt(7)).toMatchObject({ id: "s.1", streamSeq: 7 });
  expect(lookedAt(9), "it begins again at the checkpoint, and has no record yet").toBeUndefined();
});

test("[REP12] a replica that missed announcements while it read the log is not complete until it has read again", () => {
  const { receive } = replica();
  receive({ kind: "attached" }, { kind: "log-end-read", last: stored(edits(1), 7), checkpoint: undefined });
  expect(receive({ kind: "attached" })).toEqual([]); // The connection was lost meanwhile.
  receive({ kind: "log-read", stored: stored(epoch(1, 0), 5) }, { kind: "log-read", stored: stored(edits(1), 7) });
  expect(receive({ kind: "log-loaded" })).toEqual([{ kind: "read-log-end" }]);
  expect(receive({ kind: "log-end-read", last: stored(edits(1), 7), checkpoint: undefined })).toEqual([{ kind: "warm" }]);
});

test("[REP13] the replica of a room whose log is completely covered by a checkpoint knows the owner, and is complete", () => {
  const { receive, copy } = replica();
  receive({ kind: "attached" });
  expect(receive({ kind: "log-end-read", last: stored(edits(3), 9), checkpoint: checkpointAt(3, 9) })).toEqual([{ kind: "warm" }]);
  expect(copy.writer).toBe("s");
  expect(copy.take()?.last).toMatchObject({ id: "s.3", streamSeq: 9, head: 3 });
});

test("[REP14] a replica that lacks an edit starts again from the newest checkpoint, and releases what it had loaded", () => {
  const { receive, copy, budget } = replica();
  receive({ kind: "attached" }, { kind: "log-end-read", last: stored(edits(3), 9), checkpoint: undefined });
  receive({ kind: "log-read", stored: stored(edits(3), 9) }, { kind: "log-loaded" });
  expect(budget.bytes).toBeGreaterThan(0);
  expect(receive({ kind: "tick" })).toEqual([{ kind: "read-log-end" }]);
  expect(receive({ kind: "log-end-read", last: stored(edits(3), 9), checkpoint: checkpointAt(2, 8) })).toEqual([
    { kind: "load", after: 8, through: 9 },
  ]);
  expect(budget.bytes).toBe(0);
  expect(receive({ kind: "log-read", stored: stored(edits(3), 9) }, { kind: "log-loaded" })).toEqual([{ kind: "warm" }]);
  expect(copy.take()?.loading.head).toBe(3);
});

test("[REP15] a replica of a log that ends before the announced record tries again only at the next tick", () => {
  const { receive } = replica();
  receive({ kind: "attached" }, { kind: "log-end-read", last: stored(edits(2), 9), checkpoint: undefined });
  const read = [stored(epoch(1, 0), 5), stored(edits(1), 7)].map((one): ReplicaInput => ({ kind: "log-read", stored: one }));
  expect(receive(...read, { kind: "log-loaded" })).toEqual([]);
  expect(receive({ kind: "tick" })).toEqual([{ kind: "read-log-end" }]);
});

test("[REP16] a replica drops edits that are too old for a catch-up, although no announcement arrives", () => {
  const { budget, tickAt } = following();
  tickAt(OPTIONS.backlogMsMax);
  expect(budget.bytes).toBeGreaterThan(0);
  tickAt(OPTIONS.backlogMsMax + 1);
  expect(budget.bytes).toBe(0);
});
