/** Turns frames into bytes and back: one line per field, in the order of WIRE.md. */

import * as decoding from "lib0/decoding";
import * as encoding from "lib0/encoding";

import { assertNever } from "../assert.ts";
import { type Epoch, parseClientKey, parseRoomId } from "../ids.ts";
import { BOARD_STATES, readBoardName, readRanking, writeBoardName, writeRanking } from "./boards.ts";
import { readCommittedEdits, writeCommittedEdits } from "./committed-edits.ts";
import { inRange, readByte, readBytes, readClientId, readCounter, readEpoch, readName, readNumber, readNumbering, readSeq, readSeqOrStart, readText, readUserId, required } from "./fields.ts";
import { BACKBONE_STATES, type Frame, FrameType, JOIN_REFUSALS, LEFT_REASONS, type Limits, NACK_REASONS, RESYNC_REASONS, type Rights, ROOM_MODES, SAVING_STATES, type TentativeEdit, type UnknownFrame } from "./frames.ts";
import { readFields, readNews, writeFields, writeNews } from "./presence.ts";

/** Frames from a gateway to its clients are numbered from here. */
const TO_CLIENT = 0x80;

export function encodeFrame(frame: Frame): Uint8Array {
  return encoding.encode((out) => writeFrame(out, frame));
}

/** Undefined for bytes that are no frame. Payloads are views into `bytes`: copy them to keep them. */
export function decodeFrame(bytes: Uint8Array): Frame | UnknownFrame | undefined {
  const input = decoding.createDecoder(bytes);
  try {
    const frame = readFrame(input);
    return decoding.hasContent(input) && !mayGoOn(frame, bytes[0]!) ? undefined : frame;
  } catch {
    return undefined; // Cut short, or a value out of range: the sender's doing, so refused and never thrown.
  }
}

/**
 * A newer peer may have more to say behind the fields that this version reads. A gateway's frames serve a whole
 * room, older clients included; a hello's first field says how to answer it. All else of a client is refused.
 */
function mayGoOn(frame: Frame | UnknownFrame, number: number): boolean {
  return frame.type === "unknown" || frame.type === "hello" || number >= TO_CLIENT;
}

/** A committed frame around bytes that already are committed edits. */
export function encodeCommittedFrame(channel: number, committedEdits: Uint8Array): Uint8Array {
  return frameAround(FrameType.committed, channel, committedEdits);
}

/** A frame of presence news around bytes that already are news. */
export function encodePresenceNewsFrame(channel: number, news: Uint8Array): Uint8Array {
  return frameAround(FrameType["presence-news"], channel, news);
}

/** For every record of every room, so in one allocation. */
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

function writeFrame(out: encoding.Encoder, frame: Frame): void {
  encoding.writeUint8(out, FrameType[frame.type]);
  switch (frame.type) {
    case "hello":
      encoding.writeVarUint(out, frame.version);
      encoding.writeVarString(out, frame.token);
      encoding.writeVarString(out, frame.agent);
      return;
    case "join":
      encoding.writeVarUint(out, frame.request);
      encoding.writeVarString(out, frame.room);
      encoding.writeVarString(out, frame.clientKey);
      encoding.writeVarUint(out, frame.position.epoch);
      encoding.writeVarUint(out, frame.position.seq);
      return;
    case "leave":
      encoding.writeVarUint(out, frame.channel);
      return;
    case "edit":
      encoding.writeVarUint(out, frame.channel);
      encoding.writeVarUint(out, frame.counter);
      encoding.writeVarUint(out, frame.ackedThrough);
      encoding.writeVarUint(out, frame.parentSeq);
      encoding.writeVarUint8Array(out, frame.payload);
      return;
    case "resubmit":
    case "tentative":
      encoding.writeVarUint(out, frame.channel);
      writeTentativeEdit(out, frame.edit);
      return;
    case "replay-request":
      encoding.writeVarUint(out, frame.channel);
      encoding.writeVarUint(out, frame.after);
      encoding.writeVarUint(out, frame.through);
      return;
    case "ping":
    case "pong":
      encoding.writeVarUint(out, frame.nonce);
      return;
    case "welcome":
      encoding.writeVarUint(out, frame.version);
      encoding.writeVarString(out, frame.connection);
      writeLimits(out, frame.limits);
      encoding.writeVarUint(out, frame.tokenExpiresInMs);
      encoding.writeVarUint(out, frame.limits.bytesBurst);
      encoding.writeVarUint(out, frame.limits.bytesPerSecond);
      return;
    case "joined":
      encoding.writeVarUint(out, frame.request);
      encoding.writeVarUint(out, frame.channel);
      encoding.writeVarString(out, frame.client);
      encoding.writeVarUint(out, frame.epoch);
      encoding.writeVarUint(out, frame.head);
      encoding.writeUint8(out, (frame.rights.read ? 1 : 0) | (frame.rights.write ? 2 : 0));
      return;
    case "join-refused":
      encoding.writeVarUint(out, frame.request);
      encoding.writeUint8(out, JOIN_REFUSALS[frame.reason]);
      encoding.writeVarUint(out, frame.retryAfterMs);
      encoding.writeVarString(out, frame.message);
      return;
    case "left":
      encoding.writeVarUint(out, frame.channel);
      encoding.writeUint8(out, LEFT_REASONS[frame.reason]);
      return;
    case "committed":
      encoding.writeVarUint(out, frame.channel);
      writeCommittedEdits(out, frame.edits);
      return;
    case "ack":
      encoding.writeVarUint(out, frame.channel);
      encoding.writeVarUint(out, frame.epoch);
      encoding.writeVarUint(out, frame.counter);
      encoding.writeVarUint(out, frame.seq);
      encoding.writeVarUint(out, frame.count);
      return;
    case "acked-through":
      encoding.writeVarUint(out, frame.channel);
      encoding.writeVarUint(out, frame.epoch);
      encoding.writeVarUint(out, frame.counter);
      encoding.writeVarUint(out, frame.seq);
      return;
    case "nack":
      encoding.writeVarUint(out, frame.channel);
      encoding.writeVarUint(out, frame.counter);
      encoding.writeUint8(out, NACK_REASONS[frame.reason]);
      encoding.writeVarUint(out, frame.expected);
      encoding.writeVarUint(out, frame.retryAfterMs);
      return;
    case "resync-required":
      encoding.writeVarUint(out, frame.channel);
      encoding.writeUint8(out, RESYNC_REASONS[frame.reason]);
      encoding.writeVarUint(out, frame.head.epoch);
      encoding.writeVarUint(out, frame.head.seq);
      return;
    case "saving":
      encoding.writeVarUint(out, frame.channel);
      encoding.writeUint8(out, SAVING_STATES[frame.state]);
      return;
    case "error":
      encoding.writeVarUint(out, frame.code);
      encoding.writeVarString(out, frame.message);
      return;
    case "renew":
      encoding.writeVarString(out, frame.token);
      return;
    case "renewed":
      encoding.writeVarUint(out, frame.tokenExpiresInMs);
      return;
    case "retry-later":
      encoding.writeVarUint(out, frame.retryAfterMs);
      return;
    case "going-away":
      encoding.writeVarUint(out, frame.reconnectAfterMs);
      return;
    case "degraded":
      encoding.writeUint8(out, BACKBONE_STATES[frame.backbone]);
      encoding.writeVarUint(out, frame.reconnectAfterMs);
      return;
    case "presence":
      encoding.writeVarUint(out, frame.channel);
      writeFields(out, frame.fields);
      return;
    case "presence-news":
      encoding.writeVarUint(out, frame.channel);
      writeNews(out, frame.news);
      return;
    case "mode":
      encoding.writeVarUint(out, frame.channel);
      encoding.writeUint8(out, ROOM_MODES[frame.mode]);
      encoding.writeVarUint(out, frame.participants);
      encoding.writeVarUint(out, frame.presencePerSecond);
      encoding.writeVarUint(out, frame.shed);
      return;
    case "watch-board":
      encoding.writeVarUint(out, frame.channel);
      writeBoardName(out, frame);
      encoding.writeVarUint(out, frame.shown);
      return;
    case "board":
      encoding.writeVarUint(out, frame.channel);
      writeBoardName(out, frame);
      encoding.writeUint8(out, BOARD_STATES[frame.state]);
      encoding.writeVarString(out, frame.windowId);
      encoding.writeVarUint(out, frame.epoch);
      encoding.writeVarUint(out, frame.seq);
      encoding.writeVarUint(out, frame.members);
      writeRanking(out, frame.ranking);
      return;
    case "own-rank":
      encoding.writeVarUint(out, frame.channel);
      writeBoardName(out, frame);
      encoding.writeVarUint(out, frame.rank);
      encoding.writeVarUint(out, frame.score);
      return;
    default:
      assertNever(frame);
  }
}

function readFrame(input: decoding.Decoder): Frame | UnknownFrame {
  const number = readByte(input);
  switch (number) {
    case FrameType.hello:
      return { type: "hello", version: readNumber(input), token: readText(input), agent: readText(input) };
    case FrameType.join:
      return {
        type: "join",
        request: readNumber(input),
        room: required(parseRoomId(readText(input)), "room id"),
        clientKey: required(parseClientKey(readText(input)), "client key"),
        position: { epoch: readNumber(input) as Epoch, seq: readSeqOrStart(input) },
      };
    case FrameType.leave:
      return { type: "leave", channel: readChannel(input) };
    case FrameType.edit:
      return {
        type: "edit",
        channel: readChannel(input),
        ...readNumbering(input),
        parentSeq: readSeqOrStart(input),
        payload: readBytes(input),
      };
    case FrameType.resubmit:
      return { type: "resubmit", channel: readChannel(input), edit: readTentativeEdit(input) };
    case FrameType["replay-request"]: {
      const [channel, after, through] = [readChannel(input), readSeqOrStart(input), readSeq(input)];
      if (through <= after) throw new RangeError("an empty range");
      return { type: "replay-request", channel, after, through };
    }
    case FrameType.ping:
      return { type: "ping", nonce: readNumber(input) };
    case FrameType.pong:
      return { type: "pong", nonce: readNumber(input) };
    case FrameType.welcome:
      return readWelcome(input);
    case FrameType.joined:
      return {
        type: "joined",
        request: readNumber(input),
        channel: readChannel(input),
        client: readClientId(input),
        epoch: readEpoch(input),
        head: readSeqOrStart(input),
        rights: readRights(input),
      };
    case FrameType["join-refused"]:
      return {
        type: "join-refused",
        request: readNumber(input),
        reason: readName(input, JOIN_REFUSALS),
        retryAfterMs: readNumber(input),
        message: readText(input),
      };
    case FrameType.left:
      return { type: "left", channel: readChannel(input), reason: readName(input, LEFT_REASONS) };
    case FrameType.committed:
      return { type: "committed", channel: readChannel(input), edits: readCommittedEdits(input) };
    case FrameType.ack: {
      const frame = { type: "ack" as const, channel: readChannel(input), epoch: readEpoch(input), counter: readCounter(input), seq: readSeq(input), count: readNumber(input) };
      if (frame.count < 1) throw new RangeError("an ack of nothing");
      inRange(Math.max(frame.counter, frame.seq) + (frame.count - 1));
      return frame;
    }
    case FrameType["acked-through"]:
      return { type: "acked-through", channel: readChannel(input), epoch: readEpoch(input), counter: readCounter(input), seq: readSeqOrStart(input) };
    case FrameType.nack:
      return {
        type: "nack",
        channel: readChannel(input),
        counter: readCounter(input),
        reason: readName(input, NACK_REASONS),
        expected: readCounter(input),
        retryAfterMs: readNumber(input),
      };
    case FrameType["resync-required"]:
      return { type: "resync-required", channel: readChannel(input), reason: readName(input, RESYNC_REASONS), head: { epoch: readEpoch(input), seq: readSeqOrStart(input) } };
    case FrameType.tentative:
      return { type: "tentative", channel: readChannel(input), edit: readTentativeEdit(input) };
    case FrameType.saving:
      return { type: "saving", channel: readChannel(input), state: readName(input, SAVING_STATES) };
    case FrameType.error:
      return { type: "error", code: readNumber(input), message: readText(input) };
    case FrameType.renew:
      return { type: "renew", token: readText(input) };
    case FrameType.renewed:
      return { type: "renewed", tokenExpiresInMs: readNumber(input) };
    case FrameType["retry-later"]:
      return { type: "retry-later", retryAfterMs: readNumber(input) };
    case FrameType["going-away"]:
      return { type: "going-away", reconnectAfterMs: readNumber(input) };
    case FrameType.degraded:
      return { type: "degraded", backbone: readName(input, BACKBONE_STATES), reconnectAfterMs: readNumber(input) };
    case FrameType.presence:
      return { type: "presence", channel: readChannel(input), fields: readFields(input) };
    case FrameType["presence-news"]:
      return { type: "presence-news", channel: readChannel(input), news: readNews(input) };
    case FrameType.mode:
      return { type: "mode", channel: readChannel(input), mode: readName(input, ROOM_MODES), participants: readNumber(input), presencePerSecond: readNumber(input), shed: readNumber(input) };
    case FrameType["watch-board"]:
      return { type: "watch-board", channel: readChannel(input), ...readBoardName(input), shown: readNumber(input) };
    case FrameType.board:
      return {
        type: "board",
        channel: readChannel(input),
        ...readBoardName(input),
        state: readName(input, BOARD_STATES),
        windowId: readText(input),
        epoch: readNumber(input),
        seq: readSeqOrStart(input),
        members: readNumber(input),
        ranking: readRanking(input),
      };
    case FrameType["own-rank"]:
      return { type: "own-rank", channel: readChannel(input), ...readBoardName(input), rank: readNumber(input), score: readNumber(input) };
    default:
      return { type: "unknown", number };
  }
}

export function writeTentativeEdit(out: encoding.Encoder, edit: TentativeEdit): void {
  encoding.writeVarUint(out, edit.epoch);
  encoding.writeVarString(out, edit.user);
  encoding.writeVarString(out, edit.client);
  encoding.writeVarUint(out, edit.counter);
  encoding.writeVarUint(out, edit.ackedThrough);
  encoding.writeVarUint(out, edit.parentSeq);
  encoding.writeVarUint8Array(out, edit.mac);
  encoding.writeVarUint8Array(out, edit.payload);
}

export function readTentativeEdit(input: decoding.Decoder): TentativeEdit {
  return {
    epoch: readEpoch(input),
    user: readUserId(input),
    client: readClientId(input),
    ...readNumbering(input),
    parentSeq: readSeqOrStart(input),
    mac: readBytes(input),
    payload: readBytes(input),
  };
}

function readChannel(input: decoding.Decoder): number {
  const channel = readNumber(input);
  if (channel < 1) throw new RangeError("channels start at 1");
  return channel;
}

function readRights(input: decoding.Decoder): Rights {
  const bits = readByte(input);
  return { read: (bits & 1) !== 0, write: (bits & 2) !== 0 };
}

function writeLimits(out: encoding.Encoder, limits: Limits): void {
  encoding.writeVarUint(out, limits.pingIntervalMs);
  encoding.writeVarUint(out, limits.silenceMsMax);
  encoding.writeVarUint(out, limits.frameBytesMax);
  encoding.writeVarUint(out, limits.editBytesMax);
  encoding.writeVarUint(out, limits.editBurst);
  encoding.writeVarUint(out, limits.editsPerSecond);
}

/** The byte rate came later: fields are added at a frame's end. */
function readWelcome(input: decoding.Decoder): Frame & { type: "welcome" } {
  const [version, connection, limits, tokenExpiresInMs] = [readNumber(input), readText(input), readLimits(input), readNumber(input)];
  return { type: "welcome", version, connection, limits: { ...limits, bytesBurst: readNumber(input), bytesPerSecond: readNumber(input) }, tokenExpiresInMs };
}

function readLimits(input: decoding.Decoder): Omit<Limits, "bytesBurst" | "bytesPerSecond"> {
  return {
    pingIntervalMs: readNumber(input),
    silenceMsMax: readNumber(input),
    frameBytesMax: readNumber(input),
    editBytesMax: readNumber(input),
    editBurst: readNumber(input),
    editsPerSecond: readNumber(input),
  };
}

