/**
 * What gateways and a room's owner say to each other about who is there. NATS may lose any of it, so all of it is
 * state with a number: whoever misses one asks for the whole. Kept apart from edits, which never wait for it.
 */

import * as decoding from "lib0/decoding";
import * as encoding from "lib0/encoding";

import { assertNever } from "../assert.ts";
import { type ClientId, type Epoch, type GatewayId, parseGatewayId, type UserId } from "../ids.ts";
import { readByte, readBytes, readClientId, readEpoch, readList, readName, readNumber, readText, readUserId, required } from "../wire/fields.ts";
import { ROOM_MODES, type RoomMode } from "../wire/frames.ts";
import { type PresenceState, readStates, writeStates } from "../wire/presence.ts";
import { Tag } from "./tags.ts";

/** One of a gateway's clients in a room. */
export type Member = { readonly client: ClientId; readonly user: UserId; readonly name: string; readonly canWrite: boolean; readonly spectator: boolean };

/** gateway -> owner, on `presence.in` */
export type PresenceToOwner =
  /** `entered` are new or changed, or if `whole` all there are. Answered with `heard`; said whole again until it is. */
  | { kind: "members"; gateway: GatewayId; version: number; whole: boolean; entered: readonly Member[]; exited: readonly ClientId[] }
  /** By the numbers that participants have in that epoch. */
  | { kind: "states"; gateway: GatewayId; epoch: Epoch; states: readonly PresenceState[] }
  /** Asks for everything: the gateway is new to the room, or has missed something. */
  | { kind: "sync"; gateway: GatewayId };

/** owner -> every gateway of the room, on `presence.out`; `news` and `whole` are written by wire/presence.ts */
export type PresenceFromOwner =
  /** Numbered 1, 2, 3, ... within the epoch. */
  | { kind: "news"; epoch: Epoch; number: number; news: Uint8Array }
  /** The last number said, told again while it is quiet; of an epoch that is new to a gateway: "who is with you?" */
  | { kind: "head"; epoch: Epoch; number: number }
  | { kind: "mode"; epoch: Epoch; mode: RoomMode; participants: number; presencePerSecond: number; shed: number };

/** owner -> one gateway, on `presence.gateway` */
export type PresenceAnswer =
  | { kind: "heard"; epoch: Epoch; version: number }
  /** All there is to know up to that number. */
  | { kind: "whole"; epoch: Epoch; number: number; news: Uint8Array };

const MEMBER_BYTES_MIN = 20;
const CLIENT_BYTES_MIN = 17;

export function encodePresenceToOwner(message: PresenceToOwner): Uint8Array {
  return encoding.encode((out) => {
    switch (message.kind) {
      case "members":
        encoding.writeUint8(out, Tag.members);
        encoding.writeVarString(out, message.gateway);
        encoding.writeVarUint(out, message.version);
        encoding.writeUint8(out, message.whole ? 1 : 0);
        encoding.writeVarUint(out, message.entered.length);
        for (const member of message.entered) writeMember(out, member);
        encoding.writeVarUint(out, message.exited.length);
        for (const client of message.exited) encoding.writeVarString(out, client);
        return;
      case "states":
        encoding.writeUint8(out, Tag.presenceStates);
        encoding.writeVarString(out, message.gateway);
        encoding.writeVarUint(out, message.epoch);
        writeStates(out, message.states);
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
  return whole(bytes, (input) => {
    const tag = readByte(input);
    const gateway = required(parseGatewayId(readText(input)), "gateway id");
    switch (tag) {
      case Tag.members:
        return { kind: "members", gateway, version: readNumber(input), whole: readByte(input) === 1, entered: readList(input, MEMBER_BYTES_MIN, readMember), exited: readList(input, CLIENT_BYTES_MIN, readClientId) };
      case Tag.presenceStates:
        return { kind: "states", gateway, epoch: readEpoch(input), states: readStates(input) };
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
        return writeNumbered(out, Tag.presenceHead, message);
      case "mode":
        encoding.writeUint8(out, Tag.mode);
        encoding.writeVarUint(out, message.epoch);
        encoding.writeUint8(out, ROOM_MODES[message.mode]);
        encoding.writeVarUint(out, message.participants);
        encoding.writeVarUint(out, message.presencePerSecond);
        encoding.writeVarUint(out, message.shed);
        return;
      default:
        assertNever(message);
    }
  });
}

export function decodePresenceFromOwner(bytes: Uint8Array): PresenceFromOwner | undefined {
  return whole(bytes, (input) => {
    switch (readByte(input)) {
      case Tag.presenceNews:
        return { kind: "news", epoch: readEpoch(input), number: readNumber(input), news: readBytes(input) };
      case Tag.presenceHead:
        return { kind: "head", epoch: readEpoch(input), number: readNumber(input) };
      case Tag.mode:
        return { kind: "mode", epoch: readEpoch(input), mode: readName(input, ROOM_MODES), participants: readNumber(input), presencePerSecond: readNumber(input), shed: readNumber(input) };
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
        return;
      case "whole":
        writeNumbered(out, Tag.presenceWhole, message);
        return encoding.writeVarUint8Array(out, message.news);
      default:
        assertNever(message);
    }
  });
}

export function decodePresenceAnswer(bytes: Uint8Array): PresenceAnswer | undefined {
  return whole(bytes, (input) => {
    switch (readByte(input)) {
      case Tag.membersHeard:
        return { kind: "heard", epoch: readEpoch(input), version: readNumber(input) };
      case Tag.presenceWhole:
        return { kind: "whole", epoch: readEpoch(input), number: readNumber(input), news: readBytes(input) };
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

function writeMember(out: encoding.Encoder, { client, user, name, canWrite, spectator }: Member): void {
  encoding.writeVarString(out, client);
  encoding.writeVarString(out, user);
  encoding.writeVarString(out, name);
  encoding.writeUint8(out, (canWrite ? 1 : 0) | (spectator ? 2 : 0));
}

function readMember(input: decoding.Decoder): Member {
  const [client, user, name, bits] = [readClientId(input), readUserId(input), readText(input), readByte(input)];
  return { client, user, name, canWrite: (bits & 1) !== 0, spectator: (bits & 2) !== 0 };
}

function whole<Message>(bytes: Uint8Array, read: (input: decoding.Decoder) => Message | undefined): Message | undefined {
  const input = decoding.createDecoder(bytes);
  try {
    const message = read(input);
    return decoding.hasContent(input) ? undefined : message;
  } catch {
    return undefined; // Cut short or out of range: another version's, or nobody's.
  }
}
