/** What one connection's session asks for, and the answers that it gives in more than one place. */

import type { SubmittedEdit } from "../../shared/bus/envelope.ts";
import type { ClientId, Position, RoomKey, Seq } from "../../shared/ids.ts";
import type { CloseName } from "../../shared/wire/close-codes.ts";
import type { Channel, Counter, JoinRefusal, NackReason, Rights, ServerFrame, TentativeEdit } from "../../shared/wire/frames.ts";
import type { PresenceField } from "../../shared/wire/presence.ts";
import type { BoardRequest } from "../boards/boards.ts";
import type { ConnectionLimit } from "../limits/connection-rates.ts";

export type SessionEffect =
  | { kind: "verify"; token: string }
  | { kind: "send"; frame: ServerFrame }
  /** `isGatewaysWill`: for nothing that the client did on this connection, so nothing is held against it. */
  | { kind: "close"; close: CloseName; isGatewaysWill?: true }
  | { kind: "limit-reached"; limit: ConnectionLimit }
  | { kind: "join"; room: RoomKey; request: number; client: ClientId; position: Position; rights: Rights }
  | { kind: "leave"; room: RoomKey }
  | { kind: "edit"; room: RoomKey; edit: SubmittedEdit }
  | { kind: "resubmit"; room: RoomKey; edit: TentativeEdit }
  | { kind: "watch-board"; request: Omit<BoardRequest, "connection"> }
  | { kind: "replay"; room: RoomKey; after: Seq; through: Seq }
  | { kind: "presence"; room: RoomKey; fields: readonly PresenceField[] }
  /** It came faster than it may: what it told is not kept, and the client is asked for it again. */
  | { kind: "presence-passed-over" };

/** Ends the connection. `limit`: the one that it came up against. */
export type Refusal = { readonly kind: "refused"; readonly close: CloseName; readonly message: string; readonly limit?: ConnectionLimit };

export function badFrame(message: string): Refusal {
  return { kind: "refused", close: "badFrame", message };
}

export function outOfTurn({ type }: { type: string }, advice: string): Refusal {
  return badFrame(`a frame of type ${type} came out of turn: ${advice}`);
}

/** For whoever runs both ends: which settings a client came up against. */
const SETTINGS_OF: Readonly<Record<ConnectionLimit, string>> = {
  "edits": "COROOM_EDIT_BURST and COROOM_EDITS_PER_SECOND, of those sent again COROOM_RESEND_BURST and COROOM_RESENDS_PER_SECOND",
  "presence": "COROOM_PRESENCE_BURST and COROOM_PRESENCE_PER_SECOND_MAX",
  "frames": "COROOM_CONTROL_BURST and COROOM_CONTROLS_PER_SECOND",
  "bytes": "COROOM_BYTES_BURST and COROOM_BYTES_PER_SECOND",
  "catch-ups": "COROOM_CATCH_UP_BYTES_BURST and COROOM_CATCH_UP_BYTES_PER_SECOND",
};

export function tooFast(limit: ConnectionLimit): Refusal {
  const message = `too many ${limit} on one connection, all its rooms together: send them more slowly, or raise ${SETTINGS_OF[limit]} of the gateway`;
  return { kind: "refused", close: "rateLimited", message, limit };
}

export const ROOM_DELETED = "the room is deleted for good: begin another under a new name";

export function nack(channel: Channel, counter: Counter, reason: NackReason): SessionEffect {
  return { kind: "send", frame: { type: "nack", channel, counter, reason, expected: counter, retryAfterMs: 0 } };
}

export function joinRefused(request: number, reason: JoinRefusal, message: string): SessionEffect {
  return { kind: "send", frame: { type: "join-refused", request, reason, retryAfterMs: 0, message } };
}
