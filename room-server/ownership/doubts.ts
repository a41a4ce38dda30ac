/**
 * An owner's doubts whether it is one still, settled by a look at the log's end. A look answers only for the
 * requests that were there when it began: a later owner may have come in between.
 *
 * Whoever catches somebody up doubts a moment later: deposed while its line was bad, and with nobody there who heard
 * of its successor, it would answer from an old log for as long as nobody writes.
 */

import type { LogEnd } from "../../shared/bus/placement-messages.ts";
import type { Millis } from "../../shared/ids.ts";
import { NO_ITEMS } from "../../shared/seldom.ts";
import type { CatchUpRequest } from "../rooms/catch-ups.ts";

/** One look answers for all who were caught up in so long. */
const LOOK_AFTER_MS = 1_000;
/** An owner that may not append before it has looked asks again, should nobody answer. */
const LOOK_AGAIN_MS = 1_000;

export class Doubts {
  readonly #waitingMax: number;
  /** Those that the look under way is for. */
  #asking: readonly CatchUpRequest[] | undefined;
  #begunAt = 0 as Millis;
  #waiting: readonly CatchUpRequest[] = NO_ITEMS;
  /** Since when somebody believes what no look has confirmed. */
  #answeredAt: Millis | undefined;
  #isEndUnknown = false;
  /** The look under way is for the log's last record. `end`: where the log ended for this owner as it asked. */
  #asked: { readonly end: LogEnd; readonly wasUnknown: boolean } | undefined;

  constructor(options: { deferredCatchUpsMax: number }) {
    this.#waitingMax = options.deferredCatchUpsMax;
  }

  /** A request from a gateway that has heard of a later owner. False when too many wait. */
  add(request: CatchUpRequest): boolean {
    if (this.#waiting.length >= this.#waitingMax) return false;
    this.#waiting = [...this.#waiting, request];
    return true;
  }

  /** Somebody was told where the room stands. */
  answered(now: Millis): void {
    this.#answeredAt ??= now;
  }

  /** The log may end before this owner's last record: the next look is for that record itself. One over the lost line may never be answered. */
  lineBack(): void {
    this.#isEndUnknown = true;
    if (this.#asking !== undefined) this.#waiting = [...this.#asking, ...this.#waiting];
    this.#asking = undefined;
    this.#asked = undefined;
  }

  /** Whether the look that begins is for the last record itself. */
  get isEndUnknown(): boolean {
    return this.#isEndUnknown;
  }

  /** Whether it is known since the line was last lost. Of what is asked it is not yet. */
  get isEndProven(): boolean {
    return !this.#isEndUnknown && this.#asked?.wasUnknown !== true;
  }

  /** The look is for the last record itself; `end`: the one that this owner knows. */
  askForEnd(end: LogEnd): void {
    this.#asked = { end, wasUnknown: this.#isEndUnknown };
    this.#isEndUnknown = false;
  }

  /** What is read is not older than what it knew when it asked; what it has appended since may be missing. */
  takeAsked(): LogEnd | undefined {
    const end = this.#asked?.end;
    this.#asked = undefined;
    return end;
  }

  /** Whether to look at the log for the sake of those who were answered. */
  due(now: Millis): boolean {
    return this.#answeredAt !== undefined && now - this.#answeredAt >= LOOK_AFTER_MS && this.begin(now);
  }

  /** Whether to look at the log now: not while a look is under way. */
  begin(now: Millis): boolean {
    const isOverdue = this.#asked?.wasUnknown === true && now - this.#begunAt >= LOOK_AGAIN_MS;
    if (this.#asking !== undefined && !isOverdue) return false;
    if (isOverdue) this.#isEndUnknown = true;
    this.#asking = this.#asking === undefined ? this.#waiting : [...this.#asking, ...this.#waiting];
    this.#begunAt = now;
    this.#waiting = NO_ITEMS;
    this.#answeredAt = undefined;
    return true;
  }

  /** The look found no later owner: for these requests that holds. */
  settle(): readonly CatchUpRequest[] {
    const settled = this.#asking ?? [];
    this.#asking = undefined;
    return settled;
  }

  get waiting(): boolean {
    return this.#waiting.length > 0;
  }

  /** The log could not be asked. Gateways send again what they want to know. */
  drop(): void {
    this.#isEndUnknown ||= this.#asked?.wasUnknown === true;
    this.#asked = undefined;
    this.#asking = undefined;
    this.#waiting = NO_ITEMS;
  }
}
