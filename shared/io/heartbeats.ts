/** Publishes the address of a service's HTTP to the gateways while it serves any room. */

import { encodeJson } from "../bus/json-messages.ts";
import type { ServiceHeartbeat } from "../bus/placement-messages.ts";
import type { Clock } from "../time/clock.ts";
import { every } from "../time/every.ts";
import { type NatsConnection, publish } from "./nats.ts";

export function sendHeartbeats(
  nats: NatsConnection,
  subject: string,
  who: { service: string; url: string; everyMs: number; isServing: () => boolean; reachesRedis?: () => boolean | undefined },
  clock: Clock,
): { stop(): void } {
  const beat = (): void => {
    const heartbeat: ServiceHeartbeat = {
      service: who.service,
      url: who.url,
      time: clock.wallNow(),
      reachesRedis: who.reachesRedis?.(),
    };
    if (who.isServing()) publish(nats, subject, encodeJson(heartbeat));
  };
  beat();
  return { stop: every(clock, who.everyMs, beat) };
}
