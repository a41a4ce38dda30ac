import * as decoding from "lib0/decoding";
import * as encoding from "lib0/encoding";
import { expect, test } from "vitest";

import type { ClientId, Epoch, Millis, Seq } from "../../shared/ids.ts";
import { readCommittedEdits, writeCommittedEdits } from "../../shared/wire/committed-edits.ts";
import { Backlog, type BacklogAnswer, BacklogBudget, type BacklogRecord } from "./backlog.ts";

const options = { backlogMsMax: 1_000, backlogBytesMax: 100_000 };
const plenty = () => new BacklogBudget({ bytesMax: 1_000_000 });
const ann = "annannannannann1" as ClientId;
const at = (ms: number) => ms as Millis;
const seqAt = (seq: number) => seq as Seq;

function record(firstSeq: number, count: number, more: { time?: number; payloadBytes?: number } = {}): BacklogRecord {
  const edits = Array.from({ length: count }, (_, index) => ({
    client: ann,
    counter: firstSeq + index,
    parentSeq: 0 as Seq,
    payload: new Uint8Array(more.payloadBytes ?? 3),
  }));
  const bytes = encoding.encode((out) => writeCommittedEdits(out, { epoch: 1 as Epoch, firstSeq: firstSeq as Seq, edits }));
  return { firstSeq: firstSeq as Seq, lastSeq: (firstSeq + count - 1) as Seq, since: at(more.time ?? 0), bytes };
}

function backlogOf(records: readonly BacklogRecord[], more: Partial<typeof options> = {}, budget = plenty()): Backlog {
  const backlog = new Backlog({ ...options, ...more }, budget, (records[0]!.firstSeq - 1) as Seq);
  for (const one of records) backlog.append(one, one.since);
  return backlog;
}

function seqsOf(answer: BacklogAnswer): number[] | string {
  if (answer.kind !== "edits") return answer.kind;
  return answer.parts.flatMap((part) => {
    const { firstSeq, edits } = readCommittedEdits(decoding.createDecoder(part));
    return edits.map((edit, index) => (edit.counter === firstSeq + index ? edit.counter : Number.NaN));
  });
}

test("[BLG1] a range returns exactly its edits, and cuts records at both ends", () => {
  const backlog = backlogOf([record(1, 3), record(4, 4), record(8, 1)]);
  expect(seqsOf(backlog.range(seqAt(0), seqAt(8)))).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  expect(seqsOf(backlog.range(seqAt(5), seqAt(8)))).toEqual([6, 7, 8]);
  expect(seqsOf(backlog.range(seqAt(1), seqAt(5)))).toEqual([2, 3, 4, 5]);
  expect(seqsOf(backlog.range(seqAt(4), seqAt(6)))).toEqual([5, 6]);
  expect(seqsOf(backlog.range(seqAt(8), seqAt(8)))).toEqual([]);
});

test("[BLG2] a complete record is returned as the bytes that the log holds", () => {
  const complete = record(4, 4);
  const answer = backlogOf([record(1, 3), complete]).range(seqAt(3), seqAt(7));
  expect(answer.kind === "edits" && answer.parts[0]).toBe(complete.bytes);
});

test("[BLG3] the oldest records are removed when they are too old, too many for the room or too many for the process", () => {
  const records = Array.from({ length: 10 }, (_, index) => record(index + 1, 1, { time: index * 200 }));
  const byAge = backlogOf(records);
  expect(seqsOf(byAge.range(seqAt(4), seqAt(10)))).toEqual([5, 6, 7, 8, 9, 10]);
  expect(seqsOf(byAge.range(seqAt(3), seqAt(10)))).toBe("older");

  const cost = 200 + records[0]!.bytes.byteLength;
  const byBytes = backlogOf(records, { backlogBytesMax: 3 * cost });
  expect(seqsOf(byBytes.range(seqAt(7), seqAt(10)))).toEqual([8, 9, 10]);
  expect(seqsOf(byBytes.range(seqAt(6), seqAt(10)))).toBe("older");

  const budget = new BacklogBudget({ bytesMax: 2 * cost });
  const byProcess = backlogOf(records, {}, budget);
  expect(seqsOf(byProcess.range(seqAt(8), seqAt(10)))).toEqual([9, 10]);
  expect(budget.bytes).toBe(2 * cost);
  byProcess.clear();
  expect(budget.bytes).toBe(0);
});

test("[BLG6] an idle room's backlog expires", () => {
  const budget = plenty();
  const backlog = backlogOf([record(1, 3)], {}, budget);
  backlog.expire(at(1_001));
  expect(budget.bytes).toBe(0);
  expect(seqsOf(backlog.range(seqAt(1), seqAt(3)))).toBe("older");
  expect(seqsOf(backlog.range(seqAt(3), seqAt(3)))).toEqual([]);
});

test("[BLG7] the range stays correct while thousands of records are added and removed", () => {
  const backlog = new Backlog({ ...options, backlogMsMax: 100 }, plenty(), 0 as Seq);
  for (let seq = 1; seq <= 5_000; seq++) backlog.append(record(seq, 1, { time: seq }), at(seq));
  expect(seqsOf(backlog.range(seqAt(4_899), seqAt(5_000)))).toEqual(Array.from({ length: 101 }, (_, index) => 4_900 + index));
  expect(seqsOf(backlog.range(seqAt(4_898), seqAt(5_000)))).toBe("older");
});
