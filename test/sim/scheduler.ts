/**
 * Virtual time. Events run in the order of their time; events of equal time run in the order of their creation. One
 * event is one step. Before the next step, all promises that follow from the event have settled: Node runs all
 * microtasks before the next immediate, and no simulated part uses real timers, sockets or threads. So a run depends on
 * its seed alone. `Trace` proves this: the same seed gives the same hash. A run without an end, or without progress of
 * time, fails with an error that names its events.
 */

import type { Trace } from "./trace.ts";

/** `made`: stack of the event's creation, if it is recorded. */
type Event = {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
  readonly made: string | undefined;
  calledOff: boolean;
};

/**
 * `explains`: records the stack of each event's creation, which is slow. `pulse`: shared counter of begun steps, which
 * another thread reads.
 */
export type SchedulerOptions = {
  readonly explains: boolean;
  readonly pulse?: Int32Array | undefined;
  readonly stepsMax?: number | undefined;
};

/** Start time of each run, in milliseconds since the Unix epoch. */
export const START_MS = 1_700_000_000_000;
/** Far more steps at one time than a long pause can cause. */
const STEPS_AT_ONCE_MAX = 20_000;
/** About 50 times the steps of a long run. */
const STEPS_MAX = 1_000_000;
/** A turn of Node's event loop costs as much as a step, so one turn runs several immediates. */
const STEPS_PER_TURN = 64;

export class Scheduler {
  readonly #trace: Trace;
  readonly #explains: boolean;
  readonly #pulse: Int32Array | undefined;
  readonly #stepsMax: number | undefined;
  /** A binary heap with the next event at the top. */
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

  /** The true time. Each process sees only its own clock. */
  get now(): number {
    return this.#now;
  }

  get steps(): number {
    return this.#steps;
  }

  /** Returns a function that cancels the event. */
  after(delayMs: number, run: () => void): () => void {
    const made = this.#explains || this.#stepsAtOnce > STEPS_AT_ONCE_MAX - 10 ? whereFrom() : undefined;
    const event: Event = { at: this.#now + Math.max(0, delayMs), order: this.#order++, run, made, calledOff: false };
    this.#push(event);
    return () => {
      event.calledOff = true;
    };
  }

  /** Runs events until the time `end`, or until `enough` returns true after a step. */
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

  /** Runs the next event. False: no event is left up to `end`, and the time is now `end`. */
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
    const place = (): string => `step ${this.#steps + 1}, ${((at - START_MS) / 1_000).toFixed(4)} s`;
    if (this.#stepsAtOnce > STEPS_AT_ONCE_MAX)
      throw new Error(`time stands still at ${place()}; what runs again and again was set off by\n${made}`);
    if (this.#steps >= STEPS_MAX) throw new Error(`no end after ${place()}`);
    if (this.#steps === this.#stepsMax) throw new Error(`as far as it was to be run: next would be ${place()}, set off by\n${made}`);
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
