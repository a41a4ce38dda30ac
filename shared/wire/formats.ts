/**
 * How values stand on the wire. A format both writes and reads, so that the two cannot drift apart, and a whole
 * message is a list of its fields in their order. What reading refuses is in fields.ts.
 */

import type { Decoder } from "lib0/decoding";
import * as encoding from "lib0/encoding";

import { type ClientId, type Epoch, type GatewayId, parseGatewayId, type Position, type Seq, type UserId } from "../ids.ts";
import {
  readByte,
  readBytes,
  readClientId,
  readCounter,
  readEpoch,
  readList,
  readName,
  readNumber,
  readSeq,
  readSeqOrStart,
  readText,
  readUserId,
  required,
} from "./fields.ts";
import type { Channel, Counter, TentativeEdit } from "./frames.ts";

/** `read` throws on bytes that hold no such value. */
export type Format<Value> = { readonly write: (out: encoding.Encoder, value: Value) => void; readonly read: (input: Decoder) => Value };
export type Formats<Value> = { readonly [Field in keyof Value]-?: Format<Value[Field]> };

export const number: Format<number> = { write: encoding.writeVarUint, read: readNumber };
export const text: Format<string> = { write: encoding.writeVarString, read: readText };
/** Read as a view into the input: copy it to keep it. */
export const bytes: Format<Uint8Array> = { write: encoding.writeVarUint8Array, read: readBytes };

export const seq: Format<Seq> = { write: encoding.writeVarUint, read: readSeq };
export const seqOrStart: Format<Seq> = { write: encoding.writeVarUint, read: readSeqOrStart };
export const epoch: Format<Epoch> = { write: encoding.writeVarUint, read: readEpoch };
/** 0 where none is known. */
export const epochOrNone: Format<Epoch> = { write: encoding.writeVarUint, read: (input) => readNumber(input) as Epoch };
export const counter: Format<Counter> = { write: encoding.writeVarUint, read: readCounter };
export const userId: Format<UserId> = { write: encoding.writeVarString, read: readUserId };
export const clientId: Format<ClientId> = { write: encoding.writeVarString, read: readClientId };
export const gatewayId: Format<GatewayId> = textOf(parseGatewayId, "gateway id");
export const channel: Format<Channel> = checked(number, (value) => refuseUnless(value >= 1, "channels start at 1"));

export const flag: Format<boolean> = {
  write: (out, value) => encoding.writeUint8(out, value ? 1 : 0),
  read(input) {
    const byte = readByte(input);
    refuseUnless(byte <= 1, "neither yes nor no");
    return byte === 1;
  },
};

/** Yes or no for each name, the first in the lowest bit. Bits beyond are not looked at: a later version may use them. */
export function bits<Name extends string>(...names: readonly Name[]): Format<Readonly<Record<Name, boolean>>> {
  return {
    write: (out, value) =>
      encoding.writeUint8(
        out,
        names.reduce((byte, name, bit) => byte | (value[name] ? 1 << bit : 0), 0),
      ),
    read(input) {
      const byte = readByte(input);
      const value = {} as Record<Name, boolean>;
      names.forEach((name, bit) => (value[name] = (byte & (1 << bit)) !== 0));
      return value;
    },
  };
}

/** One of a fixed list of names, each with its number. */
export function oneOf<Name extends string>(numbers: Readonly<Record<Name, number>>): Format<Name> {
  return { write: (out, name) => encoding.writeUint8(out, numbers[name]), read: (input) => readName(input, numbers) };
}

export function textOf<Value extends string>(parse: (text: string) => Value | undefined, what: string): Format<Value> {
  return { write: encoding.writeVarString, read: (input) => required(parse(readText(input)), what) };
}

/** `entryBytesMin`: what the shortest entry takes, so that a count which lies is refused before it costs memory. */
export function list<Entry>(entryBytesMin: number, entry: Format<Entry>): Format<readonly Entry[]> {
  return {
    write(out, entries) {
      encoding.writeVarUint(out, entries.length);
      for (const value of entries) entry.write(out, value);
    },
    read: (input) => readList(input, entryBytesMin, entry.read),
  };
}

/** One after the other, as listed. */
export function fields<Value extends object>(formats: Formats<Value>): Format<Value> {
  const inOrder = Object.entries(formats) as [keyof Value, Format<Value[keyof Value]>][];
  return {
    write(out, value) {
      for (const [name, format] of inOrder) format.write(out, value[name]);
    },
    read(input) {
      const value = {} as Value;
      for (const [name, format] of inOrder) value[name] = format.read(input);
      return value;
    },
  };
}

/** `check` throws where fields that are right by themselves are not so together. */
export function checked<Value>(format: Format<Value>, check: (value: Value) => void): Format<Value> {
  return {
    write: format.write,
    read(input) {
      const value = format.read(input);
      check(value);
      return value;
    },
  };
}

export function refuseUnless(isRight: boolean, why: string): void {
  if (!isRight) throw new RangeError(why);
}

export type Kinds<Message extends { readonly kind: string }> = {
  readonly [Kind in Message["kind"]]: readonly [tag: number, body: Format<Omit<Extract<Message, { kind: Kind }>, "kind">>];
};

/** One of several kinds, told apart by a byte in front. */
export function kinds<Message extends { readonly kind: string }>(byKind: Kinds<Message>): Format<Message> {
  const byTag = new Map((Object.keys(byKind) as Message["kind"][]).map((kind) => [byKind[kind][0], { kind, body: byKind[kind][1] }]));
  return {
    write(out, message) {
      const [tag, body] = byKind[message.kind as Message["kind"]];
      encoding.writeUint8(out, tag);
      body.write(out, message as never);
    },
    read(input) {
      const { kind, body } = required(byTag.get(readByte(input)), "kind");
      return Object.assign(body.read(input), { kind }) as unknown as Message;
    },
  };
}

export const position: Format<Position> = fields({ epoch: epochOrNone, seq: seqOrStart });

/** What is acknowledged already is not sent again, so the counter lies above it. */
export function numbered<Value extends { readonly counter: Counter; readonly ackedThrough: Counter }>(
  format: Format<Value>,
): Format<Value> {
  return checked(format, ({ counter, ackedThrough }) => refuseUnless(ackedThrough < counter, "an edit that is acknowledged already"));
}

export const tentativeEdit: Format<TentativeEdit> = numbered(
  fields({ epoch, user: userId, client: clientId, counter, ackedThrough: number, parentSeq: seqOrStart, mac: bytes, payload: bytes }),
);
