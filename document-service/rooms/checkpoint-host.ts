/**
 * One room's checkpoint as we know it. We may replace exactly the revision that we know; where somebody else
 * has written meanwhile, we go on from theirs.
 */

import { type Checkpoint, type DeletedCheckpoint, isDeleted } from "../../shared/bus/checkpoint.ts";
import type { RoomKey, UnixMillis } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import type { Document } from "./document.ts";
import { unlessMistake } from "../../shared/pause.ts";
import type { Checkpoints, ObjectStore, StoredCheckpoint } from "../ports.ts";

/** Another writes the entry only while it takes this service for dead. */
const TRIES_MAX = 3;

export class CheckpointHost {
  readonly #room: RoomKey;
  readonly #ports: { readonly checkpoints: Checkpoints; readonly snapshots: ObjectStore };
  readonly #log: Log;
  readonly #onDeleted: (entry: DeletedCheckpoint) => void;
  #revision = 0;

  /** `onDeleted`: the room is, says its entry. */
  constructor(
    room: RoomKey,
    ports: { checkpoints: Checkpoints; snapshots: ObjectStore },
    log: Log,
    onDeleted: (entry: DeletedCheckpoint) => void,
  ) {
    this.#room = room;
    this.#ports = ports;
    this.#log = log;
    this.#onDeleted = onDeleted;
  }

  async read(): Promise<Checkpoint | undefined> {
    const { checkpoint, revision } = await this.#ports.checkpoints.read(this.#room);
    this.#revision = revision;
    if (!isDeleted(checkpoint)) return checkpoint;
    this.#onDeleted(checkpoint);
    return undefined;
  }

  /** Whether somebody else had written: the document goes on from theirs then. */
  async catchUp(document: Document): Promise<boolean> {
    const newest = await this.#ports.checkpoints.read(this.#room);
    if (newest.revision === this.#revision) return false;
    await this.#adopt(document, newest);
    return true;
  }

  /** Whether it was written. If not, somebody else had: as `catchUp`. Ours may have become the older one while we were saving. */
  async replace(document: Document, checkpoint: Checkpoint): Promise<boolean> {
    if (checkpoint.streamSeq < (document.checkpoint?.streamSeq ?? 0)) return false;
    const write = await this.#ports.checkpoints.write(this.#room, checkpoint, this.#revision);
    if (write.kind === "written") {
      await this.#adopt(document, { checkpoint, revision: write.revision });
      return true;
    }
    this.#log.warn(
      { room: this.#room, revision: this.#revision },
      "another document service saved this room meanwhile; going on from its checkpoint",
    );
    await this.catchUp(document);
    return false;
  }

  /** One that is left behind costs space only, and is swept up later. */
  async removeSnapshot(name: string): Promise<void> {
    try {
      await this.#ports.snapshots.remove(name);
    } catch (cause) {
      unlessMistake(cause);
      this.#log.warn({ room: this.#room, name, cause }, "an old snapshot was not removed");
    }
  }

  /**
   * Says in the checkpoint's place that the room is deleted: from then on whoever comes late with a checkpoint gives up.
   * Then the snapshot goes. False: all of that, and what was to follow it, has been done before.
   */
  async wipe(time: UnixMillis): Promise<boolean> {
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const { checkpoint: found, revision } = await this.#ports.checkpoints.read(this.#room);
      if (isDeleted(found) && found.wiping !== true) return false;
      const object = isDeleted(found) ? found.snapshot : found?.snapshot.object;
      const entry: DeletedCheckpoint = { deleted: true, time, wiping: true, ...(object === undefined ? {} : { snapshot: object }) };
      const fenced = isDeleted(found)
        ? ({ kind: "written", revision } as const)
        : await this.#ports.checkpoints.write(this.#room, entry, revision);
      if (fenced.kind === "superseded") continue;
      if (object !== undefined) await this.#ports.snapshots.remove(object);
      return true;
    }
    throw new Error(`the checkpoint of room ${this.#room}, which is deleted, is written by another service as well; trying again`);
  }

  /** Nothing of the room is left anywhere. */
  async endWipe(time: UnixMillis): Promise<void> {
    const { revision } = await this.#ports.checkpoints.read(this.#room);
    await this.#ports.checkpoints.write(this.#room, { deleted: true, time }, revision); // Superseded by another who says the same.
  }

  /** The snapshot of the checkpoint before is nobody's any more. */
  async #adopt(document: Document, { checkpoint, revision }: StoredCheckpoint): Promise<void> {
    const before = document.checkpoint?.snapshot.object;
    this.#revision = revision;
    if (isDeleted(checkpoint)) return this.#onDeleted(checkpoint);
    if (checkpoint === undefined) return;
    document.receiveCheckpoint(checkpoint);
    if (before !== undefined && before !== checkpoint.snapshot.object) await this.removeSnapshot(before);
  }
}
