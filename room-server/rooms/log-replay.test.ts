import * as decoding from "lib0/decoding";
import { expect, test } from "vitest";

import type { CatchUp } from "../../shared/bus/envelope.ts";
import { encodeEditsRecord, encodeEpochRecord, type OwnersRecord } from "../../shared/bus/record.ts";
import { ownersRecordOf } from "../../shared/testing/owners-record.ts";
import type { ClientId, Epoch, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import { readCommittedEdits } from "../../shared/wire/committed-edits.ts";
import { LogReplay } from "./log-replay.ts";

const ann = "annannannannann1" as ClientId;
const time = 0 as UnixMillis;

function edits(firstSeq: number, count: number, epoch = 1, payloadBytes = 4): OwnersRecord {
  const list = Array.from({ length: count }, (_, index) => ({
    client: ann,
    counter: firstSeq + index,
    parentSeq: 0 as Seq,
    payload: new Uint8Array(payloadBytes),
  }));
  return ownersRecordOf(
    encodeEditsRecord({
      id: `s.${firstSeq}`,
      time,
      users: new Map([[ann, "ann" as UserId]]),
      edits: { epoch: epoch as Epoch, firstSeq: firstSeq as Seq, edits: list },
    }),
  );
}

const claim = (epoch: number, head: number): OwnersRecord =>
  ownersRecordOf(encodeEpochRecord({ id: `c.${epoch}`, time, epoch: epoch as Epoch, head: head as Seq }));

function replay(
  log: readonly OwnersRecord[],
  range: { after: number; epoch?: number; through: number },
  limits: { readBytesMax?: number; readBytes?: number; answerBytesMax?: number } = {},
): CatchUp {
  const reader = new LogReplay({
    after: { epoch: (range.epoch ?? 1) as Epoch, seq: range.after as Seq },
    through: range.through as Seq,
    readBytesMax: limits.readBytesMax ?? Number.POSITIVE_INFINITY,
    readBytes: limits.readBytes ?? 0,
    answerBytesMax: limits.answerBytesMax ?? 100_000,
  });
  const [answer] = log.flatMap((record) => reader.receiveRecord(record) ?? []);
  return answer ?? reader.receiveEnd();
}

function shown(answer: CatchUp): unknown {
  if (answer.kind === "resync") return answer.reason;
  return answer.parts.flatMap((part) => readCommittedEdits(decoding.createDecoder(part)).edits.map(({ counter }) => counter));
}

test("[RPL1] the range is answered from the records that contain it, cut at both ends, across epochs", () => {
  const log = [claim(1, 0), edits(1, 3), edits(4, 3), claim(2, 6), edits(7, 3, 2)];
  expect(shown(replay(log, { after: 0, through: 9 }))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
  expect(shown(replay(log, { after: 4, through: 8 }))).toEqual([5, 6, 7, 8]);
});

test("[RPL2] edits that the log no longer contains are too old, and so is a log that ends early", () => {
  expect(shown(replay([edits(4, 3)], { after: 2, through: 6 }))).toBe("too-old");
  expect(shown(replay([edits(4, 3)], { after: 3, through: 9 }))).toBe("too-old");
  expect(shown(replay([], { after: 0, through: 1 }))).toBe("too-old");
});

test("[RPL3] a position at a later epoch's edit belongs to another log", () => {
  expect(shown(replay([edits(1, 3, 2)], { after: 2, epoch: 1, through: 3 }))).toBe("other-epoch");
});

test("[RPL4] a read is limited if a newer snapshot would help", () => {
  const log = Array.from({ length: 10 }, (_, index) => edits(index + 1, 1, 1, 100));
  expect(shown(replay(log, { after: 8, through: 10 }, { readBytesMax: 500 }))).toBe("too-old");
  expect(shown(replay(log, { after: 8, through: 10 }))).toEqual([9, 10]);
});

test("[RPL5] edits beyond an answer are left for the next request, which receives at least one more edit", () => {
  const log = Array.from({ length: 5 }, (_, index) => edits(index + 1, 1, 1, 100));
  expect(shown(replay(log, { after: 0, through: 5 }, { answerBytesMax: 300 }))).toEqual([1, 2]);
  expect(shown(replay(log, { after: 2, through: 5 }, { answerBytesMax: 300 }))).toEqual([3, 4]);
  expect(shown(replay(log, { after: 4, through: 5 }, { answerBytesMax: 300 }))).toEqual([5]);
  expect(shown(replay(log, { after: 0, through: 5 }, { answerBytesMax: 10 }))).toEqual([1]);
});

test("[RPL6] what earlier questions read counts towards the read limit of the next one", () => {
  const log = Array.from({ length: 2 }, (_, index) => edits(index + 1, 1, 1, 100));
  expect(shown(replay(log, { after: 0, through: 2 }, { readBytesMax: 500, readBytes: 100 }))).toEqual([1, 2]);
  expect(shown(replay(log, { after: 0, through: 2 }, { readBytesMax: 500, readBytes: 400 }))).toBe("too-old");
});
