/**
 * An alarm calls its function once at the last time set, always at the end of a turn, so that rooms that are due
 * together send their NATS messages in one write. Alarms for one time share one timer. A timer per room, renewed every
 * few seconds, was most of an idle gateway's long-lived garbage.
 */

import type { Millis } from "../ids.ts";
import type { Clock } from "./clock.ts";

export type AlarmDeps = {
  readonly clock: Clock;
  /** Runs a function at the end of this turn of the event loop, together with all other calls that wait for it. */
  readonly endOfTurn: (run: () => void) => void;
};

/** The alarms that wait for one time, in the order in which they were set. */
type Waiting = { readonly at: Millis; readonly alarms: Set<Alarm>; callOff: () => void };

const NEVER = Number.POSITIVE_INFINITY as Millis;

/** The timers of very many alarms, which live as long as their owners. */
export class Alarms {
  readonly deps: AlarmDeps;
  readonly #times = new Map<Millis, Waiting>();

  constructor(deps: AlarmDeps) {
    this.deps = deps;
  }

  waitFor(at: Millis, alarm: Alarm): Waiting {
    const waiting = this.#times.get(at) ?? this.#begin(at);
    waiting.alarms.add(alarm);
    return waiting;
  }

  leave(waiting: Waiting, alarm: Alarm): void {
    waiting.alarms.delete(alarm);
    if (waiting.alarms.size > 0 || this.#times.get(waiting.at) !== waiting) return;
    waiting.callOff();
    this.#times.delete(waiting.at);
  }

  #begin(at: Millis): Waiting {
    const { clock, endOfTurn } = this.deps;
    const waiting: Waiting = { at, alarms: new Set(), callOff: () => {} };
    this.#times.set(at, waiting);
    const end = (): void => endOfTurn(() => this.#runOut(waiting));
    const waitMs = at - clock.now();
    if (waitMs > 0) waiting.callOff = clock.after(waitMs, end);
    else end();
    return waiting;
  }

  /** An alarm that is set during this call waits for another turn, even if it is for the same time. */
  #runOut(waiting: Waiting): void {
    if (this.#times.get(waiting.at) !== waiting) return;
    this.#times.delete(waiting.at);
    for (const alarm of waiting.alarms) alarm.runOut();
  }
}

export class Alarm {
  readonly #ring: () => void;
  readonly #alarms: Alarms;
  #at = NEVER;
  /** The timer never runs for a time later than `#at`. */
  #waiting: Waiting | undefined;

  constructor(ring: () => void, alarms: Alarms) {
    this.#ring = ring;
    this.#alarms = alarms;
  }

  /** Infinity: never. A timer for an earlier time keeps running, because alarms are postponed far more often than they are due. */
  setFor(at: Millis): void {
    this.#at = at;
    if (at === NEVER) return;
    const from = Math.max(at, this.#alarms.deps.clock.now()) as Millis; // All overdue alarms ring together.
    const before = this.#waiting;
    if (before !== undefined && before.at <= from) return;
    if (before !== undefined) this.#alarms.leave(before, this);
    this.#waiting = this.#alarms.waitFor(from, this);
  }

  callOff(): void {
    if (this.#waiting !== undefined) this.#alarms.leave(this.#waiting, this);
    this.#waiting = undefined;
    this.#at = NEVER;
  }

  /** Called by `Alarms` when the time has come. */
  runOut(): void {
    const { clock } = this.#alarms.deps;
    this.#waiting = undefined;
    if (this.#at > clock.now()) return this.setFor(this.#at);
    this.#at = NEVER;
    this.#ring();
  }
}
