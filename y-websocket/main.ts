/**
 * Starts one bridge for clients of y-websocket. Each is to a gateway what a client of the SDK is, so all that holds for
 * those (tokens, limits, one order, nothing acknowledged lost) holds for the way from here on.
 */

import type { Registry } from "prom-client";

import { fetchSnapshot } from "../client/io/fetch-snapshot.ts";
import { openSocketWith } from "../client/io/node-socket.ts";
import { systemChance, systemClock as clientClock } from "../client/io/system.ts";
import type { World } from "../client/ports.ts";
import { YjsProvider } from "../client/yjs/yjs-provider.ts";
import { systemClock as clock } from "../shared/io/system-clock.ts";
import type { Running } from "../shared/lifecycle.ts";
import type { Log } from "../shared/log.ts";
import { type EdgeConfig, refuseUnsafe, type YWebsocketConfig } from "./config.ts";
import { HeldBudget } from "./held-budget.ts";
import { type TurnedAway, type YListener, type YSeat, ySockets } from "./io/y-sockets.ts";
import { yWebsocketMetrics } from "./metrics.ts";
import { Places } from "./places.ts";
import { YClient, type YSocket } from "./y-client.ts";

export type RunningYWebsocket = Running & { readonly port: number };

/** Throws where it may not or cannot start. */
export async function startYWebsocket(config: YWebsocketConfig & EdgeConfig, { log, registry }: { log: Log; registry: Registry }): Promise<RunningYWebsocket> {
  refuseUnsafe(config);
  const { yGatewayUrl: url, clientAddressHeader } = config;
  if (config.production && clientAddressHeader === "") log.warn({}, "COROOM_CLIENT_ADDRESS_HEADER is not set: gateways take all clients of y-websocket to come from this machine, and count or ban them together or not at all; here they count under the balancer's address");
  const metrics = yWebsocketMetrics(registry);
  const budget = new HeldBudget(config.yHeldBytesMax);
  const places = new Places(config);
  /** Each until its client has left, and what it wrote is saved. */
  const visits = new Set<Promise<void>>();
  let isStopping = false;

  const worldFor = (address: string): World => ({
    clock: clientClock,
    chance: systemChance,
    openSocket: (...given) => openSocketWith(clientAddressHeader === "" ? {} : { [clientAddressHeader]: address }, ...given),
    fetchSnapshot,
    reportError: (error) => log.error({ cause: error }, "a y-websocket client's document could not take what the room has"),
  });
  const enter = ({ room, token, address, place }: YSeat, socket: YSocket): YListener => {
    const world = worldFor(address);
    const client = new YClient(socket, config, { openRoom: (doc) => new YjsProvider({ url, token, room, doc }, world), budget, clock, log, metrics });
    let receiveClosed = (): void => {};
    const visit = new Promise<void>((resolve) => (receiveClosed = () => resolve(client.receiveClosed()))).finally(() => {
      visits.delete(visit);
      places.giveBack(place);
      metrics.clients.set(places.taken);
    });
    visits.add(visit);
    places.take(place);
    metrics.clients.set(places.taken);
    return { receive: (bytes) => client.receive(bytes), receiveClosed: () => receiveClosed() };
  };
  const mayEnter = ({ place }: YSeat): TurnedAway | undefined => (isStopping ? "stopping" : places.reasonAgainst(place));

  const options = { host: config.yHost, port: config.yPort, allowedOrigins: config.allowedOrigins, addressHeader: clientAddressHeader, messageBytesMax: config.yMessageBytesMax };
  const sockets = await ySockets(options, { mayEnter, enter, onTurnedAway: (reason) => metrics.turnedAway.inc({ reason }) });
  log.info({ port: sockets.port, gateway: url }, "y-websocket's clients are served");
  const stop = async (): Promise<void> => {
    isStopping = true;
    await sockets.close();
    await Promise.all(visits);
  };
  let stopped: Promise<void> | undefined;
  return { port: sockets.port, stop: () => (stopped ??= stop()) };
}
