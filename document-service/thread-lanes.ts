/**
 * Decides which document task runs in which thread. Each lane has separate threads: `quick` for all first tries,
 * `writes` for the content of HTTP writes, `quarantine` for tasks that exceeded a quick try. The invariant: a task
 * holds a thread of `quick` for one second at most, and never waits in `writes` behind a merge. The check of a write's
 * content limits its work, not a time. In each lane, tenants, kinds of their tasks and rooms share the threads by time
 * (`shared/limits/fair-queue.ts`): a room that is merged slowly, or whose history is read slowly, takes turns with all others. So
 * the merges of one tenant do not go before the read of another that used less. Rules LAN1 to LAN10.
 */

import { assert } from "../shared/assert.ts";
import { type Millis, type RoomKey, type TenantId, tenantOf } from "../shared/ids.ts";
import { FairQueue, UsedTime } from "../shared/limits/fair-queue.ts";
import type { MergeUrgency } from "./ports.ts";

export type ThreadLane = "quick" | "quarantine" | "writes";
/** `write`: makes the edit of an HTTP write. `read`: reads a document or its history. */
export type ThreadTaskKind = "write" | "read" | MergeUrgency;

/** Milliseconds of a first try. A document of 20 MB takes 600 ms. */
const QUICK_MS_MAX = 1_000;
/** Time after which a room that was not merged is tried in `quick` again. Longer than the longest pause between two tries. */
const QUARANTINE_MS = 3_600_000;
/** Maximum number of quarantined rooms. Above it, the room that is quarantined longest returns to `quick`. */
const QUARANTINED_MAX = 10_000;
/** While tasks of other kinds wait too, merges that nobody waits for have a quarter of the time of each of these kinds. */
const BACKGROUND_COST = 4;

/** `start`: the task has a thread. `refuse`: too many tasks wait. The lane calls exactly one of both, once. */
type LaneTask = { readonly kind: ThreadTaskKind; readonly room: RoomKey; readonly start: () => void; readonly refuse: () => void };
type ThreadLanesOptions = { readonly mergeMsMax: number; readonly mergeThreads: number; readonly readsWaitingMax: number };

export class ThreadLanes {
  readonly #mergeMsMax: number;
  readonly #lanes: Readonly<Record<ThreadLane, Lane>>;
  readonly #rooms = new Quarantine();
  readonly #histories = new Quarantine();

  constructor({ mergeMsMax, mergeThreads, readsWaitingMax }: ThreadLanesOptions) {
    this.#mergeMsMax = mergeMsMax;
    this.#lanes = {
      quick: new Lane(mergeThreads, readsWaitingMax),
      writes: new Lane(1, readsWaitingMax),
      quarantine: new Lane(1, readsWaitingMax),
    };
  }

  /** Maximum number of threads of `quick` and `quarantine` together. */
  static mergingThreadsOf({ mergeThreads }: { readonly mergeThreads: number }): number {
    return mergeThreads + 1;
  }

  /** Number of tasks that wait for a thread. */
  get waiting(): number {
    return Object.values(this.#lanes).reduce((sum, { waiting }) => sum + waiting, 0);
  }

  /** Milliseconds after which a task of the lane is aborted. */
  msMax(lane: ThreadLane): number {
    return lane === "quick" ? Math.min(QUICK_MS_MAX, this.#mergeMsMax) : this.#mergeMsMax;
  }

  /** Starts the task once a thread of the lane is free. It ends with `release`. Merges are never refused. */
  take(lane: ThreadLane, task: LaneTask): void {
    this.#lanes[lane].take(task);
  }

  /** `ms`: the time for which the task had the thread. */
  release(lane: ThreadLane, task: Pick<LaneTask, "kind" | "room">, ms: number): void {
    this.#lanes[lane].release(task, ms);
  }

  hasFreeThread(lane: ThreadLane): boolean {
    return this.#lanes[lane].hasFreeThread;
  }

  laneOf(room: RoomKey, now: Millis): "quick" | "quarantine" {
    return this.#rooms.has(room, now) ? "quarantine" : "quick";
  }

  /** A history may take long while the room itself is merged quickly. */
  laneOfHistory(room: RoomKey, now: Millis): "quick" | "quarantine" {
    return this.#histories.has(room, now) ? "quarantine" : this.laneOf(room, now);
  }

  /** Returns whether the room was not quarantined before. */
  quarantine(room: RoomKey, now: Millis): boolean {
    return this.#rooms.add(room, now);
  }

  quarantineHistory(room: RoomKey, now: Millis): void {
    this.#histories.add(room, now);
  }

  /** The room was merged in `ms`. Returns whether that ends its quarantine. */
  receiveMerged(room: RoomKey, ms: number): boolean {
    assert(ms >= 0, "a merge takes no negative time");
    return ms < this.msMax("quick") && this.#rooms.delete(room);
  }

  quarantinedRooms(now: Millis): number {
    return this.#rooms.count(now);
  }
}

/** Kinds of tasks that a client waits for. */
const ASKED = ["write", "read", "awaited"] as const satisfies readonly ThreadTaskKind[];
const KINDS = [...ASKED, "background"] as const satisfies readonly ThreadTaskKind[];

/** Each room has one merge at a time, so waiting merges are limited by the rooms in memory. */
class Lane {
  #freeCount: number;
  readonly #queues: Readonly<Record<ThreadTaskKind, FairQueue<LaneTask>>>;
  #used = new UsedTime<ThreadTaskKind>();
  /** Time of asked tasks. */
  #usedByTenant = new UsedTime<TenantId>();
  /** The same by kind, for each tenant that has some waiting. The first of several kinds that used least is the next. */
  readonly #usedByKind = new Map<TenantId, UsedTime<ThreadTaskKind>>();

  constructor(threads: number, readsWaitingMax: number) {
    this.#freeCount = threads;
    this.#queues = {
      write: new FairQueue(readsWaitingMax),
      read: new FairQueue(readsWaitingMax),
      awaited: new FairQueue(Number.POSITIVE_INFINITY),
      background: new FairQueue(Number.POSITIVE_INFINITY),
    };
  }

  get waiting(): number {
    return Object.values(this.#queues).reduce((sum, { length }) => sum + length, 0);
  }

  get hasFreeThread(): boolean {
    return this.#freeCount > 0;
  }

  take(task: LaneTask): void {
    if (this.#freeCount === 0) return void this.#queues[task.kind].add(task.room, task)?.refuse();
    this.#freeCount -= 1;
    task.start();
  }

  release({ kind, room }: Pick<LaneTask, "kind" | "room">, ms: number): void {
    this.#queues[kind].charge(room, ms);
    this.#used.add(kind, kind === "background" ? BACKGROUND_COST * ms : ms);
    if (kind !== "background") {
      this.#usedByTenant.add(tenantOf(room), ms);
      this.#usedByKind.get(tenantOf(room))?.add(kind, ms);
    }
    const next = this.#next();
    if (next !== undefined) return next.start();
    this.#used = new UsedTime();
    this.#usedByTenant = new UsedTime();
    this.#freeCount += 1;
  }

  #next(): LaneTask | undefined {
    const waiting = KINDS.filter((kind) => this.#queues[kind].length > 0);
    if (waiting.length === 0) return undefined;
    if (this.#used.least(waiting) === "background") return this.#queues.background.next();
    return this.#nextOf(this.#usedByTenant.least(new Set(ASKED.flatMap((kind) => [...this.#queues[kind].tenants]))));
  }

  /** The next asked task of a tenant that has one. */
  #nextOf(tenant: TenantId): LaneTask | undefined {
    const waiting = (): ThreadTaskKind[] => ASKED.filter((kind) => this.#queues[kind].hasOf(tenant));
    const used = this.#usedByKind.get(tenant) ?? new UsedTime();
    const task = this.#queues[used.least(waiting())].next((of) => of === tenant);
    if (waiting().length > 0) this.#usedByKind.set(tenant, used);
    else this.#usedByKind.delete(tenant);
    return task;
  }
}

class Quarantine {
  /** The room that is quarantined longest is first. */
  readonly #until = new Map<RoomKey, Millis>();

  has(room: RoomKey, now: Millis): boolean {
    return now < (this.#until.get(room) ?? 0);
  }

  /** Returns whether the room was not there before. */
  add(room: RoomKey, now: Millis): boolean {
    const isNew = !this.has(room, now);
    this.#until.delete(room);
    this.#until.set(room, (now + QUARANTINE_MS) as Millis);
    const [oldest] = this.#until.keys();
    if (this.#until.size > QUARANTINED_MAX && oldest !== undefined) this.#until.delete(oldest);
    return isNew;
  }

  delete(room: RoomKey): boolean {
    return this.#until.delete(room);
  }

  count(now: Millis): number {
    for (const [room, until] of this.#until) {
      if (until > now) break; // All later entries end later.
      this.#until.delete(room);
    }
    return this.#until.size;
  }
}
