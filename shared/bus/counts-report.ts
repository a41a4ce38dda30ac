/**
 * How much of what is limited one process has, told to all gateways every second: core NATS, whole each time, so
 * that a lost report is made good by the next and a process that died counts no more after a few silent seconds.
 */

import type { Decoder } from "lib0/decoding";
import * as encoding from "lib0/encoding";

import { readByte, readList, readName, readNumber, readText, readWhole } from "../wire/fields.ts";
import { Tag } from "./tags.ts";

/**
 * ip            connections from one address
 * tenant        connections of one tenant
 * tenant-rooms  open rooms of one tenant; told by room servers, for a room has one owner and many gateways
 * room          members of one room
 * tenant-edits  edits of one tenant in the last second
 * user-faults, address-faults, tenant-faults  points for what went wrong, as they stand
 * full-room     1 for a room that is so far over its budget that it takes nobody new; told by its room server
 */
export const COUNT_KINDS = {
  "ip": 1,
  "tenant": 2,
  "tenant-rooms": 3,
  "room": 4,
  "tenant-edits": 5,
  "user-faults": 6,
  "address-faults": 7,
  "tenant-faults": 8,
  "full-room": 9,
} as const;
export type CountKind = keyof typeof COUNT_KINDS;

export type Count = { readonly kind: CountKind; readonly key: string; readonly count: number };
/** `source`: the gateway or room server whose counts these are. */
export type CountsReport = { readonly source: string; readonly counts: readonly Count[] };

const COUNT_BYTES_MIN = 3;
/** Kind, lengths and number, beside the key. */
const COUNT_OVERHEAD_BYTES = 10;

/** As many of the counts, in their order, as `bytesMax` holds. */
export function encodeCountsReport({ source, counts }: CountsReport, bytesMax: number): Uint8Array {
  let bytes = 0;
  const told = counts.filter(({ key }) => (bytes += key.length + COUNT_OVERHEAD_BYTES) <= bytesMax); // Keys are ASCII.
  return encoding.encode((out) => {
    encoding.writeUint8(out, Tag.countsReport);
    encoding.writeVarString(out, source);
    encoding.writeVarUint(out, told.length);
    for (const { kind, key, count } of told) {
      encoding.writeUint8(out, COUNT_KINDS[kind]);
      encoding.writeVarString(out, key);
      encoding.writeVarUint(out, count);
    }
  });
}

/** Undefined for bytes that are no such report. */
export function decodeCountsReport(bytes: Uint8Array): CountsReport | undefined {
  return readWhole(bytes, (input) =>
    readByte(input) === Tag.countsReport ? { source: readText(input), counts: readList(input, COUNT_BYTES_MIN, readOne) } : undefined,
  );
}

function readOne(input: Decoder): Count {
  return { kind: readName(input, COUNT_KINDS), key: readText(input), count: readNumber(input) };
}
