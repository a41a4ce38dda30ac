import fc from "fast-check";
import * as decoding from "lib0/decoding";
import { expect, test } from "vitest";

import { committedEdits, epoch, date, seqOrStart, userId } from "../../test/wire/arbitraries.ts";
import { almostRight } from "../../test/wire/mutate.ts";
import { bytesOf, hexOf } from "../../test/wire/vectors.ts";
import type { ClientId, Epoch, Seq, UnixMillis, UserId } from "../ids.ts";
import { ownersRecordOf } from "../testing/owners-record.ts";
import { decodeFrame, encodeCommittedFrame } from "../wire/codec.ts";
import { readCommittedEdits } from "../wire/committed-edits.ts";
import { decodeFromOwner } from "./envelope.ts";
import {
  decodeRecord,
  editsBytesOf,
  encodeDeletedRecord,
  encodeEditsRecord,
  encodeEpochRecord,
  epochOf,
  headBefore,
  headOf,
  isDeletedRecord,
  type LogRecord,
  recordIdOf,
  runsOf,
  serverOf,
} from "./record.ts";

const id = fc.string({ maxLength: 40, unit: "grapheme" });
const loneEpochRecord = fc.record({ id, time: date, epoch, head: seqOrStart });
const epochRecord = fc.oneof(
  loneEpochRecord,
  fc.record({ id, time: date, epoch, head: seqOrStart, before: fc.oneof(epoch, fc.constant(0 as Epoch)) }),
);
const deletedRecord = fc.record({ id, time: date });
const editsRecord = fc.record({ id, time: date, edits: committedEdits, user: userId }).map(({ user, ...record }) => ({
  ...record,
  users: new Map(record.edits.edits.map(({ client }, index) => [client, index === 0 ? user : (`user ${client}` as typeof user)])),
}));

function encodeRecord(record: LogRecord): Uint8Array {
  switch (record.kind) {
    case "epoch":
      return encodeEpochRecord(record);
    case "edits":
      return encodeEditsRecord(record);
    case "deleted":
      return encodeDeletedRecord(record);
  }
}

test("[REC1] an epoch record decodes to what was encoded, with the head before it", () => {
  fc.assert(
    fc.property(epochRecord, (written) => {
      const record = ownersRecordOf(encodeEpochRecord(written));
      expect(record).toEqual({ kind: "epoch", ...written });
      expect([epochOf(record), headOf(record)]).toEqual([written.epoch, written.head]);
    }),
  );
});

test("[REC5] an epoch record of an earlier build, without the previous epoch, decodes", () => {
  expect(decodeRecord(bytesOf("01 02 7331 00 03 05"))).toEqual({ kind: "epoch", id: "s1", time: 0, epoch: 3, head: 5 });
  expect(decodeRecord(bytesOf("07 02 7331 00 03 05 02"))).toEqual({ kind: "epoch", id: "s1", time: 0, epoch: 3, head: 5, before: 2 });
});

test("[REC1] a deletion record decodes to what was encoded", () => {
  fc.assert(
    fc.property(deletedRecord, (written) => {
      expect(decodeRecord(encodeDeletedRecord(written))).toEqual({ kind: "deleted", ...written });
    }),
  );
});

test("[REC1] an edits record decodes to what was encoded, and its last edit is the head", () => {
  fc.assert(
    fc.property(editsRecord, (written) => {
      const record = ownersRecordOf(encodeEditsRecord(written));
      expect(record).toMatchObject({ kind: "edits", ...written });
      expect([epochOf(record), headOf(record)]).toEqual([written.edits.epoch, written.edits.firstSeq + written.edits.edits.length - 1]);
    }),
  );
});

test("[REC2] the bytes of edits in a record equal those in a committed frame", () => {
  fc.assert(
    fc.property(editsRecord, (written) => {
      const bytes = encodeEditsRecord(written);
      const record = decodeRecord(bytes);
      if (record?.kind !== "edits") throw new Error("not read as edits");
      expect(editsBytesOf(bytes)).toEqual(record.editsBytes);
      expect(readCommittedEdits(decoding.createDecoder(record.editsBytes))).toEqual(written.edits);
      expect(decodeFrame(encodeCommittedFrame(300, record.editsBytes))).toEqual({ type: "committed", channel: 300, edits: written.edits });
    }),
  );
});

test("[REC6] a record whose users lack one of its writers is refused, and its id names its server", () => {
  const [one, other] = ["onewriteronewrit", "otherwriterother"] as ClientId[] as [ClientId, ClientId];
  const edits = [one, other].map((client) => ({ client, counter: 1, parentSeq: 0 as Seq, payload: new Uint8Array() }));
  const users = new Map([one, other].map((client) => [client, "ann" as UserId]));
  const record = { id: "server-1.7", time: 0 as UnixMillis, users, edits: { epoch: 1 as Epoch, firstSeq: 1 as Seq, edits } };
  expect(serverOf(ownersRecordOf(encodeEditsRecord(record)))).toBe("server-1");
  users.delete(other);
  expect(decodeRecord(encodeEditsRecord(record))).toBeUndefined();
});

test("[REC7] the id and the kind of a record are read without its content, and other bytes have no id", () => {
  fc.assert(
    fc.property(
      fc.oneof(
        epochRecord.map((record): LogRecord => ({ kind: "epoch", ...record })),
        deletedRecord.map((record): LogRecord => ({ kind: "deleted", ...record })),
        editsRecord.map((record): LogRecord => ({ kind: "edits", ...record, editsBytes: new Uint8Array() })),
      ),
      (record) => {
        const bytes = encodeRecord(record);
        expect([recordIdOf(bytes), isDeletedRecord(bytes)]).toEqual([record.id, record.kind === "deleted"]);
        if (record.kind !== "deleted") expect(headBefore(record)).toBe(record.kind === "epoch" ? record.head : record.edits.firstSeq - 1);
      },
    ),
  );
  for (const bytes of [new Uint8Array(), bytesOf("02"), bytesOf("02 05 7331")]) expect(recordIdOf(bytes)).toBe("");
});

test("[REC3] a truncated record, or one with extra bytes, is refused", () => {
  fc.assert(
    fc.property(
      fc.oneof(epochRecord.map(encodeEpochRecord), editsRecord.map(encodeEditsRecord), deletedRecord.map(encodeDeletedRecord)),
      fc.nat(),
      (bytes, cut) => {
        expect(decodeRecord(bytes.subarray(0, cut % bytes.length))).toBeUndefined();
        expect(decodeRecord(Uint8Array.of(...bytes, 0))).toBeUndefined();
      },
    ),
  );
});

test("[REC3] any bytes are refused, or decode to a record that can be encoded again", () => {
  const right = fc.sample(
    fc.oneof(epochRecord.map(encodeEpochRecord), editsRecord.map(encodeEditsRecord), deletedRecord.map(encodeDeletedRecord)),
    { seed: 20261121, numRuns: 60 },
  );
  let accepted = 0;
  for (const bytes of almostRight(20261121, right, 30_000)) {
    const record = decodeRecord(bytes);
    if (record === undefined) continue;
    accepted += 1;
    const again = decodeRecord(encodeRecord(record))!;
    const { editsBytes: _, ...facts } = record.kind === "edits" ? record : { ...record, editsBytes: undefined };
    expect(again, hexOf(bytes)).toMatchObject(facts);
  }
  expect(accepted).toBeGreaterThan(1_000);
});

test("[REC4] a republished record decodes the same in a gateway as in a reader of the log", () => {
  fc.assert(
    fc.property(
      fc.oneof(epochRecord.map(encodeEpochRecord), editsRecord.map(encodeEditsRecord), deletedRecord.map(encodeDeletedRecord)),
      (bytes) => {
        expect(decodeFromOwner(bytes)).toEqual(decodeRecord(bytes));
      },
    ),
  );
});

test("[REC5] the writers of an edits record decode without the payloads, and other records have none", () => {
  const right = [
    ...fc.sample(editsRecord, { numRuns: 50, seed: 20261123 }).map(encodeEditsRecord),
    encodeDeletedRecord({ id: "", time: 0 as UnixMillis }),
  ];
  let read = 0;
  for (const bytes of [...right, ...almostRight(20261123, right, 5_000)]) {
    const record = decodeRecord(bytes);
    if (record === undefined) {
      expect(() => runsOf(bytes)).not.toThrow();
      continue;
    }
    const written = runsOf(bytes)?.runs.flatMap(({ client, counter, count }) =>
      Array.from({ length: count }, (_, index) => [client, counter + index]),
    );
    expect(written).toEqual(record.kind === "edits" ? record.edits.edits.map(({ client, counter }) => [client, counter]) : undefined);
    read += 1;
  }
  expect(read).toBeGreaterThan(200);
});

const C = "10 5a6b335f2d6162636465666748494a4b";
const EDIT = `03 01 01 ${C} 01 00 05 01 00`;

test.each([
  ["", "nothing"],
  ["03 02 7331 00 03 00", "another tag"],
  ["01 02 7331 00 00 00", "epoch 0"],
  ["01 01 ff 00 03 00", "an id that is not UTF-8"],
  [`02 02 7331 00 00 ${EDIT}`, "an edit of nobody"],
  [`02 02 7331 00 01 10 30313233343536373839616263646566 03 616461 ${EDIT}`, "an edit of somebody else"],
  [`02 02 7331 00 ffffffffffffff0f ${C} 03 616461 ${EDIT}`, "2^53 - 1 users"],
  [`02 02 7331 00 01 ${C} 00 ${EDIT}`, "a user of no name"],
  [`02 02 7331 00 01 ${C} 03 616461 03 01 01 ${C} 00`, "no edits"],
])("[REC3] %j is no record: %s", (hex) => {
  expect(decodeRecord(bytesOf(hex))).toBeUndefined();
});
