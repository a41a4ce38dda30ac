/**
 * Time as the hosts see it, so that a test or the simulator can turn the hands. `shared/io/system-clock.ts` is the real one.
 *
 * Two clocks, and two types, so that the compiler keeps them apart: every span and every deadline goes by the steady
 * one. A system whose date is set back an hour would else wait for an hour, and one set ahead would give up everything.
 */

import type { Millis, UnixMillis } from "./ids.ts";

export interface Clock {
  /** For spans and deadlines: never goes back and never jumps; where it begins means nothing. */
  now(): Millis;
  /** The date, for what others read or keep. May be set ahead or back at any moment: nothing waits by it. */
  wallNow(): UnixMillis;
  /** Runs once after the delay; the returned function calls it off. */
  after(delayMs: number, run: () => void): () => void;
}
