/** Real nats-server and redis-server with one user per role. Each role can do its work, and has no other permissions. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";

import { inboxOf, type NatsRole } from "../../shared/bus/permissions.ts";
import { subjectsOf } from "../../shared/bus/subjects.ts";
import { ensureLogStreams } from "../../shared/io/log-stream.ts";
import { closeNats, connectNats, type NatsConnection } from "../../shared/io/nats.ts";
import type { RedisRole } from "../../shared/settings/redis-permissions.ts";
import { withUser } from "../../cli/local-addresses.ts";
import { natsUsers, redisUsers } from "../../cli/local-engines.ts";
import type { Engine } from "../../engines/engine.ts";
import { startTestNats, startTestRedis } from "../contract/test-engines.ts";
import { SystemCluster } from "./cluster.ts";

const OURS = "ours";
const OTHERS = "others";
const TESTER = { user: "tester", password: "tester" };
const passwordOf = (role: string): string => `password of ${role}`;
const ROOM = "default.room";

let folder: string;
let nats: Engine;
let redis: Engine;
const connections: NatsConnection[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "coroom-permissions-"));
  const users = [TESTER, ...natsUsers({ environment: OURS, logPartitions: 1 }, passwordOf)];
  [nats, redis] = await Promise.all([
    startTestNats({ dataDir: join(folder, "nats"), users }),
    startTestRedis({ dataDir: join(folder, "redis"), users: redisUsers(OURS, passwordOf) }),
  ]);
  const tester = await connected(withUser(nats.url, TESTER.user, TESTER.password), "_INBOX");
  for (const environment of [OURS, OTHERS]) await ensureLogStreams(tester, subjectsOf(environment), { partitions: 1, replicas: 1 });
});
afterAll(async () => {
  await Promise.all(connections.map(closeNats));
  await Promise.all([nats.stop(), redis.stop()]);
  rmSync(folder, { recursive: true });
});

async function connected(url: string, inboxPrefix: string): Promise<NatsConnection> {
  const connection = await connectNats({ servers: url, name: "test", inboxPrefix });
  connections.push(connection);
  return connection;
}

function as(role: NatsRole): Promise<NatsConnection> {
  return connected(withUser(nats.url, role, passwordOf(role)), inboxOf(OURS, role));
}

/** The answer of nats-server to a request, or the name of the error. */
async function outcome(connection: NatsConnection, subject: string, body = ""): Promise<string> {
  try {
    return (await connection.request(subject, body, { timeout: 5_000 })).string();
  } catch (error) {
    return String(error);
  }
}

const LOG = `${OURS}_log_0`;
const REFUSED = /Permissions Violation/;

test.each<[NatsRole, readonly string[]]>([
  [
    "gateway",
    [
      `${OURS}.log.0.${ROOM}`,
      `${OURS}.edits.out.${ROOM}`,
      `$JS.API.STREAM.PURGE.${LOG}`,
      `$JS.API.STREAM.DELETE.${LOG}`,
      `$JS.API.STREAM.UPDATE.${LOG}`,
      `$JS.API.STREAM.CREATE.stolen`,
      `$JS.API.CONSUMER.CREATE.${LOG}.stolen`,
      `$JS.API.DIRECT.GET.${LOG}`,
      `$JS.API.STREAM.MSG.GET.${LOG}`,
      `$KV.${OURS}_checkpoints.${ROOM}`,
      `$KV.${OURS}_rooms.${ROOM}`,
      `${OTHERS}.owner.${ROOM}`,
      `$JS.API.STREAM.INFO.${OTHERS}_log_0`,
    ],
  ],
  ["leaderboard", [`${OURS}.log.0.${ROOM}`, `$JS.API.STREAM.PURGE.${LOG}`, `$JS.API.STREAM.UPDATE.${LOG}`, `${OURS}.owner.${ROOM}`]],
  ["placement", [`${OURS}.log.0.${ROOM}`, `$JS.API.STREAM.MSG.GET.${LOG}`, `$JS.API.STREAM.PURGE.${LOG}`, `${OURS}.orders`]],
  ["room-server", [`$KV.${OURS}_checkpoints.${ROOM}`, `$JS.API.STREAM.DELETE.${LOG}`, `$KV.${OURS}_plan.${ROOM}`, `${OURS}.orders`]],
  ["document-service", [`${OURS}.orders`, `$KV.${OURS}_rooms.${ROOM}`, `$JS.API.STREAM.MSG.GET.${OTHERS}_log_0`]],
  ["operator", [`${OTHERS}.log.0.${ROOM}`, `$JS.API.STREAM.PURGE.${OTHERS}_log_0`, `$JS.API.STREAM.DELETE.${OTHERS}_log_0`]],
])("[PRM5] nats-server refuses %s every operation that it does not need", async (role, subjects) => {
  const connection = await as(role);
  for (const subject of subjects) expect(await outcome(connection, subject), subject).toMatch(REFUSED);
});

test("[PRM6] the log accepts an append and a purge of a room server", async () => {
  const connection = await as("room-server");
  expect(await outcome(connection, `${OURS}.log.0.${ROOM}`, "bytes")).toContain(`"stream":"${LOG}"`);
  expect(await outcome(connection, `$JS.API.STREAM.PURGE.${LOG}`)).toContain('"success":true');
});

test("[PRM12] the operator takes a backup of a stream, and restores it after the loss of the stream, as the program nats does", async () => {
  await outcome(await as("room-server"), `${OURS}.log.0.${ROOM}`, "of the backup");
  const operator = await connected(withUser(nats.url, "operator", passwordOf("operator")), "_INBOX");
  const asked = async (subject: string, body: object) => JSON.parse(await outcome(operator, subject, JSON.stringify(body))) as Answer;
  type Answer = { config?: object; state?: { messages: number }; deliver_subject?: string; success?: boolean; error?: object };

  const parts: Uint8Array[] = [];
  const inbox = `_INBOX.backup`;
  const received = new Promise<void>((resolve, reject) => {
    operator.subscribe(inbox, {
      callback: (error, part) => {
        if (error !== null) reject(error);
        if (part.data.length === 0) return resolve();
        parts.push(part.data);
        if (part.reply !== undefined && part.reply !== "") operator.publish(part.reply);
      },
    });
  });
  const { config, state } = await asked(`$JS.API.STREAM.SNAPSHOT.${LOG}`, { deliver_subject: inbox });
  await received;
  expect(state?.messages).toBeGreaterThan(0);

  expect(await asked(`$JS.API.STREAM.DELETE.${LOG}`, {})).toMatchObject({ success: true });
  const { deliver_subject } = await asked(`$JS.API.STREAM.RESTORE.${LOG}`, { config, state });
  for (const part of parts) expect((await operator.request(deliver_subject!, part, { timeout: 5_000 })).string()).not.toContain("error");
  expect(JSON.parse(await outcome(operator, deliver_subject!))).toMatchObject({ state: { messages: state!.messages } });

  for (const role of ["gateway", "room-server", "document-service"] as const)
    for (const action of ["SNAPSHOT", "RESTORE"]) expect(await outcome(await as(role), `$JS.API.STREAM.${action}.${LOG}`)).toMatch(REFUSED);
  expect(await outcome(operator, `$JS.API.STREAM.SNAPSHOT.${OTHERS}_log_0`)).toMatch(REFUSED);
});

test.each<[NatsRole, string]>([
  ["gateway", `${OURS}.owner.>`],
  ["gateway", `${OTHERS}.edits.out.${ROOM}`],
  ["gateway", `${OURS}.inbox.operator.>`],
  ["leaderboard", `${OURS}.edits.out.${ROOM}`],
  ["placement", ">"],
])("[PRM7] nats-server refuses %s the subscription to %s", async (role, subject) => {
  const connection = await as(role);
  const refused = new Promise<Error | null>((resolve) => connection.subscribe(subject, { callback: resolve }));
  await connection.flush();
  expect(String(await refused)).toMatch(REFUSED);
});

test("[PRM8] a connection without the password of a role is refused", async () => {
  for (const url of [nats.url, withUser(nats.url, "gateway", "wrong")])
    await expect(connectNats({ servers: url, name: "test" })).rejects.toThrow(/rejects the credentials/);
});

test.each<[RedisRole, string, readonly (readonly string[])[]]>([
  ["gateway", "HGETALL ours:sanctions", [["hgetall", "ours:board:{default.room}:names"], ["flushall"], ["keys", "*"], ["scan", "0"]]],
  [
    "gateway",
    "HGETALL ours:usage:2026-11-28",
    [
      ["hgetall", "others:usage:2026-11-28"],
      ["del", "ours:usage:2026-11-28"],
    ],
  ],
  [
    "leaderboard",
    "HGETALL ours:board:{default.room}:names",
    [
      ["hgetall", "ours:sanctions"],
      ["hgetall", "ours:usage:2026-11-28"],
      ["hgetall", "others:board:{default.room}:names"],
      ["eval", "return redis.call('HGETALL', 'ours:sanctions')", "0"],
      ["config", "get", "*"],
      ["flushdb"],
      ["acl", "list"],
    ],
  ],
])("[PRM9] redis-server allows %s the commands that it needs (%s), and refuses others", async (role, allowed, refused) => {
  const { hostname, port } = new URL(redis.url);
  const client = new Redis({ host: hostname, port: Number(port), username: role, password: passwordOf(role) });
  try {
    const [command, ...rest] = allowed.split(" ");
    await client.call(command!, ...rest);
    for (const [name, ...args] of refused)
      await expect(client.call(name!, ...args), name).rejects.toThrow(/NOPERM|permission|can.t access/i);
  } finally {
    client.disconnect();
  }
});

test("[PRM10] the system of the tests runs under the users of its roles, and reports a role that exceeds its permissions", async () => {
  const cluster = await SystemCluster.start({ gateways: 1, roomServers: 1, leaderboards: 1 });
  const gateway = await connected(cluster.natsUrlAs("gateway"), inboxOf(cluster.environment, "gateway"));
  const before = await (await jetstreamManager(await connected(cluster.natsUrl, "_INBOX"))).streams.info("test_log_0");
  expect(await outcome(gateway, "test.log.0.default.room", "forged")).toMatch(REFUSED);
  expect(before.state.messages).toBe(0);
  await expect(cluster.stop()).rejects.toThrow(/permissions\.ts does not allow:\n.*Publish Violation.*test\.log\.0\.default\.room/);
  rmSync(cluster.folder, { recursive: true });
});
