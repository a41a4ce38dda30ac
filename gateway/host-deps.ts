/** The dependencies that every host of the gateway receives besides its ports. A host that logs receives a log too. */

import type { Clock } from "../shared/time/clock.ts";
import type { GatewayMetrics } from "./metrics.ts";
import type { EditHops } from "./ports.ts";

export type HostDeps = {
  readonly clock: Clock;
  /** Runs the function after the current turn of the event loop. */
  readonly endOfTurn: (run: () => void) => void;
  readonly metrics: GatewayMetrics;
  /** Undefined while edits are not traced. */
  readonly hops?: EditHops | undefined;
};
