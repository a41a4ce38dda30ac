/** Time as the hosts see it, so that a test or the simulator can turn the hands. `shared/io/system-clock.ts` is the real one. */

import type { Millis } from "./ids.ts";

export interface Clock {
  /** Milliseconds since the Unix epoch; may jump. */
  now(): Millis;
  /** Runs once after the delay; the returned function calls it off. */
  after(delayMs: number, run: () => void): () => void;
}
