/** Finds services of one kind by their heartbeats, to call them over HTTP. */

import { ServiceHeartbeat } from "../../../shared/bus/placement-messages.ts";
import type { Clock } from "../../../shared/time/clock.ts";
import type { Millis } from "../../../shared/ids.ts";
import type { Log } from "../../../shared/process/log.ts";
import type { NatsConnection } from "../../../shared/io/nats.ts";
import { subscribeJson } from "../../../shared/io/nats-json.ts";
import { type CallService, serviceHttp, type ServiceHttpOptions } from "../http/service-http.ts";

const SILENCE_MS_MAX = 5_000;
/** A service's TLS failure, or its refusal of this gateway's secret, is logged once in this time. */
const REPORT_MS_MIN = 60_000;
/** Heartbeats are sent every second, so every live service has sent one by then. */
const FIRST_MS_MAX = 1_500;

/**
 * `urls` are those of services with a recent heartbeat, in an order that spreads the load. `firstHeartbeat` resolves at
 * the first heartbeat, or after 1.5 s, because a gateway that has just started knows no service.
 */
export type ServiceDirectory = {
  readonly urls: () => string[];
  readonly firstHeartbeat: Promise<void>;
  readonly ask: CallService;
};

/** `withoutRedis` counts the services that report that they cannot reach Redis. */
export type ServiceDirectoryWithRedis = ServiceDirectory & { readonly withoutRedis: () => number };

export function natsServices(
  nats: NatsConnection,
  subject: string,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
  http: Pick<ServiceHttpOptions, "streamsMax" | "ca" | "onWait">,
): ServiceDirectoryWithRedis {
  const lastHeartbeats = new Map<string, { url: string; at: Millis; isWithoutRedis: boolean }>();
  let turn = 0;
  let receiveFirst = (): void => {};
  const first = new Promise<void>((resolve) => (receiveFirst = resolve));
  clock.after(FIRST_MS_MAX, receiveFirst);
  subscribeJson(nats, subject, ServiceHeartbeat, ({ service, url, reachesRedis }) => {
    lastHeartbeats.set(service, { url, at: clock.now(), isWithoutRedis: reachesRedis === false });
    receiveFirst();
  });
  const liveServices = () => {
    const now = clock.now();
    for (const [service, { at }] of lastHeartbeats) if (now - at > SILENCE_MS_MAX) lastHeartbeats.delete(service);
    return [...lastHeartbeats.values()];
  };
  const urls = (): string[] => {
    const all = liveServices().map(({ url }) => url);
    turn = (turn + 1) % Math.max(1, all.length);
    return [...all.slice(turn), ...all.slice(0, turn)];
  };
  const withoutRedis = (): number => liveServices().filter(({ isWithoutRedis }) => isWithoutRedis).length;
  const reported = new Map<string, Millis>();
  const report = ({ origin }: URL, facts: object, sentence: string): void => {
    if (clock.now() - (reported.get(origin) ?? Number.NEGATIVE_INFINITY) < REPORT_MS_MIN) return;
    for (const [service, at] of reported) if (clock.now() - at >= REPORT_MS_MIN) reported.delete(service);
    reported.set(origin, clock.now());
    log.error({ service: origin, ...facts }, sentence);
  };
  const onTlsFailure = (url: URL, cause: Error): void =>
    report(
      url,
      { cause },
      "TLS to a service failed: sign its certificate by an authority in COROOM_INTERNAL_CA_FILE, for the host of its address",
    );
  const onRefusedSecret = (url: URL): void =>
    report(
      url,
      {},
      "a service refuses the secret of this gateway: set the same COROOM_INTERNAL_SECRET for gateways, document services and leaderboards",
    );
  return { urls, withoutRedis, firstHeartbeat: first, ask: serviceHttp({ ...http, onTlsFailure, onRefusedSecret }) };
}
