/**
 * The revision of one room's checkpoint as this service knows it. A write replaces exactly this revision; after another
 * service has written, the room continues from that checkpoint.
 */

import { type Checkpoint, type DeletedCheckpoint, isDeleted } from "../../shared/bus/checkpoint.ts";
import type { Millis, UnixMillis } from "../../shared/ids.ts";
import type { StoredCheckpoint } from "../ports.ts";
import { type Document, isBehind } from "./document.ts";
import type { SnapshotPlan } from "./snapshot-plan.ts";

/** `replaced`: the snapshot of the previous checkpoint, which no checkpoint names any more. */
export type CheckpointAdoption = { readonly isNewer: boolean; readonly replaced: readonly string[] };

const NOTHING_NEWER: CheckpointAdoption = { isNewer: false, replaced: [] };

export class HeldCheckpoint {
  readonly #plan: Pick<SnapshotPlan, "receiveCheckpoint">;
  readonly #onDeleted: (entry: DeletedCheckpoint) => void;
  #revision = 0;

  /** `onDeleted`: called when the entry states that the room is deleted. */
  constructor(plan: Pick<SnapshotPlan, "receiveCheckpoint">, onDeleted: (entry: DeletedCheckpoint) => void) {
    this.#plan = plan;
    this.#onDeleted = onDeleted;
  }

  get revision(): number {
    return this.#revision;
  }

  /** Returns the checkpoint that the document starts from. */
  receiveFirst({ checkpoint, revision }: StoredCheckpoint): Checkpoint | undefined {
    this.#revision = revision;
    if (!isDeleted(checkpoint)) return checkpoint;
    this.#onDeleted(checkpoint);
    return undefined;
  }

  /** Another service may have written since the last read. */
  receiveRead(document: Document, found: StoredCheckpoint, now: Millis, wall: UnixMillis): CheckpointAdoption {
    return found.revision === this.#revision ? NOTHING_NEWER : this.adopt(document, found, now, wall);
  }

  /** Whether the bucket still has the checkpoint up to which the document trims the log. */
  isHeld(document: Document, { checkpoint, revision }: StoredCheckpoint): boolean {
    if (revision !== this.#revision || checkpoint === undefined || isDeleted(checkpoint)) return false;
    return checkpoint.snapshot.object === document.checkpoint?.snapshot.object;
  }

  /**
   * The first record after the stored checkpoint, if that checkpoint is older than the document's or missing: the
   * bucket lost its end, or a former leader answers.
   */
  lostFrom({ checkpoint: known }: Document, { checkpoint: found }: StoredCheckpoint): number | undefined {
    if (known === undefined || (found !== undefined && (isDeleted(found) || !isBehind(found, known)))) return undefined;
    return (found?.streamSeq ?? 0) + 1;
  }

  adopt(document: Document, { checkpoint, revision }: StoredCheckpoint, now: Millis, wall: UnixMillis): CheckpointAdoption {
    const before = document.checkpoint?.snapshot.object;
    this.#revision = revision;
    if (isDeleted(checkpoint)) this.#onDeleted(checkpoint);
    if (checkpoint === undefined || isDeleted(checkpoint)) return { isNewer: true, replaced: [] };
    document.receiveCheckpoint(checkpoint);
    this.#plan.receiveCheckpoint(document, now, wall);
    return { isNewer: true, replaced: before === undefined || before === checkpoint.snapshot.object ? [] : [before] };
  }
}
