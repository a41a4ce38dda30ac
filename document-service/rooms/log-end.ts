/** Decides what the end of a room's log means for a request that this service cannot answer from memory alone. */

import type { RoomLogEnd } from "../ports.ts";
import type { DocumentRoom } from "./room.ts";
import type { Served } from "./room-messages.ts";

/** The answer for a room of which this service has read no edit: the log may have edits that were not read yet. */
export function servedWithoutEdits(end: RoomLogEnd): Served {
  if (end.kind === "deleted") return { kind: "deleted" };
  return end.kind === "at" && end.seq > 0 ? { kind: "loading" } : { kind: "no-document" };
}

/** `streamSeq`: of the record that deletes the room, where the log has it. */
export type DeletionStep =
  | { readonly kind: "no-room" }
  /** Append the record that deletes the room. */
  | { readonly kind: "append"; readonly streamSeq: undefined }
  | { readonly kind: "deleted"; readonly streamSeq: number | undefined };

/** A room without records, checkpoint or deletion never existed. A deleted room is not deleted again. */
export function nextDeletionStep({ isDeleted, isKnown }: Pick<DocumentRoom, "isDeleted" | "isKnown">, end: RoomLogEnd): DeletionStep {
  if (end.kind === "deleted") return { kind: "deleted", streamSeq: end.streamSeq };
  if (isDeleted) return { kind: "deleted", streamSeq: undefined };
  return end.kind === "empty" && !isKnown ? { kind: "no-room" } : { kind: "append", streamSeq: undefined };
}
