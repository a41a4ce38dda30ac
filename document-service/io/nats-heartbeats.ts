/** Tells the gateways where this service's HTTP answers, for as long as it answers for any room. */

import { type DocumentsHeartbeat, encodeJson } from "../../shared/bus/placement-messages.ts";
import type { Clock } from "../../shared/clock.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";

export function sendHeartbeats(nats: NatsConnection, subject: string, who: { service: string; url: string; everyMs: number; isServing: () => boolean }, clock: Clock): { stop(): void } {
  let callOff: () => void;
  const beat = (): void => {
    const heartbeat: DocumentsHeartbeat = { service: who.service, url: who.url, time: clock.now() };
    if (who.isServing() && !nats.isClosed()) nats.publish(subject, encodeJson(heartbeat));
    callOff = clock.after(who.everyMs, beat);
  };
  beat();
  return { stop: () => callOff() };
}
