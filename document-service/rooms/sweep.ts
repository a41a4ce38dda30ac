/**
 * The sweep of one partition: a pass removes data that a crash left behind in its rooms, one effect at a time. It
 * visits rooms whose log has more than one record (a visited room takes records that it lacks, and is trimmed when
 * that is due), and removes objects that no entry names. It visits every room with a history, because that of a room
 * that nobody edits ends only here.
 *
 * The invariant: of a room that may still be saved, a sweep names only objects that were written under another lease; the
 * holder of this lease may be about to name its own objects.
 */

import { assert, assertNever } from "../../shared/assert.ts";
import type { Checkpoint } from "../../shared/bus/checkpoint.ts";
import { partitionOf } from "../../shared/bus/subjects.ts";
import { parseRoomKey, type RoomKey } from "../../shared/ids.ts";

/** `writer`: the names of all objects that are written under the current lease contain it. */
export type SweepOptions = { readonly writer: string; readonly logPartitions: number; readonly documentsSweepMs: number };

export type SweepInput =
  | { readonly kind: "started" }
  | { readonly kind: "untrimmed-listed"; readonly rooms: readonly RoomKey[] }
  | { readonly kind: "visited" }
  | { readonly kind: "snapshots-listed"; readonly names: readonly string[] }
  /** `isDone` false: the room cannot be swept yet. */
  | { readonly kind: "snapshots-swept"; readonly isDone: boolean }
  | { readonly kind: "history-listed"; readonly names: readonly string[] }
  | { readonly kind: "history-swept" }
  | { readonly kind: "unfinished-removed"; readonly objects: number }
  | { readonly kind: "paused" }
  /** The last effect failed. */
  | { readonly kind: "failed" };

export type SweepEffect =
  | { readonly kind: "list-untrimmed" }
  | { readonly kind: "visit"; readonly room: RoomKey }
  | { readonly kind: "list-snapshots" }
  | { readonly kind: "sweep-snapshots"; readonly room: RoomKey; readonly names: readonly string[] }
  | { readonly kind: "list-history" }
  | { readonly kind: "sweep-history"; readonly room: RoomKey; readonly names: readonly string[] }
  /** Removes objects that writers left unfinished. */
  | { readonly kind: "remove-unfinished" }
  | { readonly kind: "pause"; readonly ms: number };

type RoomObjectNames = readonly [room: RoomKey, names: readonly string[]];
type SweepState =
  | { readonly kind: "visiting"; readonly rooms: readonly RoomKey[] }
  /** `later`: rooms that could not be swept in this round. */
  | {
      readonly kind: "sweeping-snapshots";
      readonly look: number;
      readonly rooms: readonly RoomObjectNames[];
      readonly later: readonly RoomObjectNames[];
    }
  | { readonly kind: "sweeping-history"; readonly rooms: readonly RoomObjectNames[] }
  | { readonly kind: "between-passes" };

/** A killed service leaves rooms that must first be deleted or saved. The sweep returns to them for up to one minute. */
const LOOK_MS = 5_000;
const LOOKS_MAX = 12;
/** The partition whose sweep also removes unfinished objects, which belong to no room. */
const UNFINISHED_PARTITION = 0;

export class Sweep {
  readonly #partition: number;
  readonly #options: SweepOptions;
  #state: SweepState = { kind: "between-passes" };
  /** Rooms deleted under this lease whose objects may be left: their bucket of checkpoints may have lost the name of one (ADR 40). */
  readonly #wiped = new Set<RoomKey>();
  /** Those of them of which this pass has listed no object yet. */
  #unlisted = new Set<RoomKey>();

  constructor(partition: number, options: SweepOptions) {
    this.#partition = partition;
    this.#options = options;
  }

  /** The room's deletion is done, so nothing of the room is named any more. */
  receiveWiped(room: RoomKey): void {
    this.#wiped.add(room);
  }

  receive(input: SweepInput): SweepEffect {
    switch (input.kind) {
      case "started":
        return this.#startPass();
      case "untrimmed-listed":
        return this.#visitNext(input.rooms);
      case "visited":
        assert(this.#state.kind === "visiting", "a visit ends while rooms are visited");
        return this.#visitNext(this.#state.rooms);
      case "snapshots-listed":
        return this.#sweepNextSnapshots(
          1,
          this.#byRoom(input.names).filter(([, names]) => names.length > 0),
          [],
        );
      case "snapshots-swept":
        return this.#receiveSnapshotsSwept(input);
      case "history-listed":
        return this.#sweepNextHistory(this.#byRoom(input.names));
      case "history-swept":
        assert(this.#state.kind === "sweeping-history", "a room's history is swept while histories are swept");
        return this.#sweepNextHistory(this.#state.rooms);
      case "unfinished-removed":
        return this.#endPass();
      case "failed":
        return this.#pause();
      case "paused":
        return this.#state.kind === "sweeping-snapshots"
          ? this.#sweepNextSnapshots(this.#state.look, this.#state.rooms, this.#state.later)
          : this.#startPass();
      default:
        return assertNever(input);
    }
  }

  #startPass(): SweepEffect {
    this.#unlisted = new Set(this.#wiped);
    return { kind: "list-untrimmed" };
  }

  #visitNext([room, ...rooms]: readonly RoomKey[]): SweepEffect {
    this.#state = { kind: "visiting", rooms };
    return room === undefined ? { kind: "list-snapshots" } : { kind: "visit", room };
  }

  #receiveSnapshotsSwept({ isDone }: SweepInput & { kind: "snapshots-swept" }): SweepEffect {
    assert(this.#state.kind === "sweeping-snapshots", "a room's snapshots are swept while snapshots are swept");
    const { look, rooms, later } = this.#state;
    const [swept, ...rest] = rooms;
    return this.#sweepNextSnapshots(look, rest, isDone || swept === undefined ? later : [...later, swept]);
  }

  /** After all rooms had their turn, the rooms that could not be swept have another one after a pause. */
  #sweepNextSnapshots(look: number, rooms: readonly RoomObjectNames[], later: readonly RoomObjectNames[]): SweepEffect {
    const [next] = rooms;
    if (next !== undefined) {
      this.#state = { kind: "sweeping-snapshots", look, rooms, later };
      return { kind: "sweep-snapshots", room: next[0], names: next[1] };
    }
    if (later.length === 0 || look >= LOOKS_MAX) return { kind: "list-history" };
    this.#state = { kind: "sweeping-snapshots", look: look + 1, rooms: later, later: [] };
    return { kind: "pause", ms: LOOK_MS };
  }

  #sweepNextHistory([next, ...rooms]: readonly RoomObjectNames[]): SweepEffect {
    this.#state = { kind: "sweeping-history", rooms };
    if (next !== undefined) return { kind: "sweep-history", room: next[0], names: next[1] };
    return this.#partition === UNFINISHED_PARTITION ? { kind: "remove-unfinished" } : this.#endPass();
  }

  #endPass(): SweepEffect {
    for (const room of this.#unlisted) this.#wiped.delete(room);
    return this.#pause();
  }

  #pause(): SweepEffect {
    this.#state = { kind: "between-passes" };
    return { kind: "pause", ms: this.#options.documentsSweepMs };
  }

  /**
   * This partition's rooms that have objects, with those that were written under another lease, and with all of a deleted
   * room. An entry may name one of them.
   */
  #byRoom(names: readonly string[]): RoomObjectNames[] {
    const { writer, logPartitions } = this.#options;
    const byRoom = new Map<RoomKey, string[]>();
    for (const name of names) {
      const room = parseRoomKey(name.slice(0, name.indexOf("/")));
      if (room === undefined || partitionOf(room, logPartitions) !== this.#partition) continue;
      const ofRoom = byRoom.get(room) ?? [];
      byRoom.set(room, ofRoom);
      this.#unlisted.delete(room);
      if (!name.includes(writer) || this.#wiped.has(room)) ofRoom.push(name);
    }
    return [...byRoom];
  }
}

/** The known facts about a room whose snapshots are swept. */
type SweptRoomState = {
  /** False: its checkpoint could not be read in time. */
  readonly isOpened: boolean;
  readonly isOpening: boolean;
  readonly isBusy: boolean;
  /** Some data of a deleted room is still to be removed. */
  readonly isWipeDue: boolean;
};
/** `skip`: the objects stay until the next pass. `later`: other work of the room comes first. */
export function decideSnapshotSweep({ isOpened, isOpening, isBusy, isWipeDue }: SweptRoomState): "skip" | "later" | "sweep" {
  if (!isOpened) return "skip";
  return isOpening || isBusy || isWipeDue ? "later" : "sweep";
}

type SnapshotRemoval =
  | { readonly kind: "none" }
  | { readonly kind: "remove"; readonly names: readonly string[] }
  /**
   * The writer of a snapshot may be slow and about to name it. So write the checkpoint again first, so that the writer
   * finds an unknown revision and stops. Then remove the snapshots.
   */
  | { readonly kind: "replace-checkpoint-and-remove"; readonly checkpoint: Checkpoint; readonly names: readonly string[] };

/**
 * The snapshots of a room to remove. Without a checkpoint none is removed: the checkpoint may be lost, and the
 * snapshots may be the only copies.
 */
export function planSnapshotRemoval(
  names: readonly string[],
  room: { readonly isDeleted: boolean; readonly checkpoint: Checkpoint | undefined },
): SnapshotRemoval {
  if (room.isDeleted) return { kind: "remove", names };
  const { checkpoint } = room;
  const orphans = names.filter((name) => name !== checkpoint?.snapshot.object);
  if (checkpoint === undefined || orphans.length === 0) return { kind: "none" };
  return { kind: "replace-checkpoint-and-remove", checkpoint, names: orphans };
}
