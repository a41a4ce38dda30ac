/** Decodes what a pass reads of its two streams. */

import { Activity } from "../../shared/bus/activity.ts";
import { decodeJson } from "../../shared/bus/json-messages.ts";
import { decodeRecord, type OwnersRecord, type StoredRecord } from "../../shared/bus/record.ts";
import type { UnixMillis } from "../../shared/ids.ts";
import type { Source } from "./instants.ts";

/** A record or an activity of a room, and how many entries it has. */
export type ReceivedEntry = { readonly streamSeq: number; readonly time: UnixMillis; readonly entries: number } & (
  { readonly source: "edits"; readonly record: OwnersRecord } | { readonly source: "activities"; readonly activity: Activity }
);

/** `nothing`: it has nothing to count. `unreadable`: it is no record, or a newer version wrote it. */
export type DecodedEntry = { readonly kind: "received"; readonly received: ReceivedEntry } | { readonly kind: "nothing" | "unreadable" };

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
