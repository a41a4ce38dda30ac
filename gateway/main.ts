/** Starts one gateway: every port is given its adapter here and nowhere else. */

import { randomBytes } from "node:crypto";

import type { Registry } from "prom-client";

import type { GatewayAccount } from "../shared/bus/fleet-messages.ts";
import type { GatewayId } from "../shared/ids.ts";
import { turnEnd } from "../shared/io/end-of-turn.ts";
import { systemClock as clock } from "../shared/io/system-clock.ts";
import { startTraces } from "../shared/io/traces/start-traces.ts";
import type { Running } from "../shared/lifecycle.ts";
import type { Log } from "../shared/log.ts";
import type { SharedConfig } from "../shared/settings.ts";
import { type GatewayConfig, refuseUnsafe } from "./config.ts";
import { assembleGateway } from "./gateway.ts";
import { clientIdOf } from "./io/client-ids.ts";
import type { HttpRoute } from "./io/http-routes.ts";
import { jwtTokens } from "./io/jwt-tokens.ts";
import type { NotReady } from "./io/health-routes.ts";
import { loadUws } from "./io/load-uws.ts";
import { connectBus } from "./io/nats-bus.ts";
import { redisSanctions } from "./io/redis-sanctions.ts";
import { measuredPressures } from "./io/pressures.ts";
import { rememberedTokens } from "./io/remembered-tokens.ts";
import { serveHttp } from "./io/routes.ts";
import { tracedEdits } from "./io/traced-edits.ts";
import type { Door, Unready } from "./io/upgrades.ts";
import { uwsApp } from "./io/uws-app.ts";
import { listen, uwsSockets } from "./io/uws-server.ts";
import { countBehind, gatewayMetrics } from "./metrics.ts";
import { OutboundHealth } from "./limits/outbound-health.ts";
import { ForeignOrigins } from "./limits/foreign-origins-host.ts";
import { Shed } from "./limits/shed.ts";
import { watchPressure } from "./limits/shed-host.ts";

/** For edits that nobody would send again, for their page was closed meanwhile; an owner that is lost is replaced within this. */
const SETTLE_MS_MAX = 4_000;

/** Of other tiers: `serverSilenceMsMax`, by which gateways judge while no placement answers, and `redisUrl`, where bans are kept. */
export type StartGatewayConfig = SharedConfig & GatewayConfig & { readonly serverSilenceMsMax: number; readonly redisUrl?: string };

/** `routes`: further HTTP, such as a demo's. */
export async function startGateway(
  config: StartGatewayConfig,
  { log, registry, routes = [] }: { log: Log; registry: Registry; routes?: readonly HttpRoute[] },
): Promise<Running & { readonly port: number }> {
  refuseUnsafe(config);
  const gateway = randomBytes(9).toString("base64url") as GatewayId;
  const { endOfTurn, lastOfTurn } = turnEnd();
  const traces = await startTraces(config, { role: "gateway", instance: gateway }, { log, registry });
  const hops = traces && tracedEdits(gateway, traces.edits);
  const deps = { clock, endOfTurn, log, metrics: gatewayMetrics(registry), hops };
  const tokens = rememberedTokens(
    jwtTokens(config, clock, (waiting) => deps.metrics.tokensWaiting.set(waiting)),
    config,
    deps,
  );
  const uws = loadUws();
  const app = uwsApp(uws, config);
  const bus = await connectBus(gateway, config, deps);
  const kept = redisSanctions(config.redisUrl ?? "", config.environment, deps);

  const unready = (): Unready | undefined => {
    if (clients.isDraining) return "draining";
    if (bus.isMisconfigured()) return "misconfigured";
    return rooms.backboneLostAt === undefined ? undefined : "degraded";
  };
  const foreignOrigins = new ForeignOrigins(log);
  const door: Door = {
    unready,
    mayConnect: (address): boolean => parts.quotas.mayConnect(address),
    onTurnedAway: (reason, origin): void => {
      deps.metrics.turnedAway.inc({ reason });
      if (reason === "origin") foreignOrigins.receive(origin, clock.now());
    },
  };
  const web = uwsSockets(app, config, door, lastOfTurn, (...looked) => countBehind(deps.metrics, ...looked));
  const parts = assembleGateway(gateway, config, { ...web, ...bus.ports, store: kept.store, tokens, clientIdOf }, deps);
  const { rooms, clients } = parts;

  await bus.start(parts);
  parts.start();
  web.start(parts.lobby);
  const outbound = new OutboundHealth(config);
  const pressures = measuredPressures(bus.nats, web, () => rooms.backboneLostAt === undefined);
  const shed = new Shed(config);
  const stopWatching = watchPressure({ shed, outbound }, pressures, (level) => parts.presence.receiveShed(level), {
    ...deps,
    operations: bus.operations,
  });
  const notReady = (): NotReady | undefined => unready() ?? (outbound.isDegraded ? "slow" : undefined);
  const drain = (): number => (void clients.drain(config.drainMsMax), clients.size);
  const account = (): GatewayAccount => ({
    gateway,
    connections: clients.size,
    rooms: rooms.followed,
    shedLevel: shed.level,
    state: notReady() ?? "ready",
    reachesRedis: kept.reachesRedis(),
  });
  bus.onGatewayAsked(account, drain);
  serveHttp(
    app,
    config,
    {
      ...bus.services,
      ...bus.operators,
      ...parts,
      orders: bus.ports.orders,
      activities: bus.ports.activities,
      tokens,
      clientIdOf,
      notReady,
      account,
      drain,
    },
    routes,
    { ...deps, registry },
  );

  const end = async (): Promise<void> => {
    await parts.stop(config.drainMsMax === 0 ? 0 : SETTLE_MS_MAX); // Nobody is waited for: NATS may be about to end as well.
    stopWatching();
    pressures.stop();
    kept.stop();
    await web.stop();
    await bus.stop();
    await traces?.stop();
  };
  const { port, close } = await listen(uws, app, config).catch(async (error: unknown) => {
    await end();
    throw error;
  });
  log.info({ gateway, port }, "gateway is listening");
  const stop = async (): Promise<void> => {
    await clients.drain(config.drainMsMax);
    close();
    await end();
  };
  let stopped: Promise<void> | undefined;
  return { port, stop: () => (stopped ??= stop()) };
}
