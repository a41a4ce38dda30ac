/**
 * The engines of a test. By default these are the programs on this machine, which `coroom start` also finds or
 * downloads. Without them, or with `COROOM_TEST_ENGINES=containers`, containers are used. COROOM_TEST_NATS_IMAGE and
 * COROOM_TEST_REDIS_IMAGE select other images.
 */

import { readFileSync } from "node:fs";

import { answersOverTcp } from "../../engines/ask.ts";
import type { Engine } from "../../engines/engine.ts";
import { EngineError } from "../../engines/engine-error.ts";
import { natsConfigText, type NatsTls, type NatsUsers } from "../../engines/nats-config.ts";
import { jetStreamAnswers, startNatsServer } from "../../engines/nats-server.ts";
import { startRedisServer, redisConfigText, redisIsReady, type RedisServerOptions } from "../../engines/redis-server.ts";

/** `dataDir`: data folder of an engine on this machine. A container has its own. */
type TestEngineOptions = { readonly dataDir: string; readonly syncAlways?: boolean };
type TestRedisOptions = TestEngineOptions & Pick<RedisServerOptions, "users" | "launcher">;
export type TestNatsOptions = TestEngineOptions & {
  readonly users?: NatsUsers;
  readonly tls?: NatsTls;
  readonly fileBytesMax?: number;
  readonly monitorPort?: number;
};

const MEMORY_BYTES_MAX = 256 * 1024 ** 2;
const FILE_BYTES_MAX = 8 * 1024 ** 3;
const ASK_MS_MAX = 500;

export function startTestNats(options: TestNatsOptions): Promise<Engine> {
  if (options.monitorPort !== undefined) return startNatsServer(options); // Containers have no monitoring.
  return ownOrContainer(
    () => startNatsServer(options),
    () => natsContainer(options),
  );
}

export function startTestRedis(options: TestRedisOptions): Promise<Engine> {
  return ownOrContainer(
    () => startRedisServer(options),
    () => redisContainer(options),
  );
}

async function ownOrContainer(own: () => Promise<Engine>, container: () => Promise<Engine>): Promise<Engine> {
  if (process.env["COROOM_TEST_ENGINES"] === "containers") return container();
  try {
    return await own();
  } catch (error) {
    if (!(error instanceof EngineError) || error.kind !== "binary-missing") throw error;
    return container().catch((cause: unknown) => {
      throw new Error(`${error.message}\nand no container engine could run it instead`, { cause });
    });
  }
}

async function natsContainer({ syncAlways = false, users, tls, fileBytesMax = FILE_BYTES_MAX }: TestNatsOptions): Promise<Engine> {
  const { runContainer } = await import("./container-engine.ts");
  const config = natsConfigText({
    serverName: "coroom-container",
    host: "0.0.0.0",
    port: 4222,
    storeDir: "/data",
    syncAlways,
    memoryBytesMax: MEMORY_BYTES_MAX,
    fileBytesMax,
    tags: [],
    users,
    tls: tls && { certFile: "/cert.pem", keyFile: "/key.pem", clientsCaFile: tls.clientsCaFile && "/clients-ca.pem" },
  });
  return runContainer({
    image: process.env["COROOM_TEST_NATS_IMAGE"] ?? "nats:2.12",
    command: ["-c", "/coroom.conf"],
    port: 4222,
    scheme: "nats",
    files: {
      "/coroom.conf": config,
      ...(tls === undefined
        ? {}
        : {
            "/cert.pem": readFileSync(tls.certFile, "utf8"),
            "/key.pem": readFileSync(tls.keyFile, "utf8"),
            ...(tls.clientsCaFile === undefined ? {} : { "/clients-ca.pem": readFileSync(tls.clientsCaFile, "utf8") }),
          }),
    },
    isReady: (port) => jetStreamAnswers(port, "127.0.0.1", users),
  });
}

async function redisContainer({ users }: TestRedisOptions): Promise<Engine> {
  const { runContainer } = await import("./container-engine.ts");
  return runContainer({
    image: process.env["COROOM_TEST_REDIS_IMAGE"] ?? "redis:7",
    command: ["redis-server", "/coroom.conf"],
    port: 6379,
    scheme: "redis",
    files: {
      "/coroom.conf": redisConfigText({ host: "0.0.0.0", port: 6379, dataDir: "/data", users }).replace(
        "protected-mode yes",
        "protected-mode no",
      ),
    },
    isReady: (port) => answersOverTcp({ host: "127.0.0.1", port, send: "PING\r\n", msMax: ASK_MS_MAX }, redisIsReady),
  });
}
