/**
 * Recognises the first message of a y-websocket or Hocuspocus client, and refuses it in its own protocol: such clients show
 * a refusal to their application, but not a frame and often not the reason of a close.
 */

import * as decoding from "lib0/decoding";
import * as encoding from "lib0/encoding";

const [SYNC, AUTH] = [0, 2];
const PERMISSION_DENIED = { yWebsocket: 0, hocuspocus: 1 };
/** A refusal repeats the name of the document. Longer names are not repeated, so that the answer to a stranger stays short. */
const NAME_BYTES_MAX = 1_024;

/** Undefined: the bytes are of no such client. */
export function otherProtocolRefusal(bytes: Uint8Array, why: string): Uint8Array | undefined {
  const nameEnd = documentNameEnd(bytes);
  if (nameEnd === undefined) return undefined;
  return encoding.encode((out) => {
    encoding.writeUint8Array(out, bytes.subarray(0, nameEnd));
    encoding.writeVarUint(out, AUTH);
    encoding.writeVarUint(out, nameEnd === 0 ? PERMISSION_DENIED.yWebsocket : PERMISSION_DENIED.hocuspocus);
    encoding.writeVarString(out, why);
  });
}

/**
 * Where the name of a Hocuspocus document ends; 0 for y-websocket, whose messages have none. The token or the state vector
 * of the client follows: a type, and 0. HELLO has text at that place.
 */
function documentNameEnd(bytes: Uint8Array): number | undefined {
  if (bytes[0] === SYNC) return bytes[1] === 0 ? 0 : undefined;
  try {
    const input = decoding.createDecoder(bytes);
    const length = decoding.readVarUint(input);
    const end = input.pos + length;
    if (length > NAME_BYTES_MAX) return undefined;
    const [type, step] = [bytes[end], bytes[end + 1]];
    return (type === AUTH || type === SYNC) && step === 0 ? end : undefined;
  } catch {
    return undefined; // lib0 throws if bytes are missing.
  }
}
