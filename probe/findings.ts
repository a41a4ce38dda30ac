/** What a probe finds out about a room, and how it is counted. */

import { assertNever } from "../shared/assert.ts";
import type { CloseName } from "../shared/wire/close-codes.ts";
import type { ProbeMetrics } from "./metrics.ts";
import type { Kind } from "./plan.ts";

/** Why no line came about. unreachable: no WebSocket opened. broken: it did, and closed without a word. Else the name of the gateway's close code. */
export type FailureCause = "unreachable" | "broken" | CloseName;

/** Times in milliseconds. */
export type Finding =
  /** An edit was seen by another participant, whose line stood all the while. */
  | { readonly kind: "edit-arrived"; readonly ms: number }
  | { readonly kind: "edit-acknowledged"; readonly ms: number }
  /** Somebody has all of the room up to behind it, and not the edit. */
  | { readonly kind: "edit-lost" }
  | { readonly kind: "edit-late" }
  /** Whether it arrived cannot be told: a snapshot stands for it, or too many waited to be remembered. */
  | { readonly kind: "edit-unjudged" }
  /** Its writer waits for too many others. */
  | { readonly kind: "edit-withheld" }
  /** The server took back edits that it had delivered. */
  | { readonly kind: "rolled-back" }
  | { readonly kind: "presence-seen"; readonly ms: number }
  /** Something newer was seen instead. */
  | { readonly kind: "presence-overtaken" }
  /** From PING to PONG. */
  | { readonly kind: "round-trip"; readonly ms: number }
  /** From when a socket was asked for. */
  | { readonly kind: "first-message"; readonly ms: number }
  | { readonly kind: "connect-failed"; readonly cause: FailureCause }
  /** From when somebody who was in the room was not any more, until they had all of it again. */
  | { readonly kind: "returned"; readonly ms: number }
  /** The client missed edits in what came, and asked for them. */
  | { readonly kind: "gap" }
  /** For good, as the server says: a token that is none, a room that was deleted. */
  | { readonly kind: "refused" };

export function count(metrics: ProbeMetrics, room: Kind, finding: Finding): void {
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
