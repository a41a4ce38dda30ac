/**
 * Decodes the entries of a pass's two streams, and gives each score the time at which it was reached, as one whole
 * number below 2^53. An instant consists of the milliseconds of the log's clock and the order within the millisecond.
 * It depends only on its own stream. So a room's two streams may be counted in any order, or repeatedly, and give the
 * same boards. Instants of edits are even, instants of other activities odd.
 */

import { Activity } from "../../shared/bus/activity.ts";
import { decodeJson } from "../../shared/bus/json-messages.ts";
import { decodeRecord, type OwnersRecord, type StoredRecord } from "../../shared/bus/record.ts";
import type { UnixMillis } from "../../shared/ids.ts";

export const SOURCES = ["edits", "activities"] as const;
export type Source = (typeof SOURCES)[number];

/** If one millisecond has more than half as many entries, the instants of a room run ahead of the clock. */
const PER_MS = 2 ** 11;

/** The instant after `last` of the same source. Instants never decrease, even if the clock does. */
export function instantAfter(last: number, time: UnixMillis, source: Source): number {
  const parity = source === "edits" ? 0 : 1;
  return Math.max(time * PER_MS, Math.floor(last / 2) * 2 + 2) + parity;
}

export function timeOf(instant: number): UnixMillis {
  return Math.floor(instant / PER_MS) as UnixMillis;
}

/** A record or an activity of a room, and how many entries it has. */
export type ReceivedEntry = { readonly streamSeq: number; readonly time: UnixMillis; readonly entries: number } & (
  { readonly source: "edits"; readonly record: OwnersRecord } | { readonly source: "activities"; readonly activity: Activity }
);

/** `nothing`: the entry has nothing to count. `unreadable`: the entry is not a record, or a newer version wrote it. */
type DecodedEntry = { readonly kind: "received"; readonly received: ReceivedEntry } | { readonly kind: "nothing" | "unreadable" };

export function decodeReceived(source: Source, { streamSeq, time, bytes }: StoredRecord): DecodedEntry {
  if (source === "activities") {
    const activity = decodeJson(Activity, bytes);
    return activity === undefined
      ? { kind: "unreadable" }
      : { kind: "received", received: { source, activity, entries: 1, streamSeq, time } };
  }
  const record = decodeRecord(bytes);
  if (record === undefined) return { kind: "unreadable" };
  if (record.kind !== "edits") return { kind: "nothing" };
  return { kind: "received", received: { source, record, entries: record.edits.edits.length, streamSeq, time } };
}
