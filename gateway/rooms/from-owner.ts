/**
 * What an owner says to all its gateways, read as far as a gateway needs: of committed edits only who wrote
 * which. Reading them whole took a third of what a gateway does for a record.
 */

import { decodeFromOwner, type FromOwner } from "../../shared/bus/envelope.ts";
import { type EditsRecord, editsBytesOf, serverOf } from "../../shared/bus/record.ts";
import { Tag } from "../../shared/bus/tags.ts";
import type { Epoch, ServerId } from "../../shared/ids.ts";
import { batchFrom, type CommittedBatch } from "./in-order.ts";

export type Heard = Exclude<FromOwner, EditsRecord> | { readonly kind: "committed"; readonly batch: CommittedBatch };

export type FromLivingRoom = Exclude<Heard, { kind: "deleted" }>;

/** Undefined for bytes that are no such message. */
export function readFromOwner(bytes: Uint8Array): Heard | undefined {
  if (bytes[0] !== Tag.editsRecord) {
    const message = decodeFromOwner(bytes);
    return message?.kind === "edits" ? undefined : message;
  }
  const batch = batchFrom(editsOf(bytes));
  return batch === undefined ? undefined : { kind: "committed", batch };
}

export function epochOfHeard(heard: FromLivingRoom): Epoch {
  if (heard.kind === "committed") return heard.batch.epoch;
  return heard.kind === "tentative" ? heard.edit.epoch : heard.epoch;
}

export function ownerOf(heard: FromLivingRoom): ServerId | undefined {
  return heard.kind === "epoch" ? serverOf(heard) : undefined;
}

function editsOf(record: Uint8Array): Uint8Array {
  try {
    return editsBytesOf(record);
  } catch {
    return new Uint8Array(0); // Cut short: no committed edits.
  }
}
