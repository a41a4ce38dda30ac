/**
 * A process that can be paused, resumed and killed. Its steady clock begins with the process, and its date may be
 * wrong. All external events go through `run`: a paused process handles them later, a dead one never.
 */

import type { Clock } from "../../shared/time/clock.ts";
import type { Millis, UnixMillis } from "../../shared/ids.ts";
import type { Scheduler } from "./scheduler.ts";

export class SimProcess {
  readonly name: string;
  readonly clock: Clock;
  readonly #scheduler: Scheduler;
  #state: "running" | "paused" | "dead" = "running";
  /** When the process was last resumed. It may not have handled all tasks of its pause yet. */
  resumedAt = Number.NEGATIVE_INFINITY;
  /** Base of the steady clock: set at each change of its rate. */
  #since: { readonly at: number; readonly read: number };
  #rate = 1;
  #dateAheadMs: number;
  /** Timers and events of the time while the process was paused. */
  #timers: (() => void)[] = [];
  #arrivals: (() => void)[] = [];
  /** Count of these that the resumed process has not handled yet. */
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

  /** Handles an external event. */
  run(task: () => void): void {
    if (this.#state === "running" && this.#catchingUp > 0)
      this.#scheduler.after(0, () => this.run(task)); // After the waiting tasks.
    else this.#take(task);
  }

  setDate(byMs: number): void {
    this.#dateAheadMs += byMs;
  }

  /** Sets the rate of the steady clock, relative to true time. */
  setRate(rate: number): void {
    this.#since = { at: this.#scheduler.now, read: this.#steadyMs() };
    this.#rate = rate;
  }

  pause(): void {
    if (this.#state === "running") this.#state = "paused";
  }

  /** Count of tasks and timers that wait until the process is resumed. */
  get waiting(): number {
    return this.#timers.length + this.#arrivals.length;
  }

  /** Resumes the process. Timers and events are in two queues, and either may be handled first. */
  goOn(timersFirst: boolean): void {
    if (this.#state !== "paused") return;
    this.#state = "running";
    this.resumedAt = this.#scheduler.now;
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
        // A timer of Node or a browser takes at least one millisecond. 0 means the end of this turn.
        const cancel = this.#scheduler.after(delayMs > 0 ? Math.max(1, Math.trunc(delayMs)) / this.#rate : 0, ring);
        return () => {
          calledOff = true;
          cancel();
        };
      },
    };
  }
}
