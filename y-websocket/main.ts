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
import { SettingError } from "../shared/config.ts";
import { systemClock as clock } from "../shared/io/system-clock.ts";
import type { Running } from "../shared/lifecycle.ts";
import type { Log } from "../shared/log.ts";
import type { YWebsocketConfig } from "./config.ts";
import { type TurnedAway, type YSeat, ySockets } from "./io/y-sockets.ts";
import { yWebsocketMetrics } from "./metrics.ts";
import { YClient } from "./y-client.ts";

/** As gateways have them. */
export type EdgeConfig = { readonly production: boolean; readonly allowedOrigins: readonly string[]; readonly clientAddressHeader: string };
export type RunningYWebsocket = Running & { readonly port: number };

export async function startYWebsocket(config: YWebsocketConfig & EdgeConfig, { log, registry }: { log: Log; registry: Registry }): Promise<RunningYWebsocket> {
  const { yGatewayUrl: url, clientAddressHeader } = config;
  if (url === "") throw new SettingError("COROOM_Y_GATEWAY_URL is not set: name the gateways as clients reach them (ws://host:port)");
  if (config.production && config.allowedOrigins.length === 0) throw new SettingError("in production the pages that may connect must be named: set COROOM_ALLOWED_ORIGINS");
  const metrics = yWebsocketMetrics(registry);
  const leaving = new Set<Promise<void>>();
  let clients = 0;
  let isStopping = false;

  const count = (change: number): void => metrics.clients.set((clients += change));
  const worldFor = (address: string): World => ({
    clock: clientClock,
    chance: systemChance,
    openSocket: (...given) => openSocketWith(clientAddressHeader === "" ? {} : { [clientAddressHeader]: address }, ...given),
    fetchSnapshot,
    reportError: (error) => log.error({ cause: error }, "a y-websocket client's document could not take what the room has"),
  });
  const enter = ({ room, token, address }: YSeat, socket: ConstructorParameters<typeof YClient>[0]) => {
    count(1);
    const world = worldFor(address);
    const client = new YClient(socket, config, { openRoom: (doc) => new YjsProvider({ url, token, room, doc }, world), clock, log, metrics });
    const receiveClosed = (): void => {
      const left = client.receiveClosed().finally(() => {
        leaving.delete(left);
        count(-1);
      });
      leaving.add(left);
    };
    return { receive: (bytes: Uint8Array) => client.receive(bytes), receiveClosed };
  };
  const mayEnter = (): TurnedAway | undefined => (isStopping ? "stopping" : clients >= config.yClientsMax ? "full" : undefined);

  const options = { host: config.yHost, port: config.yPort, allowedOrigins: config.allowedOrigins, addressHeader: clientAddressHeader, messageBytesMax: config.yHeldBytesMax };
  const sockets = await ySockets(options, { mayEnter, enter, onTurnedAway: (reason) => metrics.turnedAway.inc({ reason }) });
  log.info({ port: sockets.port, gateway: url }, "y-websocket's clients are served");
  const stop = async (): Promise<void> => {
    isStopping = true;
    await sockets.close(); // All have left by then, or are cut off.
    await Promise.all(leaving);
  };
  let stopped: Promise<void> | undefined;
  return { port: sockets.port, stop: () => (stopped ??= stop()) };
}
