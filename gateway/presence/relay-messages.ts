/** What goes into a room's presence relay and what comes out of it. The host carries out the effects. */

import type { PresenceFromOwner, PresenceMember, PresenceReply, PresenceToOwner } from "../../shared/bus/presence-messages.ts";
import type { PresenceField } from "../../shared/wire/presence.ts";
import type { ConnectionId } from "../ports.ts";
import type { AudienceEffect } from "./audience.ts";

export type PresenceRelayInput =
  | { kind: "enter"; connection: ConnectionId; member: PresenceMember }
  | { kind: "leave"; connection: ConnectionId }
  /** The connection reads more slowly than the gateway sends. */
  | { kind: "behind"; connection: ConnectionId }
  | { kind: "keeping-up"; connection: ConnectionId }
  | { kind: "fields"; connection: ConnectionId; fields: readonly PresenceField[] }
  | { kind: "from-owner"; message: PresenceFromOwner }
  | { kind: "answer"; answer: PresenceReply }
  | { kind: "no-responders" }
  /** From now on no message of the room is missed. Earlier ones may have been. */
  | { kind: "attached" }
  | { kind: "detached" }
  /** `level`: the gateway's new shed level. */
  | { kind: "shed"; level: number }
  /** All inputs of this turn of the event loop have arrived, or something is due. */
  | { kind: "tick" };

export type PresenceRelayEffect =
  | { kind: "send-to-owner"; message: PresenceToOwner }
  | AudienceEffect
  | { kind: "refuse"; connection: ConnectionId }
  /** The owner does not answer, and may be gone. */
  | { kind: "owner-silent" }
  | { kind: "synced" };
