/** Starts the jobs of one partition's rooms, a limited number at a time: which room is next saved, and which is wiped. */

import { type Millis, type RoomKey, type TenantId, tenantOf } from "../../shared/ids.ts";
import type { DocumentRoom } from "./room.ts";

/** A room from the view of its partition's jobs. */
type DueRoom = Pick<DocumentRoom, "key" | "uncoveredSince" | "isSaveDue" | "isWipeDue">;
export type StartJob = { readonly kind: "start-job"; readonly room: RoomKey; readonly job: "save" | "wipe" };

/** `isPressed`: the partition needs the room's memory. */
type DueJob = { readonly room: DueRoom; readonly isPressed: boolean };

/** While more rooms than this wait for a save, they are put in order only once in so many ticks. */
const PLANNED_IN_EACH_TICK = 200;
const TICKS_PER_PLAN = 10;

export class PartitionJobs {
  readonly #jobsMax: number;
  /** The most urgent room is first. */
  #due: DueJob[] = [];
  /** The tenant of each running job. */
  readonly #running: TenantId[] = [];
  /** Rooms that were to be saved, or wiped, at their last tick. */
  readonly #unsaved = new Set<DueRoom>();
  readonly #unwiped = new Set<DueRoom>();
  #ticksUnplanned = 0;

  constructor(jobsMax: number) {
    this.#jobsMax = jobsMax;
  }

  get isRunning(): boolean {
    return this.#running.length > 0;
  }

  receiveUnsaved(room: DueRoom): void {
    this.#unsaved.add(room);
  }

  receiveUnwiped(room: DueRoom): void {
    this.#unwiped.add(room);
  }

  /** The room leaves memory. */
  forget(room: DueRoom): void {
    this.#unsaved.delete(room);
    this.#unwiped.delete(room);
  }

  receiveTick(isPressed: boolean, now: Millis): readonly StartJob[] {
    this.#ticksUnplanned += 1;
    if (this.#unsaved.size > PLANNED_IN_EACH_TICK && this.#ticksUnplanned < TICKS_PER_PLAN) return [];
    this.#ticksUnplanned = 0;
    for (const room of this.#unsaved) if (!room.isSaveDue(now, isPressed)) this.#unsaved.delete(room);
    for (const room of this.#unwiped) if (!room.isWipeDue(now)) this.#unwiped.delete(room);
    return this.plan(this.#unsaved, this.#unwiped, isPressed, now);
  }

  /**
   * The room that waits longest is saved first, but tenants take turns, so that slow saves of many rooms of one tenant never
   * have all places. Deleted rooms can wait.
   */
  plan(unsaved: Iterable<DueRoom>, unwiped: Iterable<DueRoom>, isPressed: boolean, now: Millis): readonly StartJob[] {
    const byAge = [...unsaved].sort((a, b) => (a.uncoveredSince ?? 0) - (b.uncoveredSince ?? 0));
    const turns = new Map<TenantId, number>();
    const nextTurn = (tenant: TenantId): number => {
      const turn = turns.get(tenant) ?? 0;
      turns.set(tenant, turn + 1);
      return turn;
    };
    for (const tenant of this.#running) nextTurn(tenant);
    const saves = byAge.map((room) => ({ room, isPressed, turn: nextTurn(tenantOf(room.key)) })).toSorted((a, b) => a.turn - b.turn);
    this.#due = [...saves, ...Array.from(unwiped, (room) => ({ room, isPressed: false }))];
    return this.#start(now);
  }

  /** The next job starts at once. */
  receiveEnd(room: RoomKey, now: Millis): readonly StartJob[] {
    this.#running.splice(this.#running.indexOf(tenantOf(room)), 1);
    return this.#start(now);
  }

  /** Starts no further job before the next plan. Running jobs continue. */
  clear(): void {
    this.#due = [];
    this.#unsaved.clear();
    this.#unwiped.clear();
  }

  #start(now: Millis): readonly StartJob[] {
    const started: StartJob[] = [];
    while (this.#running.length < this.#jobsMax) {
      const next = this.#due.shift();
      if (next === undefined) break;
      const { room, isPressed } = next;
      const job = room.isWipeDue(now) ? "wipe" : room.isSaveDue(now, isPressed) ? "save" : undefined;
      if (job === undefined) continue; // No longer due.
      this.#running.push(tenantOf(room.key));
      started.push({ kind: "start-job", room: room.key, job });
    }
    return started;
  }
}
