/**
 * Time for the hosts, so that a test or the simulator controls it. `shared/io/system-clock.ts` is the real one.
 *
 * Two clocks with two types: durations and deadlines use the steady one. Otherwise a date set back by an hour would
 * block for an hour, and one set ahead would time out everything.
 */

import type { Millis, UnixMillis } from "../ids.ts";

export interface Clock {
  /** For durations and deadlines. It never goes back and never jumps. Its origin has no meaning. */
  now(): Millis;
  /** The date, for storage and display. It may be set at any time, so no wait uses it. */
  wallNow(): UnixMillis;
  /** Runs once after the delay; the returned function cancels it. */
  after(delayMs: number, run: () => void): () => void;
}
