/**
 * Watches that a partition's stream of activities does not end before what was counted of it. One that was put back
 * from an older backup does: what is told then gets numbers that were counted once, and would be passed over for good.
 * So the stream is made to go on behind them.
 */

import type { Clock } from "../../shared/clock.ts";
import type { Log } from "../../shared/log.ts";
import { pause } from "../../shared/pause.ts";
import type { LeaderboardMetrics } from "../metrics.ts";
import type { ActivityStream } from "../ports.ts";

export type ActivitiesEndDeps = {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: LeaderboardMetrics;
  readonly onSkip: (through: number) => void;
};

/** A leader that has just been elected may not know its own end: it is asked again so long after. */
const ELECTED_MS = 1_000;

export class ActivitiesEnd {
  readonly #partition: number;
  readonly #activities: ActivityStream;
  readonly #deps: ActivitiesEndDeps;
  #end = 0;
  #asking: Promise<void> | undefined;
  /** One after the other: what one room had to skip the next need not. */
  #confirming = Promise.resolve();

  constructor(partition: number, activities: ActivityStream, deps: ActivitiesEndDeps) {
    this.#partition = partition;
    this.#activities = activities;
    this.#deps = deps;
  }

  /** Resolves once whatever is told from now on gets a number behind `counted`. */
  async expectBehind(counted: number, signal: AbortSignal): Promise<void> {
    if (counted > this.#end) await this.#ask();
    if (counted > this.#end) await (this.#confirming = this.#confirming.then(() => this.#confirm(counted, signal)));
  }

  /** Of all who want to know at the same time one asks. */
  #ask(): Promise<void> {
    return (this.#asking ??= this.#activities.end(this.#partition).then((end) => {
      this.#end = Math.max(this.#end, end);
      this.#asking = undefined;
    }));
  }

  async #confirm(counted: number, signal: AbortSignal): Promise<void> {
    if (counted <= this.#end) return;
    await pause(this.#deps.clock, ELECTED_MS, signal);
    await this.#ask();
    if (counted > this.#end && !signal.aborted) await this.#skip(counted);
  }

  async #skip(counted: number): Promise<void> {
    const { log, metrics, onSkip } = this.#deps;
    await this.#activities.readNow(this.#partition); // What it still has for other rooms is counted.
    log.error(
      { partition: this.#partition, end: this.#end, counted },
      "the stream of activities ended before what was counted of it: was it put back from a backup? What was told since then may not count; from here on everything does",
    );
    metrics.rolledBack.inc();
    await this.#activities.forget(this.#partition, counted);
    this.#end = Math.max(this.#end, counted);
    onSkip(counted);
  }
}
