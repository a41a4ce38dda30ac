/**
 * One keystroke as a Yjs update, written without a document: a letter behind the writer's letter before it.
 * So the document service has real work, as small and as many as typing makes it.
 */

import * as encoding from "lib0/encoding";

/** The type of the document that everything is written into. */
export const TEXT = "text";
const STRING = 4;
const HAS_ORIGIN = 0x80;

/** `counter` counts from 1; `writer` is the Yjs client id. `letters`: more than one where each edit is to weigh more. */
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
