/** Tells the gateways where a service's HTTP answers, for as long as it answers for any room. */

import { encodeJson } from "../bus/json-messages.ts";
import type { ServiceHeartbeat } from "../bus/placement-messages.ts";
import type { Clock } from "../clock.ts";
import { type NatsConnection, say } from "./nats.ts";

export function sendHeartbeats(
  nats: NatsConnection,
  subject: string,
  who: { service: string; url: string; everyMs: number; isServing: () => boolean; reachesRedis?: () => boolean | undefined },
  clock: Clock,
): { stop(): void } {
  let callOff: () => void;
  const beat = (): void => {
    const heartbeat: ServiceHeartbeat = {
      service: who.service,
      url: who.url,
      time: clock.wallNow(),
      reachesRedis: who.reachesRedis?.(),
    };
    if (who.isServing()) say(nats, subject, encodeJson(heartbeat));
    callOff = clock.after(who.everyMs, beat);
  };
  beat();
  return { stop: () => callOff() };
}
