/** Starts one gateway. Only this file connects ports to their adapters. */

import { randomBytes } from "node:crypto";

import type { Registry } from "prom-client";

import type { LocalOwners } from "../shared/bus/envelope.ts";
import type { GatewayId } from "../shared/ids.ts";
import { turnEnd } from "../shared/io/event-loop.ts";
import { systemClock as clock } from "../shared/io/system-clock.ts";
import { reportOutages } from "../shared/io/nats-operations.ts";
import { startTraces } from "../shared/io/traces/start-traces.ts";
import { type Running, stopOnce } from "../shared/process/lifecycle.ts";
import type { Log } from "../shared/process/log.ts";
import type { SharedConfig } from "../shared/settings/common-settings.ts";
import { type GatewayConfig, refuseUnsafeGateway } from "./config.ts";
import { assembleGateway } from "./gateway.ts";
import { clientIdOf } from "./io/client-ids.ts";
import { applicationContents } from "./io/http/first-content.ts";
import { openEdge } from "./io/edge.ts";
import type { HttpRoute } from "./http/route-table.ts";
import { jwtTokens, rememberedTokens } from "./io/jwt-tokens.ts";
import { connectBus } from "./io/nats/nats-bus.ts";
import { measuredPressures } from "./io/pressures.ts";
import { gatewayRedis } from "./io/gateway-redis.ts";
import { saveMeter } from "./io/save-meter.ts";
import { gatewayStatus } from "./gateway-status.ts";
import { tracedEdits } from "./io/traced-edits.ts";
import { watchPressure } from "./limits/pressure-host.ts";
import { LoadShedder, OutboundHealth } from "./limits/pressure.ts";
import { gatewayMetrics } from "./metrics.ts";
import { SETTLE_MS_MAX } from "./settings/listening.ts";

/**
 * Settings of other tiers. `serverSilenceMsMax` decides which servers are alive while placement does not answer.
 * `redisUrl` is the store of bans and of usage by tenant.
 */
type StartDeps = { log: Log; registry: Registry; localOwners?: LocalOwners | undefined; routes?: readonly HttpRoute[] };
type OfOthers = { readonly serverSilenceMsMax: number; readonly redisUrl?: string };

/** `localOwners`: shared with a room server of this process. `routes`: more HTTP routes, such as those of the demo. */
export async function startGateway(
  config: SharedConfig & GatewayConfig & OfOthers,
  { log, registry, localOwners, routes = [] }: StartDeps,
): Promise<Running & { readonly port: number }> {
  refuseUnsafeGateway(config);
  const gateway = randomBytes(9).toString("base64url") as GatewayId;
  const { endOfTurn, lastOfTurn } = turnEnd();
  const traces = await startTraces(config, { role: "gateway", instance: gateway }, { log, registry });
  const metrics = gatewayMetrics(registry);
  const traced = traces === undefined ? undefined : tracedEdits(gateway, traces.edits);
  const hops = saveMeter((seconds) => metrics.saveSeconds.observe(seconds), clock, traced);
  const deps = { clock, endOfTurn, log, metrics, hops };

  const edge = openEdge(
    config,
    { unready: () => status.unready(), mayConnect: (address) => parts.quotas.mayConnect(address) },
    { ...deps, registry, lastOfTurn },
  );
  const bus = await connectBus(gateway, config, { ...deps, lastOfTurn, localOwners });
  const kept = await gatewayRedis(config.redisUrl ?? "", config.environment, gateway, { ...deps, operations: bus.operations });
  const onWaiting = (waiting: number): void => metrics.tokensWaiting.set(waiting);
  const checked = jwtTokens(config, { ...deps, onWaiting, report: (lost) => bus.operations.report(lost) });
  const tokens = rememberedTokens(checked, config, deps);
  const contents = applicationContents(bus.services.documents, config, deps);
  const parts = assembleGateway(
    gateway,
    config,
    { ...edge, ...bus.ports, ...kept, tokens, clientIdOf, applicationContents: contents },
    deps,
  );
  const { rooms, clients, presence } = parts;
  await bus.start(parts);
  parts.start();
  edge.start(clients);

  const load = { shed: new LoadShedder(config), outbound: new OutboundHealth(config) };
  const pressures = measuredPressures(bus.nats, edge, rooms.backbone);
  const { operations } = bus;
  void reportOutages(bus.nats, operations, clock);
  const stopWatching = watchPressure({ ...load, ...parts }, pressures, (level) => presence.receiveShed(level), { ...deps, operations });
  const status = gatewayStatus(gateway, { ...parts, ...load, ...bus, ...kept, servers: bus.operators.fleet.servers });
  const stopVitals = bus.startVitals(registry, metrics);
  const drain = (): number => (void clients.drain(config.drainMsMax), clients.size);
  bus.onGatewayAsked(status.account, drain);
  edge.serveHttp({ ...bus.ports, ...bus.services, ...bus.operators, ...parts, ...status, ...kept, tokens, clientIdOf, drain }, routes);

  const end = async (): Promise<void> => {
    // Without draining it does not wait, because NATS may end at the same time.
    await parts.stop(config.drainMsMax === 0 ? 0 : SETTLE_MS_MAX);
    stopWatching();
    stopVitals();
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
