/**
 * When a room says how far it has come. Fan-out may lose the last records unseen, since nothing follows them
 * that would show the gap: so after each commit the head is told again, a few times, until the room is quiet.
 * From then on it is told so seldom that it wakes nobody, for the room's warm copy: one that hears nothing for long
 * takes the room for released. Rules BCN1 to BCN3.
 */

import type { Millis } from "../../shared/ids.ts";

export type TellingOptions = { readonly beaconMs: number; readonly beaconsWhenQuiet: number };
/** `idleMsMax`: a room that nobody uses for so long is released. */
export type BeaconsOptions = TellingOptions & { readonly idleMsMax: number };

/** Told so often while a room could become idle: its copy, kept for longer than that, may miss some. */
const TOLD_WHILE_IDLE = 2;

export class Beacons {
  readonly #intervalMs: number;
  readonly #count: number;
  readonly #seldomMs: number;
  #left: number;
  #next: Millis;

  /** A room that was just claimed has its new epoch to tell. */
  constructor(options: BeaconsOptions, now: Millis) {
    this.#intervalMs = options.beaconMs;
    this.#count = options.beaconsWhenQuiet;
    this.#seldomMs = Math.max(options.beaconMs, options.idleMsMax / TOLD_WHILE_IDLE);
    this.#left = this.#count;
    this.#next = (now + this.#intervalMs) as Millis;
  }

  /** Some are due soon. */
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
    if (now < this.#next) return false;
    this.#left = Math.max(0, this.#left - 1);
    this.#next = (now + (this.#left > 0 ? this.#intervalMs : this.#seldomMs)) as Millis;
    return true;
  }
}
