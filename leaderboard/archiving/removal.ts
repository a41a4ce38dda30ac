/**
 * Removes the boards of a deleted room from every store, one step after the other. The checkpoint and Redis are marked
 * first, so that a leaderboard that counts or saves late finds the mark. A crash may follow any step. The removal is
 * repeated from the start until every step succeeds.
 */

import { assert } from "../../shared/assert.ts";
import type { UnixMillis } from "../../shared/ids.ts";
import { ALL_TIME, KEPT_MS, type Window, WINDOW_KINDS, windowAt } from "../boards/windows.ts";

const STEPS = ["checkpoint", "boards", "tenants", "closings", "archive", "activities"] as const;

/** `windows`: the windows that the room may have boards of; empty in the first step. */
export type RemovalEffect = { readonly kind: "remove"; readonly from: (typeof STEPS)[number]; readonly windows: readonly Window[] };
/** `counted`: the windows that the removed checkpoint named; empty in the other steps. */
export type RemovalInput = { readonly kind: "removed"; readonly counted: readonly Window[]; readonly wallNow: UnixMillis };

/** Additional time for which a window that was archived late stays in Redis. */
const LATE_MS_MAX = 24 * 3_600_000;

export class BoardRemoval {
  #step = 0;
  #windows: readonly Window[] = [];

  begin(): RemovalEffect {
    return this.#effect();
  }

  /** Undefined: all data is removed. */
  receiveRemoved({ counted, wallNow }: RemovalInput): RemovalEffect | undefined {
    assert(this.#step < STEPS.length, "a removal that has ended removes nothing");
    if (this.#step === 0)
      this.#windows = [...new Map([...counted, ...windowsInRedis(wallNow)].map((window) => [window.id, window])).values()];
    this.#step += 1;
    return this.#step < STEPS.length ? this.#effect() : undefined;
  }

  #effect(): RemovalEffect {
    return { kind: "remove", from: STEPS[this.#step]!, windows: this.#windows };
  }
}

/** The windows that a room may have boards of at this date. The next windows are included, because the log's clock may be ahead. */
export function windowsInRedis(now: UnixMillis): Window[] {
  const windows: Window[] = [ALL_TIME];
  for (const kind of WINDOW_KINDS) {
    if (kind === "all") continue;
    const last = windowAt(kind, windowAt(kind, now).end as UnixMillis);
    for (
      let window = windowAt(kind, (now - KEPT_MS[kind] - LATE_MS_MAX) as UnixMillis);
      window.start <= last.start;
      window = windowAt(kind, window.end as UnixMillis)
    ) {
      windows.push(window);
    }
  }
  return windows;
}
