/**
 * One direction of a TCP connection. Data arrives in order, with a delay for each message. While the network is cut, no
 * data arrives and no data is lost. Data that is under way when the connection breaks never arrives.
 */

import type { Scheduler } from "./scheduler.ts";

export class Pipe {
  readonly #scheduler: Scheduler;
  readonly #latencyMs: () => number;
  #held: (() => void)[] | undefined;
  #lastArrival = 0;
  #underWay = 0;
  #heldEver = 0;
  #lostEver = 0;
  /** Increases with each break of the connection. */
  #incarnation = 0;

  constructor(scheduler: Scheduler, latencyMs: () => number) {
    this.#scheduler = scheduler;
    this.#latencyMs = latencyMs;
  }

  /** Count of messages that came during a cut. */
  get heldEver(): number {
    return this.#heldEver;
  }

  /** Count of messages that never arrived. */
  get lostEver(): number {
    return this.#lostEver;
  }

  send(arrive: () => void): void {
    const { now } = this.#scheduler;
    this.#lastArrival = Math.max(this.#lastArrival, now + this.#latencyMs());
    this.#arriveAfter(this.#lastArrival - now, arrive);
  }

  hold(): void {
    this.#held ??= [];
  }

  release(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const arrive of held) this.#arriveAfter(0, arrive); // Before the messages that are still under way.
  }

  break(): void {
    this.#incarnation += 1;
    this.#lostEver += this.#underWay + (this.#held?.length ?? 0);
    this.#underWay = 0;
    if (this.#held !== undefined) this.#held = [];
  }

  #arriveAfter(delayMs: number, arrive: () => void): void {
    const incarnation = this.#incarnation;
    this.#underWay += 1;
    this.#scheduler.after(delayMs, () => {
      if (incarnation !== this.#incarnation) return;
      this.#underWay -= 1;
      if (this.#held === undefined) return arrive();
      this.#heldEver += 1;
      this.#held.push(arrive);
    });
  }
}
