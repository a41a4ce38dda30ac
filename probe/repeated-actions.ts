/** Schedules several repeated actions. Missed repetitions are skipped: after a pause of ten intervals an action is due once. */

import type { Millis } from "../shared/ids.ts";

type RepeatedAction<What> = { readonly what: What; readonly everyMs: number };

export class RepeatedActions<What> {
  readonly #actions: (RepeatedAction<What> & { dueAt: Millis })[];

  /** `unit`: returns random numbers in [0, 1), so that several instances do not act at the same moment. */
  constructor(actions: readonly RepeatedAction<What>[], unit: () => number, now: Millis) {
    this.#actions = actions.map(({ what, everyMs }) => ({ what, everyMs, dueAt: (now + everyMs * unit()) as Millis }));
  }

  get dueAt(): Millis {
    return Math.min(...this.#actions.map(({ dueAt }) => dueAt)) as Millis;
  }

  take(now: Millis): What[] {
    const due = this.#actions.filter(({ dueAt }) => dueAt <= now);
    for (const action of due) action.dueAt = ((action.dueAt + action.everyMs > now ? action.dueAt : now) + action.everyMs) as Millis;
    return due.map(({ what }) => what);
  }
}
