/**
 * Measures the load of this process: the delay of its event loop, the bytes that clients have not read, and the round
 * trip to NATS.
 */

import { eventLoopDelay } from "../../shared/io/event-loop.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import type { Pressures } from "../ports.ts";
import type { BackboneStatus } from "../rooms/backbone-status.ts";

/** `backbone`: no round trip is measured while NATS is disconnected. */
export function measuredPressures(
  nats: NatsConnection,
  { outboundBytes, outboundP99Ms }: { outboundBytes(): number; outboundP99Ms(): number },
  backbone: Pick<BackboneStatus, "isUp">,
): Pressures & { stop(): void } {
  const delay = eventLoopDelay();
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
    nats.flush().then(answered, answered); // Rejects when the connection is lost. The next measurement asks again.
  };

  return {
    measure: () => {
      const delayMs = delay.measure();
      if (!backbone.isUp) return { delayMs, outboundBytes: outboundBytes(), natsLagMs: 0 };
      const natsLagMs = Math.max(lagMs, asked === undefined ? 0 : performance.now() - asked);
      askNats();
      return { delayMs, outboundBytes: outboundBytes(), natsLagMs };
    },
    outboundP99Ms,
    stop: () => delay.stop(),
  };
}
