import { expect, test } from "vitest";

import type { Checkpoint } from "../../shared/bus/checkpoint.ts";
import type { Epoch, Seq, UnixMillis } from "../../shared/ids.ts";
import type { DecodedRecord } from "../ports.ts";
import { outcomeByLast, outcomeOfAck } from "./append-outcome.ts";

const record = { id: "s.7", bytes: new Uint8Array(), expectedId: "s.6", expectedStreamSeq: 40 };
const last = (id: string, streamSeq: number): DecodedRecord => ({
  streamSeq,
  record: { kind: "epoch", id, time: 0 as UnixMillis, epoch: 1 as Epoch, head: 0 as Seq },
});

test("[APO1] a mismatch caused by the record itself, appended before, means that the log contains it", () => {
  expect(outcomeByLast(record, last("s.7", 44))).toEqual({ kind: "appended", streamSeq: 44 });
});

test("[APO2] another server's record in the expected place means fenced, and so does an empty log", () => {
  expect(outcomeByLast(record, last("t.1", 44))).toEqual({ kind: "fenced" });
  expect(outcomeByLast(record, undefined)).toEqual({ kind: "fenced" });
});

test("[APO5] a log that lost its end has another record at the expected place: fenced", () => {
  expect(outcomeByLast(record, last("t.1", 40))).toEqual({ kind: "fenced" });
  expect(outcomeByLast(record, last("s.6", 38)), "a restored log has the expected record at another place").toEqual({ kind: "fenced" });
});

test("[APO3] nothing is decided while the expected record is still the last one", () => {
  expect(outcomeByLast(record, last("s.6", 40))).toBeUndefined();
  expect(outcomeByLast({ ...record, expectedId: undefined, expectedStreamSeq: 0 }, undefined)).toBeUndefined();
});

test("[APO10] a checkpoint that covers records after the expected one means fenced: the log lost a later owner's records", () => {
  const covering = (streamSeq: number): Checkpoint => ({
    epoch: 2 as Epoch,
    seq: 0 as Seq,
    streamSeq,
    time: 0 as UnixMillis,
    clients: [],
    snapshot: { object: "o", bytes: 1, sha256: "s" },
  });
  expect(outcomeByLast(record, last("s.6", 40), covering(40))).toBeUndefined();
  expect(outcomeByLast(record, last("s.6", 40), covering(42))).toEqual({ kind: "fenced" });
  expect(outcomeByLast(record, last("s.6", 40), "deleted")).toEqual({ kind: "fenced" });
  expect(outcomeByLast(record, last("s.7", 41), covering(41))).toEqual({ kind: "appended", streamSeq: 41 });
});

test("[APO4] an acknowledged sequence that does not follow the expected one belongs to another log", () => {
  expect(outcomeOfAck(record, 41)).toEqual({ kind: "appended", streamSeq: 41 });
  expect(outcomeOfAck(record, 40)).toEqual({ kind: "fenced" });
  expect(outcomeOfAck(record, 3)).toEqual({ kind: "fenced" });
});
