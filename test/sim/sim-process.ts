/**
 * A process that can be paused, go on, and die, with a steady clock that began when it did and runs with everybody's,
 * and a date that is what it likes. Whatever happens to it goes through `run`: a paused one takes it later, a dead one
 * never.
 */

import type { Clock } from "../../shared/time/clock.ts";
import type { Millis, UnixMillis } from "../../shared/ids.ts";
import type { Scheduler } from "./scheduler.ts";

export class SimProcess {
  readonly name: string;
  readonly clock: Clock;
  readonly #scheduler: Scheduler;
  #state: "running" | "paused" | "dead" = "running";
  /** The steady clock since it was last set to another rate. */
  #since: { readonly at: number; readonly read: number };
  #rate = 1;
  #dateAheadMs: number;
  /** What came while it was paused. */
  #timers: (() => void)[] = [];
  #arrivals: (() => void)[] = [];
  /** Of these, those that are still to be looked at since it goes on. */
  #catchingUp = 0;

  constructor(name: string, scheduler: Scheduler, dateAheadMs: number, planted: (clock: Clock) => Clock = (clock) => clock) {
    this.name = name;
    this.#scheduler = scheduler;
    this.#since = { at: scheduler.now, read: 0 };
    this.#dateAheadMs = dateAheadMs;
    this.clock = planted(this.#clock());
  }

  get state(): "running" | "paused" | "dead" {
    return this.#state;
  }

  /** Something that came from outside. */
  run(task: () => void): void {
    if (this.#state === "running" && this.#catchingUp > 0)
      this.#scheduler.after(0, () => this.run(task)); // Behind what waits.
    else this.#take(task);
  }

  setDate(byMs: number): void {
    this.#dateAheadMs += byMs;
  }

  /** From now on its steady clock runs so many times as fast as time does. */
  setRate(rate: number): void {
    this.#since = { at: this.#scheduler.now, read: this.#steadyMs() };
    this.#rate = rate;
  }

  pause(): void {
    if (this.#state === "running") this.#state = "paused";
  }

  /** So many tasks and timers wait until it goes on. */
  get waiting(): number {
    return this.#timers.length + this.#arrivals.length;
  }

  /** Timers and what arrived stand in two queues: either may be looked at first. */
  goOn(timersFirst: boolean): void {
    if (this.#state !== "paused") return;
    this.#state = "running";
    const timers = this.#timers;
    const arrivals = this.#arrivals.map((task) => () => this.#take(task));
    this.#timers = [];
    this.#arrivals = [];
    this.#catchingUp += timers.length + arrivals.length;
    for (const task of timersFirst ? [...timers, ...arrivals] : [...arrivals, ...timers]) {
      this.#scheduler.after(0, () => {
        this.#catchingUp -= 1;
        task();
      });
    }
  }

  #steadyMs(): number {
    return this.#since.read + (this.#scheduler.now - this.#since.at) * this.#rate;
  }

  #take(task: () => void): void {
    if (this.#state === "running") task();
    else if (this.#state === "paused") this.#arrivals.push(task);
  }

  die(): void {
    this.#state = "dead";
    this.#timers = [];
    this.#arrivals = [];
  }

  #clock(): Clock {
    return {
      now: () => Math.floor(this.#steadyMs()) as Millis,
      wallNow: () => Math.floor(this.#scheduler.now + this.#dateAheadMs) as UnixMillis,
      after: (delayMs, run) => {
        let calledOff = false;
        const ring = (): void => {
          if (calledOff || this.#state === "dead") return;
          if (this.#state === "paused") this.#timers.push(ring);
          else run();
        };
        // A timer of Node or a browser is never set for less than a millisecond; 0 stands for the end of this turn.
        const cancel = this.#scheduler.after(delayMs > 0 ? Math.max(1, Math.trunc(delayMs)) / this.#rate : 0, ring);
        return () => {
          calledOff = true;
          cancel();
        };
      },
    };
  }
}
