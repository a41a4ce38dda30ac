/**
 * Writes structs and deletions as an update of Yjs, version 1. Yjs has functions to write a document and to merge updates,
 * but none to write chosen parts of an update.
 */

import * as encoding from "lib0/encoding";
import * as Y from "yjs";

import type { Struct } from "./checked-update.ts";

/** Encoded structs of one client with consecutive clocks. `clock`: of the first. */
export type StructRun = { readonly client: number; readonly clock: number; readonly structs: readonly Uint8Array[] };
/** Deleted clocks of each client. */
export type DeletedRanges = ReadonlyMap<number, readonly { readonly clock: number; readonly len: number }[]>;

/** Yjs requires higher clients first, and each client once. */
export function writtenUpdate(runs: readonly StructRun[], deleted: DeletedRanges): Uint8Array {
  return encoding.encode((out) => {
    encoding.writeVarUint(out, runs.length);
    for (const { client, clock, structs } of runs) {
      encoding.writeVarUint(out, structs.length);
      encoding.writeVarUint(out, client);
      encoding.writeVarUint(out, clock);
      for (const struct of structs) encoding.writeUint8Array(out, struct);
    }
    encoding.writeVarUint(out, deleted.size);
    for (const [client, ranges] of deleted) {
      encoding.writeVarUint(out, client);
      encoding.writeVarUint(out, ranges.length);
      for (const { clock, len } of ranges) {
        encoding.writeVarUint(out, clock);
        encoding.writeVarUint(out, len);
      }
    }
  });
}

/** `cut`: length of the beginning that is left out, less than the struct's. */
export function encodedStruct(struct: Struct, cut = 0): Uint8Array {
  const encoder = new Y.UpdateEncoderV1();
  struct.write(encoder, cut);
  return encoder.toUint8Array();
}
