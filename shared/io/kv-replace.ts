/** Compare-and-set on a KV entry: the guard that keeps an instance that was deposed from writing over its successor. */

import { JetStreamApiError } from "@nats-io/jetstream";
import type { KV } from "@nats-io/kv";

/** The second is what a cluster says while another write to the entry, or to the room, is on its way. */
const WRONG_LAST_SEQUENCE: readonly number[] = [10_071, 10_164];

/** It was not written: something else was, since what it goes by was read. */
export function isOvertaken(error: unknown): boolean {
  return error instanceof JetStreamApiError && WRONG_LAST_SEQUENCE.includes(error.code);
}

/** Replaces exactly `revision` (0: nothing) and returns the new one; undefined: the entry has another revision. */
export async function replace(kv: KV, key: string, value: Uint8Array, revision: number): Promise<number | undefined> {
  try {
    return await kv.put(key, value, { previousSeq: revision });
  } catch (error) {
    if (isOvertaken(error)) return undefined;
    throw new Error(`it is not known whether ${key} was written`, { cause: error });
  }
}
