import fc from "fast-check";
import { expect, test } from "vitest";

import { encodeFromOwner } from "../../shared/bus/envelope.ts";
import { decodeRecord, editsBytesOf, encodeEditsRecord, encodeEpochRecord } from "../../shared/bus/record.ts";
import type { ClientId, Epoch, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import { readFromOwner } from "./room-messages.ts";

const clients = ["annannannannann1", "bobbobbobbobbob1", "carolcarolcarol1"] as ClientId[];
const edit = fc.record({
  client: fc.constantFrom(...clients),
  counter: fc.integer({ min: 1, max: 5 }),
  payload: fc.uint8Array({ maxLength: 40 }),
});

function record(firstSeq: number, edits: { client: ClientId; counter: number; payload: Uint8Array }[]): Uint8Array {
  return encodeEditsRecord({
    id: "rs-1.7",
    time: 1 as UnixMillis,
    users: new Map(clients.map((client) => [client, "u" as UserId])),
    edits: { epoch: 3 as Epoch, firstSeq: firstSeq as Seq, edits: edits.map((each) => ({ ...each, parentSeq: 0 as Seq })) },
  });
}

test("[HRD1] the partial reading of a record finds the same authors and bytes as the full one", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1e9 }), fc.array(edit, { minLength: 1, maxLength: 30 }), (firstSeq, edits) => {
      const bytes = record(firstSeq, edits);
      const message = readFromOwner(bytes);
      if (message?.kind !== "committed") throw new Error("not read");
      const { runs, lastSeq } = message.batch;
      const written = runs.flatMap(({ client, counter, seq, count }) =>
        Array.from({ length: count }, (_, index) => [client, counter + index, seq + index]),
      );
      expect(written).toEqual(edits.map(({ client, counter }, index) => [client, counter, firstSeq + index]));
      expect([message.batch.firstSeq, lastSeq]).toEqual([firstSeq, firstSeq + edits.length - 1]);
      expect(message.batch.bytes).toEqual(editsBytesOf(bytes));
    }),
  );
});

test("[HRD2] a truncated or corrupt message is refused without an exception", () => {
  const bytes = record(5, [{ client: clients[0]!, counter: 1, payload: new Uint8Array(9) }]);
  for (let length = 0; length < bytes.length; length++) expect(readFromOwner(bytes.subarray(0, length))).toBeUndefined();
  fc.assert(
    fc.property(fc.nat(bytes.length - 1), fc.nat(255), (at, byte) => {
      const garbled = bytes.slice();
      garbled[at] = byte;
      readFromOwner(garbled);
    }),
  );
});

test("[HRD3] other messages are read completely", () => {
  const beacon = { kind: "beacon", epoch: 3 as Epoch, head: 9 as Seq } as const;
  expect(readFromOwner(encodeFromOwner(beacon))).toEqual(beacon);
  const begins = encodeEpochRecord({ id: "rs-1.1", time: 1 as UnixMillis, epoch: 4 as Epoch, head: 9 as Seq });
  expect(readFromOwner(begins)).toEqual(decodeRecord(begins));
});
