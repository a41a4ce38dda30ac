/**
 * Keeps one room's state merged: loads it where only its snapshot has it, and merges what waits, once at a time for all
 * who ask. A document whose merge takes too long, or ends its thread, stalls alone: it stays as it is, and is tried
 * again after a pause that doubles, so that it cannot have the merging thread to itself. One whose snapshot is lost
 * stalls too, until it is there again.
 */

import type { Clock } from "../../shared/clock.ts";
import type { Millis, RoomKey } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import type { CheckpointHost } from "./checkpoint-host.ts";
import type { Document, Merge, MergedState } from "./document.ts";
import type { DocumentServiceMetrics } from "../metrics.ts";
import type { Digest, Merging, ObjectStore, Unread } from "../ports.ts";
import { readVerified } from "../verified-write-host.ts";

export type MergePorts = { readonly snapshots: ObjectStore; readonly merging: Merging; readonly digest: Digest };

const PAUSE_DOUBLINGS_MAX = 6;

export class MergeHost {
  readonly #room: RoomKey;
  readonly #ports: MergePorts;
  readonly #checkpoints: CheckpointHost;
  readonly #deps: { readonly clock: Clock; readonly log: Log; readonly metrics: DocumentServiceMetrics };
  readonly #mergeMsMax: number;
  /** Merges in a row that were given up. */
  #overruns = 0;
  /** The snapshot that is to be merged into is gone, or damaged. */
  #isSnapshotLost = false;
  #notBefore = 0 as Millis;
  #running: Promise<MergedState | undefined> | undefined;

  constructor(
    room: RoomKey,
    ports: MergePorts,
    checkpoints: CheckpointHost,
    options: { mergeMsMax: number },
    deps: { clock: Clock; log: Log; metrics: DocumentServiceMetrics },
  ) {
    this.#room = room;
    this.#ports = ports;
    this.#checkpoints = checkpoints;
    this.#mergeMsMax = options.mergeMsMax;
    this.#deps = deps;
  }

  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  /** The last merge was given up, or had nothing to begin from: what is merged stays behind what was received. */
  get isStalled(): boolean {
    return this.#overruns > 0 || this.#isSnapshotLost;
  }

  /** A merge would only find what there is. */
  isPausing(now: Millis): boolean {
    return now < this.#notBefore;
  }

  /** Undefined: its snapshot cannot be had at the moment. */
  merge(document: Document): Promise<MergedState | undefined> {
    this.#running ??= this.#merge(document).finally(() => (this.#running = undefined));
    return this.#running;
  }

  async #merge(document: Document): Promise<MergedState | undefined> {
    if (document.merged === undefined && !(await this.#loadState(document))) return undefined;
    this.#isSnapshotLost = false;
    const merge = document.planMerge();
    const { clock, log, metrics } = this.#deps;
    const started = clock.now();
    if (merge === undefined || this.isPausing(started)) return document.merged;
    const merged = await this.#ports.merging.merge(merge.base, merge.edits);
    if (typeof merged === "string") return this.#receiveUnmerged(document, merge, merged);
    this.#overruns = 0;
    metrics.merges.observe((clock.now() - started) / 1000);
    document.receiveMerged(merge, merged); // Edits that came meanwhile are the next one's.
    if (merged.refused > 0) {
      metrics.refusedEdits.inc(merged.refused);
      log.error(
        { room: this.#room, refused: merged.refused, through: merge.into.applied },
        "edits that are no Yjs updates are left out of the document; the room's log is kept whole from here on",
      );
    }
    return document.merged;
  }

  /** The next try may come to the same, and take as long. */
  #receiveUnmerged(document: Document, merge: Merge, why: Unread): MergedState | undefined {
    const pauseMs = this.#mergeMsMax * 2 ** Math.min(++this.#overruns, PAUSE_DOUBLINGS_MAX);
    this.#notBefore = (this.#deps.clock.now() + pauseMs) as Millis;
    this.#deps.metrics.mergesOverrun.inc();
    const facts = {
      room: this.#room,
      edits: merge.edits.length,
      baseBytes: merge.base.byteLength,
      through: merge.into.applied,
      pauseMs,
      why,
    };
    this.#deps.log.error(
      facts,
      "a document could not be merged, in time or in the memory of a thread; its edits stay in the log, which is not trimmed: look whether somebody writes what Yjs cannot take, or raise COROOM_MERGE_MS_MAX",
    );
    return document.merged;
  }

  async #loadState(document: Document): Promise<boolean> {
    const checkpoint = document.checkpoint;
    if (checkpoint === undefined) return false;
    const state = await readVerified(this.#ports.snapshots, this.#ports.digest, checkpoint.snapshot);
    if (document.checkpoint !== checkpoint) return false; // Replaced while we read.
    if (state !== undefined) {
      document.receiveState(state);
      return true;
    }
    // Replaced by another service, with its snapshot; or lost.
    this.#isSnapshotLost = !(await this.#checkpoints.catchUp(document));
    if (this.#isSnapshotLost) {
      this.#deps.log.error(
        { room: this.#room, object: checkpoint.snapshot.object },
        "the snapshot that a checkpoint names is missing or damaged: restore it from a backup of the object store",
      );
    }
    return false;
  }
}
