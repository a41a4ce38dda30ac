/**
 * Saves one room's document, step by step. Each step may fail, and the next try starts from a complete document:
 *
 *   merge -> write snapshot, read it back, compare -> queue notifications -> read the last record again ->
 *   write checkpoint -> remove old snapshots
 *
 * The checkpoint is the commit. A snapshot that no checkpoint names is unused and is removed later.
 */

import { assert } from "../../shared/assert.ts";
import type { Checkpoint } from "../../shared/bus/checkpoint.ts";
import { LazySet } from "../../shared/collections/lazy-map.ts";
import type { Millis, RoomKey, UnixMillis } from "../../shared/ids.ts";
import type { Written } from "../verified-write-host.ts";
import type { Document, MergedState } from "./document.ts";
import type { DocumentRoomEffect, SaveOutcome } from "./room-messages.ts";

type SaveStep =
  | { readonly kind: "idle" }
  | { readonly kind: "merging" }
  | { readonly kind: "writing"; readonly object: string; readonly merged: MergedState }
  | { readonly kind: "queueing"; readonly snapshot: Written; readonly merged: MergedState }
  | { readonly kind: "naming"; readonly merged: MergedState; readonly write: PlannedCheckpoint }
  | { readonly kind: "removing"; readonly merged: MergedState; readonly by: NamedBy }
  | { readonly kind: "announcing" };

/**
 * A checkpoint to write in place of `revision`: the revision that was known when the checkpoint was built. The room may
 * adopt a newer one before the write, which must then fail.
 */
export type PlannedCheckpoint = { readonly checkpoint: Checkpoint; readonly revision: number };

/** The writer of the bucket's checkpoint. `unknown`: the bucket refused a write, and did not return its current checkpoint. */
export type NamedBy = "ours" | "theirs" | "unknown";

export class DocumentSaves {
  readonly #room: RoomKey;
  /** Unique among all snapshots ever written. */
  readonly #newName: () => string;
  #step: SaveStep = { kind: "idle" };
  #startedAt = 0 as Millis;
  /** Snapshots that the room's checkpoint may name, because the outcome of a write of the checkpoint is unknown. */
  readonly #unsettled = new LazySet<string>();
  /** The last written snapshot. A retry uses the same one while the state is the same. */
  #written: { readonly state: Uint8Array; readonly snapshot: Written } | undefined;

  constructor(room: RoomKey, newName: () => string) {
    this.#room = room;
    this.#newName = newName;
  }

  get startedAt(): Millis {
    return this.#startedAt;
  }

  get step(): SaveStep["kind"] {
    return this.#step.kind;
  }

  begin(now: Millis): void {
    assert(this.#step.kind === "idle", "a room is saved once at a time");
    this.#startedAt = now;
    this.#step = { kind: "merging" };
  }

  /** `merged` undefined, or a merge that stalled: the save has failed. */
  receiveMerged(merged: MergedState | undefined, isStalled: boolean, effects: DocumentRoomEffect[]): SaveOutcome | undefined {
    if (merged === undefined || isStalled) return this.#end("failed");
    const { state, applied } = merged;
    if (this.#written?.state === state) return this.#queueNotifications(merged, this.#written.snapshot, effects);
    const object = `${this.#room}/${applied.epoch}-${applied.seq}-${this.#newName()}`;
    this.#unsettled.add(object);
    this.#step = { kind: "writing", object, merged };
    effects.push({ kind: "write-snapshot", object, state });
    return undefined;
  }

  /** `written` undefined: the object differs from the written bytes when it is read back. */
  receiveWritten(written: Written | undefined, effects: DocumentRoomEffect[]): SaveOutcome | undefined {
    assert(this.#step.kind === "writing", "a snapshot is written for a save");
    const { merged, object } = this.#step;
    if (written !== undefined) return this.#queueNotifications(merged, written, effects);
    effects.push({ kind: "report", report: { kind: "snapshot-damaged", object } });
    return this.#end("failed");
  }

  /** Returns the checkpoint to write, once the log is known to have the last record that it covers. */
  receiveQueued(wall: UnixMillis, revision: number, logBytesThrough: (streamSeq: number) => number): Checkpoint {
    assert(this.#step.kind === "queueing", "notifications are queued for a save");
    const { merged, snapshot } = this.#step;
    const { applied, clients, leftOut, refused } = merged;
    const missing = { ...(leftOut > 0 ? { leftOut } : {}), ...(refused > 0 ? { refused } : {}) };
    const logBytes = logBytesThrough(applied.streamSeq);
    const checkpoint = { ...applied, time: wall, clients: [...clients], ...missing, logBytes, snapshot };
    this.#step = { kind: "naming", merged, write: { checkpoint, revision } };
    return checkpoint;
  }

  get write(): PlannedCheckpoint {
    assert(this.#step.kind === "naming", "a save has a checkpoint once its snapshot is written");
    return this.#step.write;
  }

  /** `replaced`: the snapshot of the checkpoint before. Own snapshots stay while the bucket may name one of them. */
  receiveNamed(by: NamedBy, replaced: readonly string[], document: Document, effects: DocumentRoomEffect[]): SaveOutcome | undefined {
    assert(this.#step.kind === "naming", "a checkpoint is written for a save");
    const { merged } = this.#step;
    this.#written = undefined;
    const names = by === "unknown" ? replaced : [...replaced, ...this.takeUnnamed(document)];
    this.#step = { kind: "removing", merged, by };
    if (names.length === 0) return this.receiveRemoved(effects);
    effects.push({ kind: "remove-snapshots", names, isAwaited: true });
    return undefined;
  }

  receiveRemoved(effects: DocumentRoomEffect[]): SaveOutcome | undefined {
    assert(this.#step.kind === "removing", "old snapshots are removed for a save");
    const { merged, by } = this.#step;
    if (by !== "ours") return this.#end("superseded");
    this.#step = { kind: "announcing" };
    effects.push({ kind: "announce-snapshot", position: merged.applied, bytes: merged.state.byteLength });
    return undefined;
  }

  receiveAnnounced(): SaveOutcome {
    return this.#end("saved");
  }

  /** A store failed. The written objects stay known for the next try. */
  abandon(): void {
    this.#step = { kind: "idle" };
  }

  /** Snapshots of this service that the room's current checkpoint does not name, and no later one will. */
  takeUnnamed({ checkpoint }: Document): string[] {
    const names = [...this.#unsettled].filter((object) => object !== checkpoint?.snapshot.object);
    this.#unsettled.clear();
    return names;
  }

  #queueNotifications(merged: MergedState, snapshot: Written, effects: DocumentRoomEffect[]): undefined {
    this.#written = { state: merged.state, snapshot };
    this.#step = { kind: "queueing", snapshot, merged };
    effects.push({ kind: "queue-notifications" });
    return undefined;
  }

  #end(outcome: SaveOutcome): SaveOutcome {
    this.#step = { kind: "idle" };
    return outcome;
  }
}
