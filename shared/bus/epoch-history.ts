/**
 * Which epochs a room's log has had, and where each began: by that it is known of a position whether it is of this log.
 * An epoch orders its edits one behind the other, and no two owners ever have the same: so whoever is in an epoch of
 * the log, and no further than that epoch came, holds what the log holds up to there. Nothing else proves it. An epoch
 * that the log has lost may be higher than one that goes on behind it. Rules EPH1 to EPH9.
 */

import type { Epoch, Position, Seq } from "../ids.ts";
import { epochOf, headBefore, type OwnersRecord } from "./record.ts";

/** In pairs, the oldest first: an epoch, and the seq that its edits come after. Flat, for each room of a process has one. */
export type EpochHistory = readonly number[];

/** `ahead`, `other-epoch`: it is not of this log, or too old for anybody to know. */
export type Standing = "of-this-log" | "ahead" | "other-epoch";

/** Epochs that are known of a room; 16 bytes each. What lies before can no longer be told from what the log has lost. */
export const EPOCHS_MAX = 32;

export const NO_EPOCHS: EpochHistory = [];

/** Gateways may still be in one of so many, also where nobody wrote in it. */
const NEWEST_KEPT = 8;

/**
 * With an epoch that begins after `head`. Of too many the oldest without edits goes that is not among the newest, or else
 * the oldest, but never `kept`: that of the checkpoint, where whoever loads its snapshot comes from.
 */
export function withEpoch(history: EpochHistory, epoch: Epoch, head: Seq, kept?: Epoch): EpochHistory {
  if (epoch <= (history.at(-2) ?? 0)) return history;
  const longer = history.concat([epoch, head]);
  while (longer.length > 2 * EPOCHS_MAX) longer.splice(oldestWithoutEdits(longer, kept) ?? (longer[0] === kept ? 2 : 0), 2);
  return longer;
}

/** With that of a record which the log has behind all others: of later epochs than its own the log has lost the end. */
export function withNext(history: EpochHistory, record: OwnersRecord, kept?: Epoch): EpochHistory {
  const epoch = epochOf(record);
  const lost = history.findIndex((known, index) => index % 2 === 0 && known > epoch);
  return withEpoch(lost < 0 ? history : history.slice(0, lost), epoch, headBefore(record), kept);
}

/** With those of the records that follow. */
export function withRecords(history: EpochHistory, records: readonly OwnersRecord[]): EpochHistory {
  return records.reduce((known, record) => withEpoch(known, epochOf(record), headBefore(record)), history);
}

/** `head`: the last seq of the log. */
export function standingOf({ epoch, seq }: Position, history: EpochHistory, head: Seq): Standing {
  if (seq === 0) return "of-this-log";
  if (seq > head) return "ahead";
  for (let index = history.length - 2; index >= 0; index -= 2) {
    if (history[index] !== epoch) continue;
    return seq <= (history[index + 3] ?? head) ? "of-this-log" : "other-epoch";
  }
  return "other-epoch";
}

/** Whether a position of that epoch is older than all that is known, and more was known. */
export function isForgotten(epoch: Epoch, history: EpochHistory): boolean {
  return history.length >= 2 * EPOCHS_MAX && epoch < history[0]!;
}

/** No edit is of it, so hardly anybody has a position in it. Not the last, which goes on. */
function oldestWithoutEdits(history: EpochHistory, kept: Epoch | undefined): number | undefined {
  for (let index = 0; index < history.length - 2 * NEWEST_KEPT; index += 2)
    if (history[index + 1] === history[index + 3] && history[index] !== kept) return index;
  return undefined;
}
