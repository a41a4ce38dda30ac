/** The effects of a session, and the answers that several parts of a session give. */

import type { SubmittedEdit } from "../../shared/bus/envelope.ts";
import type { ClientId, Position, RoomKey, Seq } from "../../shared/ids.ts";
import { CLOSE, type CloseName } from "../../shared/wire/close-codes.ts";
import type { Channel, Counter, JoinRefusal, NackReason, ServerFrame, TentativeEdit } from "../../shared/wire/frames.ts";
import type { PresenceField } from "../../shared/wire/presence.ts";
import type { BoardRequest } from "../boards/boards.ts";
import type { ConnectionLimit } from "../limits/connection-rates.ts";

/** The last frames of a connection: the time until a reconnect, a text for logs, and the close code. */
type ClosingEffect = { readonly kind: "send"; readonly frame: ServerFrame } | { readonly kind: "close"; readonly close: CloseName };

/** An immediate retry would increase the load. */
const FOR_LOAD: ReadonlySet<CloseName> = new Set(["overloaded", "rateLimited", "tenantFull", "banned"]);

export function closingEffects(close: CloseName, message: string, retryAfterMs: number): ClosingEffect[] {
  const hint: ServerFrame[] = FOR_LOAD.has(close) ? [{ type: "retry-later", retryAfterMs }] : [];
  const frames: ServerFrame[] = [...hint, { type: "error", code: CLOSE[close].code, message }];
  return [...frames.map((frame) => ({ kind: "send" as const, frame })), { kind: "close", close }];
}

export type SessionEffect =
  | { kind: "verify"; token: string }
  | { kind: "send"; frame: ServerFrame }
  /** For clients of another protocol. */
  | { kind: "send-bytes"; bytes: Uint8Array }
  /** `isGatewaysWill`: the client caused no fault on this connection, so the close does not raise an abuse score. */
  | { kind: "close"; close: CloseName; isGatewaysWill?: true }
  | { kind: "limit-reached"; limit: ConnectionLimit }
  | { kind: "join"; room: RoomKey; request: number; client: ClientId; position: Position }
  | { kind: "leave"; room: RoomKey }
  | { kind: "edit"; room: RoomKey; edit: SubmittedEdit }
  | { kind: "resubmit"; room: RoomKey; edit: TentativeEdit }
  | { kind: "watch-board"; request: Omit<BoardRequest, "connection"> }
  | { kind: "replay"; room: RoomKey; after: Seq; through: Seq }
  | { kind: "presence"; room: RoomKey; fields: readonly PresenceField[] }
  /** The presence exceeds the rate and is dropped. The client sends it again later. */
  | { kind: "presence-passed-over" };

/** Ends the connection. `limit`: the limit that was reached. */
export type SessionRefusal = {
  readonly kind: "refused";
  readonly close: CloseName;
  readonly message: string;
  readonly limit?: ConnectionLimit;
};

export function badFrame(message: string): SessionRefusal {
  return { kind: "refused", close: "badFrame", message };
}

export function outOfTurn({ type }: { type: string }, advice: string): SessionRefusal {
  return badFrame(`a frame of type ${type} came out of turn: ${advice}`);
}

/** The settings of each limit, for people who run both ends. */
const SETTINGS_OF: Readonly<Record<ConnectionLimit, string>> = {
  "edits": "COROOM_EDIT_BURST and COROOM_EDITS_PER_SECOND, of those sent again COROOM_RESEND_BURST and COROOM_RESENDS_PER_SECOND",
  "presence": "COROOM_PRESENCE_BURST and COROOM_PRESENCE_PER_SECOND_MAX",
  "frames": "COROOM_CONTROL_BURST and COROOM_CONTROLS_PER_SECOND",
  "bytes": "COROOM_BYTES_BURST and COROOM_BYTES_PER_SECOND",
  "catch-ups": "COROOM_CATCH_UP_BYTES_BURST and COROOM_CATCH_UP_BYTES_PER_SECOND",
};

export function tooFast(limit: ConnectionLimit): SessionRefusal {
  const message = `too many ${limit} on one connection, all its rooms together: send them more slowly, or raise ${SETTINGS_OF[limit]} of the gateway`;
  return { kind: "refused", close: "rateLimited", message, limit };
}

export const ROOM_DELETED = "the room is deleted permanently: create another room under a new name";

export function nack(channel: Channel, counter: Counter, reason: NackReason): SessionEffect {
  return { kind: "send", frame: { type: "nack", channel, counter, reason, expected: counter, retryAfterMs: 0 } };
}

export function joinRefused(request: number, reason: JoinRefusal, message: string, retryAfterMs = 0): SessionEffect {
  return { kind: "send", frame: { type: "join-refused", request, reason, retryAfterMs, message } };
}
