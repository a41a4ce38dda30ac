/** The engines of a local system. Each starts when its URL is not set, and restarts when it dies. */

import { join } from "node:path";

import type { Engine } from "../engines/engine.ts";
import { startNatsServer } from "../engines/nats-server.ts";
import { startRedisServer } from "../engines/redis-server.ts";
import type { Running } from "../shared/process/lifecycle.ts";
import type { Log } from "../shared/process/log.ts";
import type { StartConfig } from "./settings.ts";

export type LocalEngines = Running & { readonly natsUrl: string; readonly redisUrl: string };

/** `print` receives a message when a slow step begins. */
export async function startLocalEngines(
  config: StartConfig,
  { log, print }: { log: Log; print: (line: string) => void },
): Promise<LocalEngines> {
  const where = { cacheDir: config.cacheDir, print };
  const [nats, redis] = await allOrNone([
    config.natsUrl === "" ? startNatsServer({ ...where, dataDir: join(config.dataDir, "nats"), port: config.natsPort }) : undefined,
    config.redisUrl === "" ? startRedisServer({ ...where, dataDir: join(config.dataDir, "redis"), port: config.redisPort }) : undefined,
  ]);
  const engines = [nats, redis].filter((engine) => engine !== undefined);
  const watches = engines.map((engine) => keepRunning(engine, log));
  return {
    natsUrl: nats?.url ?? config.natsUrl,
    redisUrl: redis?.url ?? config.redisUrl,
    stop: async () => {
      for (const watch of watches) watch.end();
      await Promise.all(engines.map((engine) => engine.stop()));
    },
  };
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

/** Restarts an engine that died, on its port and data, like an init system. */
function keepRunning(engine: Engine, log: Log): { end(): void } {
  let ended = false;
  const watch = async (): Promise<void> => {
    while (!ended) {
      const exit = await engine.exited;
      if (ended) return;
      log.warn({ engine: engine.url, ...exit }, "an engine stopped unexpectedly; restarting it");
      await engine.restart();
    }
  };
  watch().catch((cause: unknown) =>
    log.error({ engine: engine.url, cause }, "an engine could not be restarted; stop Coroom and read the engine's log in the data folder"),
  );
  return { end: () => (ended = true) };
}
