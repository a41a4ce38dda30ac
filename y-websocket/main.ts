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
import { type Running, stopOnce } from "../shared/lifecycle.ts";
import type { Log } from "../shared/log.ts";
import { type EdgeConfig, refuseUnsafe, warnOfOneAddress, type YWebsocketConfig } from "./config.ts";
import { HeldBudget } from "./held-budget.ts";
import { ySockets } from "./io/y-sockets.ts";
import { yWebsocketMetrics } from "./metrics.ts";
import { Places } from "./places.ts";
import type { YSeat, YSocket } from "./ports.ts";
import { Reception } from "./reception.ts";
import { YClient } from "./y-client.ts";

export type RunningYWebsocket = Running & { readonly port: number };
type Deps = { readonly log: Log; readonly registry: Registry };

/** Throws where it may not or cannot start. */
export async function startYWebsocket(config: YWebsocketConfig & EdgeConfig, { log, registry }: Deps): Promise<RunningYWebsocket> {
  refuseUnsafe(config);
  warnOfOneAddress(config, log);
  const { yGatewayUrl: url, clientAddressHeader: addressHeader } = config;
  const metrics = yWebsocketMetrics(registry);
  const budget = new HeldBudget(config.yHeldBytesMax);

  const newClient = ({ room, token, address }: YSeat, socket: YSocket): YClient => {
    const world = worldOf(addressHeader === "" ? {} : { [addressHeader]: address }, log);
    return new YClient(socket, config, {
      openRoom: (doc) => new YjsProvider({ url, token, room, doc }, world),
      budget,
      clock,
      log,
      metrics,
    });
  };
  const reception = new Reception({ places: new Places(config), metrics, newClient });
  const listening = { host: config.yHost, port: config.yPort, allowedOrigins: config.allowedOrigins, addressHeader };
  const sockets = await ySockets({ ...listening, messageBytesMax: config.yMessageBytesMax }, reception);
  log.info({ port: sockets.port, gateway: url }, "y-websocket's clients are served");

  const stop = async (): Promise<void> => {
    reception.close();
    await sockets.close();
    await reception.left();
  };
  return { port: sockets.port, stop: stopOnce(stop) };
}

/** `headers`: what the gateway is told of where the client is. */
function worldOf(headers: Readonly<Record<string, string>>, log: Log): World {
  return {
    clock: clientClock,
    chance: systemChance,
    openSocket: (...given) => openSocketWith(headers, ...given),
    fetchSnapshot,
    reportError: (error) => log.error({ cause: error }, "a y-websocket client's document could not take what the room has"),
  };
}
