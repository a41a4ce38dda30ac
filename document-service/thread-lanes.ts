/**
 * Decides which document task runs in which thread. Each lane has separate threads: `quick` for all first tries,
 * `writes` for the content of HTTP writes, `quarantine` for tasks that exceeded a quick try. The invariant: a task
 * holds a thread of `quick` for one second at most, and never waits in `writes` behind a merge. So a room that cannot
 * be merged delays other rooms once, and never HTTP writes. The same holds for a room whose history cannot be read in a
 * second. The check of a write's content limits its work, not a time, and in `writes` the rooms share the thread fairly
 * (`fair-queue.ts`). Rules LAN1 to LAN6.
 */

import { assert } from "../shared/assert.ts";
import type { Millis, RoomKey } from "../shared/ids.ts";
import { FairQueue } from "./fair-queue.ts";

type MergeLane = "quick" | "quarantine";
export type ThreadLane = MergeLane | "writes";

/** Milliseconds of a first try. A document of 20 MB takes 600 ms. */
const QUICK_MS_MAX = 1_000;
/** Time after which a room that was not merged is tried in `quick` again. Longer than the longest pause between two tries. */
const QUARANTINE_MS = 3_600_000;
/** Maximum number of quarantined rooms. Above it, the room that is quarantined longest returns to `quick`. */
const QUARANTINED_MAX = 10_000;

type Write = { readonly start: () => void; readonly refuse: () => void };
type ThreadLanesOptions = { readonly mergeMsMax: number; readonly mergeThreads: number; readonly readsWaitingMax: number };

export class ThreadLanes {
  readonly #mergeMsMax: number;
  readonly #lanes: Readonly<Record<MergeLane, { free: number; readonly waiting: (() => void)[] }>>;
  readonly #writes: FairQueue<Write>;
  #isWriting = false;
  readonly #rooms = new Quarantine();
  readonly #histories = new Quarantine();

  constructor({ mergeMsMax, mergeThreads, readsWaitingMax }: ThreadLanesOptions) {
    this.#mergeMsMax = mergeMsMax;
    this.#lanes = {
      quick: { free: mergeThreads, waiting: [] },
      quarantine: { free: 1, waiting: [] },
    };
    this.#writes = new FairQueue(readsWaitingMax);
  }

  /** Maximum number of threads of `quick` and `quarantine` together. */
  static mergingThreadsOf({ mergeThreads }: { readonly mergeThreads: number }): number {
    return mergeThreads + 1;
  }

  /** Number of tasks that wait for a thread. */
  waitingIn(lane: MergeLane): number {
    return this.#lanes[lane].waiting.length;
  }

  get waiting(): number {
    return this.waitingIn("quick") + this.#writes.length + this.waitingIn("quarantine");
  }

  /** Milliseconds after which a task of the lane is aborted. */
  msMax(lane: ThreadLane): number {
    return lane === "quick" ? Math.min(QUICK_MS_MAX, this.#mergeMsMax) : this.#mergeMsMax;
  }

  /** Calls `start` once a thread of the lane is free. The task ends with `release`. */
  take(lane: MergeLane, start: () => void): void {
    const { free, waiting } = this.#lanes[lane];
    if (free === 0) return void waiting.push(start);
    this.#lanes[lane].free -= 1;
    start();
  }

  release(lane: MergeLane): void {
    const next = this.#lanes[lane].waiting.shift();
    if (next === undefined) this.#lanes[lane].free += 1;
    else next();
  }

  /** The same for a task of `writes`, which ends with `releaseWrite`. Calls `refuse` instead if too many tasks wait. */
  takeWrite(room: RoomKey, start: () => void, refuse: () => void): void {
    if (this.#isWriting) return void this.#writes.add(room, { start, refuse })?.refuse();
    this.#isWriting = true;
    start();
  }

  /** `ms`: the time for which the task of the room had the thread. */
  releaseWrite(room: RoomKey, ms: number): void {
    this.#writes.charge(room, ms);
    const next = this.#writes.next();
    this.#isWriting = next !== undefined;
    next?.start();
  }

  hasFreeThread(lane: MergeLane): boolean {
    return this.#lanes[lane].free > 0;
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
