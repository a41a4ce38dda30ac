/** Measures what weighs on this process: its event loop, what its clients have not read, and how slow NATS is. */

import { loopDelay } from "../../shared/io/loop-delay.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import type { Pressures } from "../ports.ts";
import type { BackboneLine } from "../rooms/backbone-line.ts";

/** `backbone`: without a line nothing is on its way, and NATS is not slow but away. */
export function measuredPressures(
  nats: NatsConnection,
  { outboundBytes, outboundP99Ms }: { outboundBytes(): number; outboundP99Ms(): number },
  backbone: Pick<BackboneLine, "isUp">,
): Pressures & { stop(): void } {
  const delay = loopDelay();
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
