/** Measurements of one phase over all rooms of a load process: latencies of edits sent in it, and deliveries made in it. */

import { Latencies } from "../../cli/bench/latencies.ts";

export class Measured {
  readonly acked = new Latencies();
  /** Until the committed edit arrived. */
  readonly seen = new Latencies();
  /** Until the edit arrived, committed or tentative. */
  readonly shown = new Latencies();
  delivered = 0;
  #from = Number.POSITIVE_INFINITY;
  #until = Number.POSITIVE_INFINITY;

  begin(now: number): void {
    this.#from = now;
  }

  end(now: number): void {
    this.#until = now;
  }

  receiveAcked(sentAt: number, now: number): void {
    if (this.#covers(sentAt)) this.acked.record(now - sentAt);
  }

  receiveSeen(sentAt: number, now: number): void {
    if (this.#covers(now)) this.delivered += 1;
    if (this.#covers(sentAt)) this.seen.record(now - sentAt);
  }

  receiveShown(sentAt: number, now: number): void {
    if (this.#covers(sentAt)) this.shown.record(now - sentAt);
  }

  #covers(time: number): boolean {
    return time >= this.#from && time < this.#until;
  }
}
