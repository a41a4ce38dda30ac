/**
 * What the first stream of the log states about the number of partitions, as text in its metadata: `3`, or a split that
 * is in progress (`coroom split-log`): `1 to 3` while records are copied, `3 from 1` while rooms move.
 *
 * No process may start during a split. A release that reads only a number refuses both texts too, because neither is
 * one.
 */

import { assertNever } from "../assert.ts";

/**
 * `copying`: the partitions up to `from` have all records, and the others may be removed again. `moving`: each of the
 * `to` partitions has all records of its own rooms, so the split can only be completed.
 */
export type LogPartitions =
  | { readonly kind: "settled"; readonly count: number }
  | { readonly kind: "copying" | "moving"; readonly from: number; readonly to: number };

/** Undefined: no number, or a text of a later release. */
export function parseLogPartitions(text: string): LogPartitions | undefined {
  const [, first, word, second] = /^([1-9]\d{0,8})(?: (to|from) ([1-9]\d{0,8}))?$/.exec(text) ?? [];
  if (first === undefined) return undefined;
  if (word === undefined) return { kind: "settled", count: Number(first) };
  return word === "to"
    ? { kind: "copying", from: Number(first), to: Number(second) }
    : { kind: "moving", from: Number(second), to: Number(first) };
}

export function writeLogPartitions(stated: LogPartitions): string {
  switch (stated.kind) {
    case "settled":
      return String(stated.count);
    case "copying":
      return `${stated.from} to ${stated.to}`;
    case "moving":
      return `${stated.to} from ${stated.from}`;
    default:
      return assertNever(stated);
  }
}

/** Why a process with this number of partitions must not use the log. Undefined: it may. `first`: the name of the stream. */
export function refusalOfPartitions(text: string, first: string, partitions: number): string | undefined {
  const stated = parseLogPartitions(text);
  switch (stated?.kind) {
    case undefined:
      return `the stream ${first} states "${text}" as its number of partitions, which this release cannot read. Start the release that wrote it`;
    case "settled":
      return stated.count === partitions
        ? undefined
        : `the log of this environment has ${stated.count} partitions (the first is ${first}), not ${partitions}. Set COROOM_LOG_PARTITIONS=${stated.count} for every role. To have more partitions, stop the system and run coroom split-log (docs/operations/partitions.md)`;
    case "copying":
      return `the log of this environment is being split from ${stated.from} into ${stated.to} partitions. Run coroom split-log --log-partitions ${stated.to} to complete the split, or coroom split-log --log-partitions ${stated.from} to cancel it, and start this process afterwards`;
    case "moving":
      return `the log of this environment is being split from ${stated.from} into ${stated.to} partitions. Run coroom split-log --log-partitions ${stated.to} to complete the split, and start this process afterwards`;
    default:
      return assertNever(stated);
  }
}

/**
 * Whether a process that started with this number must end. `copying`: not yet, because the split may be cancelled, and
 * meanwhile the log accepts no record.
 */
export function isSplitAway(stated: LogPartitions | undefined, partitions: number): boolean {
  return stated?.kind === "moving" || (stated?.kind === "settled" && stated.count !== partitions);
}
