/** Where services of one kind answer over HTTP, from their heartbeats. */

import { ServiceHeartbeat } from "../../shared/bus/placement-messages.ts";
import type { Clock } from "../../shared/clock.ts";
import type { Millis } from "../../shared/ids.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import { hear } from "../../shared/io/nats-hear.ts";
import { type AskService, serviceHttp } from "./service-http.ts";

const SILENCE_MS_MAX = 5_000;
/** By then whoever lives has said so: heartbeats come each second. */
const FIRST_MS_MAX = 1_500;

/** `urls`: of those heard of lately, in an order that spreads the load. `heard`: resolves at the first, or when nobody seems to be there: a gateway that has just started knows none yet. */
export type Services = {
  readonly urls: () => string[];
  readonly heard: Promise<void>;
  readonly ask: AskService;
};

/** `withoutRedis`: how many of those heard of lately say that they do not reach it. */
export type HeardServices = Services & { readonly withoutRedis: () => number };

/** `streamsMax`: answers of theirs that may be on their way to slow readers. */
export function natsServices(nats: NatsConnection, subject: string, clock: Clock, streamsMax = 0): HeardServices {
  const heard = new Map<string, { url: string; at: Millis; isWithoutRedis: boolean }>();
  let turn = 0;
  let receiveFirst = (): void => {};
  const first = new Promise<void>((resolve) => (receiveFirst = resolve));
  clock.after(FIRST_MS_MAX, receiveFirst);
  hear(nats, subject, ServiceHeartbeat, ({ service, url, reachesRedis }) => {
    heard.set(service, { url, at: clock.now(), isWithoutRedis: reachesRedis === false });
    receiveFirst();
  });
  const heardLately = () => {
    const now = clock.now();
    for (const [service, { at }] of heard) if (now - at > SILENCE_MS_MAX) heard.delete(service);
    return [...heard.values()];
  };
  const urls = (): string[] => {
    const all = heardLately().map(({ url }) => url);
    turn = (turn + 1) % Math.max(1, all.length);
    return [...all.slice(turn), ...all.slice(0, turn)];
  };
  const withoutRedis = (): number => heardLately().filter(({ isWithoutRedis }) => isWithoutRedis).length;
  return { urls, withoutRedis, heard: first, ask: serviceHttp({ streamsMax }) };
}
