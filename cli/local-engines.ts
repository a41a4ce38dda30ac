/** The engines of a local system: started where their URL is not set, started again if they die. */

import { join } from "node:path";

import type { Engine } from "../engines/engine.ts";
import { startNatsServer } from "../engines/nats-server.ts";
import { startRedisServer } from "../engines/redis-server.ts";
import type { Running } from "../shared/lifecycle.ts";
import type { Log } from "../shared/log.ts";
import type { StartConfig } from "./settings.ts";

export type LocalEngines = Running & { readonly natsUrl: string; readonly redisUrl: string };

/** `say` is told, in words for a person, when something slow begins. */
export async function startLocalEngines(
  config: StartConfig,
  { log, say }: { log: Log; say: (line: string) => void },
): Promise<LocalEngines> {
  const where = { cacheDir: config.cacheDir, say };
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

/** Where one does not start, the others are stopped before its reason is passed on. */
async function allOrNone(starting: readonly (Promise<Engine> | undefined)[]): Promise<(Engine | undefined)[]> {
  const outcomes = await Promise.allSettled(starting);
  const failure = outcomes.find((outcome) => outcome.status === "rejected");
  const started = outcomes.map((outcome) => (outcome.status === "fulfilled" ? outcome.value : undefined));
  if (failure === undefined) return started;
  await Promise.all(started.map((engine) => engine?.stop()));
  throw failure.reason;
}

/** An engine that died is started again on its port and data, as an init system would. */
function keepRunning(engine: Engine, log: Log): { end(): void } {
  let ended = false;
  const watch = async (): Promise<void> => {
    while (!ended) {
      const exit = await engine.exited;
      if (ended) return;
      log.warn({ engine: engine.url, ...exit }, "an engine died; starting it again");
      await engine.restart();
    }
  };
  watch().catch((cause: unknown) =>
    log.error({ engine: engine.url, cause }, "an engine could not be started again; stop Coroom and look at its log in the data folder"),
  );
  return { end: () => (ended = true) };
}
