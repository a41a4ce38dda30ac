/**
 * The stores of the simulated document services and leaderboards: KV buckets, object stores and Redis. Each store can
 * lose its end from a different time, so a test can combine an old bucket with a new object store.
 */

import type { CheckpointEntry } from "../../shared/bus/checkpoint.ts";
import { type Lease, NO_HOLDER } from "../../shared/cluster/lease.ts";
import type { Epoch, RoomKey, Seq, UnixMillis } from "../../shared/ids.ts";
import type { StoredHistory } from "../../document-service/ports.ts";
import type { BoardsDump } from "../../leaderboard/boards/board.ts";
import type { Window } from "../../leaderboard/boards/windows.ts";
import type { Scheduler } from "./scheduler.ts";
import { SimBucket } from "./sim-bucket.ts";
import { SimRedis } from "./sim-redis.ts";

/** A room's entry in the bucket of the boards' checkpoints: it names the object that holds the boards. */
type BoardCheckpointEntry =
  | { readonly kind: "deleted"; readonly windows: readonly Window[] }
  | {
      readonly kind: "boards";
      readonly epoch: Epoch;
      readonly time: UnixMillis;
      readonly seq: Seq;
      readonly activity: number;
      readonly windows: readonly Window[];
      readonly object: string;
    };

export class ServiceStores {
  readonly checkpoints: SimBucket<CheckpointEntry>;
  readonly histories: SimBucket<StoredHistory["history"]>;
  readonly documentLeases: SimBucket<Lease>;
  readonly boardLeases: SimBucket<Lease>;
  readonly boardCheckpoints: SimBucket<BoardCheckpointEntry>;
  readonly snapshots: SimObjects<Uint8Array>;
  readonly archive: SimObjects<Uint8Array>;
  readonly boards: SimObjects<BoardsDump>;
  readonly redis: SimRedis;

  constructor(scheduler: Scheduler) {
    this.checkpoints = new SimBucket(scheduler);
    this.histories = new SimBucket(scheduler);
    this.documentLeases = new SimBucket(scheduler);
    this.boardLeases = new SimBucket(scheduler);
    this.boardCheckpoints = new SimBucket(scheduler);
    this.snapshots = new SimObjects(scheduler);
    this.archive = new SimObjects(scheduler);
    this.boards = new SimObjects(scheduler);
    this.redis = new SimRedis(scheduler);
    // A lease of a former leaderboard. Document services keep records for the boards only if there has been a
    // leaderboard.
    this.boardLeases.write("partition.0" as RoomKey, { holder: NO_HOLDER, floor: 0 }, 0);
  }

  /** All stores except Redis, which runs on a separate machine. */
  get onNats(): readonly { loseSince(syncedAt: number): void }[] {
    return [
      this.checkpoints,
      this.histories,
      this.documentLeases,
      this.boardLeases,
      this.boardCheckpoints,
      this.snapshots,
      this.archive,
      this.boards,
    ];
  }
}

type StoredObject<Value> = { readonly value: Value; readonly at: number; removedAt: number };

/** Objects by name. A name is written once. */
export class SimObjects<Value> {
  readonly #scheduler: Scheduler;
  readonly #objects = new Map<string, StoredObject<Value>>();
  #unansweredEver = 0;
  #damagedEver = 0;
  #refusedEver = 0;
  isThere = true;
  /** The store has no storage left for another object. Objects can be read and removed. */
  isFull = false;
  /** Set: what a write stores in place of the value. The write is answered as if nothing were wrong. */
  damage: ((value: Value) => Value) | undefined;

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  /** Count of requests that were not answered. */
  get unansweredEver(): number {
    return this.#unansweredEver;
  }

  get damagedEver(): number {
    return this.#damagedEver;
  }

  get refusedEver(): number {
    return this.#refusedEver;
  }

  /** Asked once for each request. */
  answers(): boolean {
    if (!this.isThere) this.#unansweredEver += 1;
    return this.isThere;
  }

  /** Returns whether it had storage for it. */
  write(name: string, value: Value): boolean {
    if (this.isFull) {
      this.#refusedEver += 1;
      return false;
    }
    if (this.damage !== undefined) this.#damagedEver += 1;
    this.#objects.set(name, { value: this.damage?.(value) ?? value, at: this.#scheduler.now, removedAt: Number.POSITIVE_INFINITY });
    return true;
  }

  read(name: string): Value | undefined {
    const stored = this.#objects.get(name);
    return stored === undefined || stored.removedAt <= this.#scheduler.now ? undefined : stored.value;
  }

  remove(name: string): void {
    const stored = this.#objects.get(name);
    if (stored !== undefined) stored.removedAt = Math.min(stored.removedAt, this.#scheduler.now);
  }

  names(): string[] {
    return [...this.#objects.keys()].filter((name) => this.read(name) !== undefined);
  }

  /** The store's machine lost power: writes and removals since then are undone. */
  loseSince(syncedAt: number): void {
    for (const [name, stored] of this.#objects) {
      if (stored.at > syncedAt) this.#objects.delete(name);
      else if (stored.removedAt > syncedAt) stored.removedAt = Number.POSITIVE_INFINITY;
    }
  }
}
