/**
 * Work of a pass at long intervals: retry rooms whose checkpoint does not decode, and remove checkpoint objects that a
 * crash left without an entry. One partition sweeps for all of them.
 */

import type { Millis, RoomKey } from "../../shared/ids.ts";
import type { PassRequest } from "./pass-messages.ts";

const NEVER = Number.POSITIVE_INFINITY;
const TRY_MS = 10_000;
const CATCH_UP_MS = 1_000;
/**
 * Interval of sweeps. Also the age at which an object without an entry counts as abandoned. A live writer adds the
 * entry much earlier.
 */
const SWEEP_MS = 3_600_000;
const SWEEPING_PARTITION = 0;

export class PassUpkeep {
  readonly #sweeps: boolean;
  readonly #aside = new Set<RoomKey>();
  /** Rooms that are set aside and not yet tried in this round. */
  #untried: RoomKey[] = [];
  /** `NEVER` while the work is in progress. */
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

  /** Returns whether the room was not set aside before. */
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
