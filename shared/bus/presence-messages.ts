/**
 * Presence messages between gateways and a room's owner. NATS may lose any of them. So each carries numbered state, and
 * a receiver that misses one requests a snapshot. Separate from edits, which never wait for presence.
 */

import { splitBySize } from "../collections/split-by-size.ts";
import type { ClientId, Epoch, GatewayId, UserId } from "../ids.ts";
import {
  bits,
  bytes,
  clientId,
  epoch,
  epochOrNone,
  type Format,
  fields,
  flag,
  gatewayId,
  kinds,
  list,
  number,
  oneOf,
  text,
  userId,
  encode,
  decodeAll,
} from "../wire/fields.ts";
import { ROOM_MODES, type RoomMode } from "../wire/frames.ts";
import { type PresenceField, presenceFields, withClass } from "../wire/presence.ts";
import { Tag } from "./record.ts";

/** One of a gateway's clients in a room. */
export type PresenceMember = {
  readonly client: ClientId;
  readonly user: UserId;
  readonly name: string;
  readonly canWrite: boolean;
  readonly spectator: boolean;
};

/** The fields that a member has changed. */
export type PresenceMemberState = { readonly client: ClientId; readonly fields: readonly PresenceField[] };

type PartIndex = { readonly part: number; readonly parts: number };

/** gateway -> owner; a gateway's versions and numbers rise while it runs. */
export type PresenceToOwner =
  /**
   * `entered` are new or changed members; all of them if `whole`. Answered with `acked`, and repeated completely until
   * then. Without members and with the last version it asks whether the gateway is still known. `epoch`: the highest
   * that the gateway knows, 0 for none. `partOf`: a long list takes several messages, and counts once all parts arrived
   * in order.
   */
  | {
      kind: "members";
      gateway: GatewayId;
      epoch: Epoch;
      version: number;
      snapshot: boolean;
      entered: readonly PresenceMember[];
      exited: readonly ClientId[];
      partOf?: PartIndex;
    }
  /** `fresh`: the clients have just sent it. Otherwise it is repeated because the room has not shown it yet. */
  | { kind: "states"; gateway: GatewayId; number: number; fresh: boolean; states: readonly PresenceMemberState[] }
  /** Requests a snapshot: the gateway is new to the room, or missed a message. */
  | { kind: "sync"; gateway: GatewayId };

/** The mode in which the room's presence is sent now; the same as in the frame MODE. */
export type PresenceStatus = {
  readonly mode: RoomMode;
  readonly participants: number;
  readonly presencePerSecond: number;
  readonly shed: number;
};

/** owner -> every gateway of the room; wire/presence.ts encodes `delta`. */
export type PresenceFromOwner =
  /** Numbered 1, 2, 3, ... within the epoch. */
  | { kind: "delta"; epoch: Epoch; number: number; delta: Uint8Array }
  /**
   * The last number sent. Sent when the status changes, every second while there are deltas, and a few times after
   * them. A gateway that sees a new epoch sends its members.
   */
  | { kind: "head"; epoch: Epoch; number: number; status: PresenceStatus };

/** owner -> one gateway */
export type PresenceReply =
  /** The owner has everything from the gateway up to `version`; `number` is the last delta's. */
  | { kind: "acked"; epoch: Epoch; version: number; number: number }
  /** The message does not follow the owner's state: send all members. */
  | { kind: "missed"; epoch: Epoch }
  /** The complete state up to that number. */
  | { kind: "snapshot"; epoch: Epoch; number: number; status: PresenceStatus; delta: Uint8Array };

/** The room server does not own the room of a message that it received, or not yet. */
type NotPresenceOwner = { readonly kind: "not-owner" };

/** room server -> gateway, about one room. */
export type PresenceFromServer = PresenceFromOwner | PresenceReply | NotPresenceOwner;

const MEMBER_BYTES_MIN = 20;
const CLIENT_BYTES_MIN = 17;
const STATE_BYTES_MIN = 18;

type Members = Omit<Extract<PresenceToOwner, { kind: "members" }>, "kind">;

const MEMBERS_HEAD = fields({ gateway: gatewayId, epoch: epochOrNone, version: number, is: bits("snapshot", "inParts") });
const PART_OF: Format<PartIndex> = fields({ part: number, parts: number });
const WHO = fields({
  entered: list(MEMBER_BYTES_MIN, withClass(fields({ client: clientId, user: userId, name: text }))),
  exited: list(CLIENT_BYTES_MIN, clientId),
});

/** The part number is written only for several parts. */
const members: Format<Members> = {
  write(out, message) {
    // Written field by field here and below: these messages are sent every few seconds per room, and V8 creates hidden
    // classes for spread objects.
    const { gateway, epoch, version, snapshot, partOf } = message;
    MEMBERS_HEAD.write(out, { gateway, epoch, version, is: { snapshot, inParts: partOf !== undefined } });
    if (partOf !== undefined) PART_OF.write(out, partOf);
    WHO.write(out, message);
  },
  read(input) {
    const { gateway, epoch, version, is } = MEMBERS_HEAD.read(input);
    const partOf = is.inParts ? PART_OF.read(input) : undefined;
    const { entered, exited } = WHO.read(input);
    const message = { gateway, epoch, version, snapshot: is.snapshot, entered, exited };
    return partOf === undefined ? message : { ...message, partOf };
  },
};

const status: Format<PresenceStatus> = fields({ mode: oneOf(ROOM_MODES), participants: number, presencePerSecond: number, shed: number });

const TO_OWNER = kinds<PresenceToOwner>({
  members: [Tag.members, members],
  states: [
    Tag.presenceStates,
    fields({
      gateway: gatewayId,
      number,
      fresh: flag,
      states: list(STATE_BYTES_MIN, fields({ client: clientId, fields: presenceFields })),
    }),
  ],
  sync: [Tag.presenceSync, fields({ gateway: gatewayId })],
});

const FROM_SERVER = kinds<PresenceFromServer>({
  "delta": [Tag.presenceDelta, fields({ epoch, number, delta: bytes })],
  "head": [Tag.presenceHead, fields({ epoch, number, status })],
  "acked": [Tag.membersReceived, fields({ epoch, version: number, number })],
  "missed": [Tag.membersMissed, fields({ epoch })],
  "snapshot": [Tag.presenceSnapshot, fields({ epoch, number, status, delta: bytes })],
  "not-owner": [Tag.notOwner, fields({})],
});

export function encodePresenceToOwner(message: PresenceToOwner): Uint8Array {
  return encode((out) => TO_OWNER.write(out, message));
}

const TO_OWNER_TAGS: ReadonlySet<number | undefined> = new Set([Tag.members, Tag.presenceStates, Tag.presenceSync]);

/** An owner receives presence or edits (envelope.ts). The first byte distinguishes them, even if the rest cannot be decoded. */
export function isPresenceToOwner(bytes: Uint8Array): boolean {
  return TO_OWNER_TAGS.has(bytes[0]);
}

/** Undefined for other bytes. Values are views into `bytes`. */
export function decodePresenceToOwner(bytes: Uint8Array): PresenceToOwner | undefined {
  return decodeAll(bytes, TO_OWNER.read);
}

export function encodePresenceFromServer(message: PresenceFromServer): Uint8Array {
  return encode((out) => FROM_SERVER.write(out, message));
}

export function decodePresenceFromServer(bytes: Uint8Array): PresenceFromServer | undefined {
  return decodeAll(bytes, FROM_SERVER.read);
}

/** Maximum size of a message; the rest follows in the next one. NATS accepts 1 MB. */
export const PRESENCE_MESSAGE_BYTES_MAX = 256 * 1024;
/** Overhead of a member, of a client's fields and of one field. Texts take up to three bytes a character. */
const MEMBER_BYTES = 8;
const STATE_BYTES = 8;
const FIELD_BYTES = 8;
const BYTES_PER_CODE_UNIT = 3;

/** Nearly always one message. Several parts count once all of them have arrived. */
export function membersInParts(message: PresenceToOwner & { kind: "members" }): (PresenceToOwner & { kind: "members" })[] {
  const exits = splitBySize(message.exited, (client) => client.length + 1, PRESENCE_MESSAGE_BYTES_MAX).map((exited) => ({
    ...message,
    entered: [],
    exited,
  }));
  const entries = splitBySize(message.entered, bytesOfMember, PRESENCE_MESSAGE_BYTES_MAX).map((entered) => ({
    ...message,
    entered,
    exited: [],
  }));
  if (exits.length + entries.length <= 1 || (exits.length === 1 && entries.length === 1)) return [message];
  const parts = [...exits, ...entries];
  return parts.map((part, index) => ({ ...part, partOf: { part: index + 1, parts: parts.length } }));
}

/** The states of each message, nearly always of one. */
export function statesInParts(states: readonly PresenceMemberState[]): PresenceMemberState[][] {
  return splitBySize(states, bytesOfState, PRESENCE_MESSAGE_BYTES_MAX);
}

function bytesOfMember({ client, user, name }: PresenceMember): number {
  return MEMBER_BYTES + client.length + (user.length + name.length) * BYTES_PER_CODE_UNIT;
}

function bytesOfState({ client, fields }: PresenceMemberState): number {
  return fields.reduce(
    (sum, { name, value }) => sum + FIELD_BYTES + name.length * BYTES_PER_CODE_UNIT + value.byteLength,
    STATE_BYTES + client.length,
  );
}
