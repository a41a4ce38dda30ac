/**
 * One keystroke as a Yjs update, encoded without a document: a letter after the writer's previous letter. The document
 * service has real work with it, as small and as frequent as typing makes it.
 */

import * as encoding from "lib0/encoding";

/** Name of the document's shared text. */
export const TEXT = "text";
const STRING = 4;
const HAS_ORIGIN = 0x80;

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
