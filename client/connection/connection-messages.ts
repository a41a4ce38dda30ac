/** Inputs and effects of the connection's state machine. */

import type { Millis } from "../../shared/ids.ts";
import { decodeFrame } from "../../shared/wire/codec.ts";
import {
  type ClientFrame,
  type Frame,
  FrameType,
  type JoinRefusal,
  type Limits,
  type ServerFrame,
  type UnknownFrame,
} from "../../shared/wire/frames.ts";
import type { NetworkChange } from "../ports.ts";
import type { Problem, Refusal } from "../room/problems.ts";

export type ConnectionInput =
  | { kind: "connect" }
  | { kind: "disconnect" }
  | { kind: "token"; token: string }
  /** `how`: the result of the token function, as a clause ("returned an empty text"). */
  | { kind: "token-failed"; how: string; cause: unknown }
  | { kind: "socket-opened" }
  /** `why` and `retryAfterMs`: the platform's report in addition to the close code. */
  | { kind: "socket-closed"; code: number; why?: string | undefined; retryAfterMs?: number | undefined }
  /** The platform forbids a socket to this URL (`ws:` in a page over `https:`). */
  | { kind: "socket-forbidden" }
  /** Undefined: the bytes are not a frame. An unknown frame still shows that the server is alive. */
  | { kind: "frame"; frame: ServerFrame | UnknownFrame | undefined }
  /** Check whether the data sent so far has arrived. */
  | { kind: "ask-arrival" }
  | { kind: "network"; change: NetworkChange }
  | { kind: "tick" };

export type ConnectionEffect =
  /** Answers to earlier requests for a token are ignored from now on. */
  | { kind: "ask-token" }
  | { kind: "open-socket" }
  | { kind: "close-socket" }
  | { kind: "send"; frame: ClientFrame }
  | { kind: "connection-open"; limits: Limits }
  | { kind: "connection-lost"; lastReceivedAt: Millis }
  /** The gateway will stop: open another connection while this one still works. */
  | { kind: "move" }
  /** The error is over: the other connection is not needed. */
  | { kind: "stay" }
  | { kind: "refused"; refusal: Refusal }
  | { kind: "problem"; problem: Problem };

/** Wait between two attempts. `why`: result of the last attempt, in words for a developer. */
export type RetryWait = { readonly why: string; readonly until: Millis };

/** Why there is no connection, or why the room is not joined, and when the next attempt follows. */
export type Outage = {
  /** The reason in words for a developer. */
  readonly why: string;
  /** Milliseconds until the next attempt. */
  readonly retryInMs: number;
  /** Set if the server is reached but temporarily does not admit this client to the room. */
  readonly reason?: JoinRefusal;
};

/**
 * disconnected: not asked to connect. stopped: refused permanently. waiting: between two attempts. degraded: connected, but
 * the gateway cannot reach the room servers, so sent data waits there.
 */
export type ConnectionStatus = "disconnected" | "stopped" | "waiting" | "connecting" | "connected" | "degraded";

/** Events of a `CoroomConnection`, with the arguments of each listener. */
export type ConnectionEvents = {
  /** `why` (text) and `retryInMs` (milliseconds) are set while the status is `waiting`. */
  status: [{ status: ConnectionStatus } & Partial<Outage>];
  /** The server refused the connection permanently. Call `connect()` to try again. */
  refused: [Refusal];
  /** A problem that does not stop the connection. */
  error: [Problem];
  /** The socket closed. Null: this client closed it. */
  close: [SocketClose | null];
};

/** Close code and reason, as in the CloseEvent of browsers. Code 1006: the socket broke or could not be opened. */
export type SocketClose = {
  /** From 1000 to 4999. `shared/wire/WIRE.md` lists the codes of Coroom from 4000. */
  readonly code: number;
  /** May be empty. */
  readonly reason: string;
};

/** Undefined: the bytes are not a frame that a server may send. */
export function serverFrameOf(bytes: Uint8Array): ServerFrame | UnknownFrame | undefined {
  const frame = decodeFrame(bytes);
  return frame === undefined || frame.type === "unknown" || isServerFrame(frame) ? frame : undefined;
}

function isServerFrame(frame: Frame): frame is ServerFrame {
  return FrameType[frame.type] >= 0x80;
}
