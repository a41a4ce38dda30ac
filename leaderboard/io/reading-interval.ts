/**
 * How long the reader of a stream waits between two reads, unless somebody needs what there is now. A waiter is
 * answered once a read that began after its request has been handed over.
 */

import type { Clock } from "../../shared/time/clock.ts";

export type ReadingIntervalOptions = {
  readonly restMs: () => number;
  /** The shortest wait: one read answers many requests. */
  readonly restMsMin: number;
  readonly waitMsMax: number;
};

export const HURRY = { restMsMin: 2, waitMsMax: 50 } as const;

export class ReadingInterval {
  readonly #clock: Clock;
  readonly #options: ReadingIntervalOptions;
  /** Answered by the read under way, and by the next one. */
  #current: (() => void)[] = [];
  #next: (() => void)[] = [];
  #wake: () => void = () => {};

  constructor(clock: Clock, options: ReadingIntervalOptions) {
    this.#clock = clock;
    this.#options = options;
  }

  /** Called by the reader: everything read so far is handed over. Resolves when it has to read again. */
  rest(signal: AbortSignal): Promise<void> {
    for (const met of this.#current) met();
    this.#current = [];
    return new Promise((resolve) => {
      const wake = (): void => {
        signal.removeEventListener("abort", wake);
        callOff();
        this.#wake = () => {};
        [this.#current, this.#next] = [this.#next, []];
        resolve();
      };
      let callOff = this.#clock.after(this.#options.restMs(), wake);
      const hurry = (): void => {
        callOff();
        callOff = this.#clock.after(this.#options.restMsMin, wake);
      };
      this.#wake = hurry;
      if (this.#next.length > 0) hurry();
      signal.addEventListener("abort", wake);
    });
  }

  /** Resolves once everything that there is now was read and handed over, or after `waitMsMax`. */
  readNow(): Promise<void> {
    return new Promise((resolve) => {
      const callOff = this.#clock.after(this.#options.waitMsMax, resolve);
      this.#next.push(() => {
        callOff();
        resolve();
      });
      if (this.#next.length === 1) this.#wake();
    });
  }
}
