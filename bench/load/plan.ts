/** What the bench tells a load process, and what that answers, over the channel between parent and child. */

import type { ClientKey, RoomId } from "../../shared/ids.ts";
import type { LatencyPairs } from "./latencies.ts";

/** A room lives in one load process with all its members: so an edit's latencies are taken on one clock. */
export type RoomPlan = { readonly room: RoomId; readonly members: readonly MemberPlan[] };
export type MemberPlan = { readonly gateway: string; readonly token: string; readonly clientKey: ClientKey; readonly writes: boolean };

/**
 * typing   each writer sends on its own schedule, drawn from the seed, whatever the servers do; but what is due while
 *          it has `inFlightMax` edits un-acked is left out
 * window   each writer keeps so many edits un-acked, at most `editsEach` in all
 */
export type Pace =
  | { readonly kind: "typing"; readonly editsPerSecond: number; readonly seed: number; readonly inFlightMax?: number }
  | { readonly kind: "window"; readonly inFlight: number; readonly editsEach?: number };

/** What is sent within `measureMs`, after `warmMs`, counts for the latencies. */
export type Phase = { readonly pace: Pace; readonly warmMs: number; readonly measureMs: number };

export type Command = { kind: "open"; rooms: readonly RoomPlan[] } | { kind: "run"; phase: Phase } | { kind: "close" };

export type Report =
  | { kind: "opened" }
  | { kind: "measuring" }
  | { kind: "measured" }
  /** All that was sent in the phase has been acked and seen by everyone, or the process has failed. */
  | { kind: "ran"; result: PhaseCounts }
  | { kind: "closed"; rooms: readonly RoomCounts[] }
  | { kind: "failed"; reason: string };

export type PhaseCounts = {
  /** Edits that every member of their room got while it was measured. */
  readonly everywhere: number;
  /** Edits got by members other than their author while it was measured. */
  readonly delivered: number;
  /** From the send to the author's ack. */
  readonly acked: LatencyPairs;
  /** From the send to each other member. */
  readonly seen: LatencyPairs;
  readonly cpuSeconds: number;
};

/** What a room held in the end, the same whatever carried it. */
export type RoomCounts = {
  readonly room: RoomId;
  readonly head: number;
  readonly distinctEdits: number;
  readonly sentByWriter: readonly number[];
  readonly members: number;
};
