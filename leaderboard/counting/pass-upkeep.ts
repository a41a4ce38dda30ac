/**
 * What a pass looks after at long intervals: rooms whose checkpoint does not decode, each of which is tried again, and
 * checkpoint objects that a crash left without an entry. One partition sweeps for all of them.
 */

import type { Millis, RoomKey } from "../../shared/ids.ts";
import type { PassRequest } from "./pass-messages.ts";

const TRY_MS = 10_000;
const CATCH_UP_MS = 1_000;
/** The interval of sweeps, and the age at which an unnamed object counts as left behind: its writer names it long before. */
const SWEEP_MS = 3_600_000;
const SWEEPING_PARTITION = 0;
const NEVER = Number.POSITIVE_INFINITY;

export class PassUpkeep {
  readonly #sweeps: boolean;
  readonly #aside = new Set<RoomKey>();
  /** Rooms aside that are still to be tried in this round. */
  #untried: RoomKey[] = [];
  /** `NEVER` while the work is under way. */
  #tryAt = NEVER;
  #sweepAt = NEVER;

  constructor(partition: number) {
    this.#sweeps = partition === SWEEPING_PARTITION;
  }

  get nextAt(): number {
    return Math.min(this.#tryAt, this.#sweepAt);
  }

  get asideCount(): number {
    return this.#aside.size;
  }

  isAside(room: RoomKey): boolean {
    return this.#aside.has(room);
  }

  /** Returns whether the room was not aside before. */
  setAside(room: RoomKey): boolean {
    const isNew = !this.#aside.has(room);
    this.#aside.add(room);
    return isNew;
  }

  begin(now: Millis): void {
    this.#tryAt = now + TRY_MS;
    if (this.#sweeps) this.#sweepAt = now;
  }

  tick(now: Millis, hasCaughtUp: boolean): PassRequest[] {
    const requests: PassRequest[] = [];
    if (now >= this.#tryAt) {
      this.#tryAt = NEVER;
      this.#untried = [...this.#aside];
      requests.push(...this.tryNext(now));
    }
    if (now >= this.#sweepAt) {
      this.#sweepAt = hasCaughtUp ? NEVER : now + CATCH_UP_MS;
      if (hasCaughtUp) requests.push({ kind: "sweep", ageMsMin: SWEEP_MS });
    }
    return requests;
  }

  tryNext(now: Millis): PassRequest[] {
    const room = this.#untried.shift();
    if (room !== undefined) return [{ kind: "try-checkpoint", room }];
    this.#tryAt = now + TRY_MS;
    return [];
  }

  receiveSwept(now: Millis): void {
    this.#sweepAt = now + SWEEP_MS;
  }
}
