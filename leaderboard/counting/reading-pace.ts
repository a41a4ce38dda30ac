/**
 * How long a reader of a stream rests between two readings, unless somebody wants to know at once what there is.
 * Whoever does hears of it when a reading that began after the wish has been handed over.
 */

import type { Clock } from "../../shared/clock.ts";

export type ReadingPaceOptions = {
  readonly restMs: () => number;
  /** It rests so long in any case: many wishes are met by one reading. */
  readonly restMsMin: number;
  readonly waitMsMax: number;
};

export const HURRY = { restMsMin: 2, waitMsMax: 50 } as const;

export class ReadingPace {
  readonly #clock: Clock;
  readonly #options: ReadingPaceOptions;
  /** Met by the reading under way, and by the next. */
  #current: (() => void)[] = [];
  #next: (() => void)[] = [];
  #wake: () => void = () => {};

  constructor(clock: Clock, options: ReadingPaceOptions) {
    this.#clock = clock;
    this.#options = options;
  }

  /** Of the reader: all that it has read so far is handed over. Resolves when it is to read again. */
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

  /** Resolves once all that there is now was read and handed over, or after a while. */
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
