/**
 * A process's counts for shared limits, sent to all gateways every second. Each report is complete, so the next one
 * replaces a lost one. A dead process no longer counts after a few silent seconds.
 */

import type { Decoder } from "lib0/decoding";
import * as encoding from "lib0/encoding";
import { readByte, readList, readName, readNumber, readText, decodeAll } from "../wire/fields.ts";
import { Tag } from "./record.ts";

/** What is counted, and its number on the wire. */
export const COUNT_KINDS = {
  /** Connections from one address that have not sent a valid token yet. */
  "ip": 1,
  /** Connections of one tenant. */
  "tenant": 2,
  /** Open rooms of one tenant. Room servers report them, because a room has one owner and many gateways. */
  "tenant-rooms": 3,
  /** Members of one room. */
  "room": 4,
  /** Edits of one tenant in the last second. */
  "tenant-edits": 5,
  /** Current abuse points. */
  "user-faults": 6,
  "address-faults": 7,
  "tenant-faults": 8,
  /** 1 for a room so far over its budget that it accepts no new members. Its room server reports it. */
  "full-room": 9,
  /** Connections of one user. */
  "user": 10,
  /** Edits of one user in the last second. */
  "user-edits": 11,
} as const;
export type CountKind = keyof typeof COUNT_KINDS;

export type Count = { readonly kind: CountKind; readonly key: string; readonly count: number };
/** `source`: the gateway or room server that counted. */
export type CountsReport = { readonly source: string; readonly counts: readonly Count[] };

const COUNT_BYTES_MIN = 3;
/** Bytes of the kind, the lengths and the number, without the key. */
const COUNT_OVERHEAD_BYTES = 10;

/** Encodes the first counts that fit `bytesMax`, in order. */
export function encodeCountsReport({ source, counts }: CountsReport, bytesMax: number): Uint8Array {
  let bytes = 0;
  const fitting = counts.filter(({ key }) => (bytes += key.length + COUNT_OVERHEAD_BYTES) <= bytesMax); // Keys are ASCII.
  return encoding.encode((out) => {
    encoding.writeUint8(out, Tag.countsReport);
    encoding.writeVarString(out, source);
    encoding.writeVarUint(out, fitting.length);
    for (const { kind, key, count } of fitting) {
      encoding.writeUint8(out, COUNT_KINDS[kind]);
      encoding.writeVarString(out, key);
      encoding.writeVarUint(out, count);
    }
  });
}

/** Undefined for other bytes. */
export function decodeCountsReport(bytes: Uint8Array): CountsReport | undefined {
  return decodeAll(bytes, (input) =>
    readByte(input) === Tag.countsReport ? { source: readText(input), counts: readList(input, COUNT_BYTES_MIN, readOne) } : undefined,
  );
}

function readOne(input: Decoder): Count {
  return { kind: readName(input, COUNT_KINDS), key: readText(input), count: readNumber(input) };
}
