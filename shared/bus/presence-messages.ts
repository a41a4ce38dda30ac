/**
 * What gateways and a room's owner say to each other about who is there. NATS may lose any of it, so all of it is
 * state with a number: whoever misses one asks for the whole. Kept apart from edits, which never wait for it.
 */

import type { Decoder } from "lib0/decoding";
import * as encoding from "lib0/encoding";

import { assertNever } from "../assert.ts";
import { type ClientId, type Epoch, type GatewayId, parseGatewayId, type UserId } from "../ids.ts";
import { readByte, readBytes, readClientId, readEpoch, readList, readName, readNumber, readText, readUserId, readWhole, required } from "../wire/fields.ts";
import { ROOM_MODES, type RoomMode } from "../wire/frames.ts";
import { type PresenceField, readFields, writeFields } from "../wire/presence.ts";
import { Tag } from "./tags.ts";

/** One of a gateway's clients in a room. */
export type Member = { readonly client: ClientId; readonly user: UserId; readonly name: string; readonly canWrite: boolean; readonly spectator: boolean };

/** The fields that one of them has changed. */
export type MemberState = { readonly client: ClientId; readonly fields: readonly PresenceField[] };

export type PartOf = { readonly part: number; readonly parts: number };

/** gateway -> owner, on `presence.in`; a gateway's versions and numbers rise for as long as it runs. */
export type PresenceToOwner =
  /**
   * `entered` are new or changed, or if `whole` all there are. Answered with `heard`; said whole again until it is. With
   * nobody in it and the last version: "am I still known to you?" `epoch`: the highest it has heard of, 0 for none.
   * `partOf`: very many do not fit into a message; it counts once all its parts have come, one after the other.
   */
  | { kind: "members"; gateway: GatewayId; epoch: Epoch; version: number; whole: boolean; entered: readonly Member[]; exited: readonly ClientId[]; partOf?: PartOf }
  /** `fresh`: the clients have just said so. Else it is told again, because the room has not shown it yet. */
  | { kind: "states"; gateway: GatewayId; number: number; fresh: boolean; states: readonly MemberState[] }
  /** Asks for everything: the gateway is new to the room, or has missed something. */
  | { kind: "sync"; gateway: GatewayId };

/** How the room's presence travels now; the same as in the frame MODE. */
export type Standing = { readonly mode: RoomMode; readonly participants: number; readonly presencePerSecond: number; readonly shed: number };

/** owner -> every gateway of the room, on `presence.out`; `news` is written by wire/presence.ts */
export type PresenceFromOwner =
  /** Numbered 1, 2, 3, ... within the epoch. */
  | { kind: "news"; epoch: Epoch; number: number; news: Uint8Array }
  /**
   * The last number said. Told when the standing changes, and again while it is quiet; of an epoch that is new to a
   * gateway it means: "who is with you?"
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
const WHOLE_BIT = 1;
const PART_BIT = 2;
const CLIENT_BYTES_MIN = 17;
const STATE_BYTES_MIN = 18;

export function encodePresenceToOwner(message: PresenceToOwner): Uint8Array {
  return encoding.encode((out) => {
    switch (message.kind) {
      case "members":
        encoding.writeUint8(out, Tag.members);
        encoding.writeVarString(out, message.gateway);
        encoding.writeVarUint(out, message.epoch);
        encoding.writeVarUint(out, message.version);
        encoding.writeUint8(out, (message.whole ? WHOLE_BIT : 0) | (message.partOf === undefined ? 0 : PART_BIT));
        if (message.partOf !== undefined) writePartOf(out, message.partOf);
        encoding.writeVarUint(out, message.entered.length);
        for (const member of message.entered) writeMember(out, member);
        encoding.writeVarUint(out, message.exited.length);
        for (const client of message.exited) encoding.writeVarString(out, client);
        return;
      case "states":
        encoding.writeUint8(out, Tag.presenceStates);
        encoding.writeVarString(out, message.gateway);
        encoding.writeVarUint(out, message.number);
        encoding.writeUint8(out, message.fresh ? 1 : 0);
        encoding.writeVarUint(out, message.states.length);
        for (const { client, fields } of message.states) {
          encoding.writeVarString(out, client);
          writeFields(out, fields);
        }
        return;
      case "sync":
        encoding.writeUint8(out, Tag.presenceSync);
        encoding.writeVarString(out, message.gateway);
        return;
      default:
        assertNever(message);
    }
  });
}

/** Undefined for bytes that are no such message. Values are views into `bytes`. */
export function decodePresenceToOwner(bytes: Uint8Array): PresenceToOwner | undefined {
  return readWhole(bytes, (input) => {
    const tag = readByte(input);
    const gateway = required(parseGatewayId(readText(input)), "gateway id");
    switch (tag) {
      case Tag.members:
        return readMembers(input, gateway);
      case Tag.presenceStates:
        return { kind: "states", gateway, number: readNumber(input), fresh: readByte(input) === 1, states: readList(input, STATE_BYTES_MIN, (state) => ({ client: readClientId(state), fields: readFields(state) })) };
      case Tag.presenceSync:
        return { kind: "sync", gateway };
      default:
        return undefined;
    }
  });
}

export function encodePresenceFromOwner(message: PresenceFromOwner): Uint8Array {
  return encoding.encode((out) => {
    switch (message.kind) {
      case "news":
        writeNumbered(out, Tag.presenceNews, message);
        return encoding.writeVarUint8Array(out, message.news);
      case "head":
        writeNumbered(out, Tag.presenceHead, message);
        return writeStanding(out, message.standing);
      default:
        assertNever(message);
    }
  });
}

export function decodePresenceFromOwner(bytes: Uint8Array): PresenceFromOwner | undefined {
  return readWhole(bytes, (input) => {
    switch (readByte(input)) {
      case Tag.presenceNews:
        return { kind: "news", epoch: readEpoch(input), number: readNumber(input), news: readBytes(input) };
      case Tag.presenceHead:
        return { kind: "head", epoch: readEpoch(input), number: readNumber(input), standing: readStanding(input) };
      default:
        return undefined;
    }
  });
}

export function encodePresenceAnswer(message: PresenceAnswer): Uint8Array {
  return encoding.encode((out) => {
    switch (message.kind) {
      case "heard":
        encoding.writeUint8(out, Tag.membersHeard);
        encoding.writeVarUint(out, message.epoch);
        encoding.writeVarUint(out, message.version);
        encoding.writeVarUint(out, message.number);
        return;
      case "missed":
        encoding.writeUint8(out, Tag.membersMissed);
        encoding.writeVarUint(out, message.epoch);
        return;
      case "whole":
        writeNumbered(out, Tag.presenceWhole, message);
        writeStanding(out, message.standing);
        return encoding.writeVarUint8Array(out, message.news);
      default:
        assertNever(message);
    }
  });
}

export function decodePresenceAnswer(bytes: Uint8Array): PresenceAnswer | undefined {
  return readWhole(bytes, (input) => {
    switch (readByte(input)) {
      case Tag.membersHeard:
        return { kind: "heard", epoch: readEpoch(input), version: readNumber(input), number: readNumber(input) };
      case Tag.membersMissed:
        return { kind: "missed", epoch: readEpoch(input) };
      case Tag.presenceWhole:
        return { kind: "whole", epoch: readEpoch(input), number: readNumber(input), standing: readStanding(input), news: readBytes(input) };
      default:
        return undefined;
    }
  });
}

function writeNumbered(out: encoding.Encoder, tag: number, { epoch, number }: { epoch: Epoch; number: number }): void {
  encoding.writeUint8(out, tag);
  encoding.writeVarUint(out, epoch);
  encoding.writeVarUint(out, number);
}

function writeStanding(out: encoding.Encoder, { mode, participants, presencePerSecond, shed }: Standing): void {
  encoding.writeUint8(out, ROOM_MODES[mode]);
  encoding.writeVarUint(out, participants);
  encoding.writeVarUint(out, presencePerSecond);
  encoding.writeVarUint(out, shed);
}

function readStanding(input: Decoder): Standing {
  return { mode: readName(input, ROOM_MODES), participants: readNumber(input), presencePerSecond: readNumber(input), shed: readNumber(input) };
}

function readMembers(input: Decoder, gateway: GatewayId): PresenceToOwner {
  const [epoch, version, bits] = [readNumber(input) as Epoch, readNumber(input), readByte(input)];
  const partOf = (bits & PART_BIT) === 0 ? {} : { partOf: { part: readNumber(input), parts: readNumber(input) } };
  return { kind: "members", gateway, epoch, version, whole: (bits & WHOLE_BIT) !== 0, entered: readList(input, MEMBER_BYTES_MIN, readMember), exited: readList(input, CLIENT_BYTES_MIN, readClientId), ...partOf };
}

function writePartOf(out: encoding.Encoder, { part, parts }: PartOf): void {
  encoding.writeVarUint(out, part);
  encoding.writeVarUint(out, parts);
}

function writeMember(out: encoding.Encoder, { client, user, name, canWrite, spectator }: Member): void {
  encoding.writeVarString(out, client);
  encoding.writeVarString(out, user);
  encoding.writeVarString(out, name);
  encoding.writeUint8(out, (canWrite ? 1 : 0) | (spectator ? 2 : 0));
}

function readMember(input: Decoder): Member {
  const [client, user, name, bits] = [readClientId(input), readUserId(input), readText(input), readByte(input)];
  return { client, user, name, canWrite: (bits & 1) !== 0, spectator: (bits & 2) !== 0 };
}
