/**
 * The users of `deploy/` with a real nats-server and redis-server. Passwords come from the environment, and only these
 * users can connect.
 */

import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse } from "yaml";

import { closeNats, connectNats } from "../shared/io/nats.ts";
import { withUser } from "../cli/local-addresses.ts";
import { newSecretsText } from "../cli/users.ts";
import { BINARIES } from "../engines/binaries.ts";
import { type ChildProcessHandle, spawnChild } from "../engines/child.ts";
import { findBinary } from "../engines/find.ts";
import { claimFreePorts } from "../engines/free-port.ts";
import { eventually } from "../test/system/eventually.ts";

const secrets = Object.fromEntries([...newSecretsText().matchAll(/^(\w+)=(.*)$/gm)].map(([, name, value]) => [name!, value!]));
const HOST = "127.0.0.1";
let folder: string;
const children: ChildProcessHandle[] = [];

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "coroom-users-"));
});
afterAll(async () => {
  await Promise.all(children.map((child) => child.stop(10_000)));
  rmSync(folder, { recursive: true });
});

test("[DEP15] a role connects to nats-server with the password that coroom secrets made for it", async () => {
  const [port, monitorPort] = await claimFreePorts(2, HOST);
  const conf = readFileSync("deploy/nats/nats.conf", "utf8");
  const alone = conf
    .replace(/cluster \{[^}]*\}/, "")
    .replace("0.0.0.0:4222", `${HOST}:${port}`)
    .replace("0.0.0.0:8222", `${HOST}:${monitorPort}`)
    .replace("/data", join(folder, "data"));
  writeFileSync(join(folder, "nats.conf"), alone);
  cpSync("deploy/nats/users.conf", join(folder, "users.conf"));
  const { path, env } = await findBinary(BINARIES.natsServer);
  const given = { ...env, ...secrets, NATS_NAME: "nats-1", NATS_ZONE: "az:1", NATS_SYNC_INTERVAL: "120s" };
  children.push(
    await spawnChild({ path, args: ["-c", join(folder, "nats.conf")], env: given, cwd: folder, logFile: join(folder, "nats.log") }),
  );
  const url = `nats://${HOST}:${port}`;
  await eventually("nats-server answers", async () => {
    try {
      await closeNats(
        await connectNats({ servers: withUser(url, "room-server", secrets["NATS_ROOM_SERVER_PASSWORD"]!), name: "test", timeoutMs: 1_000 }),
      );
      return true;
    } catch {
      return false; // nats-server does not listen yet.
    }
  });
  for (const servers of [url, withUser(url, "room-server", secrets["NATS_GATEWAY_PASSWORD"]!)])
    await expect(connectNats({ servers, name: "test" })).rejects.toThrow(/rejects the credentials/);
});

test("[DEP16] redis-server accepts the command of the compose file, and only the users that it names", async () => {
  const { services } = parse(readFileSync("deploy/compose.yaml", "utf8"), { merge: true }) as {
    services: { redis: { command: string[] } };
  };
  const [port] = await claimFreePorts(1, HOST);
  const args = services.redis.command
    .slice(1)
    .map((argument) => argument.replace("/data", folder).replace(/\$\{(\w+)(?::\?[^}]*)?\}/, (_, name: string) => secrets[name]!));
  const { path, env } = await findBinary(BINARIES.redisServer);
  children.push(
    await spawnChild({ path, args: [...args, `--port ${port}`, `--bind ${HOST}`], env, cwd: folder, logFile: join(folder, "redis.log") }),
  );
  const ask = async (username: string, password: string, ...[command, ...rest]: [string, ...string[]]): Promise<string> => {
    const client = new Redis({ host: HOST, port: port!, username, password, lazyConnect: true, retryStrategy: () => null });
    client.on("error", () => {}); // The call below reports it.
    try {
      await client.connect();
      return String(await client.call(command, ...rest));
    } catch (error) {
      return String(error);
    } finally {
      client.disconnect();
    }
  };
  const password = secrets["REDIS_LEADERBOARD_PASSWORD"]!;
  await eventually("redis-server answers", async () => (await ask("leaderboard", password, "ping")) === "PONG");
  expect(await ask("leaderboard", password, "hset", "production:board:{a.b}:names", "ann", "Ann")).toMatch(/^[01]$/);
  expect(await ask("leaderboard", password, "hgetall", "production:sanctions")).toMatch(/NOPERM/);
  expect(await ask("gateway", secrets["REDIS_GATEWAY_PASSWORD"]!, "ping")).toBe("PONG");
  expect(await ask("gateway", password, "ping")).not.toBe("PONG");
  expect(await ask("default", "", "ping")).not.toBe("PONG");
});
