/**
 * When a room says how far it has come. Fan-out may lose the last records unseen, since nothing follows them
 * that would show the gap: so after each commit the head is told again, a few times, until the room is quiet.
 * Rules BCN1, BCN2.
 */

import type { Millis } from "../../shared/ids.ts";

export type BeaconsOptions = { readonly beaconMs: number; readonly beaconsWhenQuiet: number };

export class Beacons {
  readonly #intervalMs: number;
  readonly #count: number;
  #left: number;
  #next: Millis;

  /** A room that was just claimed has its new epoch to tell. */
  constructor(options: BeaconsOptions, now: Millis) {
    this.#intervalMs = options.beaconMs;
    this.#count = options.beaconsWhenQuiet;
    this.#left = this.#count;
    this.#next = (now + this.#intervalMs) as Millis;
  }

  get pending(): boolean {
    return this.#left > 0;
  }

  /** The record itself shows the head: the next beacon is due an interval later. */
  committed(now: Millis): void {
    this.#left = this.#count;
    this.#next = (now + this.#intervalMs) as Millis;
  }

  /** Whether to send one now. */
  due(now: Millis): boolean {
    if (this.#left === 0 || now < this.#next) return false;
    this.#left -= 1;
    this.#next = (now + this.#intervalMs) as Millis;
    return true;
  }
}
