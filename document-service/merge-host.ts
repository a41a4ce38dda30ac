/** Keeps one room's state merged: loads it where only its snapshot has it, and merges what waits, once at a time for all who ask. */

import type { Clock } from "../shared/clock.ts";
import type { RoomKey } from "../shared/ids.ts";
import type { Log } from "../shared/log.ts";
import type { CheckpointHost } from "./checkpoint-host.ts";
import type { Document, MergedState } from "./document.ts";
import type { DocumentServiceMetrics } from "./metrics.ts";
import type { Digest, Merging, Snapshots } from "./ports.ts";

export type MergePorts = { readonly snapshots: Snapshots; readonly merging: Merging; readonly digest: Digest };

export class MergeHost {
  readonly #room: RoomKey;
  readonly #ports: MergePorts;
  readonly #checkpoints: CheckpointHost;
  readonly #deps: { readonly clock: Clock; readonly log: Log; readonly metrics: DocumentServiceMetrics };
  #running: Promise<MergedState | undefined> | undefined;

  constructor(room: RoomKey, ports: MergePorts, checkpoints: CheckpointHost, deps: { clock: Clock; log: Log; metrics: DocumentServiceMetrics }) {
    this.#room = room;
    this.#ports = ports;
    this.#checkpoints = checkpoints;
    this.#deps = deps;
  }

  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  /** Undefined: its snapshot cannot be had at the moment. */
  merge(document: Document): Promise<MergedState | undefined> {
    this.#running ??= this.#merge(document).finally(() => (this.#running = undefined));
    return this.#running;
  }

  async #merge(document: Document): Promise<MergedState | undefined> {
    if (document.merged === undefined && !(await this.#loadState(document))) return undefined;
    const merge = document.planMerge();
    if (merge === undefined) return document.merged;
    const { clock, log, metrics } = this.#deps;
    const started = clock.now();
    const merged = await this.#ports.merging.merge(merge.base, merge.edits);
    metrics.merges.observe((clock.now() - started) / 1000);
    document.receiveMerged(merge, merged); // Edits that came meanwhile are the next one's.
    if (merged.refused > 0) {
      metrics.refusedEdits.inc(merged.refused);
      log.error({ room: this.#room, refused: merged.refused, through: merge.into.applied }, "edits that are no Yjs updates are left out of the document; the room's log is kept whole from here on");
    }
    return document.merged;
  }

  async #loadState(document: Document): Promise<boolean> {
    const checkpoint = document.checkpoint;
    if (checkpoint === undefined) return false;
    const { object, sha256 } = checkpoint.snapshot;
    const state = await this.#ports.snapshots.read(object);
    if (document.checkpoint !== checkpoint) return false; // Replaced while we read.
    if (state !== undefined && this.#ports.digest(state) === sha256) {
      document.receiveState(state);
      return true;
    }
    // Replaced by another service, with its snapshot; or lost.
    if (!(await this.#checkpoints.catchUp(document))) this.#deps.log.error({ room: this.#room, object }, "the snapshot that a checkpoint names is missing or damaged: restore it from a backup of the object store");
    return false;
  }
}
