/** What every host of the gateway is given beside its ports. */

import type { Clock } from "../shared/clock.ts";
import type { Log } from "../shared/log.ts";
import type { GatewayMetrics } from "./metrics.ts";
import type { EditHops } from "./ports.ts";

export type HostDeps = {
  readonly clock: Clock;
  /** Runs once whatever is at hand in this turn of the event loop is done. */
  readonly endOfTurn: (run: () => void) => void;
  readonly log: Log;
  readonly metrics: GatewayMetrics;
  /** Undefined: nobody wants to see single edits. */
  readonly hops?: EditHops | undefined;
};
