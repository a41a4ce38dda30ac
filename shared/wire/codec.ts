/** Encodes and decodes frames: one line per frame, its fields in the order of WIRE.md. `decodeFrame` never throws. */

import { createDecoder, type Decoder, hasContent } from "lib0/decoding";
import { type Encoder, writeUint8 } from "lib0/encoding";

import { parseClientKey, parseRoomId } from "../ids.ts";
import { BOARD_ROLES, BOARD_STATES, BOARD_WINDOWS, ranking } from "./boards.ts";
import { numbered, readCommittedEdits, tentativeEdit, writeCommittedEdits } from "./committed-edits.ts";
import {
  bits,
  bytes,
  channel,
  checked,
  clientId,
  counter,
  epoch,
  type Format,
  fields,
  number,
  oneOf,
  position,
  refuseUnless,
  seq,
  seqOrStart,
  text,
  textOf,
  encode,
  inRange,
  readByte,
} from "./fields.ts";
import {
  BACKBONE_STATES,
  type Channel,
  type Frame,
  FrameType,
  JOIN_REFUSALS,
  LEFT_REASONS,
  NACK_REASONS,
  RESYNC_REASONS,
  ROOM_MODES,
  SAVING_STATES,
  type UnknownFrame,
} from "./frames.ts";
import { presenceFields, presenceDelta } from "./presence.ts";

/** Frames from a gateway to its clients have numbers from here on. */
const TO_CLIENT = 0x80;

export function encodeFrame(frame: Frame): Uint8Array {
  return encode((out) => writeFrame(out, frame));
}

/** Undefined for bytes that are not a frame. Payloads are views into `bytes`: copy them to keep them. */
export function decodeFrame(bytes: Uint8Array): Frame | UnknownFrame | undefined {
  const input = createDecoder(bytes);
  try {
    const frame = readFrame(input);
    return hasContent(input) && !mayGoOn(frame, bytes[0]!) ? undefined : frame;
  } catch {
    return undefined; // Truncated, or a value out of range: the sender's fault, so refused and never thrown.
  }
}

/** The channel of a frame of a room that may not be decoded as a whole. Undefined: it has none. */
export function channelOf(bytes: Uint8Array): Channel | undefined {
  const input = createDecoder(bytes);
  try {
    readByte(input);
    return channel.read(input);
  } catch {
    return undefined; // As in `decodeFrame`.
  }
}

/**
 * Whether extra bytes are allowed after the known fields. A gateway's frame serves clients of several versions, and the
 * first field of a hello selects the version. All other client frames must end after the known fields.
 */
function mayGoOn(frame: Frame | UnknownFrame, number: number): boolean {
  return frame.type === "unknown" || frame.type === "hello" || number >= TO_CLIENT;
}

/** Frames committed edits that are already encoded. */
export function encodeCommittedFrame(channel: number, committedEdits: Uint8Array): Uint8Array {
  return frameAround(FrameType.committed, channel, committedEdits);
}

/** Frames a presence delta that is already encoded. */
export function encodePresenceDeltaFrame(channel: number, delta: Uint8Array): Uint8Array {
  return frameAround(FrameType["presence-delta"], channel, delta);
}

/** Encodes into one allocation, because it runs for every record of every room. */
function frameAround(type: number, channel: number, body: Uint8Array): Uint8Array {
  const head: number[] = [type];
  let rest = channel;
  for (; rest > 0x7f; rest = Math.floor(rest / 0x80)) head.push(0x80 | (rest & 0x7f));
  head.push(rest);
  const frame = new Uint8Array(head.length + body.byteLength);
  frame.set(head);
  frame.set(body, head.length);
  return frame;
}

type Body<Type extends Frame["type"]> = Omit<Extract<Frame, { type: Type }>, "type">;

const FRAMES: { readonly [Type in Frame["type"]]: Format<Body<Type>> } = {
  "hello": fields({ version: number, token: text, agent: text }),
  "join": fields({ request: number, room: textOf(parseRoomId, "room id"), clientKey: textOf(parseClientKey, "client key"), position }),
  "leave": fields({ channel }),
  "edit": numbered(fields({ channel, counter, ackedThrough: number, parentSeq: seqOrStart, payload: bytes })),
  "resubmit": fields({ channel, edit: tentativeEdit }),
  "replay-request": checked(fields({ channel, after: seqOrStart, through: seq }), ({ after, through }) =>
    refuseUnless(after < through, "an empty range"),
  ),
  "ping": fields({ nonce: number }),
  "renew": fields({ token: text }),
  "presence": fields({ channel, fields: presenceFields }),
  "watch-board": fields({ channel, role: oneOf(BOARD_ROLES), window: oneOf(BOARD_WINDOWS), shown: number }),
  "part": checked(fields({ flags: bits("last"), payload: bytes }), ({ payload }) => refuseUnless(payload.byteLength > 0, "an empty part")),

  "welcome": { write: writeWelcome, read: readWelcome },
  "joined": fields({ request: number, channel, client: clientId, epoch, head: seqOrStart, rights: bits("read", "write") }),
  "join-refused": fields({ request: number, reason: oneOf(JOIN_REFUSALS), retryAfterMs: number, message: text }),
  "left": fields({ channel, reason: oneOf(LEFT_REASONS) }),
  "committed": fields({ channel, edits: { write: writeCommittedEdits, read: readCommittedEdits } }),
  "ack": checked(fields({ channel, epoch, counter, seq, count: number }), ({ counter, seq, count }) => {
    refuseUnless(count >= 1, "an ack of nothing");
    inRange(Math.max(counter, seq) + (count - 1));
  }),
  "acked-through": fields({ channel, epoch, counter, seq: seqOrStart }),
  "nack": fields({ channel, counter, reason: oneOf(NACK_REASONS), expected: counter, retryAfterMs: number }),
  "resync-required": fields({ channel, reason: oneOf(RESYNC_REASONS), head: fields({ epoch, seq: seqOrStart }) }),
  "tentative": fields({ channel, edit: tentativeEdit }),
  "saving": fields({ channel, state: oneOf(SAVING_STATES) }),
  "pong": fields({ nonce: number }),
  "going-away": fields({ reconnectAfterMs: number }),
  "degraded": fields({ backbone: oneOf(BACKBONE_STATES), reconnectAfterMs: number }),
  "renewed": fields({ tokenExpiresInMs: number }),
  "retry-later": fields({ retryAfterMs: number }),
  "presence-delta": fields({ channel, delta: presenceDelta }),
  "mode": fields({ channel, mode: oneOf(ROOM_MODES), participants: number, presencePerSecond: number, shed: number }),
  "board": fields({
    channel,
    role: oneOf(BOARD_ROLES),
    window: oneOf(BOARD_WINDOWS),
    state: oneOf(BOARD_STATES),
    windowId: text,
    epoch: number,
    seq: seqOrStart,
    members: number,
    ranking,
  }),
  "presence-again": fields({ channel }),
  "own-rank": fields({ channel, role: oneOf(BOARD_ROLES), window: oneOf(BOARD_WINDOWS), rank: number, score: number }),
  "error": fields({ code: number, message: text }),
};

const TYPES = new Map(Object.entries(FrameType).map(([type, number]) => [number as number, type as Frame["type"]]));

function writeFrame<Type extends Frame["type"]>(out: Encoder, frame: Frame & { type: Type }): void {
  writeUint8(out, FrameType[frame.type]);
  FRAMES[frame.type].write(out, frame as never);
}

function readFrame(input: Decoder): Frame | UnknownFrame {
  const number = readByte(input);
  const type = TYPES.get(number);
  return type === undefined ? { type: "unknown", number } : (Object.assign(FRAMES[type].read(input), { type }) as Frame);
}

const FIRST_LIMITS = fields({
  pingIntervalMs: number,
  silenceMsMax: number,
  frameBytesMax: number,
  editBytesMax: number,
  editBurst: number,
  editsPerSecond: number,
});
const LATER_LIMITS = fields({
  bytesBurst: number,
  bytesPerSecond: number,
  presenceBurst: number,
  presencePerSecond: number,
  presenceBytesMax: number,
  presenceFieldsMax: number,
  controlBurst: number,
  controlsPerSecond: number,
});
const WELCOME = fields({ version: number, connection: text, limits: FIRST_LIMITS, tokenExpiresInMs: number });

/** The later limits are part of the frame's limits, and are last on the wire. Earlier gateways omit the last of them. */
function writeWelcome(out: Encoder, welcome: Body<"welcome">): void {
  WELCOME.write(out, welcome);
  LATER_LIMITS.write(out, welcome.limits);
  const { partedFrameBytesMax } = welcome.limits;
  if (partedFrameBytesMax !== undefined) number.write(out, partedFrameBytesMax);
}

function readWelcome(input: Decoder): Body<"welcome"> {
  const welcome = WELCOME.read(input);
  const limits = { ...welcome.limits, ...LATER_LIMITS.read(input) };
  const partedFrameBytesMax = hasContent(input) ? number.read(input) : 0;
  return { ...welcome, limits: partedFrameBytesMax === 0 ? limits : { ...limits, partedFrameBytesMax } };
}
