/** Where document services answer, from their heartbeats. */

import { decodeJson, DocumentsHeartbeat } from "../../shared/bus/placement-messages.ts";
import type { Subjects } from "../../shared/bus/subjects.ts";
import type { Clock } from "../../shared/clock.ts";
import type { Millis } from "../../shared/ids.ts";
import { crashing, type NatsConnection } from "../../shared/io/nats.ts";

const SILENCE_MS_MAX = 5_000;

/** The addresses of those heard of lately, in an order that spreads the load. */
export type DocumentServices = () => string[];

export function natsDocuments(nats: NatsConnection, subjects: Subjects, clock: Clock): DocumentServices {
  const heard = new Map<string, { url: string; at: Millis }>();
  let turn = 0;
  nats.subscribe(subjects.documents, {
    callback: crashing((error, msg) => {
      const heartbeat = error === null ? decodeJson(DocumentsHeartbeat, msg.data) : undefined;
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
