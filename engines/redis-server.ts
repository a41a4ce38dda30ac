/** Runs a real redis-server with an append-only file. */

import { createHash } from "node:crypto";
import { join, resolve } from "node:path";

import { redisPermissions, type RedisRole } from "../shared/settings/redis-permissions.ts";
import { answersOverTcp } from "./ask.ts";
import { BINARIES } from "./binaries.ts";
import { claimDataDir, writeOwnFile } from "./data-dir.ts";
import { runEngine, type Engine } from "./engine.ts";
import { findBinary, type FindOptions } from "./find.ts";
import { claimPort } from "./free-port.ts";

export type RedisServerOptions = FindOptions & {
  readonly dataDir: string;
  /** Absent or 0: any free port. */
  readonly port?: number;
  readonly host?: string;
  /** Absent: every client is accepted, and may do everything. */
  readonly users?: readonly RedisUser[];
  /** A program that replaces itself with redis-server, and its arguments before those of redis-server. Default: none. */
  readonly launcher?: readonly string[];
};

export type RedisUser = { readonly role: RedisRole; readonly environment: string; readonly password: string };

const ASK_MS_MAX = 500;

export async function startRedisServer(options: RedisServerOptions): Promise<Engine> {
  const binary = await findBinary(BINARIES.redisServer, options);
  const host = options.host ?? "127.0.0.1";
  const dataDir = resolve(options.dataDir);
  const lock = claimDataDir(dataDir);
  try {
    const port = await claimPort(options.port, host, "COROOM_REDIS_PORT");
    const config = join(dataDir, "redis-server.conf");
    writeOwnFile(config, redisConfigText({ host, port, dataDir, users: options.users }));
    const [path = binary.path, ...args] = [...(options.launcher ?? []), binary.path, config];
    return await runEngine({
      name: BINARIES.redisServer.name,
      url: `redis://${host}:${port}`,
      port,
      command: { path, args, env: binary.env, cwd: dataDir, logFile: join(dataDir, "redis-server.log") },
      lock,
      isReady: () => answersOverTcp({ host, port, send: "PING\r\n", msMax: ASK_MS_MAX }, redisIsReady),
    });
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** A server with named users refuses this request, but its refusal proves that it runs. */
export function redisIsReady(received: string): boolean {
  return received.includes("+PONG") || received.includes("-NOAUTH");
}

/** Builds the text of a local redis-server's configuration file. Another function writes the file. */
type RedisConfig = {
  readonly host: string;
  readonly port: number;
  readonly dataDir: string;
  readonly users?: readonly RedisUser[] | undefined;
};

/**
 * Nobody can log in as the default user, but Redis 7 replays its append-only file as this user. Without permissions it
 * would refuse every transaction in the file at its start, and boards would be lost.
 */
export const REDIS_DEFAULT_USER = "user default off ~* &* +@all";

/** Data is appended to a file and never evicted: a board is rebuilt from the log only if that file is lost. */
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
    ...(config.users === undefined ? [] : [REDIS_DEFAULT_USER, ...config.users.map(userLine)]),
    "",
  ].join("\n");
}

function userLine({ role, environment, password }: RedisUser): string {
  return redisUserLine(role, environment, `#${createHash("sha256").update(password).digest("hex")}`);
}

/** `credential`: `>` and a password, or `#` and its SHA-256. */
export function redisUserLine(role: RedisRole, environment: string, credential: string): string {
  const { keys, commands } = redisPermissions(role, environment);
  return ["user", role, "on", credential, ...keys.map((key) => `~${key}`), "-@all", ...commands.map((command) => `+${command}`)].join(" ");
}
