/** Every value that may be sent, as fast-check arbitraries, for tests that encode and decode. */

import fc from "fast-check";

import {
  type ClientId,
  type Epoch,
  type GatewayId,
  parseUserId,
  type Position,
  type Seq,
  type UnixMillis,
  type UserId,
} from "../../shared/ids.ts";
import type { CommittedEdits, TentativeEdit } from "../../shared/wire/frames.ts";

const URL_SAFE = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"];

/** A number from 0, which is often a limit or a small value. */
export const number = fc.oneof(fc.nat(200), fc.maxSafeNat(), fc.constantFrom(2 ** 31, 2 ** 32, Number.MAX_SAFE_INTEGER));
const positive = number.map((value) => Math.max(1, value));

const urlSafe = (lengths: fc.StringConstraints) => fc.string({ ...lengths, unit: fc.constantFrom(...URL_SAFE) });
export const clientId = urlSafe({ minLength: 16, maxLength: 16 }) as fc.Arbitrary<string> as fc.Arbitrary<ClientId>;
export const gatewayId = urlSafe({ minLength: 1, maxLength: 64 }) as fc.Arbitrary<string> as fc.Arbitrary<GatewayId>;
export const userId = fc
  .string({ minLength: 1, maxLength: 128, unit: "binary" })
  .filter((text) => parseUserId(text) !== undefined) as fc.Arbitrary<string> as fc.Arbitrary<UserId>;

export const seq = positive as fc.Arbitrary<number> as fc.Arbitrary<Seq>;
export const seqOrStart = number as fc.Arbitrary<number> as fc.Arbitrary<Seq>;
export const epoch = positive as fc.Arbitrary<number> as fc.Arbitrary<Epoch>;
export const date = number as fc.Arbitrary<number> as fc.Arbitrary<UnixMillis>;
export const counter = positive;
export const position = fc.record<Position>({ epoch: number as fc.Arbitrary<number> as fc.Arbitrary<Epoch>, seq: seqOrStart });
export const payload = fc.uint8Array({ maxLength: 200 });

/** An edit's counter, and a lower one. */
export const numbering = fc.tuple(counter, number).map(([top, below]) => ({ counter: top, ackedThrough: below % top }));

export const tentativeEdit: fc.Arbitrary<TentativeEdit> = fc
  .record({
    epoch,
    user: userId,
    client: clientId,
    numbering,
    parentSeq: seqOrStart,
    mac: fc.uint8Array({ minLength: 16, maxLength: 16 }),
    payload,
  })
  .map(({ numbering: numbers, ...edit }) => ({ ...edit, ...numbers }));

export const committedEdits: fc.Arbitrary<CommittedEdits> = fc
  .record({
    epoch,
    firstSeq: positive,
    clients: fc.array(clientId, { minLength: 1, maxLength: 4 }),
    edits: fc.array(fc.record({ client: fc.nat(), counter, behind: number, payload }), { minLength: 1, maxLength: 12 }),
  })
  .map(({ epoch: term, firstSeq, clients, edits }) => {
    const first = Math.min(firstSeq, Number.MAX_SAFE_INTEGER - edits.length);
    return {
      epoch: term,
      firstSeq: first as Seq,
      edits: edits.map(({ client, behind, ...edit }, index) => ({
        ...edit,
        client: clients[client % clients.length]!,
        parentSeq: Math.max(0, first + index - 1 - behind) as Seq,
      })),
    };
  });
