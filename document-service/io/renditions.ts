/**
 * What was made of a document's state, kept for as long as the state itself is: a crowd that asks for the same text,
 * JSON or compressed bytes has them made once. Of any other state nothing is kept, and a failure is made anew.
 */

import { promisify } from "node:util";
import { gzip } from "node:zlib";

const gzipInThread = promisify(gzip);
/** Of a document of 4.7 MB: 38% of the bytes in 76 ms; the default level 35% in 281. */
const GZIP_LEVEL = 4;
/** Below it a head costs more than compressing saves. */
const GZIP_BYTES_MIN = 1_024;
/** Of one state; past it the first made is forgotten. */
const RENDITIONS_MAX = 16;

export class Renditions {
  readonly #made = new WeakMap<Uint8Array, Map<string, Promise<unknown>>>();

  /** `isFinal`: whether what was made may be kept. */
  async get<Value>(
    state: Uint8Array,
    name: string,
    make: () => Promise<Value>,
    isFinal: (value: Value) => boolean = () => true,
  ): Promise<Value> {
    const ofState = this.#made.get(state) ?? new Map<string, Promise<unknown>>();
    this.#made.set(state, ofState);
    const [first] = ofState.keys();
    if (first !== undefined && ofState.size >= RENDITIONS_MAX && !ofState.has(name)) ofState.delete(first);
    const made = (ofState.get(name) as Promise<Value> | undefined) ?? make();
    ofState.set(name, made);
    try {
      const value = await made;
      if (!isFinal(value)) ofState.delete(name);
      return value;
    } catch (error) {
      ofState.delete(name); // Those who wait get it too.
      throw error;
    }
  }

  /** `bytes` compressed, or as they are where that is not worth it. In a thread of the process's pool. */
  compressed(bytes: Uint8Array): Promise<Uint8Array> {
    return bytes.byteLength < GZIP_BYTES_MIN
      ? Promise.resolve(bytes)
      : this.get(bytes, "gzip", () => gzipInThread(bytes, { level: GZIP_LEVEL }));
  }
}
