/**
 * Measures the load of this process: the delay of its event loop, the bytes that clients have not read, and the round
 * trip to NATS.
 */

import { eventLoopDelay } from "../../shared/io/event-loop.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import type { Pressures } from "../ports.ts";
import type { BackboneStatus } from "../rooms/backbone-status.ts";

/**
 * `backbone`: no round trip is measured while NATS is disconnected. A round trip counts once it is answered: a silent NATS
 * sends no presence that a gateway could shed.
 */
export function measuredPressures(
  nats: Pick<NatsConnection, "flush">,
  { outboundBytes, outboundP99Ms }: { outboundBytes(): number; outboundP99Ms(): number },
  backbone: Pick<BackboneStatus, "isUp">,
): Pressures & { stop(): void } {
  const delay = eventLoopDelay();
  let isAsked = false;
  let natsLagMs = 0;

  const askNats = (): void => {
    if (isAsked) return;
    isAsked = true;
    const from = performance.now();
    const receiveEnd = (lagMs: number): void => {
      natsLagMs = lagMs;
      isAsked = false;
    };
    nats.flush().then(
      () => receiveEnd(performance.now() - from),
      () => receiveEnd(0), // The connection is lost. The next measurement asks again.
    );
  };

  return {
    measure: () => {
      const delayMs = delay.measure();
      if (!backbone.isUp) return { delayMs, outboundBytes: outboundBytes(), natsLagMs: 0 };
      const pressure = { delayMs, outboundBytes: outboundBytes(), natsLagMs };
      askNats();
      return pressure;
    },
    outboundP99Ms,
    stop: () => delay.stop(),
  };
}
