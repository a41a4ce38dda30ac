/** Messages between the bench and a load process, over the channel between parent and child. */

import type { ClientKey, RoomId } from "../../shared/ids.ts";
import type { LatencyPairs } from "../../cli/bench/latencies.ts";

/** All members of a room live in one load process, so one clock measures an edit's latencies. */
export type LoadRoomPlan = { readonly room: RoomId; readonly members: readonly LoadMemberPlan[] };
export type LoadMemberPlan = { readonly gateway: string; readonly token: string; readonly clientKey: ClientKey; readonly writes: boolean };

/**
 * `typing`: each writer sends on its own schedule, drawn from the seed, independently of the servers; a due edit is left
 * out while the writer has `inFlightMax` unacknowledged edits. `window`: each writer keeps `inFlight` edits
 * unacknowledged, at most `editsEach` in all.
 */
export type WritePattern =
  | { readonly kind: "typing"; readonly editsPerSecond: number; readonly seed: number; readonly inFlightMax?: number }
  | { readonly kind: "window"; readonly inFlight: number; readonly editsEach?: number };

/** Latencies count edits sent within `measureMs`, after `warmMs`. */
export type LoadPhase = { readonly pattern: WritePattern; readonly warmMs: number; readonly measureMs: number };

export type LoadCommand = { kind: "open"; rooms: readonly LoadRoomPlan[] } | { kind: "run"; phase: LoadPhase } | { kind: "close" };

export type LoadReport =
  | { kind: "opened" }
  | { kind: "measuring" }
  | { kind: "measured" }
  /** Every edit of the phase has been acked and seen by all members. Otherwise the process has failed. */
  | { kind: "ran"; result: PhaseCounts }
  | { kind: "closed"; rooms: readonly RoomCounts[] }
  | { kind: "failed"; reason: string };

export type PhaseCounts = {
  /** Edits that reached every member of their room during the measurement. */
  readonly everywhere: number;
  /** Receipts by members other than the author during the measurement. */
  readonly delivered: number;
  /** From the send to the author's ack. */
  readonly acked: LatencyPairs;
  /** From the send to each other member's receipt. */
  readonly seen: LatencyPairs;
  readonly cpuSeconds: number;
};

/** Contents of a room at the end, equal for all systems. */
export type RoomCounts = {
  readonly room: RoomId;
  readonly head: number;
  readonly distinctEdits: number;
  readonly sentByWriter: readonly number[];
  readonly members: number;
};
