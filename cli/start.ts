/** Starts the roles of this process in order and stops them in reverse order. */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Registry } from "prom-client";

import type { LocalOwners } from "../shared/bus/envelope.ts";
import { NATS_ROLES, type NatsRole } from "../shared/bus/permissions.ts";
import { startFailure } from "../shared/io/jetstream-stores.ts";
import { pinoLog } from "../shared/io/pino-log.ts";
import { systemClock as clock } from "../shared/io/system-clock.ts";
import type { Running } from "../shared/process/lifecycle.ts";
import type { Log } from "../shared/process/log.ts";
import { buildInfoGauge } from "./build-info.ts";
import { startBusProcess } from "./bus-process.ts";
import { botsThread, demoBots } from "./demo-bots.ts";
import { demoRoutes, demoObstacle, noPageRoute } from "./demo.ts";
import { serveHealth } from "./health.ts";
import { releaseIdleMemory, v8Heap } from "./idle-memory.ts";
import { DEFAULT_NATS_URL, rememberAddress } from "./local-addresses.ts";
import type { LocalEngines } from "./local-engines.ts";
import { openapiRoute } from "./openapi.ts";
import { missingSecrets } from "./secrets.ts";
import type { Role, StartConfig } from "./settings.ts";
import { refuseUnfit, refuseTakenPort } from "./start-checks.ts";

/** The code of a role is loaded only when the process runs it. */
const load = {
  "engines": () => import("./local-engines.ts"),
  "placement": () => import("../placement/main.ts"),
  "room-server": () => import("../room-server/main.ts"),
  "document-service": () => import("../document-service/main.ts"),
  "leaderboard": () => import("../leaderboard/main.ts"),
  "gateway": () => import("../gateway/main.ts"),
  "bridges": () => import("../bridges/main.ts"),
  "probe": () => import("../probe/main.ts"),
};

/** What each role gets from its process. */
interface RoleDeps {
  readonly log: Log;
  readonly registry: Registry;
}

/** The folder of the built console. */
const CONSOLE = fileURLToPath(new URL("../../console/dist", import.meta.url));
/** Built in a checkout only: the package `coroom` would be three times as large with it. */
const DOCS = fileURLToPath(new URL("../../docs/.vitepress/dist", import.meta.url));
const DEFAULT_REDIS_URL = "redis://127.0.0.1:6379";

/**
 * Throws SettingError for settings that contradict each other, and StartError when the environment prevents the start.
 */
export async function start(given: StartConfig): Promise<Running> {
  const config = { ...given, ...missingSecrets(given) };
  await refuseUnfit(config);
  await refuseTakenPort(given);
  const registry = new Registry();
  buildInfoGauge(registry);
  const health = await serveHealth(given, registry);
  const started: Running[] = [health, releaseIdleMemory(given, v8Heap(), { clock, registry })];
  const stop = async (): Promise<void> => {
    health.stopping();
    const failures: unknown[] = [];
    for (let part = started.pop(); part !== undefined; part = started.pop())
      await part.stop().catch((error: unknown) => failures.push(error)); // The other parts stop anyway.
    if (failures.length > 0) throw failures[0];
  };
  try {
    await startRoles(given, config, registry, (part) => started.push(part));
    health.ready(() => started.flatMap((part) => part.obstacle?.() ?? [])[0]);
  } catch (error) {
    await stop();
    throw startFailure(error);
  }
  return { stop };
}

/** `config`: the given settings with generated secrets. */
async function startRoles(given: StartConfig, config: StartConfig, registry: Registry, add: (part: Running) => void): Promise<void> {
  const runs = (role: Role): boolean => given.roles.includes(role);
  const deps = (role: Role) => ({ log: pinoLog({ role }, given.logLevel), registry });

  const engines = runs("engines") ? await startEngines(config, deps("engines"), add) : undefined;
  /** Each role has its own user of the local engines. */
  const as = (role: NatsRole): StartConfig => ({
    ...config,
    natsUrl: (engines?.natsUrlOf(role) ?? config.natsUrl) || DEFAULT_NATS_URL,
    redisUrl: (role === "gateway" || role === "leaderboard" ? engines?.redisUrlOf(role) : "") || config.redisUrl || DEFAULT_REDIS_URL,
  });

  const onBus = NATS_ROLES.filter((role) => role !== "operator").filter(runs);
  if (onBus.length > 0) {
    // The code of the roles is loaded while other processes answer.
    const [bus] = await Promise.all([startBusProcess(as(onBus[0]!), onBus[0]!, deps(onBus[0]!).log), ...onBus.map((role) => load[role]())]);
    add(bus);
  }
  if (runs("placement")) add(await (await load.placement()).startPlacement(as("placement"), deps("placement")));
  const localOwners: LocalOwners | undefined = runs("room-server") && runs("gateway") ? new Map() : undefined;
  if (runs("room-server"))
    add(await (await load["room-server"]()).startRoomServer(as("room-server"), { ...deps("room-server"), localOwners }));
  if (runs("document-service"))
    add(await (await load["document-service"]()).startDocumentService(as("document-service"), deps("document-service")));
  if (runs("leaderboard")) add(await (await load.leaderboard()).startLeaderboard(as("leaderboard"), deps("leaderboard")));
  const url = runs("gateway") ? await startEdge(given, as("gateway"), { ...deps("gateway"), localOwners }, add) : undefined;
  if (engines !== undefined && url !== undefined) rememberAddress("gateway", config.dataDir, url);

  const ownGateway = url?.replace("http", "ws") ?? "";
  const protocols = (["y-websocket", "hocuspocus"] as const).filter(runs);
  let bridgePort = 0;
  if (protocols.length > 0) {
    const { startBridges } = await load.bridges();
    const bridges = await startBridges({ ...config, yGatewayUrl: config.yGatewayUrl || ownGateway }, { ...deps(protocols[0]!), protocols });
    add(bridges);
    bridgePort = bridges.port;
  }
  if (runs("probe")) {
    const probeGatewayUrls = config.probeGatewayUrls.length > 0 ? config.probeGatewayUrls : [ownGateway];
    add(await (await load.probe()).startProbe({ ...config, probeGatewayUrls }, deps("probe")));
  }

  const reason = demoObstacle(given);
  if (engines !== undefined && url !== undefined && given.demo && reason !== undefined) print(`no demo page: ${reason}`);
  const addresses = [
    ...(url === undefined ? [] : gatewayAddresses(given, url)),
    ...protocols.map((protocol) => [protocol, `ws://${config.yHost}:${bridgePort}`] as const),
    ...(given.healthPort === 0 ? [] : [["health", `http://${given.healthHost}:${given.healthPort}/readyz`] as const]),
  ];
  for (const [name, address] of addresses) print(`coroom ${name.padEnd(NAME_WIDTH)} ${address}`);
  print(url === undefined ? "coroom ready" : `coroom ready ${url}`); // The last line: scripts wait for it.
}

const NAME_WIDTH = 11;

/** Other commands find the engines by their remembered addresses. */
async function startEngines(config: StartConfig, deps: RoleDeps, add: (part: Running) => void): Promise<LocalEngines> {
  const { startLocalEngines } = await load.engines();
  const engines = await startLocalEngines(config, { ...deps, print });
  add(engines);
  if (config.natsUrl === "") rememberAddress("nats", config.dataDir, engines.natsUrlOf("operator"));
  if (config.redisUrl === "") rememberAddress("redis", config.dataDir, engines.redisUrlOf("leaderboard"));
  return engines;
}

function gatewayAddresses(given: StartConfig, url: string): [string, string][] {
  return [
    ...(demoObstacle(given) === undefined ? [["page", `${url}/`] as [string, string]] : []),
    ...(given.operationsPage ? [["console", `${url}/operations/`] as [string, string]] : []),
    ["metrics", `${url}/metrics`],
  ];
}

/** Returns the local address of the gateway. */
async function startEdge(
  given: StartConfig,
  config: StartConfig,
  deps: RoleDeps & { readonly localOwners: LocalOwners | undefined },
  add: (part: Running) => void,
): Promise<string> {
  const hasEngines = given.roles.includes("engines");
  // When the engines end with this process, clients cannot move to another gateway.
  const drainMsMax = hasEngines && given.natsUrl === "" ? 0 : config.drainMsMax;
  const hasRedis = hasEngines || given.redisUrl !== ""; // A gateway works without Redis.
  const { jwtSecret } = config;
  const operatorSecret = given.operatorSecret === "" ? config.operatorSecret : ""; // A configured secret never issues passes.
  const noDemo = demoObstacle(given);
  const bots =
    noDemo === undefined ? demoBots({ jwtSecret, url: () => `ws://127.0.0.1:${gateway.port}`, ...botsThread(deps.log) }) : undefined;
  const [{ startGateway }, { demoPageRoutes, pageRoutes }] = await Promise.all([
    load.gateway(),
    import("../gateway/io/http/static-files.ts"),
  ]);
  const gateway = await startGateway(
    { ...config, redisUrl: hasRedis ? config.redisUrl : "", drainMsMax, staticDir: bots === undefined ? config.staticDir : "" },
    {
      ...deps,
      routes: [
        openapiRoute(),
        ...(bots === undefined
          ? []
          : [...demoRoutes({ jwtSecret, operatorSecret, bots }), ...pageRoutes("/docs", DOCS), ...demoPageRoutes(CONSOLE)]),
        ...(noDemo === undefined || config.staticDir !== "" ? [] : [noPageRoute(noDemo)]),
        ...(config.operationsPage ? pageRoutes("/operations", join(CONSOLE, "operations")) : []),
      ],
    },
  );
  add(gateway);
  if (bots !== undefined) add(bots);
  return `${config.tlsCertFile === "" ? "http" : "https"}://127.0.0.1:${gateway.port}`;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
