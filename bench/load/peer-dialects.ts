/**
 * The messages of a client of each compared server, reduced to the same five. All servers carry the same edits (one
 * keystroke as a Yjs update) and the same cursors, each in the form that its own clients send.
 *
 * A writer is identified by its Yjs client id, which is its index in the room plus one. A cursor names its sender in
 * `y` and the moment of its sending in `x`.
 */

import * as decoding from "lib0/decoding";
import * as encoding from "lib0/encoding";

import { START, type ClientKey, type RoomId, type Seq } from "../../shared/ids.ts";
import { decodeFrame, encodeFrame } from "../../shared/wire/codec.ts";
import { PROTOCOL_VERSION } from "../../shared/wire/frames.ts";
import { decodePoint, encodePoint, type Point } from "../../shared/wire/positions.ts";
import { CURSOR } from "../../shared/wire/presence.ts";
import { readKeystrokes, type Keystrokes } from "../../cli/bench/keystroke.ts";
import type { Seat } from "./enter.ts";

export type DialectName = "coroom" | "y-websocket" | "hocuspocus";

/** A member's data about itself in its messages. */
type Speaker = {
  readonly room: string;
  readonly index: number;
  readonly channel: number;
  readonly seq: number;
  readonly acked: number;
};

export type PeerMessage =
  | { readonly kind: "joined"; readonly channel: number }
  /** `firstSeq`: 0 for servers without seqs. */
  | { readonly kind: "edits"; readonly edits: readonly Keystrokes[]; readonly firstSeq: number }
  /** The receiver's own edits. */
  | { readonly kind: "acked"; readonly counter: number; readonly count: number; readonly firstSeq: number }
  | { readonly kind: "cursors"; readonly cursors: readonly Point[] }
  | { readonly kind: "other" };

export type Dialect = {
  addressOf(seat: Seat): URL;
  /** Messages of a client whose socket has opened. The answer contains "joined". */
  greet(seat: Seat): readonly Uint8Array[];
  edit(speaker: Speaker, counter: number, payload: Uint8Array): Uint8Array;
  cursor(speaker: Speaker, cursor: Point, turn: number): Uint8Array;
  /** Keeps a silent client connected. */
  ping(): Uint8Array | undefined;
  /** Throws on a message that refuses a request. */
  read(bytes: Uint8Array): PeerMessage;
};

const OTHER: PeerMessage = { kind: "other" };
/** Of y-protocols. */
const [SYNC, AWARENESS, AUTH, SYNC_REPLY] = [0, 1, 2, 4];
const [STEP_1, STEP_2, UPDATE] = [0, 1, 2];

export const DIALECTS: Readonly<Record<DialectName, Dialect>> = {
  "coroom": {
    addressOf: ({ gateway }) => new URL(gateway),
    greet: ({ token, room, clientKey }) => [
      encodeFrame({ type: "hello", version: PROTOCOL_VERSION, token, agent: "bench" }),
      encodeFrame({ type: "join", request: 1, room: room as RoomId, clientKey: clientKey as ClientKey, position: START }),
    ],
    edit: ({ channel, acked, seq }, counter, payload) =>
      encodeFrame({ type: "edit", channel, counter, ackedThrough: acked, parentSeq: seq as Seq, payload }),
    cursor: ({ channel }, cursor) => encodeFrame({ type: "presence", channel, fields: [{ name: CURSOR, value: encodePoint(cursor) }] }),
    ping: () => encodeFrame({ type: "ping", nonce: 1 }),
    read: readCoroomFrame,
  },
  "y-websocket": {
    addressOf: ({ gateway, room }) => new URL(`${gateway}/${room}`),
    greet: () => [syncStep1("")],
    edit: (_, __, payload) => update("", payload),
    cursor: ({ index }, cursor, turn) => awareness("", index, cursor, turn),
    ping: () => undefined, // The server pings, and the socket answers.
    read: (bytes) => readYjsMessage(decoding.createDecoder(bytes)),
  },
  "hocuspocus": {
    addressOf: ({ gateway }) => new URL(gateway),
    greet: ({ room }) => [authentication(room), syncStep1(room)],
    edit: ({ room }, _, payload) => update(room, payload),
    cursor: ({ room, index }, cursor, turn) => awareness(room, index, cursor, turn),
    ping: () => undefined,
    read: (bytes) => {
      const input = decoding.createDecoder(bytes);
      decoding.readVarString(input); // document
      return readYjsMessage(input);
    },
  },
};

function readCoroomFrame(bytes: Uint8Array): PeerMessage {
  const frame = decodeFrame(bytes);
  switch (frame?.type) {
    case "joined":
      return { kind: "joined", channel: frame.channel };
    case "committed": {
      const { firstSeq, edits } = frame.edits;
      return { kind: "edits", edits: edits.flatMap(({ payload }) => readKeystrokes(payload)), firstSeq };
    }
    case "ack":
      return { kind: "acked", counter: frame.counter, count: frame.count, firstSeq: frame.seq };
    case "presence-delta": {
      const fields = frame.delta.states.flatMap((state) => state.fields).filter(({ name }) => name === CURSOR);
      return { kind: "cursors", cursors: frame.delta.snapshot ? [] : fields.map(({ value }) => decodePoint(value)!) };
    }
    case "join-refused":
    case "nack":
    case "error":
    case "resync-required":
    case undefined:
      throw new Error(frame === undefined ? `a frame cannot be decoded: ${Buffer.from(bytes).toString("hex")}` : JSON.stringify(frame));
    default:
      return OTHER;
  }
}

function readYjsMessage(input: decoding.Decoder): PeerMessage {
  switch (decoding.readVarUint(input)) {
    case SYNC:
    case SYNC_REPLY: {
      const step = decoding.readVarUint(input);
      if (step === STEP_2) return { kind: "joined", channel: 0 };
      if (step === UPDATE) return { kind: "edits", edits: readKeystrokes(decoding.readVarUint8Array(input)), firstSeq: 0 };
      return OTHER;
    }
    case AWARENESS:
      return { kind: "cursors", cursors: readAwareness(decoding.createDecoder(decoding.readVarUint8Array(input))) };
    default:
      return OTHER; // Hocuspocus: authenticated, and the status of an update.
  }
}

function readAwareness(input: decoding.Decoder): Point[] {
  return Array.from({ length: decoding.readVarUint(input) }, () => {
    decoding.readVarUint(input); // Yjs client
    decoding.readVarUint(input); // clock
    return (JSON.parse(decoding.readVarString(input)) as { cursor: Point } | null)?.cursor;
  }).filter((cursor) => cursor !== undefined);
}

/** `document`: empty for y-websocket, whose messages do not name it. */
function yjsMessage(document: string, type: number, write: (out: encoding.Encoder) => void): Uint8Array {
  return encoding.encode((out) => {
    if (document !== "") encoding.writeVarString(out, document);
    encoding.writeVarUint(out, type);
    write(out);
  });
}

function authentication(document: string): Uint8Array {
  return yjsMessage(document, AUTH, (out) => {
    encoding.writeVarUint(out, 0);
    encoding.writeVarString(out, "token");
  });
}

function syncStep1(document: string): Uint8Array {
  return yjsMessage(document, SYNC, (out) => {
    encoding.writeVarUint(out, STEP_1);
    encoding.writeVarUint8Array(out, Uint8Array.of(0)); // An empty state vector.
  });
}

function update(document: string, payload: Uint8Array): Uint8Array {
  return yjsMessage(document, SYNC, (out) => {
    encoding.writeVarUint(out, UPDATE);
    encoding.writeVarUint8Array(out, payload);
  });
}

/** Awareness always carries the whole state, as editors set it. */
function awareness(document: string, index: number, cursor: Point, turn: number): Uint8Array {
  const state = JSON.stringify({ user: { name: `user ${index}`, color: "#30bced" }, cursor });
  const states = encoding.encode((out) => {
    encoding.writeVarUint(out, 1);
    encoding.writeVarUint(out, index + 1);
    encoding.writeVarUint(out, turn);
    encoding.writeVarString(out, state);
  });
  return yjsMessage(document, AWARENESS, (out) => encoding.writeVarUint8Array(out, states));
}
