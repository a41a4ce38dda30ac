/**
 * What a room announces to its gateways, and when: whether its edits are saved in time, and its head. The age of the
 * append in flight decides whether they are, or of the oldest edit while the log is asked for its end. While the room is
 * "saving", unacknowledged edits are sent as tentative, and acks wait. While it is "refusing", new edits are refused. An
 * accepted edit is never dropped. Rules SAV1 to SAV7, BCN1 to BCN3.
 */

import { assertNever } from "../../shared/assert.ts";
import type { Millis } from "../../shared/ids.ts";
import type { SavingState } from "../../shared/wire/frames.ts";

export type SavingOptions = { readonly savingAfterMs: number; readonly refusingAfterMs: number };

/** The age of the append in flight and of the oldest unstored edit; 0 for none. */
export type CommitDelays = { readonly appendMs: number; readonly oldestMs: number };

/** Time without a long wait after which the state ends, so that several slow appends in a row count as one period. */
export function decideSaving(state: SavingState, { appendMs, oldestMs }: CommitDelays, options: SavingOptions): SavingState {
  if (appendMs > options.refusingAfterMs) return "refusing";
  if (appendMs > options.savingAfterMs) return "saving";
  return state !== "saved" && oldestMs > options.savingAfterMs ? "saving" : "saved";
}

export function showsTentative(state: SavingState): boolean {
  switch (state) {
    case "saved":
      return false;
    case "saving":
    case "refusing":
      return true;
    default:
      return assertNever(state);
  }
}

/**
 * Decides when gateways receive the saving state: on a change, repeatedly while the log is slow, and a few times
 * afterwards. A gateway that missed the last announcement would show "saving" forever.
 */
export class SavingAnnouncer {
  readonly #options: AnnouncementOptions;
  #announced: SavingState = "saved";
  #left = 0;
  #next = 0 as Millis;

  constructor(options: AnnouncementOptions) {
    this.#options = options;
  }

  /** All edits are saved, and that was announced often enough. */
  get isIdle(): boolean {
    return this.#announced === "saved" && !this.isPending;
  }

  get isPending(): boolean {
    return this.#left > 0;
  }

  /** Whether to announce the state now. */
  due(state: SavingState, now: Millis): "changed" | "again" | undefined {
    const changed = state !== this.#announced;
    if (!changed && (this.#left === 0 || now < this.#next)) return undefined;
    if (changed || state !== "saved") this.#left = this.#options.beaconsWhenQuiet;
    else this.#left -= 1;
    this.#announced = state;
    this.#next = (now + this.#options.beaconMs) as Millis;
    return changed ? "changed" : "again";
  }
}

export type AnnouncementOptions = { readonly beaconMs: number; readonly beaconsWhenQuiet: number };
/** `idleMsMax`: a room unused for this long is released. */
export type BeaconsOptions = AnnouncementOptions & { readonly idleMsMax: number };

/** Number of announcements within the idle time. The replica is kept for longer than that, so it may miss some. */
const BEACONS_WHILE_IDLE = 2;

/**
 * Decides when a room announces its head. Fan-out may lose the last records without a visible gap, so the head is
 * announced a few times after each commit. Afterwards it is repeated rarely, for the room's replica: a replica without
 * announcements treats the room as released. Rules BCN1 to BCN3.
 */
export class Beacons {
  readonly #intervalMs: number;
  readonly #count: number;
  readonly #idleIntervalMs: number;
  #left: number;
  #next: Millis;

  /** A room that was just claimed announces its new epoch. */
  constructor(options: BeaconsOptions, now: Millis) {
    this.#intervalMs = options.beaconMs;
    this.#count = options.beaconsWhenQuiet;
    this.#idleIntervalMs = Math.max(options.beaconMs, options.idleMsMax / BEACONS_WHILE_IDLE);
    this.#left = this.#count;
    this.#next = (now + this.#intervalMs) as Millis;
  }

  /** Announcements are due at the next ticks. */
  get isPending(): boolean {
    return this.#left > 0;
  }

  /** The record itself contains the head, so the next announcement is due one interval later. */
  committed(now: Millis): void {
    this.#left = this.#count;
    this.#next = (now + this.#intervalMs) as Millis;
  }

  /** Whether to announce the head now. */
  due(now: Millis): boolean {
    if (now < this.#next) return false;
    this.#left = Math.max(0, this.#left - 1);
    this.#next = (now + (this.#left > 0 ? this.#intervalMs : this.#idleIntervalMs)) as Millis;
    return true;
  }
}
