/**
 * Which epochs a room's log has had, and where each began: by that it is known of a position whether it is of this log.
 * An epoch orders its edits one behind the other, and no two owners ever have the same: so whoever is in an epoch of
 * the log, and no further than that epoch came, holds what the log holds up to there. Nothing else proves it. An epoch
 * that the log has lost may be higher than one that goes on behind it. Rules EPH1 to EPH10.
 */

import type { Epoch, Position, Seq } from "../ids.ts";
import { epochOf, headBefore, type OwnersRecord } from "./record.ts";

/** In pairs, the oldest first: an epoch, and the seq that its edits come after. Flat, for each room of a process has one. */
export type EpochHistory = readonly number[];

const PAIR = 2;

/** `ahead`, `other-epoch`: it is not of this log, or too old for anybody to know. */
export type Standing = "of-this-log" | "ahead" | "other-epoch";

/**
 * Epochs that are known of a room; 16 bytes each. What lies before can no longer be told from what the log has lost
 * (docs/adr/0037-a-position-is-known-for-months.md).
 */
export const EPOCHS_MAX = 128;

export const NO_EPOCHS: EpochHistory = [];

/** Gateways may still be in one of so many, also where nobody wrote in it. */
const NEWEST_KEPT = 8;

/**
 * With an epoch that begins after `head`. Of too many the oldest without edits goes that is not among the newest, or else
 * the oldest, but never `kept`: that of the checkpoint, where whoever loads its snapshot comes from.
 */
export function withEpoch(history: EpochHistory, epoch: Epoch, head: Seq, kept?: Epoch): EpochHistory {
  if (epoch <= lastEpoch(history)) return history;
  let longer: EpochHistory = history.concat([epoch, head]);
  while (sizeOf(longer) > EPOCHS_MAX) longer = without(longer, oldestWithoutEdits(longer, kept) ?? (epochAt(longer, 0) === kept ? 1 : 0));
  return longer;
}

/** With that of a record which the log has behind all others: of later epochs than its own the log has lost the end. */
export function withNext(history: EpochHistory, record: OwnersRecord, kept?: Epoch): EpochHistory {
  const epoch = epochOf(record);
  let known = history;
  while (lastEpoch(known) > epoch) known = known.slice(0, -PAIR);
  return withEpoch(known, epoch, headBefore(record), kept);
}

/** With those of the records that follow. */
export function withRecords(history: EpochHistory, records: readonly OwnersRecord[]): EpochHistory {
  return records.reduce((known, record) => withEpoch(known, epochOf(record), headBefore(record)), history);
}

/** `head`: the last seq of the log. */
export function standingOf({ epoch, seq }: Position, history: EpochHistory, head: Seq): Standing {
  if (seq === 0) return "of-this-log";
  if (seq > head) return "ahead";
  for (let index = sizeOf(history) - 1; index >= 0; index--)
    if (epochAt(history, index) === epoch) return seq <= (endOf(history, index) ?? head) ? "of-this-log" : "other-epoch";
  return "other-epoch";
}

/** Whether a position of that epoch is older than all that is known, and more was known. */
export function isForgotten(epoch: Epoch, history: EpochHistory): boolean {
  return sizeOf(history) >= EPOCHS_MAX && epoch < epochAt(history, 0);
}

/** Among all but the newest. No edit is of it, so hardly anybody has a position in it. */
function oldestWithoutEdits(history: EpochHistory, kept: Epoch | undefined): number | undefined {
  for (let index = 0; index < sizeOf(history) - NEWEST_KEPT; index++)
    if (beginOf(history, index) === endOf(history, index) && epochAt(history, index) !== kept) return index;
  return undefined;
}

/** The epoch before it ends where it did: there the one behind it is now said to begin. */
function without(history: EpochHistory, index: number): EpochHistory {
  const shorter = history.toSpliced(index * PAIR, PAIR);
  if (index > 0) shorter[index * PAIR + 1] = beginOf(history, index)!;
  return shorter;
}

function sizeOf(history: EpochHistory): number {
  return history.length / PAIR;
}

/** 0, which none is, where there is none. */
function lastEpoch(history: EpochHistory): number {
  return history.at(-PAIR) ?? 0;
}

function epochAt(history: EpochHistory, index: number): number {
  return history[index * PAIR]!;
}

function beginOf(history: EpochHistory, index: number): number | undefined {
  return history[index * PAIR + 1];
}

/** Undefined: it goes on. */
function endOf(history: EpochHistory, index: number): number | undefined {
  return beginOf(history, index + 1);
}
