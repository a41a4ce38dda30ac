/** Starts one gateway: every port is given its adapter here and nowhere else. */

import { randomBytes } from "node:crypto";

import type { Registry } from "prom-client";

import type { Sanction } from "../shared/bus/admin-messages.ts";
import { subjectsOf } from "../shared/bus/subjects.ts";
import type { GatewayId } from "../shared/ids.ts";
import { closeNats, connectNats } from "../shared/io/nats.ts";
import { ensureOperationsStream, natsOperations } from "../shared/io/nats-operations.ts";
import { natsCounts } from "../shared/io/nats-counts.ts";
import { redisLine } from "../shared/io/redis.ts";
import { systemClock as clock } from "../shared/io/system-clock.ts";
import type { Running } from "../shared/lifecycle.ts";
import type { Log } from "../shared/log.ts";
import type { SharedConfig } from "../shared/settings.ts";
import { AdmissionHost } from "./admission-host.ts";
import { type GatewayConfig, quotaOptions, refuseUnsafe, refuseUnsendable } from "./config.ts";
import { assembleGateway } from "./gateway.ts";
import { clientIdOf } from "./io/client-ids.ts";
import type { HttpRoute } from "./io/http-routes.ts";
import { jwtTokens } from "./io/jwt-tokens.ts";
import { loadUws } from "./io/load-uws.ts";
import { natsOrders, natsSanctions } from "./io/nats-admin.ts";
import { natsBoards } from "./io/nats-boards.ts";
import { natsPlacement } from "./io/nats-placement.ts";
import { natsPresence } from "./io/nats-presence.ts";
import { natsRooms } from "./io/nats-rooms.ts";
import { natsServices } from "./io/nats-services.ts";
import { redisSanctions } from "./io/redis-sanctions.ts";
import { measuredPressures } from "./io/pressures.ts";
import { serveHttp } from "./io/routes.ts";
import type { Door, Unready } from "./io/upgrades.ts";
import { listen, uwsSockets } from "./io/uws-server.ts";
import { countBehind, gatewayMetrics } from "./metrics.ts";
import { shareCounts } from "./quotas-host.ts";
import { Quotas } from "./quotas.ts";
import { SanctionsHost } from "./sanctions-host.ts";
import { Sanctions } from "./sanctions.ts";
import { Shed } from "./shed.ts";
import { watchPressure } from "./shed-host.ts";

/**
 * `serverSilenceMsMax` is placement's setting: gateways judge by it when no placement answers. `redisUrl` is the
 * leaderboard's: bans are kept there, if there is one.
 */
export type StartGatewayConfig = SharedConfig & GatewayConfig & { readonly serverSilenceMsMax: number; readonly redisUrl?: string };

/** `routes`: further HTTP, such as a demo's. */
export async function startGateway(config: StartGatewayConfig, { log, registry, routes = [] }: { log: Log; registry: Registry; routes?: readonly HttpRoute[] }): Promise<Running & { readonly port: number }> {
  refuseUnsafe(config);
  const gateway = randomBytes(9).toString("base64url") as GatewayId;
  const subjects = subjectsOf(config.environment);
  const deps = { clock, endOfTurn: setImmediate, log, metrics: gatewayMetrics(registry) };
  const tokens = jwtTokens(config, clock);
  const nats = await connectNats({ servers: config.natsUrl, name: `gateway ${gateway}` });
  refuseUnsendable(config, nats.info?.max_payload);
  await ensureOperationsStream(nats, subjects, config);
  const [bus, presenceBus] = [natsRooms(nats, subjects, gateway), natsPresence(nats, subjects, gateway)];
  const [documents, leaderboards] = [natsServices(nats, subjects.documents, clock), natsServices(nats, subjects.leaderboards, clock)];
  const { boardBus, start: hearBoards } = natsBoards(nats, subjects, leaderboards);
  const placement = natsPlacement(nats, subjects, config, clock);

  const orders = natsOrders(nats, subjects);
  const redis = config.redisUrl === undefined || config.redisUrl === "" ? undefined : redisLine(config.redisUrl, log);

  const uws = loadUws();
  const app = uws.App();
  let draining: Promise<void> | undefined;
  const drain = (): Promise<void> => (draining ??= clients.drain(config.drainMsMax));
  const unready = (): Unready | undefined => (draining !== undefined ? "draining" : rooms.backboneLostAt === undefined ? undefined : "degraded");
  const held = { quotas: new Quotas(quotaOptions(config)), sanctions: new Sanctions(config), impose: (sanction: Sanction) => sanctions.impose(sanction) };
  const mayConnect: Door["mayConnect"] = (address) => held.quotas.mayConnect(address);
  const web = uwsSockets(app, config, { unready, mayConnect, admission: new AdmissionHost(config, deps), onTurnedAway: (reason) => deps.metrics.turnedAway.inc({ reason }) }, (behind) => countBehind(deps.metrics, behind));
  const sanctions = new SanctionsHost(held.sanctions, natsSanctions(nats, subjects, gateway), redis === undefined ? undefined : redisSanctions(redis, config.environment, clock), { ...deps, isLineUp: () => rooms.backboneLostAt === undefined });

  const parts = assembleGateway(gateway, config, held, { ...web, boardBus, tokens, rooms: bus.rooms, presence: presenceBus.rooms, placement, clientIdOf }, deps);
  const { rooms, presence, clients, boards, discipline } = parts;

  await bus.start(rooms);
  await presenceBus.start(presence);
  hearBoards(boards);
  parts.start();
  sanctions.start((sanction) => discipline.receiveChanged(sanction));
  orders.onOrder((order) => discipline.receiveOrder(order));
  web.start(clients);
  const isLineUp = (): boolean => rooms.backboneLostAt === undefined;
  const stopSharing = shareCounts(held.quotas, natsCounts(nats, subjects), gateway, { ...deps, isLineUp });
  const pressures = measuredPressures(nats, web.outboundBytes, isLineUp);
  const operations = natsOperations(nats, subjects, gateway, { ...deps, count: (kind) => deps.metrics.events.inc({ kind }) });
  const stopWatching = watchPressure(new Shed(config), pressures, (level) => presence.receiveShed(level), { ...deps, operations });
  serveHttp(app, config, { tokens, documents, leaderboards, unready, orders, sanctions, drain: () => (void drain(), clients.size) }, routes, { ...deps, registry });

  const end = async (): Promise<void> => {
    await parts.stop(config.drainMsMax);
    sanctions.stop();
    redis?.stop();
    stopSharing();
    stopWatching();
    pressures.stop();
    await web.stop();
    await closeNats(nats);
  };
  const { port, close } = await listen(uws, app, config).catch(async (error: unknown) => {
    await end();
    throw error;
  });
  log.info({ gateway, port }, "gateway is listening");
  const stop = async (): Promise<void> => {
    await drain();
    close();
    await end();
  };
  let stopped: Promise<void> | undefined;
  return { port, stop: () => (stopped ??= stop()) };
}
