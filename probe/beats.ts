/** When each of several things is due that happen again and again. What was missed is passed over, not made up for. */

import type { Millis } from "../shared/ids.ts";

export type Beat<What> = { readonly what: What; readonly everyMs: number };

export class Beats<What> {
  readonly #beats: { readonly what: What; readonly everyMs: number; dueAt: Millis }[];

  /** `unit`: a number in [0, 1), another each time: who beats as often as another does not beat at the same moment. */
  constructor(beats: readonly Beat<What>[], unit: () => number, now: Millis) {
    this.#beats = beats.map(({ what, everyMs }) => ({ what, everyMs, dueAt: (now + everyMs * unit()) as Millis }));
  }

  get dueAt(): Millis {
    return Math.min(...this.#beats.map(({ dueAt }) => dueAt)) as Millis;
  }

  take(now: Millis): What[] {
    const due = this.#beats.filter(({ dueAt }) => dueAt <= now);
    for (const beat of due) beat.dueAt = ((beat.dueAt + beat.everyMs > now ? beat.dueAt : now) + beat.everyMs) as Millis;
    return due.map(({ what }) => what);
  }
}
