/** Starts one gateway: every port is given its adapter here and nowhere else. */

import { randomBytes } from "node:crypto";

import type { Registry } from "prom-client";

import type { GatewayId } from "../shared/ids.ts";
import { turnEnd } from "../shared/io/end-of-turn.ts";
import { systemClock as clock } from "../shared/io/system-clock.ts";
import { startTraces } from "../shared/io/traces/start-traces.ts";
import { type Running, stopOnce } from "../shared/lifecycle.ts";
import type { Log } from "../shared/log.ts";
import type { SharedConfig } from "../shared/settings.ts";
import { type GatewayConfig, refuseUnsafe } from "./config.ts";
import { assembleGateway } from "./gateway.ts";
import { clientIdOf } from "./io/client-ids.ts";
import { openEdge } from "./io/edge.ts";
import type { HttpRoute } from "./io/http-routes.ts";
import { jwtTokens } from "./io/jwt-tokens.ts";
import { connectBus } from "./io/nats-bus.ts";
import { measuredPressures } from "./io/pressures.ts";
import { redisSanctions } from "./io/redis-sanctions.ts";
import { rememberedTokens } from "./io/remembered-tokens.ts";
import { standingOf } from "./io/standing.ts";
import { tracedEdits } from "./io/traced-edits.ts";
import { OutboundHealth } from "./limits/outbound-health.ts";
import { watchPressure } from "./limits/shed-host.ts";
import { Shed } from "./limits/shed.ts";
import { gatewayMetrics } from "./metrics.ts";

/** For edits that nobody would send again, for their page was closed meanwhile; an owner that is lost is replaced within this. */
const SETTLE_MS_MAX = 4_000;
/** Of other tiers: by `serverSilenceMsMax` gateways judge while no placement answers, at `redisUrl` bans are kept. */
type OfOthers = { readonly serverSilenceMsMax: number; readonly redisUrl?: string };

/** `routes`: further HTTP, such as a demo's. */
export async function startGateway(
  config: SharedConfig & GatewayConfig & OfOthers,
  { log, registry, routes = [] }: { log: Log; registry: Registry; routes?: readonly HttpRoute[] },
): Promise<Running & { readonly port: number }> {
  refuseUnsafe(config);
  const gateway = randomBytes(9).toString("base64url") as GatewayId;
  const { endOfTurn, lastOfTurn } = turnEnd();
  const traces = await startTraces(config, { role: "gateway", instance: gateway }, { log, registry });
  const metrics = gatewayMetrics(registry);
  const deps = { clock, endOfTurn, log, metrics, hops: traces && tracedEdits(gateway, traces.edits) };

  const edge = openEdge(
    config,
    { unready: () => standing.unready(), mayConnect: (address) => parts.quotas.mayConnect(address) },
    { ...deps, registry, lastOfTurn },
  );
  const bus = await connectBus(gateway, config, deps);
  const kept = redisSanctions(config.redisUrl ?? "", config.environment, deps);
  const checked = jwtTokens(config, clock, (waiting) => metrics.tokensWaiting.set(waiting));
  const tokens = rememberedTokens(checked, config, deps);
  const parts = assembleGateway(gateway, config, { ...edge, ...bus.ports, store: kept.store, tokens, clientIdOf }, deps);
  const { rooms, clients, presence } = parts;
  await bus.start(parts);
  parts.start();
  edge.start(parts.lobby);

  const load = { shed: new Shed(config), outbound: new OutboundHealth(config) };
  const pressures = measuredPressures(bus.nats, edge, rooms.backbone);
  const { operations } = bus;
  const stopWatching = watchPressure(load, pressures, (level) => presence.receiveShed(level), { ...deps, operations });
  const standing = standingOf(gateway, { ...parts, ...load, ...bus, ...kept });
  const drain = (): number => (void clients.drain(config.drainMsMax), clients.size);
  bus.onGatewayAsked(standing.account, drain);
  edge.serveHttp({ ...bus.ports, ...bus.services, ...bus.operators, ...parts, ...standing, tokens, clientIdOf, drain }, routes);

  const end = async (): Promise<void> => {
    await parts.stop(config.drainMsMax === 0 ? 0 : SETTLE_MS_MAX); // Nobody is waited for: NATS may be about to end as well.
    stopWatching();
    pressures.stop();
    kept.stop();
    await edge.stop();
    await bus.stop();
    await traces?.stop();
  };
  const { port, close } = await edge.listen().catch(async (error: unknown) => {
    await end();
    throw error;
  });
  log.info({ gateway, port }, "gateway is listening");
  const stop = async (): Promise<void> => {
    await clients.drain(config.drainMsMax);
    close();
    await end();
  };
  return { port, stop: stopOnce(stop) };
}
