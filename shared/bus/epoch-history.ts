/**
 * The epochs of a room's log and the seq at which each began. Used to check that a position is in this log. No two
 * owners share an epoch, and an epoch's edits are ordered. So a client whose position is in an epoch of the log, not
 * after that epoch's end, has exactly the log's edits up to there. Nothing else proves it: an epoch that the log lost
 * may be higher than its successor. Rules EPH1 to EPH10.
 */

import type { Epoch, Position, Seq } from "../ids.ts";
import { epochOf, headBefore, type OwnersRecord } from "./record.ts";

/** Pairs, oldest first: an epoch, and the seq before its first edit. A flat array, because each room has one. */
export type EpochHistory = readonly number[];

const PAIR = 2;

/** `ahead`, `other-epoch`: the position is not in this log, or too old to decide. */
type PositionCheck = "of-this-log" | "ahead" | "other-epoch";

/**
 * Epochs remembered per room; 16 bytes each. Older ones cannot be distinguished from epochs that the log lost
 * (docs/adr/0037-known-epochs-limit.md).
 */
export const EPOCHS_MAX = 128;

export const NO_EPOCHS: EpochHistory = [];

/** Kept even without edits, because gateways may still be in one of them. */
const NEWEST_KEPT = 8;

/**
 * Adds an epoch that begins after `head`. If there are too many, removes the oldest epoch without edits, or else the
 * oldest one. Never removes `kept`, the checkpoint's epoch, because clients that load its snapshot have positions in
 * it.
 */
export function withEpoch(history: EpochHistory, epoch: Epoch, head: Seq, kept?: Epoch): EpochHistory {
  if (epoch <= lastEpoch(history)) return history;
  let longer: EpochHistory = history.concat([epoch, head]);
  while (sizeOf(longer) > EPOCHS_MAX) longer = without(longer, oldestWithoutEdits(longer, kept) ?? (epochAt(longer, 0) === kept ? 1 : 0));
  return longer;
}

/** Adds the epoch of the log's newest record. The log has lost the end of any later epoch. */
export function withNext(history: EpochHistory, record: OwnersRecord, kept?: Epoch): EpochHistory {
  const epoch = epochOf(record);
  let known = history;
  while (lastEpoch(known) > epoch) known = known.slice(0, -PAIR);
  return withEpoch(known, epoch, headBefore(record), kept);
}

/** Adds the epochs of the following records. */
export function withRecords(history: EpochHistory, records: readonly OwnersRecord[]): EpochHistory {
  return records.reduce((known, record) => withEpoch(known, epochOf(record), headBefore(record)), history);
}

/** `head`: the last seq of the log. */
export function checkPosition({ epoch, seq }: Position, history: EpochHistory, head: Seq): PositionCheck {
  if (seq === 0) return "of-this-log";
  if (seq > head) return "ahead";
  for (let index = sizeOf(history) - 1; index >= 0; index--)
    if (epochAt(history, index) === epoch) return seq <= (endOf(history, index) ?? head) ? "of-this-log" : "other-epoch";
  return "other-epoch";
}

/** Whether a position in that epoch is older than the remembered history, and epochs were removed. */
export function isForgotten(epoch: Epoch, history: EpochHistory): boolean {
  return sizeOf(history) >= EPOCHS_MAX && epoch < epochAt(history, 0);
}

/** The epoch is not among the newest. It has no edits, so almost no client has a position in it. */
function oldestWithoutEdits(history: EpochHistory, kept: Epoch | undefined): number | undefined {
  for (let index = 0; index < sizeOf(history) - NEWEST_KEPT; index++)
    if (beginOf(history, index) === endOf(history, index) && epochAt(history, index) !== kept) return index;
  return undefined;
}

/** The previous epoch now ends where this one ended, because the next one begins there. */
function without(history: EpochHistory, index: number): EpochHistory {
  const shorter = history.toSpliced(index * PAIR, PAIR);
  if (index > 0) shorter[index * PAIR + 1] = beginOf(history, index)!;
  return shorter;
}

function sizeOf(history: EpochHistory): number {
  return history.length / PAIR;
}

/** 0, which is not an epoch, for an empty history. */
function lastEpoch(history: EpochHistory): number {
  return history.at(-PAIR) ?? 0;
}

function epochAt(history: EpochHistory, index: number): number {
  return history[index * PAIR]!;
}

function beginOf(history: EpochHistory, index: number): number | undefined {
  return history[index * PAIR + 1];
}

/** Undefined: the epoch still continues. */
function endOf(history: EpochHistory, index: number): number | undefined {
  return beginOf(history, index + 1);
}
