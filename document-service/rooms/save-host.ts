/**
 * Saves one room's document: merge, write the snapshot, read it back, compare, and write the checkpoint that names
 * it, which is the commit. A snapshot that no checkpoint came to name is nobody's, and is looked for later.
 */

import type { Checkpoint } from "../../shared/bus/checkpoint.ts";
import type { Clock } from "../../shared/clock.ts";
import type { Millis, RoomKey } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import { SeldomSet } from "../../shared/seldom.ts";
import type { CheckpointHost } from "./checkpoint-host.ts";
import { isSnapshotDue, type SnapshotPolicy } from "./compaction.ts";
import type { Document, MergedState } from "./document.ts";
import type { MergeHost } from "./merge-host.ts";
import type { DocumentServiceMetrics } from "../metrics.ts";
import type { Digest, News, ObjectStore } from "../ports.ts";
import { writeVerified, type Written } from "../verified-write-host.ts";

/** `newName`: unique among all snapshots ever written. */
export type SaveDeps = {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: DocumentServiceMetrics;
  readonly newName: () => string;
  readonly news: News;
};
export type SavePorts = { readonly snapshots: ObjectStore; readonly digest: Digest };
/** `superseded`: somebody else had saved the room, and it goes on from theirs. */
type Saved = "saved" | "superseded" | "failed";

export class SaveHost {
  readonly #room: RoomKey;
  readonly #ports: SavePorts;
  readonly #checkpoints: CheckpointHost;
  readonly #merges: MergeHost;
  readonly #policy: SnapshotPolicy;
  readonly #deps: SaveDeps;
  #uncoveredSince: Millis | undefined;
  #lastSaved: Millis | undefined;
  /** Snapshots of which it is not known whether the room's entry names them. */
  readonly #unsettled = new SeldomSet<string>();
  /** The last of them: where its state has not changed, the next try is to name the same one. */
  #written: { readonly state: Uint8Array; readonly snapshot: Written } | undefined;

  constructor(
    room: RoomKey,
    ports: SavePorts,
    { checkpoints, merges }: { checkpoints: CheckpointHost; merges: MergeHost },
    policy: SnapshotPolicy,
    deps: SaveDeps,
  ) {
    this.#room = room;
    this.#ports = ports;
    this.#checkpoints = checkpoints;
    this.#merges = merges;
    this.#policy = policy;
    this.#deps = deps;
  }

  /** When the first edit that is not in a snapshot was read. */
  get uncoveredSince(): Millis | undefined {
    return this.#uncoveredSince;
  }

  /** To be called whenever what the document's checkpoint covers may have changed. */
  noteUncovered(document: Document, now: Millis): void {
    this.#uncoveredSince = document.uncovered === undefined ? undefined : (this.#uncoveredSince ?? now);
  }

  isDue({ uncovered }: Document, now: Millis, { pressed }: { pressed: boolean }): boolean {
    if (uncovered === undefined || this.#merges.isPausing(now)) return false;
    return pressed || isSnapshotDue({ ...uncovered, since: this.#uncoveredSince ?? now }, this.#lastSaved, this.#policy, now);
  }

  async save(document: Document): Promise<Saved> {
    const { clock, metrics } = this.#deps;
    const started = clock.now();
    let outcome: Saved = "failed";
    try {
      outcome = await this.#save(document);
    } finally {
      metrics.saves.observe({ outcome }, (clock.now() - started) / 1000);
    }
    this.#lastSaved = started;
    if (outcome === "saved") this.#uncoveredSince = undefined;
    this.noteUncovered(document, started);
    return outcome;
  }

  /** To be called when the room's entry is known: what it does not name of ours it never will. */
  async removeUnnamed({ checkpoint }: Document): Promise<void> {
    for (const object of this.#unsettled) if (object !== checkpoint?.snapshot.object) await this.#checkpoints.removeSnapshot(object);
    this.#unsettled.clear();
  }

  async #save(document: Document): Promise<Saved> {
    const merged = await this.#merges.merge(document);
    if (merged === undefined || this.#merges.isStalled) return "failed";
    const { state, applied, clients, leftOut } = merged;
    const snapshot = this.#written?.state === state ? this.#written.snapshot : await this.#write(merged);
    if (snapshot === undefined) return "failed";
    this.#written = { state, snapshot };
    const time = this.#deps.clock.wallNow();
    const checkpoint: Checkpoint = { ...applied, time, clients: [...clients], ...(leftOut > 0 ? { leftOut } : {}), snapshot };
    await this.#deps.news.settle(this.#room);
    const isNamed = await this.#checkpoints.replace(document, checkpoint);
    this.#written = undefined;
    await this.removeUnnamed(document);
    if (!isNamed) return "superseded";
    await this.#deps.news.receiveSnapshot(this.#room, applied, state.byteLength);
    return "saved";
  }

  /** Undefined: it reads back other than it was written. */
  async #write({ state, applied }: MergedState): Promise<Written | undefined> {
    const { snapshots, digest } = this.#ports;
    const object = `${this.#room}/${applied.epoch}-${applied.seq}-${this.#deps.newName()}`;
    this.#unsettled.add(object);
    const snapshot = await writeVerified(snapshots, digest, object, state);
    if (snapshot === undefined) {
      this.#deps.log.error({ room: this.#room, object }, "a snapshot reads back other than it was written; it is not used");
    }
    return snapshot;
  }
}
