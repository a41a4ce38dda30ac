/**
 * A process that can be paused, go on, and die, with a clock that runs with everybody's and shows what it likes.
 * Whatever happens to it goes through `run`: a paused one takes it later, a dead one never.
 */

import type { Clock } from "../../shared/clock.ts";
import type { Millis } from "../../shared/ids.ts";
import type { Scheduler } from "./scheduler.ts";

export class SimProcess {
  readonly name: string;
  readonly #scheduler: Scheduler;
  #state: "running" | "paused" | "dead" = "running";
  #clockAheadMs: number;
  /** What came while it was paused. */
  #timers: (() => void)[] = [];
  #arrivals: (() => void)[] = [];
  /** Of these, those that are still to be looked at since it goes on. */
  #catchingUp = 0;

  constructor(name: string, scheduler: Scheduler, clockAheadMs: number) {
    this.name = name;
    this.#scheduler = scheduler;
    this.#clockAheadMs = clockAheadMs;
  }

  get state(): "running" | "paused" | "dead" {
    return this.#state;
  }

  readonly clock: Clock = {
    now: () => Math.floor(this.#scheduler.now + this.#clockAheadMs) as Millis,
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

  /** Something that came from outside. */
  run(task: () => void): void {
    if (this.#state === "running" && this.#catchingUp > 0) this.#scheduler.after(0, () => this.run(task)); // Behind what waits.
    else this.#take(task);
  }

  shiftClock(byMs: number): void {
    this.#clockAheadMs += byMs;
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
}
