/**
 * What gateways and a room's owner say to each other about who is there. NATS may lose any of it, so all of it is
 * state with a number: whoever misses one asks for the whole. Kept apart from edits, which never wait for it.
 */

import type { ClientId, Epoch, GatewayId, UserId } from "../ids.ts";
import { encode } from "../wire/encode.ts";
import { readWhole } from "../wire/fields.ts";
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
} from "../wire/formats.ts";
import { ROOM_MODES, type RoomMode } from "../wire/frames.ts";
import { type PresenceField, presenceFields, withClass } from "../wire/presence.ts";
import { Tag } from "./tags.ts";

/** One of a gateway's clients in a room. */
export type Member = {
  readonly client: ClientId;
  readonly user: UserId;
  readonly name: string;
  readonly canWrite: boolean;
  readonly spectator: boolean;
};

/** The fields that one of them has changed. */
export type MemberState = { readonly client: ClientId; readonly fields: readonly PresenceField[] };

export type PartOf = { readonly part: number; readonly parts: number };

/** gateway -> owner; a gateway's versions and numbers rise for as long as it runs. */
export type PresenceToOwner =
  /**
   * `entered` are new or changed, or if `whole` all there are. Answered with `heard`; said whole again until it is. With
   * nobody in it and the last version: "am I still known to you?" `epoch`: the highest it has heard of, 0 for none.
   * `partOf`: very many do not fit into a message; it counts once all its parts have come, one after the other.
   */
  | {
      kind: "members";
      gateway: GatewayId;
      epoch: Epoch;
      version: number;
      whole: boolean;
      entered: readonly Member[];
      exited: readonly ClientId[];
      partOf?: PartOf;
    }
  /** `fresh`: the clients have just said so. Else it is told again, because the room has not shown it yet. */
  | { kind: "states"; gateway: GatewayId; number: number; fresh: boolean; states: readonly MemberState[] }
  /** Asks for everything: the gateway is new to the room, or has missed something. */
  | { kind: "sync"; gateway: GatewayId };

/** How the room's presence travels now; the same as in the frame MODE. */
export type Standing = {
  readonly mode: RoomMode;
  readonly participants: number;
  readonly presencePerSecond: number;
  readonly shed: number;
};

/** owner -> every gateway of the room, on `presence.out`; `news` is written by wire/presence.ts */
export type PresenceFromOwner =
  /** Numbered 1, 2, 3, ... within the epoch. */
  | { kind: "news"; epoch: Epoch; number: number; news: Uint8Array }
  /**
   * The last number said. Told when the standing changes, every second while there are news, and a few times after
   * them; of an epoch that is new to a gateway it means: "who is with you?"
   */
  | { kind: "head"; epoch: Epoch; number: number; standing: Standing };

/** owner -> one gateway, on `presence.gateway` */
export type PresenceAnswer =
  /** All that the gateway said up to `version` is known; `number` is the last of the news. */
  | { kind: "heard"; epoch: Epoch; version: number; number: number }
  /** What was said does not follow what is known: say who is with you. */
  | { kind: "missed"; epoch: Epoch }
  /** All there is to know up to that number. */
  | { kind: "whole"; epoch: Epoch; number: number; standing: Standing; news: Uint8Array };

const MEMBER_BYTES_MIN = 20;
const CLIENT_BYTES_MIN = 17;
const STATE_BYTES_MIN = 18;

type Members = Omit<Extract<PresenceToOwner, { kind: "members" }>, "kind">;

const MEMBERS_HEAD = fields({ gateway: gatewayId, epoch: epochOrNone, version: number, is: bits("whole", "inParts") });
const PART_OF: Format<PartOf> = fields({ part: number, parts: number });
const WHO = fields({
  entered: list(MEMBER_BYTES_MIN, withClass(fields({ client: clientId, user: userId, name: text }))),
  exited: list(CLIENT_BYTES_MIN, clientId),
});

/** Which part it is stands only where there are several. */
const members: Format<Members> = {
  write(out, message) {
    // Spelt out, here as below: rooms say it every few seconds, and V8 makes hidden classes for what is spread together.
    const { gateway, epoch, version, whole, partOf } = message;
    MEMBERS_HEAD.write(out, { gateway, epoch, version, is: { whole, inParts: partOf !== undefined } });
    if (partOf !== undefined) PART_OF.write(out, partOf);
    WHO.write(out, message);
  },
  read(input) {
    const { gateway, epoch, version, is } = MEMBERS_HEAD.read(input);
    const partOf = is.inParts ? PART_OF.read(input) : undefined;
    const { entered, exited } = WHO.read(input);
    const message = { gateway, epoch, version, whole: is.whole, entered, exited };
    return partOf === undefined ? message : { ...message, partOf };
  },
};

const standing: Format<Standing> = fields({ mode: oneOf(ROOM_MODES), participants: number, presencePerSecond: number, shed: number });

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

const FROM_OWNER = kinds<PresenceFromOwner>({
  news: [Tag.presenceNews, fields({ epoch, number, news: bytes })],
  head: [Tag.presenceHead, fields({ epoch, number, standing })],
});

const ANSWER = kinds<PresenceAnswer>({
  heard: [Tag.membersHeard, fields({ epoch, version: number, number })],
  missed: [Tag.membersMissed, fields({ epoch })],
  whole: [Tag.presenceWhole, fields({ epoch, number, standing, news: bytes })],
});

export function encodePresenceToOwner(message: PresenceToOwner): Uint8Array {
  return encode((out) => TO_OWNER.write(out, message));
}

const TO_OWNER_TAGS: ReadonlySet<number | undefined> = new Set([Tag.members, Tag.presenceStates, Tag.presenceSync]);

/** What comes to an owner is of presence, or of edits (envelope.ts): its first byte tells, whether or not the rest can be read. */
export function isPresenceToOwner(bytes: Uint8Array): boolean {
  return TO_OWNER_TAGS.has(bytes[0]);
}

/** Undefined for bytes that are no such message. Values are views into `bytes`. */
export function decodePresenceToOwner(bytes: Uint8Array): PresenceToOwner | undefined {
  return readWhole(bytes, TO_OWNER.read);
}

export function encodePresenceFromOwner(message: PresenceFromOwner): Uint8Array {
  return encode((out) => FROM_OWNER.write(out, message));
}

export function decodePresenceFromOwner(bytes: Uint8Array): PresenceFromOwner | undefined {
  return readWhole(bytes, FROM_OWNER.read);
}

export function encodePresenceAnswer(message: PresenceAnswer): Uint8Array {
  return encode((out) => ANSWER.write(out, message));
}

export function decodePresenceAnswer(bytes: Uint8Array): PresenceAnswer | undefined {
  return readWhole(bytes, ANSWER.read);
}
