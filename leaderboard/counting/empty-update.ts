/**
 * Recognises Yjs updates that can change no document, from their bytes alone, so that a rebuild from the log gives the
 * same points. An update (version 1) has two parts: for each client a number of structs, and for each client a list of
 * deleted ranges. The update changes nothing if all structs are gaps and all ranges have length 0. Whether other
 * structs or deletions are known already depends on the document, so their edit counts.
 */

/** The struct type of a gap. Its content is a length. The type is in the low five bits of a byte; Yjs ignores the flags above them. */
const SKIP = 10;
const TYPES = 32;
/** A number has up to 7 bits per byte. No valid number is longer. */
const NUMBER_BYTES_MAX = 8;

class Reader {
  readonly #bytes: Uint8Array;
  #at = 0;
  /** The bytes are no update. */
  isBroken = false;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.byteLength;
  }

  readByte(): number {
    const byte = this.#bytes[this.#at++];
    if (byte === undefined) this.isBroken = true;
    return byte ?? 0;
  }

  readNumber(): number {
    let number = 0;
    for (let place = 0; place < NUMBER_BYTES_MAX; place++) {
      const byte = this.readByte();
      number += (byte % 128) * 128 ** place;
      if (byte < 128) return number;
    }
    this.isBroken = true;
    return 0;
  }
}

/** Bytes that are not exactly one update are a payload of another kind, which is never empty. */
export function isEmptyUpdate(payload: Uint8Array): boolean {
  const reader = new Reader(payload);
  return hasOnlyGaps(reader) && deletesNothing(reader) && reader.isAtEnd && !reader.isBroken;
}

/** Stops at the first other struct, so that a usual edit costs a few bytes. */
function hasOnlyGaps(reader: Reader): boolean {
  for (let clients = reader.readNumber(); clients > 0 && !reader.isBroken; clients--) {
    const structs = reader.readNumber();
    reader.readNumber(); // The client.
    reader.readNumber(); // The clock of the client.
    for (let left = structs; left > 0; left--) {
      if (reader.readByte() % TYPES !== SKIP) return false;
      reader.readNumber();
    }
  }
  return true;
}

function deletesNothing(reader: Reader): boolean {
  for (let clients = reader.readNumber(); clients > 0 && !reader.isBroken; clients--) {
    reader.readNumber(); // The client.
    for (let ranges = reader.readNumber(); ranges > 0 && !reader.isBroken; ranges--) {
      reader.readNumber(); // The clock.
      if (reader.readNumber() > 0) return false;
    }
  }
  return true;
}
