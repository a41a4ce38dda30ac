/**
 * Starts the bridge for y-websocket clients. To a gateway each of them is a client of the SDK, with the same guarantees
 * and limits.
 */

import type { Registry } from "prom-client";

import { fetchSnapshot } from "../client/io/fetch-snapshot.ts";
import { openSocketWith } from "../client/io/node-socket.ts";
import { systemChance, systemClock as clientClock } from "../client/io/system.ts";
import type { ClientWorld } from "../client/ports.ts";
import { YjsProvider } from "../client/yjs/yjs-provider.ts";
import { systemClock as clock } from "../shared/io/system-clock.ts";
import { type Running, stopOnce } from "../shared/process/lifecycle.ts";
import type { Log } from "../shared/process/log.ts";
import { addressWarning, type EdgeConfig, refuseUnsafe, type YWebsocketConfig } from "./config.ts";
import { ySockets } from "./io/y-sockets.ts";
import { yWebsocketMetrics } from "./metrics.ts";
import { Places } from "./places.ts";
import type { YSeat, YSocket } from "./ports.ts";
import { YAdmission } from "./admission.ts";
import { YClient } from "./y-client.ts";
import { EarlyMessagesBudget } from "./held-messages.ts";

export type RunningYWebsocket = Running & { readonly port: number };
type Deps = { readonly log: Log; readonly registry: Registry };

/** Throws `StartError` if the settings are unsafe or the port is in use. */
export async function startYWebsocket(config: YWebsocketConfig & EdgeConfig, { log, registry }: Deps): Promise<RunningYWebsocket> {
  refuseUnsafe(config);
  const warning = addressWarning(config);
  if (warning !== undefined) log.warn({}, warning);
  const { yGatewayUrl: url, clientAddressHeader: addressHeader } = config;
  const metrics = yWebsocketMetrics(registry);
  const budget = new EarlyMessagesBudget(config.yHeldBytesMax);

  const newClient = ({ room, token, address }: YSeat, socket: YSocket): YClient => {
    const world = worldOf(addressHeader === "" ? {} : { [addressHeader]: address }, log);
    return new YClient(socket, config, {
      openRoom: (doc) => new YjsProvider({ url, token, room, doc }, world),
      budget,
      clock,
      warn: (facts, sentence) => log.warn(facts, sentence),
      metrics,
    });
  };
  const admission = new YAdmission({ places: new Places(config), metrics, newClient });
  const listening = { host: config.yHost, port: config.yPort, allowedOrigins: config.allowedOrigins, addressHeader };
  const sockets = await ySockets({ ...listening, messageBytesMax: config.yMessageBytesMax }, admission);
  log.info({ port: sockets.port, gateway: url }, "serving y-websocket clients");

  const stop = async (): Promise<void> => {
    admission.close();
    await sockets.close();
    await new Promise<void>((resolve) => admission.whenEmpty(resolve));
  };
  return { port: sockets.port, stop: stopOnce(stop) };
}

/** `headers`: give the gateway the client's address. */
function worldOf(headers: Readonly<Record<string, string>>, log: Log): ClientWorld {
  return {
    clock: clientClock,
    chance: systemChance,
    openSocket: (...given) => openSocketWith(headers, ...given),
    fetchSnapshot,
    reportError: (error) => log.error({ cause: error }, "cannot apply an edit of the room to a y-websocket client's document"),
  };
}
