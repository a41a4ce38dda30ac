/**
 * Virtual time: events in the order of their time, and of their making where the times are equal. One event is one
 * step. Before the next one, everything that follows from it by promises has happened: Node runs all microtasks before
 * it comes to an immediate, and nothing simulated uses timers, sockets or threads of its own. So what a run does
 * depends on its seed alone, and `Trace` proves it: the same seed gives the same hash.
 */

import type { Trace } from "./trace.ts";

type Event = { readonly at: number; readonly order: number; readonly run: () => void; calledOff: boolean };

/** When every run begins, in milliseconds since the Unix epoch. */
export const START_MS = 1_700_000_000_000;

export class Scheduler {
  readonly #trace: Trace;
  /** A binary heap, the next event on top. */
  readonly #events: Event[] = [];
  #now = START_MS;
  #order = 0;
  #steps = 0;

  constructor(trace: Trace) {
    this.#trace = trace;
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
    const event: Event = { at: this.#now + Math.max(0, delayMs), order: this.#order++, run, calledOff: false };
    this.#push(event);
    return () => {
      event.calledOff = true;
    };
  }

  /** Runs events until the time, or until `enough` says so after a step. */
  async runUntil(end: number, enough: () => boolean): Promise<void> {
    for (let next = this.#events[0]; next !== undefined && next.at <= end; next = this.#events[0]) {
      this.#pop();
      if (next.calledOff) continue;
      this.#now = next.at;
      this.#steps += 1;
      this.#trace.step(next.at - START_MS);
      next.run();
      await new Promise(setImmediate);
      if (enough()) return;
    }
    this.#now = Math.max(this.#now, end);
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
