/** Measures what weighs on this process: its event loop, what its clients have not read, and how slow NATS is. */

import { monitorEventLoopDelay } from "node:perf_hooks";

import type { NatsConnection } from "../../shared/io/nats.ts";
import type { Pressures } from "../ports.ts";

const RESOLUTION_MS = 10;
const NANOS_PER_MS = 1e6;
/** Of the times that the loop was looked at since the last measurement. One long turn is not pressure, several are. */
const PERCENTILE = 90;

/** `isLineUp`: without a line nothing is on its way, and NATS is not slow but away. */
export function measuredPressures(nats: NatsConnection, outboundBytes: () => number, isLineUp: () => boolean): Pressures & { stop(): void } {
  const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delays.enable();
  let asked: number | undefined;
  let lagMs = 0;

  const askNats = (): void => {
    if (asked !== undefined) return;
    const from = performance.now();
    asked = from;
    const answered = (): void => {
      lagMs = performance.now() - from;
      asked = undefined;
    };
    nats.flush().then(answered, answered); // Rejected with the line: it is asked again on the next.
  };

  return {
    measure: () => {
      const delayMs = delays.count === 0 ? 0 : Math.max(0, delays.percentile(PERCENTILE) / NANOS_PER_MS - RESOLUTION_MS);
      delays.reset();
      if (!isLineUp()) return { delayMs, outboundBytes: outboundBytes(), natsLagMs: 0 };
      const natsLagMs = Math.max(lagMs, asked === undefined ? 0 : performance.now() - asked);
      askNats();
      return { delayMs, outboundBytes: outboundBytes(), natsLagMs };
    },
    stop: () => delays.disable(),
  };
}
