/** What docs/OPERATIONS.md ("Changing a password of NATS, Redis or PostgreSQL") expects of real servers. */

import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { jetstreamManager } from "@nats-io/jetstream";
import { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";

import { withUser } from "../../cli/local-addresses.ts";
import { natsUsers, redisUsers } from "../../cli/local-engines.ts";
import { claimPort } from "../../engines/free-port.ts";
import { natsUserLines, type NatsUsers } from "../../engines/nats-config.ts";
import { startNatsServer } from "../../engines/nats-server.ts";
import { startRedisServer } from "../../engines/redis-server.ts";
import { inboxOf } from "../../shared/bus/permissions.ts";
import { closeNats, connectNats, type NatsConnection } from "../../shared/io/nats.ts";
import { eventually } from "../system/eventually.ts";

const ENVIRONMENT = "passwords";
const FORMER = "the former password";
const NEW = "the new password";

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "coroom-passwords-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

test("[PWCH1] nats-server gets a second user for a role without closing a connection, and closes those of a user that is removed", async () => {
  const folder = newFolder();
  const users = natsUsers({ environment: ENVIRONMENT, logPartitions: 1 }, (): string => FORMER);
  const monitorPort = await claimPort(undefined, "127.0.0.1", "port");
  const nats = await startNatsServer({ dataDir: folder, users, monitorPort });
  onTestFinished(() => nats.stop());
  const as = async (user: string, password: string): Promise<NatsConnection> => {
    const servers = withUser(nats.url, user, password);
    const connection = await connectNats({ servers, name: user, inboxPrefix: inboxOf(ENVIRONMENT, "gateway") });
    onTestFinished(() => closeNats(connection));
    return connection;
  };
  const breaksOf = (connection: NatsConnection): string[] => {
    const breaks: string[] = [];
    void (async () => {
      for await (const { type } of connection.status()) if (type === "disconnect") breaks.push(type);
    })();
    return breaks;
  };
  const config = join(folder, "nats-server.conf");
  const withUsers = (text: string, listed: NatsUsers): string =>
    text.replace(/^authorization \{[^]*?^\}$/m, natsUserLines(listed).join("\n"));
  const reload = async (text: string, sentence: string): Promise<void> => {
    const count = (): number => readFileSync(join(folder, "nats-server.log"), "utf8").split(sentence).length;
    const before = count();
    writeFileSync(config, text);
    nats.kill("SIGHUP");
    await eventually(`nats-server logs: ${sentence}`, () => count() > before);
  };
  const text = readFileSync(config, "utf8");
  const others = users.filter(({ user }) => user !== "gateway");
  const gateway = users.find(({ user }) => user === "gateway")!;
  const second = { ...gateway, user: "gateway-2", password: NEW };
  const former = await as("gateway", FORMER);
  const breaks = breaksOf(former);

  const unknown = withUsers(text, [...users, second]).replace(JSON.stringify(NEW), "$NATS_GATEWAY_2_PASSWORD");
  await reload(unknown, "Failed to reload server configuration");
  await reload(withUsers(text, [...users, second]), "Reloaded server configuration");
  const replacing = await as("gateway-2", NEW);
  await (await jetstreamManager(replacing)).getAccountInfo();
  await former.flush();
  const loggedIn = async (): Promise<string[]> => {
    const answer = await fetch(`http://127.0.0.1:${monitorPort}/connz?auth=1`);
    const { connections } = (await answer.json()) as { connections: { authorized_user?: string }[] };
    // A connection that has not logged in has no user: the client of the former user tries again.
    return [...new Set(connections.flatMap((each) => each.authorized_user ?? []))].sort();
  };
  expect([breaks, await loggedIn()]).toEqual([[], ["gateway", "gateway-2"]]);

  const kept = breaksOf(replacing);
  await reload(withUsers(text, [...others, second]), "Reloaded server configuration");
  await eventually("the connection of the former user is closed", () => breaks.length > 0);
  await replacing.flush();
  expect([kept, await loggedIn()]).toEqual([[], ["gateway-2"]]);
});

test("[PWCH2] Redis gets and loses a password of a user without closing a connection", async () => {
  const folder = newFolder();
  const redis = await startRedisServer({ dataDir: folder, users: redisUsers(ENVIRONMENT, () => FORMER) });
  onTestFinished(() => redis.stop());
  appendFileSync(join(folder, "redis-server.conf"), "user administrator on >administrator ~* &* +@all\n");
  await redis.restart();
  const closes: string[] = [];
  const as = (user: string, password: string): Redis => {
    const client = new Redis(withUser(redis.url, user, password), {
      retryStrategy: () => null,
      lazyConnect: true,
      maxRetriesPerRequest: 0,
    });
    client.on("close", () => closes.push(`${user}: ${password}`)).on("error", () => {});
    onTestFinished(() => client.disconnect());
    return client;
  };
  const administrator = as("administrator", "administrator");
  const former = as("gateway", FORMER);
  await former.ping();
  await administrator.call("ACL", "SETUSER", "gateway", `>${NEW}`);
  const replacing = as("gateway", NEW);
  expect([await former.ping(), await replacing.ping(), await as("gateway", FORMER).ping()]).toEqual(["PONG", "PONG", "PONG"]);
  await administrator.call("ACL", "SETUSER", "gateway", `<${FORMER}`);
  expect([await former.ping(), await replacing.ping(), closes]).toEqual(["PONG", "PONG", []]);
  await expect(as("gateway", FORMER).ping()).rejects.toThrow();
});
