/**
 * One room's checkpoint as we know it. We may replace exactly the revision that we know; where somebody else
 * has written meanwhile, we go on from theirs.
 */

import type { Checkpoint } from "../shared/bus/checkpoint.ts";
import type { RoomKey } from "../shared/ids.ts";
import type { Log } from "../shared/log.ts";
import type { Document } from "./document.ts";
import { unlessMistake } from "../shared/pause.ts";
import type { Checkpoints, ObjectStore, StoredCheckpoint } from "./ports.ts";

export class CheckpointHost {
  readonly #room: RoomKey;
  readonly #ports: { readonly checkpoints: Checkpoints; readonly snapshots: ObjectStore };
  readonly #log: Log;
  #revision = 0;

  constructor(room: RoomKey, ports: { checkpoints: Checkpoints; snapshots: ObjectStore }, log: Log) {
    this.#room = room;
    this.#ports = ports;
    this.#log = log;
  }

  async read(): Promise<Checkpoint | undefined> {
    const { checkpoint, revision } = await this.#ports.checkpoints.read(this.#room);
    this.#revision = revision;
    return checkpoint;
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
    this.#log.warn({ room: this.#room, revision: this.#revision }, "another document service saved this room meanwhile; going on from its checkpoint");
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

  /** The snapshot of the checkpoint before is nobody's any more. */
  async #adopt(document: Document, { checkpoint, revision }: StoredCheckpoint): Promise<void> {
    const before = document.checkpoint?.snapshot.object;
    this.#revision = revision;
    if (checkpoint === undefined) return;
    document.receiveCheckpoint(checkpoint);
    if (before !== undefined && before !== checkpoint.snapshot.object) await this.removeSnapshot(before);
  }
}
