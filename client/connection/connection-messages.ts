/** What one line to the server hears, and what it answers with. */

import type { Millis } from "../../shared/ids.ts";
import type { ClientFrame, JoinRefusal, Limits, ServerFrame, UnknownFrame } from "../../shared/wire/frames.ts";
import type { NetworkNews } from "../ports.ts";
import type { Problem, Refusal } from "../room/problems.ts";

export type ConnectionInput =
  | { kind: "connect" }
  | { kind: "disconnect" }
  | { kind: "token"; token: string }
  /** `how`: what the function did, as a sentence goes on after it. */
  | { kind: "token-failed"; how: string; cause: unknown }
  | { kind: "socket-opened" }
  /** `why`, `retryAfterMs`: what the platform says of it. */
  | { kind: "socket-closed"; code: number; why?: string | undefined; retryAfterMs?: number | undefined }
  /** The platform opens no socket to this URL from here. */
  | { kind: "socket-forbidden" }
  /** Undefined: bytes that are no frame. Unknown frames count as a sign of life. */
  | { kind: "frame"; frame: ServerFrame | UnknownFrame | undefined }
  /** Whether what was sent has arrived. */
  | { kind: "ask-arrival" }
  | { kind: "network"; news: NetworkNews }
  | { kind: "tick" };

export type ConnectionEffect =
  /** Answers to earlier requests for a token no longer count. */
  | { kind: "ask-token" }
  | { kind: "open-socket" }
  | { kind: "close-socket" }
  | { kind: "send"; frame: ClientFrame }
  | { kind: "line-open"; limits: Limits }
  | { kind: "line-lost"; heardAt: Millis }
  /** The gateway goes away: make another connection while this one still holds. */
  | { kind: "move" }
  /** All is well again: the other connection is not needed. */
  | { kind: "stay" }
  | { kind: "refused"; refusal: Refusal }
  | { kind: "problem"; problem: Problem };

/** Between two attempts. `why`: what came of the last, in words for a developer. */
export type Waiting = { readonly why: string; readonly until: Millis };

/**
 * Why there is no connection, in words for a developer, and in how many milliseconds it is tried again. `reason`: the server is reached, and
 * does not let this client into the room for now.
 */
export type Outage = { readonly why: string; readonly retryInMs: number; readonly reason?: JoinRefusal };

/** degraded: connected, but the server cannot reach its other parts: what is sent waits there. */
export type LineStatus = "disconnected" | "stopped" | "waiting" | "connecting" | "connected" | "degraded";
