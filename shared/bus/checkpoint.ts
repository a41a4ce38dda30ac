/**
 * The content of a checkpoint: what a room's newest snapshot covers, and what a new owner must know of the log after
 * it. The document service writes it to one KV entry once the snapshot is durable. The entry is the commit: the log is
 * only ever trimmed up to it.
 */

import { z } from "zod";

import { type ClientId, type Epoch, parseClientId, parseUserId, type Position, type Seq, type UnixMillis, type UserId } from "../ids.ts";
import type { EpochHistory } from "./epoch-history.ts";
import { decodeRecord, epochOf, headOf, recordIdOf } from "./record.ts";

const clientId = z
  .string()
  .refine((text) => parseClientId(text) !== undefined)
  .transform((text) => text as ClientId);
const userId = z
  .string()
  .refine((text) => parseUserId(text) !== undefined)
  .transform((text) => text as UserId);

export const Checkpoint = z.object({
  epoch: z
    .int()
    .positive()
    .transform((number) => number as Epoch),
  /** Every edit up to this seq is in the snapshot. */
  seq: z
    .int()
    .nonnegative()
    .transform((number) => number as Seq),
  /** The stream sequence of the last record covered. */
  streamSeq: z.int().positive(),
  /**
   * The id of that record: a log that lost its end may have another record at this stream sequence. Checkpoints of
   * earlier builds, and of `coroom restore`, lack it.
   */
  recordId: z.string().optional(),
  time: z.number().transform((number) => number as UnixMillis),
  /** The epochs up to this position. Checkpoints of earlier builds lack them: then only the checkpoint's own epoch is known. */
  epochs: z
    .array(z.int().nonnegative())
    .refine(({ length }) => length % 2 === 0)
    .readonly()
    .optional(),
  /** Each client's last committed counter and its seq, for dedupe. Silent clients are removed after the dedupe window. */
  clients: z.array(
    z.object({
      client: clientId,
      user: userId,
      counter: z.int().positive(),
      seq: z
        .int()
        .positive()
        .transform((number) => number as Seq),
      lastSeen: z.number().transform((number) => number as UnixMillis),
    }),
  ),
  /**
   * Edits up to `seq` that are missing in the snapshot, because Yjs refused them or the log lost them. The log of such a
   * room is trimmed only if all of them are `refused`.
   */
  leftOut: z.int().nonnegative().optional(),
  /** Number of the missing edits that the log had. The history keeps them. Checkpoints of earlier builds lack the number. */
  refused: z.int().nonnegative().optional(),
  /** Bytes of the room's log up to `streamSeq` that were not trimmed then. Checkpoints of earlier builds lack them. */
  logBytes: z.int().nonnegative().optional(),
  snapshot: z.object({ object: z.string(), bytes: z.int().nonnegative(), sha256: z.string() }),
});
export type Checkpoint = z.infer<typeof Checkpoint>;

/**
 * Replaces a deleted room's checkpoint permanently, so that a late writer finds an unknown revision. `wiping`: parts of
 * the room may still exist. `snapshot`: the object to remove.
 */
export const DeletedCheckpoint = z.object({
  deleted: z.literal(true),
  time: z.number().transform((number) => number as UnixMillis),
  wiping: z.literal(true).optional(),
  snapshot: z.string().optional(),
});
export type DeletedCheckpoint = z.infer<typeof DeletedCheckpoint>;

/** A room's entry in the bucket. */
export const CheckpointEntry = z.union([DeletedCheckpoint, Checkpoint]);
export type CheckpointEntry = z.infer<typeof CheckpointEntry>;

export function isDeleted(entry: CheckpointEntry | undefined): entry is DeletedCheckpoint {
  return entry !== undefined && "deleted" in entry;
}

/**
 * Whether the log lost its end: the checkpoint covers more than the log contained when its last record was read
 * afterwards (0: no record). A room's deletion is its log's last record.
 */
export function isAheadOfLog(
  checkpoint: Pick<Checkpoint, "streamSeq"> | "deleted" | undefined,
  last: { streamSeq: number } | undefined,
): boolean {
  return checkpoint === "deleted" || (checkpoint?.streamSeq ?? 0) > (last?.streamSeq ?? 0);
}

/**
 * The position of a room with this checkpoint and this last record in the log. The seq is at least the checkpoint's, so a
 * lost log never lets seqs of the snapshot be used again. If the log lost its end, it is the checkpoint's position:
 * readers skip records before the checkpoint, even one with higher seqs, which an earlier owner appended after the loss.
 */
export function roomPosition(
  checkpoint: Pick<Checkpoint, "epoch" | "seq" | "streamSeq"> | undefined,
  last: { readonly epoch: Epoch; readonly head: Seq; readonly streamSeq: number } | undefined,
): Position {
  if (checkpoint !== undefined && isAheadOfLog(checkpoint, last)) return { epoch: checkpoint.epoch, seq: checkpoint.seq };
  return { epoch: last?.epoch ?? (0 as Epoch), seq: Math.max(last?.head ?? 0, checkpoint?.seq ?? 0) as Seq };
}

export function epochsOf({ epochs, epoch, seq }: Pick<Checkpoint, "epochs" | "epoch" | "seq">): EpochHistory {
  return epochs ?? [epoch, seq];
}

/** Whether these bytes are the last record that the checkpoint covers. Without a record id its epoch and seq decide. */
export function isLastCovered({ recordId, epoch, seq }: Pick<Checkpoint, "recordId" | "epoch" | "seq">, bytes: Uint8Array): boolean {
  if (recordId !== undefined) return recordIdOf(bytes) === recordId;
  const record = decodeRecord(bytes);
  return record !== undefined && record.kind !== "deleted" && epochOf(record) === epoch && headOf(record) === seq;
}

/** The size of an empty Yjs document. */
const EMPTY_DOCUMENT_BYTES = 2;

/** Whether its snapshot is useful to a client. If Yjs refused every edit, only the log has the edits. */
export function hasDocument(checkpoint: Checkpoint): boolean {
  return (checkpoint.leftOut ?? 0) === 0 || hasContent(checkpoint);
}

/** Documents only grow: later snapshots have content too. */
export function hasContent({ snapshot }: Checkpoint): boolean {
  return snapshot.bytes > EMPTY_DOCUMENT_BYTES;
}
