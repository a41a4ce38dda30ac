/**
 * Encoder and decoder of the Hocuspocus protocol: the name of a document, then a message of the y-websocket protocol, or
 * one of the messages below. One socket carries any number of documents.
 * https://github.com/ueberdosis/hocuspocus/blob/main/packages/provider/src/types.ts
 */

import * as decoding from "lib0/decoding";
import * as encoding from "lib0/encoding";

import type { YDialect } from "./y-websocket-protocol.ts";

export type HocuspocusMessage =
  | { readonly kind: "token"; readonly document: string; readonly token: string }
  | { readonly kind: "close"; readonly document: string }
  /** A message of the y-websocket protocol. */
  | { readonly kind: "content"; readonly document: string; readonly bytes: Uint8Array }
  /** The answer to a ping. It belongs to no document. */
  | { readonly kind: "pong" };

const AUTH = 2;
const CLOSE = 7;
const SYNC_STATUS = 8;
const [TOKEN, PERMISSION_DENIED, AUTHENTICATED] = [0, 1, 2];

/** Undefined: the bytes are not a message of the protocol. */
export function decodeHocuspocus(bytes: Uint8Array): HocuspocusMessage | undefined {
  try {
    return read(decoding.createDecoder(bytes));
  } catch {
    return undefined; // lib0 throws if bytes are missing.
  }
}

function read(input: decoding.Decoder): HocuspocusMessage | undefined {
  if (input.arr.byteLength === 1) return { kind: "pong" };
  const document = decoding.readVarString(input);
  const start = input.pos;
  switch (decoding.readVarUint(input)) {
    case AUTH:
      return decoding.readVarUint(input) === TOKEN ? { kind: "token", document, token: decoding.readVarString(input) } : undefined;
    case CLOSE:
      return { kind: "close", document };
    default:
      return { kind: "content", document, bytes: input.arr.subarray(start) };
  }
}

/** The room of a document. Several providers of one page may use the same room: each adds a session to the name. */
export function roomNameOf(document: string): string {
  return document.split("\0", 1)[0]!;
}

/** Adds the name of the document before a message. */
export function toDocument(document: string, message: Uint8Array): Uint8Array {
  return encoding.encode((output) => {
    encoding.writeVarString(output, document);
    encoding.writeUint8Array(output, message);
  });
}

function auth(type: number, text: string): Uint8Array {
  return encoding.encode((output) => {
    encoding.writeVarUint(output, AUTH);
    encoding.writeVarUint(output, type);
    encoding.writeVarString(output, text);
  });
}

/** Whether the message opens a document, after its token was verified. */
export function isAuthenticated(message: Uint8Array): boolean {
  return message[0] === AUTH && message[1] === AUTHENTICATED;
}

const [SAVED, NOT_SAVED] = [Uint8Array.of(SYNC_STATUS, 1), Uint8Array.of(SYNC_STATUS, 0)];

/** The provider reduces its count of unsynced changes with each update that is reported as saved. */
export const hocuspocusDialect: YDialect = {
  joined: (mayWrite) => auth(AUTHENTICATED, mayWrite ? "read-write" : "readonly"),
  refused: (reason) => auth(PERMISSION_DENIED, reason),
  readOnly: () => undefined, // The scope in `joined` contains it.
  written: (isSaved) => (isSaved ? SAVED : NOT_SAVED),
  relayed: (message) => message,
};
