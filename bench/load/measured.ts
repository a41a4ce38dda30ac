/** What one phase measures, over all rooms of the process: latencies of the edits sent in its time, deliveries made in it. */

import { Latencies } from "./latencies.ts";

export class Measured {
  readonly acked = new Latencies();
  /** As committed. */
  readonly seen = new Latencies();
  /** As committed or tentative, whichever came first. */
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
