/**
 * What clients of y-websocket say and are told (y-protocols' sync, awareness and auth), in lib0's encoding: a kind, then
 * what belongs to it. https://github.com/yjs/y-protocols/blob/master/PROTOCOL.md
 */

import * as decoding from "lib0/decoding";
import * as encoding from "lib0/encoding";

/** What somebody shows, as JSON; `null`: nothing any more. `clock`: of two about one client the one with the higher counts. */
export type YState = { readonly client: number; readonly clock: number; readonly json: string };

export type YMessage =
  /** What the client has; it is to be told the rest. */
  | { readonly kind: "sync-request"; readonly stateVector: Uint8Array }
  | { readonly kind: "update"; readonly update: Uint8Array }
  | { readonly kind: "awareness"; readonly states: readonly YState[] }
  | { readonly kind: "awareness-request" }
  /** Of a newer protocol, of an application's own, or too much to look through. */
  | { readonly kind: "unknown" };

const SYNC = 0;
const AWARENESS = 1;
const AUTH = 2;
const AWARENESS_REQUEST = 3;
const [SYNC_STEP_1, SYNC_STEP_2, SYNC_UPDATE] = [0, 1, 2];
const PERMISSION_DENIED = 0;
/** What a client says of itself has a hundredth of that; of others it is not asked. */
const AWARENESS_BYTES_MAX = 256 * 1024;

/** Undefined for bytes that are no such message. */
export function decodeYMessage(bytes: Uint8Array): YMessage | undefined {
  try {
    return read(decoding.createDecoder(bytes));
  } catch {
    return undefined; // lib0 throws where bytes are missing.
  }
}

function read(input: decoding.Decoder): YMessage {
  switch (decoding.readVarUint(input)) {
    case SYNC: {
      const step = decoding.readVarUint(input);
      const bytes = decoding.readVarUint8Array(input);
      if (step === SYNC_STEP_1) return { kind: "sync-request", stateVector: bytes };
      return step === SYNC_STEP_2 || step === SYNC_UPDATE ? { kind: "update", update: bytes } : { kind: "unknown" };
    }
    case AWARENESS: {
      const bytes = decoding.readVarUint8Array(input);
      return bytes.byteLength > AWARENESS_BYTES_MAX
        ? { kind: "unknown" }
        : { kind: "awareness", states: readStates(decoding.createDecoder(bytes)) };
    }
    case AWARENESS_REQUEST:
      return { kind: "awareness-request" };
    default:
      return { kind: "unknown" };
  }
}

function readStates(input: decoding.Decoder): YState[] {
  const count = decoding.readVarUint(input);
  if (count > input.arr.byteLength) throw new Error("more states than bytes");
  return Array.from({ length: count }, () => ({
    client: decoding.readVarUint(input),
    clock: decoding.readVarUint(input),
    json: decoding.readVarString(input),
  }));
}

/** Asks for what the client has beyond this. */
export function encodeSyncRequest(stateVector: Uint8Array): Uint8Array {
  return sync(SYNC_STEP_1, stateVector);
}

/** After the first of them the client takes itself to be in step. */
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

export function encodeDenied(reason: string): Uint8Array {
  return encoding.encode((output) => {
    encoding.writeVarUint(output, AUTH);
    encoding.writeVarUint(output, PERMISSION_DENIED);
    encoding.writeVarString(output, reason);
  });
}

function sync(step: number, bytes: Uint8Array): Uint8Array {
  return encoding.encode((output) => {
    encoding.writeVarUint(output, SYNC);
    encoding.writeVarUint(output, step);
    encoding.writeVarUint8Array(output, bytes);
  });
}
