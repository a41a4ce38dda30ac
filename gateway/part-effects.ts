/**
 * Requests of one part of a gateway to a part that is created after it, and that it therefore cannot call. `gateway.ts`
 * carries out each effect, so that no part needs a reference to a later part.
 */

import type { SubmittedEdit } from "../shared/bus/envelope.ts";
import type { RoomKey, UserId } from "../shared/ids.ts";
import type { ConnectionMoves } from "./limits/quotas.ts";
import type { ConnectionId } from "./ports.ts";
import type { SessionEffect } from "./sessions/session-effects.ts";
import type { ClientSession } from "./sessions/client-session.ts";

export type PartEffect =
  /** From presence: the room has no owner, or its owner does not answer. */
  | { readonly kind: "owner-missing"; readonly room: RoomKey }
  /** From writes over HTTP: an edit to send to the room's owner. */
  | { readonly kind: "submit-write"; readonly room: RoomKey; readonly edit: SubmittedEdit }
  /** From rooms: the connection is not in the room, or not any more. */
  | { readonly kind: "left-room"; readonly room: RoomKey; readonly connection: ConnectionId }
  /** From rooms: the room is deleted, so the session of the connection leaves it. */
  | { readonly kind: "expel"; readonly room: RoomKey; readonly connection: ConnectionId }
  /** From rooms: the user joined with the right to write, and may get a place on the room's boards. */
  | { readonly kind: "writer-joined"; readonly room: RoomKey; readonly user: UserId; readonly name: string }
  /** From discipline: a sanction changes what the session may do. */
  | {
      readonly kind: "session-effects";
      readonly connection: ConnectionId;
      readonly session: ClientSession;
      readonly effects: readonly SessionEffect[];
    }
  /** From sessions: other gateways should accept these connections, each from its time on, even above a quota. */
  | { readonly kind: "hand-over"; readonly moves: ConnectionMoves };

export type Dispatch = (effect: PartEffect) => void;
