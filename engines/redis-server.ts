/** Runs a real redis-server with an append-only file. */
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { ask } from "./ask.ts";
import { BINARIES } from "./binaries.ts";
import { claimDataDir } from "./data-dir.ts";
import { runEngine, type Engine } from "./engine.ts";
import { findBinary, type FindOptions } from "./find.ts";
import { claimPort } from "./free-port.ts";
import { redisConfigText } from "./redis-config.ts";

export type RedisServerOptions = FindOptions & {
  readonly dataDir: string;
  /** Absent or 0: any free one. */
  readonly port?: number;
  readonly host?: string;
};

const ASK_MS_MAX = 500;

export async function startRedisServer(options: RedisServerOptions): Promise<Engine> {
  const binary = await findBinary(BINARIES.redisServer, options);
  const host = options.host ?? "127.0.0.1";
  const dataDir = resolve(options.dataDir);
  const lock = claimDataDir(dataDir);
  try {
    const port = await claimPort(options.port, host, "COROOM_REDIS_PORT");
    const config = join(dataDir, "redis-server.conf");
    writeFileSync(config, redisConfigText({ host, port, dataDir }));
    return await runEngine({
      name: BINARIES.redisServer.name,
      url: `redis://${host}:${port}`,
      port,
      command: { path: binary.path, args: [config], env: binary.env, cwd: dataDir, logFile: join(dataDir, "redis-server.log") },
      lock,
      isReady: () => ask({ host, port, say: "PING\r\n", msMax: ASK_MS_MAX }, (heard) => heard.includes("+PONG")),
    });
  } catch (error) {
    lock.release();
    throw error;
  }
}
