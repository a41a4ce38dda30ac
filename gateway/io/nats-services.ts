/** Where services of one kind answer over HTTP, from their heartbeats. */

import { decodeJson, ServiceHeartbeat } from "../../shared/bus/placement-messages.ts";
import type { Clock } from "../../shared/clock.ts";
import type { Millis } from "../../shared/ids.ts";
import { crashing, type NatsConnection } from "../../shared/io/nats.ts";

const SILENCE_MS_MAX = 5_000;

/** The addresses of those heard of lately, in an order that spreads the load. */
export type Services = () => string[];

export function natsServices(nats: NatsConnection, subject: string, clock: Clock): Services {
  const heard = new Map<string, { url: string; at: Millis }>();
  let turn = 0;
  nats.subscribe(subject, {
    callback: crashing((error, msg) => {
      const heartbeat = error === null ? decodeJson(ServiceHeartbeat, msg.data) : undefined;
      if (heartbeat !== undefined) heard.set(heartbeat.service, { url: heartbeat.url, at: clock.now() });
    }),
  });
  return () => {
    const now = clock.now();
    for (const [service, { at }] of heard) if (now - at > SILENCE_MS_MAX) heard.delete(service);
    const urls = [...heard.values()].map(({ url }) => url);
    turn = (turn + 1) % Math.max(1, urls.length);
    return [...urls.slice(turn), ...urls.slice(0, turn)];
  };
}
