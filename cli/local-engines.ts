/** The engines of a local system. Each starts when its URL is not set, and restarts when it dies. */

import { statfs } from "node:fs/promises";
import { join } from "node:path";
import { Gauge, type Registry } from "prom-client";

import { NATS_ROLES, natsPermissions, type NatsRole } from "../shared/bus/permissions.ts";
import { subjectsOf } from "../shared/bus/subjects.ts";
import { natsOperations } from "../shared/io/nats-operations.ts";
import { closeNats, connectAs, type NatsConnection } from "../shared/io/nats.ts";
import { systemClock as clock } from "../shared/io/system-clock.ts";
import { type Running, StartError } from "../shared/process/lifecycle.ts";
import type { Log } from "../shared/process/log.ts";
import { REDIS_ROLES, type RedisRole } from "../shared/settings/redis-permissions.ts";
import { pause, rethrowMistake } from "../shared/time/pause.ts";
import type { Engine } from "../engines/engine.ts";
import { startNatsServer } from "../engines/nats-server.ts";
import { type RedisUser, startRedisServer } from "../engines/redis-server.ts";
import { withUser } from "./local-addresses.ts";
import { roleSecrets } from "./secrets.ts";
import type { StartConfig } from "./settings.ts";

/** The addresses contain the user of the role, unless they are configured. */
export type LocalEngines = Running & {
  natsUrlOf(role: NatsRole): string;
  redisUrlOf(role: RedisRole): string;
};

/** Pauses between attempts to restart an engine: each is twice as long as the one before. */
const RESTART_PAUSE_MS = 500;
const RESTART_PAUSE_MS_MAX = 30_000;
/** Interval of attempts to report a restart, and the time after which it is only in the log. */
const REPORT_RETRY_MS = 500;
const REPORT_MS_MAX = 60_000;

/** `print` receives a message when a slow step begins. */
export async function startLocalEngines(
  config: StartConfig,
  { log, registry, print }: { log: Log; registry: Registry; print: (line: string) => void },
): Promise<LocalEngines> {
  const where = { cacheDir: config.cacheDir, print };
  const passwords = roleSecrets(config.dataDir);
  const [nats, redis] = await allOrNone([
    config.natsUrl === ""
      ? startNatsServer({
          ...where,
          dataDir: join(config.dataDir, "nats"),
          port: config.natsPort,
          users: natsUsers(config, (role) => passwords.nats[role]),
        })
      : undefined,
    config.redisUrl === ""
      ? startRedisServer({
          ...where,
          dataDir: join(config.dataDir, "redis"),
          port: config.redisPort,
          users: redisUsers(config.environment, (role) => passwords.redis[role]),
        })
      : undefined,
  ]);
  const engines = [nats, redis].filter((engine) => engine !== undefined);
  diskFreeGauge(config.dataDir, registry);
  const natsUrlOf = (role: NatsRole): string => (nats === undefined ? config.natsUrl : withUser(nats.url, role, passwords.nats[role]));
  const stopping = new AbortController();
  const report = (restart: EngineRestart): void =>
    void reportRestart(restart, { ...config, natsUrl: natsUrlOf("operator") }, log, stopping.signal).catch((cause: unknown) =>
      log.warn({ ...restart, cause }, "the restart of an engine is not among the operations events, because NATS does not answer"),
    );
  for (const engine of engines) void keepRunning(engine, { log, report }, stopping.signal);
  return {
    natsUrlOf,
    redisUrlOf: (role) => (redis === undefined ? config.redisUrl : withUser(redis.url, role, passwords.redis[role])),
    stop: async () => {
      stopping.abort();
      await Promise.all(engines.map((engine) => engine.stop()));
    },
  };
}

/** One user for each role. The operator is first, because the check whether nats-server answers uses the first user. */
export function natsUsers<Password extends string | { readonly fromEnvironment: string }>(
  { environment, logPartitions }: Pick<StartConfig, "environment" | "logPartitions">,
  passwordOf: (role: NatsRole) => Password,
) {
  return [...NATS_ROLES].reverse().map((role) => ({
    user: role,
    password: passwordOf(role),
    permissions: natsPermissions(role, environment, logPartitions),
  }));
}

export function redisUsers(environment: string, passwordOf: (role: RedisRole) => string): readonly RedisUser[] {
  return REDIS_ROLES.map((role) => ({ role, environment, password: passwordOf(role) }));
}

/** When one engine fails to start, the others stop before the error is thrown. */
async function allOrNone(starting: readonly (Promise<Engine> | undefined)[]): Promise<(Engine | undefined)[]> {
  const outcomes = await Promise.allSettled(starting);
  const failure = outcomes.find((outcome) => outcome.status === "rejected");
  const started = outcomes.map((outcome) => (outcome.status === "fulfilled" ? outcome.value : undefined));
  if (failure === undefined) return started;
  await Promise.all(started.map((engine) => engine?.stop()));
  throw failure.reason;
}

type EngineRestart = { readonly engine: string; readonly exit: string; readonly downMs: number };

/** Reported once NATS answers, which may have died too. */
async function reportRestart(restart: EngineRestart, config: StartConfig, log: Log, signal: AbortSignal): Promise<void> {
  const nats = await connectOnceBack(config, signal);
  const operations = natsOperations(nats, subjectsOf(config.environment), "engines", { clock, log, count: () => {} });
  operations.report({ kind: "engine_restarted", ...restart });
  await operations.settled();
  await closeNats(nats);
}

async function connectOnceBack(config: StartConfig, signal: AbortSignal): Promise<NatsConnection> {
  for (const deadline = clock.now() + REPORT_MS_MAX; ;) {
    try {
      return await connectAs("operator", "engines", config);
    } catch (cause) {
      if (!(cause instanceof StartError) || signal.aborted || clock.now() >= deadline) throw cause;
    }
    await pause(clock, REPORT_RETRY_MS, signal);
  }
}

export function diskFreeGauge(folder: string, registry: Registry): void {
  const gauge = new Gauge({
    name: "coroom_engines_disk_free_bytes",
    help: "Free bytes of the disk with the data folder of the local engines",
    registers: [registry],
    collect: async () => {
      try {
        const { bavail, bsize } = await statfs(folder);
        gauge.set(bavail * bsize);
      } catch {
        gauge.remove(); // The folder is gone, or its disk fails. The other metrics are still read.
      }
    },
  });
}

/** Restarts an engine that died, on its port and data, like an init system: until it runs, or the signal. */
export async function keepRunning(
  engine: Engine,
  { log, report }: { readonly log: Log; readonly report: (restart: EngineRestart) => void },
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    const exit = await engine.exited;
    if (signal.aborted) return;
    const endedAt = clock.now();
    log.warn({ engine: engine.name, url: engine.url, ...exit }, "an engine stopped unexpectedly; restarting it");
    for (let pauseMs = RESTART_PAUSE_MS; !(await isRestarted(engine, log)); pauseMs = Math.min(2 * pauseMs, RESTART_PAUSE_MS_MAX)) {
      await pause(clock, pauseMs, signal);
      if (signal.aborted) return;
    }
    const exitedWith = exit.signal ?? `exit code ${exit.code ?? "unknown"}`;
    report({ engine: engine.name, exit: exitedWith, downMs: Math.round(clock.now() - endedAt) });
  }
}

/** False if the engine does not start, or was killed while it started. */
async function isRestarted(engine: Engine, log: Log): Promise<boolean> {
  try {
    await engine.restart();
    return true;
  } catch (cause) {
    rethrowMistake(cause);
    log.error({ engine: engine.url, cause }, "an engine could not be restarted and is tried again. Read its log in the data folder");
    return false;
  }
}
