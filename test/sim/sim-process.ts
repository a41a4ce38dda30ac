/**
 * A process that can be paused, go on, and die, with a steady clock that began when it did and runs with everybody's, and a date that is what it likes.
 * Whatever happens to it goes through `run`: a paused one takes it later, a dead one never.
 */

import type { Clock } from "../../shared/clock.ts";
import type { Millis, UnixMillis } from "../../shared/ids.ts";
import type { Scheduler } from "./scheduler.ts";

export class SimProcess {
  readonly name: string;
  readonly clock: Clock;
  readonly #scheduler: Scheduler;
  #state: "running" | "paused" | "dead" = "running";
  readonly #begunAt: number;
  #dateAheadMs: number;
  /** What came while it was paused. */
  #timers: (() => void)[] = [];
  #arrivals: (() => void)[] = [];
  /** Of these, those that are still to be looked at since it goes on. */
  #catchingUp = 0;

  constructor(name: string, scheduler: Scheduler, dateAheadMs: number, planted: (clock: Clock) => Clock = (clock) => clock) {
    this.name = name;
    this.#scheduler = scheduler;
    this.#begunAt = scheduler.now;
    this.#dateAheadMs = dateAheadMs;
    this.clock = planted(this.#clock());
  }

  get state(): "running" | "paused" | "dead" {
    return this.#state;
  }

  /** Something that came from outside. */
  run(task: () => void): void {
    if (this.#state === "running" && this.#catchingUp > 0) this.#scheduler.after(0, () => this.run(task)); // Behind what waits.
    else this.#take(task);
  }

  setDate(byMs: number): void {
    this.#dateAheadMs += byMs;
  }

  pause(): void {
    if (this.#state === "running") this.#state = "paused";
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
      now: () => Math.floor(this.#scheduler.now - this.#begunAt) as Millis,
      wallNow: () => Math.floor(this.#scheduler.now + this.#dateAheadMs) as UnixMillis,
      after: (delayMs, run) => {
        let calledOff = false;
        const ring = (): void => {
          if (calledOff || this.#state === "dead") return;
          if (this.#state === "paused") this.#timers.push(ring);
          else run();
        };
        const cancel = this.#scheduler.after(delayMs, ring);
        return () => {
          calledOff = true;
          cancel();
        };
      },
    };
  }
}
