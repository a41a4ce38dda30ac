/** The findings of a probe about a room, and the metrics that count them. */

import { assertNever } from "../shared/assert.ts";
import type { CloseName } from "../shared/wire/close-codes.ts";
import type { ProbeMetrics } from "./metrics.ts";
import type { ProbeRoomKind } from "./plan.ts";

/**
 * The reason why a connection attempt failed. unreachable: no WebSocket opened. broken: it opened and ended without a
 * close code. Otherwise the name of the gateway's close code.
 */
export type FailureCause = "unreachable" | "broken" | CloseName;

/** Times in milliseconds. */
export type Finding =
  /** Another participant, which was connected all the time, has seen an edit. */
  | { readonly kind: "edit-arrived"; readonly ms: number }
  | { readonly kind: "edit-acknowledged"; readonly ms: number }
  /** A participant has later edits of the room, but not this one. */
  | { readonly kind: "edit-lost" }
  | { readonly kind: "edit-late" }
  /** Unknown whether the edit arrived: a snapshot contains it, or too many edits waited. */
  | { readonly kind: "edit-unjudged" }
  /** The writer of the edit has too many unacknowledged edits. */
  | { readonly kind: "edit-withheld" }
  /** The server withdrew edits that it had delivered. */
  | { readonly kind: "rolled-back" }
  | { readonly kind: "presence-seen"; readonly ms: number }
  /** A newer position was seen instead of this one. */
  | { readonly kind: "presence-overtaken" }
  /** From PING to PONG. */
  | { readonly kind: "round-trip"; readonly ms: number }
  /** From the request for a socket. */
  | { readonly kind: "first-message"; readonly ms: number }
  | { readonly kind: "connect-failed"; readonly cause: FailureCause }
  /** From the loss of the room until the participant has all edits of it again. */
  | { readonly kind: "returned"; readonly ms: number }
  /** The client missed edits and requested them. */
  | { readonly kind: "gap" }
  /** A permanent rejection: an invalid token, or a deleted room. */
  | { readonly kind: "refused" };

export function count(metrics: ProbeMetrics, room: ProbeRoomKind, finding: Finding): void {
  switch (finding.kind) {
    case "edit-arrived":
      return metrics.propagationSeconds.observe({ room }, finding.ms / 1_000);
    case "edit-acknowledged":
      return metrics.ackSeconds.observe({ room }, finding.ms / 1_000);
    case "edit-lost":
      return metrics.lost.inc({ room });
    case "edit-late":
      return metrics.late.inc({ room });
    case "edit-unjudged":
      return metrics.unjudged.inc({ room });
    case "edit-withheld":
      return metrics.withheld.inc({ room });
    case "rolled-back":
      return metrics.rolledBack.inc({ room });
    case "presence-seen":
      return metrics.presenceSeconds.observe({ room }, finding.ms / 1_000);
    case "presence-overtaken":
      return metrics.presenceOvertaken.inc({ room });
    case "round-trip":
      return metrics.roundTripSeconds.observe({ room }, finding.ms / 1_000);
    case "first-message":
      return metrics.firstMessageSeconds.observe({ room }, finding.ms / 1_000);
    case "connect-failed":
      return metrics.connectFailures.inc({ room, cause: finding.cause });
    case "returned":
      return metrics.reconnectSeconds.observe({ room }, finding.ms / 1_000);
    case "gap":
      return metrics.gaps.inc({ room });
    case "refused":
      return metrics.refused.inc({ room });
    default:
      return assertNever(finding);
  }
}
