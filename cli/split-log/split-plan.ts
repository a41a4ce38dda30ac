/**
 * Decides how `coroom split-log` continues from what the log states, and what belongs into a partition afterwards: pure.
 *
 * Partition p of a log with `to` partitions has only rooms of partition `p % from`, because `to` is a multiple of
 * `from`. So a copy of that one stream contains all its records, with their sequences and times. For example, the rooms
 * of partition 4 of 6 were all in partition 1 of 3. With another number, a stream would need records of several streams,
 * whose sequences overlap.
 */

import type { LogPartitions } from "../../shared/bus/log-partitions.ts";
import { partitionOf, roomOfSubject } from "../../shared/bus/subjects.ts";
import { type Lease, NO_HOLDER } from "../../shared/cluster/lease.ts";

/** Gateways keep reports of this many partitions. */
const PARTITIONS_MAX = 4_096;

export type SplitNumbers = { readonly from: number; readonly to: number };

/** `copy` and `move` complete a split, from its first step or after the copies. `cancel` removes the copies. */
type SplitPlan =
  | { readonly kind: "nothing" }
  | { readonly kind: "refuse"; readonly reason: string }
  | ({ readonly kind: "copy" | "move" | "cancel" } & SplitNumbers);

/** `stated`: undefined if the log does not exist, or does not state a number that this release reads. */
export function planSplit(stated: LogPartitions | undefined, wanted: number): SplitPlan {
  if (stated === undefined)
    return {
      kind: "refuse",
      reason:
        "this environment has no log that states its number of partitions. Set COROOM_ENVIRONMENT and COROOM_NATS_URL to those of the system. A new system needs no split: start it with the number",
    };
  if (stated.kind === "settled") return planNewSplit(stated.count, wanted);
  const { kind, from, to } = stated;
  if (wanted === to) return { kind: kind === "copying" ? "copy" : "move", from, to };
  if (wanted === from && kind === "copying") return { kind: "cancel", from, to };
  const orCancel = kind === "copying" ? `, or cancel it with --log-partitions ${from}` : ". Rooms have moved, so it cannot be cancelled";
  return {
    kind: "refuse",
    reason: `a split from ${from} into ${to} partitions was not completed. Complete it with --log-partitions ${to}${orCancel}`,
  };
}

function planNewSplit(from: number, to: number): SplitPlan {
  if (to === from) return { kind: "nothing" };
  if (to > from && to % from === 0 && to <= PARTITIONS_MAX) return { kind: "copy", from, to };
  const nearest = Math.max(2, Math.ceil(to / from)) * from;
  const instead =
    to > PARTITIONS_MAX || nearest > PARTITIONS_MAX
      ? `set a number up to ${PARTITIONS_MAX}`
      : `set --log-partitions ${nearest}, or another multiple`;
  return {
    kind: "refuse",
    reason: `the log has ${from} partitions, and each can only be split into equally many: the new number must be a multiple of ${from}, not ${to}; ${instead}`,
  };
}

/** The partition that has the records of the rooms of `partition`. */
export function originOf(partition: number, { from }: SplitNumbers): number {
  return partition % from;
}

/** The subjects of the rooms that are in another partition after the split. */
export function strangersIn(subjects: Iterable<string>, partition: number, { to }: SplitNumbers): string[] {
  return [...subjects].filter((subject) => {
    const room = roomOfSubject(subject);
    return room !== undefined && partitionOf(room, to) !== partition;
  });
}

export type CopyState = { readonly messages: number; readonly subjects: number };

/**
 * Nothing is appended to the origin meanwhile, and a copy has the sequences of its origin, so equal counts are equal
 * messages.
 */
export function judgeCopy(origin: CopyState, copy: CopyState): "complete" | "different" {
  return copy.messages === origin.messages && copy.subjects === origin.subjects ? "complete" : "different";
}

/** Rooms whose copy has fewer messages than the origin. `counts`: messages by room. */
export function roomsLacking(origin: ReadonlyMap<string, number>, copy: ReadonlyMap<string, number>): string[] {
  return [...origin].filter(([room, count]) => (copy.get(room) ?? 0) < count).map(([room]) => room);
}

/**
 * The lease of a partition after the split, from that of its origin. Its sequences stay valid. `last` is absent, because
 * that record's room may be in another partition. `said` stays with the origin, because Redis has no sentinel of a new
 * partition.
 */
export function leaseAfter({ floor, said }: Lease, isOrigin: boolean): Lease {
  return { holder: NO_HOLDER, floor, ...(isOrigin && said !== undefined ? { said } : {}) };
}
