/**
 * Virtual time: events in the order of their time, and of their making where the times are equal. One event is one
 * step. Before the next one, everything that follows from it by promises has happened: Node runs all microtasks before
 * it comes to the next immediate, and nothing simulated uses timers, sockets or threads of its own. So what a run does
 * depends on its seed alone, and `Trace` proves it: the same seed gives the same hash. Time that stands still, and a
 * run without an end, are errors that say what ran.
 */

import type { Trace } from "./trace.ts";

/** `made`: where, told only when somebody wants to know. */
type Event = {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
  readonly made: string | undefined;
  calledOff: boolean;
};

/** `explains`: events remember where they were made, which is slow. `pulse`: somebody else's view of how many steps were begun. */
export type SchedulerOptions = {
  readonly explains: boolean;
  readonly pulse?: Int32Array | undefined;
  readonly stepsMax?: number | undefined;
};

/** When every run begins, in milliseconds since the Unix epoch. */
export const START_MS = 1_700_000_000_000;
/** Far more than a long pause leaves to be caught up with. */
const STEPS_AT_ONCE_MAX = 20_000;
/** Some fifty times what a long run takes. */
const STEPS_MAX = 1_000_000;
/** A turn of Node's event loop costs as much as a step: so many immediates share one. */
const STEPS_PER_TURN = 64;

export class Scheduler {
  readonly #trace: Trace;
  readonly #explains: boolean;
  readonly #pulse: Int32Array | undefined;
  readonly #stepsMax: number | undefined;
  /** A binary heap, the next event on top. */
  readonly #events: Event[] = [];
  #now = START_MS;
  #order = 0;
  #steps = 0;
  #stepsAtOnce = 0;

  constructor(trace: Trace, { explains, pulse, stepsMax }: SchedulerOptions) {
    this.#trace = trace;
    this.#explains = explains;
    this.#pulse = pulse;
    this.#stepsMax = stepsMax;
  }

  /** True time: no process sees it, each has a clock of its own. */
  get now(): number {
    return this.#now;
  }

  get steps(): number {
    return this.#steps;
  }

  /** The returned function calls it off. */
  after(delayMs: number, run: () => void): () => void {
    const made = this.#explains || this.#stepsAtOnce > STEPS_AT_ONCE_MAX - 10 ? whereFrom() : undefined;
    const event: Event = { at: this.#now + Math.max(0, delayMs), order: this.#order++, run, made, calledOff: false };
    this.#push(event);
    return () => {
      event.calledOff = true;
    };
  }

  /** Runs events until the time, or until `enough` says so after a step. */
  async runUntil(end: number, enough: () => boolean): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      let over = false;
      let begun = false;
      const stop = (settle: () => void): void => {
        over = true;
        settle();
      };
      const step = (): void => {
        if (over) return;
        try {
          if (begun && enough()) return stop(resolve);
          begun = this.#step(end);
          if (!begun) stop(resolve);
        } catch (error) {
          stop(() => reject(error));
        }
      };
      const turn = (): void => {
        for (let count = 0; count < STEPS_PER_TURN; count++) setImmediate(step);
        setImmediate(() => {
          if (!over) turn();
        });
      };
      turn();
    });
  }

  /** False: there is nothing left until that time, which has come. */
  #step(end: number): boolean {
    let next = this.#events[0];
    while (next?.calledOff === true) {
      this.#pop();
      next = this.#events[0];
    }
    if (next === undefined || next.at > end) {
      this.#now = Math.max(this.#now, end);
      return false;
    }
    this.#mindWhatRuns(next);
    this.#pop();
    this.#now = next.at;
    this.#steps += 1;
    if (this.#pulse !== undefined) this.#pulse[0] = this.#steps;
    this.#trace.step(next.at - START_MS);
    next.run();
    return true;
  }

  #mindWhatRuns({ at, made }: Event): void {
    this.#stepsAtOnce = at > this.#now ? 0 : this.#stepsAtOnce + 1;
    const place = `step ${this.#steps + 1}, ${((at - START_MS) / 1_000).toFixed(4)} s`;
    if (this.#stepsAtOnce > STEPS_AT_ONCE_MAX)
      throw new Error(`time stands still at ${place}; what runs again and again was set off by\n${made}`);
    if (this.#steps >= STEPS_MAX) throw new Error(`no end after ${place}`);
    if (this.#steps === this.#stepsMax) throw new Error(`as far as it was to be run: next would be ${place}, set off by\n${made}`);
  }

  #push(event: Event): void {
    const events = this.#events;
    let at = events.length;
    events.push(event);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(event, events[parent]!)) break;
      events[at] = events[parent]!;
      at = parent;
    }
    events[at] = event;
  }

  #pop(): void {
    const events = this.#events;
    const last = events.pop()!;
    if (events.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= events.length) break;
      if (child + 1 < events.length && isBefore(events[child + 1]!, events[child]!)) child += 1;
      if (!isBefore(events[child]!, last)) break;
      events[at] = events[child]!;
      at = child;
    }
    events[at] = last;
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

function whereFrom(): string {
  return new Error().stack?.split("\n").slice(3).join("\n") ?? "";
}
