/**
 * One keystroke as a Yjs update, encoded without a document: a letter after the writer's previous letter. The document
 * service has real work with it, as small and as frequent as typing makes it.
 */

import * as decoding from "lib0/decoding";
import * as encoding from "lib0/encoding";

/** Name of the document's shared text. */
export const TEXT = "text";
const STRING = 4;
const HAS_ORIGIN = 0x80;
const HAS_RIGHT_ORIGIN = 0x40;
const KIND = 0x1f;

/** `counter` begins at 1. `writer` is the Yjs client id. `letters` makes an edit larger. */
export function keystroke(writer: number, counter: number, letters = 1): Uint8Array {
  const clock = (counter - 1) * letters;
  return encoding.encode((out) => {
    encoding.writeVarUint(out, 1); // one client,
    encoding.writeVarUint(out, 1); // one item,
    encoding.writeVarUint(out, writer);
    encoding.writeVarUint(out, clock);
    if (clock === 0) {
      encoding.writeUint8(out, STRING);
      encoding.writeVarUint(out, 1); // whose parent is a type of the document,
      encoding.writeVarString(out, TEXT);
    } else {
      encoding.writeUint8(out, STRING | HAS_ORIGIN);
      encoding.writeVarUint(out, writer);
      encoding.writeVarUint(out, clock - 1);
    }
    encoding.writeVarString(out, String.fromCharCode(97 + ((counter - 1) % 26)).repeat(letters));
    encoding.writeVarUint(out, 0); // nothing deleted
  });
}

/** Consecutive keystrokes of one writer. */
export type Keystrokes = { readonly writer: number; readonly counter: number; readonly count: number };

/** The keystrokes in an update, which a server may have encoded again. Each has one letter. Throws on anything else. */
export function readKeystrokes(update: Uint8Array): Keystrokes[] {
  const input = decoding.createDecoder(update);
  const read: Keystrokes[] = [];
  for (let clients = decoding.readVarUint(input); clients > 0; clients--) {
    const items = decoding.readVarUint(input);
    const writer = decoding.readVarUint(input);
    let clock = decoding.readVarUint(input);
    for (let item = 0; item < items; item++) {
      const count = readLetters(input);
      read.push({ writer, counter: clock + 1, count });
      clock += count;
    }
  }
  return read;
}

function readLetters(input: decoding.Decoder): number {
  const info = decoding.readUint8(input);
  if ((info & KIND) !== STRING) throw new Error(`an update contains an item of kind ${info & KIND}`);
  const origins = (info & HAS_ORIGIN ? 1 : 0) + (info & HAS_RIGHT_ORIGIN ? 1 : 0);
  for (let number = 0; number < 2 * origins; number++) decoding.readVarUint(input);
  if (origins === 0) {
    decoding.readVarUint(input);
    decoding.readVarString(input); // name of the parent
  }
  return decoding.readVarString(input).length;
}
