/** What a pass reads of its two streams, as it is counted. */

import { Activity } from "../../shared/bus/activity.ts";
import { decodeJson } from "../../shared/bus/json-messages.ts";
import { decodeRecord, type OwnersRecord } from "../../shared/bus/record.ts";
import type { StoredRecord } from "../../shared/bus/stored-record.ts";
import type { UnixMillis } from "../../shared/ids.ts";
import type { Source } from "./instants.ts";

/** What one of the two streams has of the room, and how many entries that is. */
export type Received = { readonly streamSeq: number; readonly time: UnixMillis; readonly entries: number } & (
  { readonly source: "edits"; readonly record: OwnersRecord } | { readonly source: "activities"; readonly activity: Activity }
);

/** `nothing`: there is nothing to count in it. `unreadable`: it is no record, or a newer version's. */
export type Decoded = { readonly kind: "received"; readonly received: Received } | { readonly kind: "nothing" | "unreadable" };

export function decodeReceived(source: Source, { streamSeq, time, bytes }: StoredRecord): Decoded {
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
