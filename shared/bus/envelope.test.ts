import fc from "fast-check";
import { expect, test } from "vitest";

import {
  clientId,
  counter,
  date,
  epoch,
  gatewayId,
  number,
  numbering,
  payload,
  position,
  seqOrStart,
  tentativeEdit,
  userId,
} from "../../test/wire/arbitraries.ts";
import { almostRight } from "../../test/wire/mutate.ts";
import { bytesOf, hexOf } from "../../test/wire/vectors.ts";
import { NACK_REASONS, type NackReason, RESYNC_REASONS, type ResyncReason, SAVING_STATES, type SavingState } from "../wire/frames.ts";
import {
  type OwnerReply,
  decodeOwnerReply,
  decodeFromOwner,
  decodeToOwner,
  encodeOwnerReply,
  encodeFromOwner,
  encodeToOwner,
  type OwnerAnnouncement,
  type SubmittedEdit,
  type ToOwner,
} from "./envelope.ts";
import { encodeEpochRecord, type EpochRecord } from "./record.ts";

const namesOf = <Name extends string>(names: Readonly<Record<Name, number>>) => fc.constantFrom(...(Object.keys(names) as Name[]));

const submittedEdit: fc.Arbitrary<SubmittedEdit> = fc
  .record({ author: fc.record({ user: userId, client: clientId }), numbering, parentSeq: seqOrStart, payload })
  .map(({ numbering: numbers, ...edit }) => ({ ...edit, ...numbers }));

const toOwner: fc.Arbitrary<ToOwner> = fc.oneof(
  fc.record({ kind: fc.constant("edits" as const), gateway: gatewayId, edits: fc.array(submittedEdit, { maxLength: 5 }) }),
  fc.record({ kind: fc.constant("catch-up-request" as const), gateway: gatewayId, request: number, after: position, through: seqOrStart }),
  fc.record({ kind: fc.constant("resubmit" as const), gateway: gatewayId, edit: tentativeEdit }),
  fc.record({ kind: fc.constant("first-edit" as const), gateway: gatewayId, edit: submittedEdit }),
  fc.constant({ kind: "check-ownership" as const }),
);

const fromOwner: fc.Arbitrary<OwnerAnnouncement> = fc.oneof(
  fc.record({ kind: fc.constant("deleted" as const), id: fc.string(), time: date }),
  fc.record({ kind: fc.constant("beacon" as const), epoch, head: seqOrStart }),
  fc.record({ kind: fc.constant("tentative" as const), edit: tentativeEdit }),
  fc.record({ kind: fc.constant("saving" as const), epoch, state: namesOf<SavingState>(SAVING_STATES) }),
);

const catchUp = fc.oneof(
  fc.record({ kind: fc.constant("edits" as const), parts: fc.array(payload, { maxLength: 4 }) }),
  fc.record({ kind: fc.constant("resync" as const), reason: namesOf<ResyncReason>(RESYNC_REASONS) }),
);

const answer: fc.Arbitrary<OwnerReply> = fc.oneof(
  fc.record({ kind: fc.constant("catch-up" as const), request: number, epoch, head: seqOrStart, answer: catchUp }),
  fc.record({ kind: fc.constant("acked" as const), epoch, client: clientId, counter, seq: seqOrStart, exact: fc.boolean() }),
  fc.record({
    kind: fc.constant("refused" as const),
    epoch,
    client: clientId,
    counter,
    reason: namesOf<NackReason>(NACK_REASONS),
    expected: counter,
    retryAfterMs: number,
  }),
  fc.record({ kind: fc.constantFrom("not-first" as const, "key-reused" as const), epoch, client: clientId, counter }),
);

const languages = [
  {
    name: "to the owner",
    messages: toOwner as fc.Arbitrary<unknown>,
    encode: encodeToOwner as (message: unknown) => Uint8Array,
    decode: decodeToOwner,
  },
  {
    name: "from the owner",
    messages: fromOwner as fc.Arbitrary<unknown>,
    encode: encodeSaid as (message: unknown) => Uint8Array,
    decode: decodeFromOwner,
  },
  {
    name: "to one gateway",
    messages: answer as fc.Arbitrary<unknown>,
    encode: encodeOwnerReply as (message: unknown) => Uint8Array,
    decode: decodeOwnerReply,
  },
];

/** A record too, because it may consist of bytes that another process chose. */
function encodeSaid(message: OwnerAnnouncement | EpochRecord): Uint8Array {
  return message.kind === "epoch" ? encodeEpochRecord(message) : encodeFromOwner(message);
}

test.each(languages)("[BUS1] a message $name decodes to what was encoded", ({ messages, encode, decode }) => {
  fc.assert(
    fc.property(messages, (message) => {
      expect(decode(encode(message))).toEqual(message);
    }),
    { numRuns: 300 },
  );
});

test.each(languages)("[BUS2] a message $name that is truncated or has extra bytes is refused", ({ messages, encode, decode }) => {
  fc.assert(
    fc.property(messages, fc.nat(), (message, cut) => {
      const bytes = encode(message);
      expect(decode(bytes.subarray(0, cut % bytes.length))).toBeUndefined();
      expect(decode(Uint8Array.of(...bytes, 0))).toBeUndefined();
    }),
  );
});

test.each(languages)(
  "[BUS2] any bytes $name are refused, or decode to a message that can be encoded again",
  ({ messages, encode, decode }) => {
    const right = fc.sample(messages, { seed: 20261121, numRuns: 60 }).map(encode);
    let accepted = 0;
    for (const bytes of almostRight(20261121, right, 20_000)) {
      const message = decode(bytes);
      if (message === undefined) continue;
      accepted += 1;
      expect(decode(encode(message)), hexOf(bytes)).toEqual(message);
    }
    expect(accepted).toBeGreaterThan(1_000);
  },
);

test("[BUS2] a decoder for one direction refuses messages of the other directions", () => {
  fc.assert(
    fc.property(toOwner, fromOwner, answer, (up, out, down) => {
      expect([decodeFromOwner(encodeToOwner(up)), decodeOwnerReply(encodeToOwner(up))]).toEqual([undefined, undefined]);
      expect([decodeToOwner(encodeFromOwner(out)), decodeOwnerReply(encodeFromOwner(out))]).toEqual([undefined, undefined]);
      expect([decodeToOwner(encodeOwnerReply(down)), decodeFromOwner(encodeOwnerReply(down))]).toEqual([undefined, undefined]);
    }),
  );
});

const G = "02 6731";
const C = "10 5a6b335f2d6162636465666748494a4b";

test.each([
  ["", "nothing"],
  ["10 00 00", "a gateway of no name"],
  ["10 03 612e62 00", "a gateway whose name would be two subject tokens"],
  ["10 02 2a3e 00", "a gateway whose name would be a wildcard"],
  [`10 ${G} ffffffffffffff0f`, "2^53 - 1 edits in no bytes"],
  [`10 ${G} 01 03 616461 ${C} 05 05 00 00`, "an edit that is acknowledged already"],
  [`10 ${G} 01 03 616461 ${C} 00 00 00 00`, "an edit with counter 0"],
  [`10 ${G} 01 03 610061 ${C} 05 04 00 00`, "a user with a control character"],
  [`13 ${G}`, "no first edit"],
  [`1f ${G}`, "an unknown tag"],
])("[BUS2] %j to the owner is refused: %s", (hex) => {
  expect(decodeToOwner(bytesOf(hex))).toBeUndefined();
});

test.each([
  ["20 01 01 00 03", "a catch-up that is neither edits nor resync"],
  ["20 01 01 00 00 00", "a resync without a reason"],
  ["20 01 01 00 02 ffffffffffffff0f", "2^53 - 1 parts in no bytes"],
  ["20 01 00 00 02 00", "epoch 0"],
  [`21 01 ${C} 05 06 02`, "neither exact nor not"],
  [`22 01 ${C} 05 00 05 00`, "refused for no reason"],
  [`22 01 ${C} 05 08 05 00`, "refused for an unknown reason"],
])("[BUS2] the answer %j is refused: %s", (hex) => {
  expect(decodeOwnerReply(bytesOf(hex))).toBeUndefined();
});
