/**
 * Encoder and decoder of the y-websocket protocol (sync, awareness and auth of y-protocols) in lib0's encoding: a
 * message type, then its content. https://github.com/yjs/y-protocols/blob/master/PROTOCOL.md
 */

import * as decoding from "lib0/decoding";
import * as encoding from "lib0/encoding";

/**
 * A client's awareness state as JSON. `null`: the client is gone. `clock`: of two states of one client, the higher
 * clock wins.
 */
export type YState = { readonly client: number; readonly clock: number; readonly json: string };

/** The JSON of a state in an awareness message: its first byte, and its number of bytes. */
export type JsonPlace = { readonly start: number; readonly length: number };

export type YMessage =
  /** The client's state vector. The bridge answers with the content that the client lacks. */
  | { readonly kind: "sync-request"; readonly stateVector: Uint8Array }
  /** `isAnswer`: everything that the client has beyond the state vector of a request. */
  | { readonly kind: "update"; readonly update: Uint8Array; readonly isAnswer: boolean }
  /** `first`: the client of the first state, if any. `visitStates` reads the states in `bytes`. */
  | { readonly kind: "awareness"; readonly first: number | undefined; readonly bytes: Uint8Array }
  | { readonly kind: "awareness-request" }
  /** A text of a Hocuspocus application to the other clients. */
  | { readonly kind: "stateless"; readonly payload: string }
  /** A message of a newer protocol or of an application, or one too large to decode. */
  | { readonly kind: "unknown" };

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

const SYNC = 0;
const AWARENESS = 1;
const AUTH = 2;
const AWARENESS_REQUEST = 3;
const STATELESS = 5;
const [SYNC_STEP_1, SYNC_STEP_2, SYNC_UPDATE] = [0, 1, 2];
const PERMISSION_DENIED = 0;
/** A client's own state needs a hundredth of this. States of other clients, which a client repeats, are not needed. */
const AWARENESS_BYTES_MAX = 256 * 1024;

/** Enough for a document with 100,000 clients. Yjs needs 5 s to decode a state vector of 25 MB. */
const STATE_VECTOR_BYTES_MAX = 1024 ** 2;

/** Undefined: the bytes are not a message of the protocol. */
export function decodeYMessage(bytes: Uint8Array): YMessage | undefined {
  try {
    return read(decoding.createDecoder(bytes));
  } catch {
    return undefined; // lib0 throws if bytes are missing.
  }
}

function read(input: decoding.Decoder): YMessage {
  switch (decoding.readVarUint(input)) {
    case SYNC: {
      const step = decoding.readVarUint(input);
      const bytes = decoding.readVarUint8Array(input);
      if (step === SYNC_STEP_1) return { kind: "sync-request", stateVector: checkedStateVector(bytes) };
      return step === SYNC_STEP_2 || step === SYNC_UPDATE
        ? { kind: "update", update: bytes, isAnswer: step === SYNC_STEP_2 }
        : { kind: "unknown" };
    }
    case AWARENESS: {
      const bytes = decoding.readVarUint8Array(input);
      return bytes.byteLength > AWARENESS_BYTES_MAX ? { kind: "unknown" } : { kind: "awareness", first: firstClientIn(bytes), bytes };
    }
    case AWARENESS_REQUEST:
      return { kind: "awareness-request" };
    case STATELESS:
      return { kind: "stateless", payload: decoding.readVarString(input) };
    default:
      return { kind: "unknown" };
  }
}

/** Throws if the bytes are not a state vector, or too long. Builds no map of it, as Yjs would. */
function checkedStateVector(bytes: Uint8Array): Uint8Array {
  if (bytes.byteLength > STATE_VECTOR_BYTES_MAX) throw new Error("the state vector is too long");
  const input = decoding.createDecoder(bytes);
  for (let numbers = 2 * decoding.readVarUint(input); numbers > 0; numbers--) decoding.readVarUint(input);
  return bytes;
}

/** Throws if the bytes are not states. */
function firstClientIn(bytes: Uint8Array): number | undefined {
  let first: number | undefined;
  visitStates(bytes, (client) => void (first ??= client));
  return first;
}

/**
 * Calls `visit` with each state of an awareness message, and the place of its JSON for `readJson`. Reading a state takes a
 * hundred times as long as skipping it, and a client repeats the states of all others. Throws if the bytes are not states.
 */
export function visitStates(bytes: Uint8Array, visit: (client: number, clock: number, json: JsonPlace) => void): void {
  const input = decoding.createDecoder(bytes);
  const count = decoding.readVarUint(input);
  if (count > bytes.byteLength) throw new Error("more states than bytes");
  for (let state = 0; state < count; state++) {
    const [client, clock] = [decoding.readVarUint(input), decoding.readVarUint(input)];
    const length = decoding.readVarUint(input);
    const start = input.pos;
    input.pos += length;
    if (input.pos > bytes.byteLength) throw new Error("a state is longer than its message");
    visit(client, clock, { start, length });
  }
}

/** Throws if the bytes are no text. */
export function readJson(bytes: Uint8Array, { start, length }: JsonPlace): string {
  return UTF8.decode(bytes.subarray(start, start + length));
}

/** Requests everything that the client has beyond this state vector. */
export function encodeSyncRequest(stateVector: Uint8Array): Uint8Array {
  return sync(SYNC_STEP_1, stateVector);
}

/** The client reports itself as synced after the first of these. */
export function encodeSyncAnswer(update: Uint8Array): Uint8Array {
  return sync(SYNC_STEP_2, update);
}

export function encodeUpdate(update: Uint8Array): Uint8Array {
  return sync(SYNC_UPDATE, update);
}

export function encodeAwareness(states: readonly YState[]): Uint8Array {
  const inner = encoding.encode((output) => {
    encoding.writeVarUint(output, states.length);
    for (const { client, clock, json } of states) {
      encoding.writeVarUint(output, client);
      encoding.writeVarUint(output, clock);
      encoding.writeVarString(output, json);
    }
  });
  return encoding.encode((output) => {
    encoding.writeVarUint(output, AWARENESS);
    encoding.writeVarUint8Array(output, inner);
  });
}

export function encodeStateless(payload: string): Uint8Array {
  return encoding.encode((output) => {
    encoding.writeVarUint(output, STATELESS);
    encoding.writeVarString(output, payload);
  });
}

function encodeDenied(reason: string): Uint8Array {
  return encoding.encode((output) => {
    encoding.writeVarUint(output, AUTH);
    encoding.writeVarUint(output, PERMISSION_DENIED);
    encoding.writeVarString(output, reason);
  });
}

/** The differences between protocols that are based on y-protocols. A message that a protocol lacks is undefined. */
export type YDialect = {
  /** The room is joined. */
  joined(mayWrite: boolean): Uint8Array | undefined;
  /** The room is closed to the client. */
  refused(reason: string): Uint8Array | undefined;
  /** The client may not write. Sent once. */
  readOnly(reason: string): Uint8Array | undefined;
  /** The log has all edits of the client up to one of its updates, or does not. Sent for each update. */
  written(isSaved: boolean): Uint8Array | undefined;
  /** An application's text from another client. */
  relayed(message: Uint8Array): Uint8Array | undefined;
};

/** A client treats an update as saved when it comes back, so the room's edits are also sent to their author. */
export const yWebsocketDialect: YDialect = {
  joined: () => undefined,
  refused: encodeDenied,
  readOnly: encodeDenied,
  written: () => undefined,
  relayed: () => undefined,
};

function sync(step: number, bytes: Uint8Array): Uint8Array {
  return encoding.encode((output) => {
    encoding.writeVarUint(output, SYNC);
    encoding.writeVarUint(output, step);
    encoding.writeVarUint8Array(output, bytes);
  });
}
