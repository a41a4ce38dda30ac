/** Runs a real redis-server with an append-only file. */
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { answersOverTcp } from "./ask.ts";
import { BINARIES } from "./binaries.ts";
import { claimDataDir } from "./data-dir.ts";
import { runEngine, type Engine } from "./engine.ts";
import { findBinary, type FindOptions } from "./find.ts";
import { claimPort } from "./free-port.ts";
export type RedisServerOptions = FindOptions & {
  readonly dataDir: string;
  /** Absent or 0: any free port. */
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
      isReady: () => answersOverTcp({ host, port, send: "PING\r\n", msMax: ASK_MS_MAX }, (received) => received.includes("+PONG")),
    });
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** The configuration file a local redis-server is started with. Pure text: the file is written elsewhere. */
type RedisConfig = {
  readonly host: string;
  readonly port: number;
  readonly dataDir: string;
};

/** Appended to a file and never evicted: a board is rebuilt from the log only where that file is lost. */
export function redisConfigText(config: RedisConfig): string {
  return [
    `bind ${config.host}`,
    `port ${config.port}`,
    "protected-mode yes",
    "daemonize no",
    `dir ${JSON.stringify(config.dataDir)}`,
    "appendonly yes",
    "appendfsync everysec",
    'save ""',
    "maxmemory-policy noeviction",
    "",
  ].join("\n");
}
