/**
 * The revision of one room's checkpoint as this service knows it. A write replaces exactly this revision; after another
 * service has written, the room continues from that checkpoint.
 */

import { type Checkpoint, type DeletedCheckpoint, isDeleted } from "../../shared/bus/checkpoint.ts";
import type { Millis, UnixMillis } from "../../shared/ids.ts";
import type { StoredCheckpoint } from "../ports.ts";
import type { Document } from "./document.ts";
import type { SnapshotPlan } from "./snapshot-plan.ts";

/** `isNewer`: another service wrote it. `replaced`: the snapshot of the previous checkpoint, if no checkpoint names it any more. */
type CheckpointAdoption = { readonly isNewer: boolean; readonly replaced: readonly string[] };

type HeldCheckpointEvents = {
  /** The entry states that the room is deleted. */
  readonly deleted: (entry: DeletedCheckpoint) => void;
  /** The document dropped its content. A new room must read the log again from this record on. */
  readonly contentDropped: (document: Document, from: number) => void;
};

const NOTHING_NEWER: CheckpointAdoption = { isNewer: false, replaced: [] };

export class HeldCheckpoint {
  readonly #plan: Pick<SnapshotPlan, "receiveCheckpoint">;
  readonly #on: HeldCheckpointEvents;
  #revision = 0;

  constructor(plan: Pick<SnapshotPlan, "receiveCheckpoint">, on: HeldCheckpointEvents) {
    this.#plan = plan;
    this.#on = on;
  }

  get revision(): number {
    return this.#revision;
  }

  /** Returns the checkpoint that the document starts from. `lostSnapshot`: the document does not start from this object. */
  receiveFirst({ checkpoint, revision }: StoredCheckpoint, lostSnapshot: string | undefined): Checkpoint | undefined {
    this.#revision = revision;
    if (!isDeleted(checkpoint)) return checkpoint?.snapshot.object === lostSnapshot ? undefined : checkpoint;
    this.#on.deleted(checkpoint);
    return undefined;
  }

  /** Another service may have written since the last read, or the bucket lost its end, or a former leader answers. */
  receiveRead(document: Document, found: StoredCheckpoint, now: Millis, wall: UnixMillis): CheckpointAdoption {
    return this.#isKnown(document, found) ? NOTHING_NEWER : this.#adopt(document, found, now, wall);
  }

  /** The snapshot is lost, and the document has its state. So the document is saved again as if it had no checkpoint. */
  receiveSnapshotLost(document: Document): void {
    document.receiveStored(undefined);
  }

  /** Returns the snapshots that this write replaced. */
  receiveWritten(document: Document, checkpoint: Checkpoint, revision: number, now: Millis, wall: UnixMillis): readonly string[] {
    const replaced = replacedBy(checkpoint, document);
    this.#revision = revision;
    document.receiveSaved(checkpoint);
    this.#plan.receiveCheckpoint(document, now, wall);
    return replaced;
  }

  /** Whether the bucket still has the checkpoint up to which the document trims the log. */
  isHeld(document: Document, found: StoredCheckpoint): boolean {
    return objectOf(found) !== undefined && this.#isKnown(document, found);
  }

  /** A bucket that lost its end gives the same revisions again. */
  #isKnown(document: Document, found: StoredCheckpoint): boolean {
    return found.revision === this.#revision && objectOf(found) === document.checkpoint?.snapshot.object;
  }

  /** A true checkpoint with a higher revision may still be stored. So only a higher revision replaces a snapshot. */
  #adopt(document: Document, { checkpoint, revision }: StoredCheckpoint, now: Millis, wall: UnixMillis): CheckpointAdoption {
    const isHigher = revision > this.#revision;
    this.#revision = revision;
    if (isDeleted(checkpoint)) {
      this.#on.deleted(checkpoint);
      return { isNewer: true, replaced: [] };
    }
    const replaced = isHigher && checkpoint !== undefined ? replacedBy(checkpoint, document) : [];
    if (!document.receiveStored(checkpoint)) this.#on.contentDropped(document, (checkpoint?.streamSeq ?? 0) + 1);
    this.#plan.receiveCheckpoint(document, now, wall);
    return { isNewer: true, replaced };
  }
}

function objectOf({ checkpoint }: StoredCheckpoint): string | undefined {
  return checkpoint === undefined || isDeleted(checkpoint) ? undefined : checkpoint.snapshot.object;
}

function replacedBy({ snapshot }: Checkpoint, { checkpoint: before }: Document): readonly string[] {
  return before === undefined || before.snapshot.object === snapshot.object ? [] : [before.snapshot.object];
}
