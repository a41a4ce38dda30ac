/**
 * lib0's `encode` without a buffer made for each message. One has a hundred bytes outside V8's heap, and quiet rooms and
 * clients have thousands of messages a second made that are a tenth as long.
 *
 * The one buffer that is kept is state of a module, which holds nothing between two messages.
 */

import { createEncoder, type Encoder, toUint8Array } from "lib0/encoding";

const kept: Encoder = createEncoder();
let isTaken = false;

/** The bytes that `write` writes, in memory of their own. `write` may encode other messages meanwhile. */
export function encode(write: (out: Encoder) => void): Uint8Array<ArrayBuffer> {
  if (isTaken) return written(createEncoder(), write);
  isTaken = true;
  const first = kept.cbuf;
  try {
    return written(kept, write);
  } finally {
    kept.cpos = 0;
    kept.cbuf = first; // Of a long message the rest stands in longer ones.
    if (kept.bufs.length > 0) kept.bufs = [];
    isTaken = false;
  }
}

function written(out: Encoder, write: (out: Encoder) => void): Uint8Array<ArrayBuffer> {
  write(out);
  return out.bufs.length === 0 ? (out.cbuf.slice(0, out.cpos) as Uint8Array<ArrayBuffer>) : toUint8Array(out);
}
