/** Properties of objects in PostgreSQL beyond the contract of object stores, on a real server. */

import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import pg from "pg";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test, vi } from "vitest";

import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import { CERTIFICATE, KEY, writeCertificate } from "../../test/contract/certificate.ts";
import { type PostgresCase, postgresCase } from "../../test/contract/object-store-cases.ts";
import { TcpProxy } from "../../test/contract/tcp-proxy.ts";
import { documentServiceMetrics } from "../metrics.ts";
import { connectPostgres, type PostgresUse } from "./postgres-connection.ts";
import { postgresObjects } from "./postgres-objects.ts";
import { watchStore } from "./watch-store.ts";

const PART_BYTES = 4 * 1024 ** 2;
const bytesOf = (text: string) => new TextEncoder().encode(text);

let running: PostgresCase;
let folder: string;
let certFile: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "coroom-certificate-"));
  certFile = writeCertificate(folder).certFile;
  // No write of a session reaches the disk within the test unless the store demands it.
  const settings = { synchronous_commit: "off", wal_writer_delay: "10s", unix_socket_directories: tmpdir() };
  running = await postgresCase({ settings, tls: { certificate: CERTIFICATE, key: KEY } });
});
afterAll(async () => {
  await running?.stop();
  rmSync(folder, { recursive: true });
});

/** The address of the server with other parts. */
function urlWith(parts: { user?: string; password?: string; database?: string; port?: number; parameters?: string }): string {
  const url = new URL(running.server.url);
  if (parts.user !== undefined) url.username = parts.user;
  if (parts.password !== undefined) url.password = parts.password;
  if (parts.database !== undefined) url.pathname = `/${parts.database}`;
  if (parts.port !== undefined) url.port = String(parts.port);
  url.search = parts.parameters ?? "";
  return url.href;
}

test("[PGO1] services that start at once in an empty database create the table together", async () => {
  await running.queryIn("postgres", "CREATE DATABASE fresh");
  const url = urlWith({ database: "fresh" });
  const stores = await Promise.all(
    Array.from({ length: 8 }, async (_, service) => postgresObjects(await connectPostgres(url), `service${service}`)),
  );
  await Promise.all(stores.map((store, service) => store.write("acme.a/1", bytesOf(`of ${service}`))));
  const read = await Promise.all(stores.map((store) => store.read("acme.a/1")));
  expect(read.map((bytes) => new TextDecoder().decode(bytes))).toEqual(stores.map((_, service) => `of ${service}`)); // Buckets are separate.
  expect(await stores[0]!.list()).toEqual(new Map([["acme.a/1", 4]]));
});

test("[PGO2] a write and a removal survive a crash although the server confirms other transactions before they are on disk", async () => {
  const store = await running.open();
  await store.write("acme.durable/1", bytesOf("kept"));
  await running.server.crash();
  expect(await store.read("acme.durable/1")).toEqual(bytesOf("kept")); // The store connects again by itself.
  await store.remove("acme.durable/1");
  await running.server.crash();
  expect(await store.read("acme.durable/1")).toBeUndefined();
});

test("[PGO3] while the server is down or its connection is cut, an error names the object and the server; later the store works again", async () => {
  const proxy = await TcpProxy.to(running.server.url);
  const { host } = new URL(proxy.url);
  const store = postgresObjects(await connectPostgres(urlWith({ port: Number(host.split(":")[1]) })), "away");
  const failed = { message: `writing acme.away/1 failed: check that PostgreSQL at ${host}/postgres is reachable` };
  await running.server.crash(() => expect(store.write("acme.away/1", bytesOf("lost"))).rejects.toMatchObject(failed));
  await store.write("acme.away/1", bytesOf("written"));
  proxy.hold();
  const writing = store.write("acme.away/1", bytesOf("cut off")).catch((error: unknown) => error);
  proxy.cut();
  proxy.release();
  expect(await writing).toMatchObject(failed);
  await store.write("acme.away/2", bytesOf("written"));
  expect((await store.list()).size).toBe(2);
  await proxy.close();
});

test.each([2 * PART_BYTES - 1, 2 * PART_BYTES, 2 * PART_BYTES + 1])(
  "[PGO4] an object of %i bytes is read back in parts",
  async (length) => {
    const [store, bytes] = [await running.open(), new Uint8Array(length)];
    bytes.forEach((_, index) => (bytes[index] = index % 251));
    await store.write("acme.parts/1", bytes);
    expect(Buffer.compare((await store.read("acme.parts/1"))!, bytes)).toBe(0);
  },
);

test("[PGO5] an object above the limit of one value is refused with its size, before it is sent", async () => {
  const asked: unknown[] = [];
  const ask = (...question: unknown[]) => Promise.resolve(void asked.push(question) as unknown as []);
  const tooLarge = { byteLength: 1_072_693_249 } as Uint8Array;
  await expect(postgresObjects({ ask }, "any").write("acme.large/1", tooLarge)).rejects.toThrow(/acme.large\/1 has 1072693249 bytes/);
  expect(asked).toEqual([]);
});

test("[PGO6] a connection over TLS is encrypted, and its certificate is checked", async () => {
  for (const parameters of [
    `sslmode=verify-full&sslrootcert=${certFile}`,
    `sslmode=verify-ca&sslrootcert=${certFile}`,
    "sslmode=no-verify",
  ]) {
    const { ask } = await connectPostgres(urlWith({ parameters }));
    expect(await ask("looking", "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()", [])).toEqual([[true]]);
  }
  const { ask } = await connectPostgres(urlWith({}));
  expect(await ask("looking", "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()", [])).toEqual([[false]]);
});

test.each<[string, () => string | Promise<string>, RegExp]>([
  [
    "with another password",
    () => urlWith({ password: "hidden" }),
    /refuses the password of the user coroom: correct it in COROOM_POSTGRES_URL/,
  ],
  [
    "that asks for a password, which the setting lacks",
    () => urlWith({ password: "" }),
    /password .* If it asks for a password, write it into COROOM_POSTGRES_URL/,
  ],
  ["without the database", () => urlWith({ database: "absent" }), /has no database absent. Create it \(CREATE DATABASE "absent"/],
  ["that does not run", () => urlWith({ port: 9 }), /does not answer .*: start it, or set COROOM_POSTGRES_URL/],
  ["with a certificate that nobody trusts", () => urlWith({ parameters: "sslmode=require" }), /not trusted .*&sslrootcert=FILE/],
  ["with an authority that cannot be read", () => urlWith({ parameters: "sslmode=require&sslrootcert=/nope" }), /\/nope of sslrootcert/],
  [
    "whose user may not create a table",
    async () => {
      await running.queryIn("postgres", "CREATE USER visitor PASSWORD 'hidden'");
      await running.queryIn("postgres", "CREATE DATABASE closed");
      await running.queryIn("closed", "REVOKE CREATE ON SCHEMA public FROM public");
      return urlWith({ user: "visitor", password: "hidden", database: "closed" });
    },
    /the user visitor create the table coroom_objects .*GRANT USAGE, CREATE ON SCHEMA public TO "visitor"/,
  ],
  [
    "whose user has a search_path without a schema",
    async () => {
      await running.queryIn("postgres", "CREATE USER lost PASSWORD 'hidden'; ALTER USER lost SET search_path = absent");
      return urlWith({ user: "lost", password: "hidden" });
    },
    /search_path of "lost" begins with another schema, create it and name it there/,
  ],
  [
    "whose user may not use the table",
    async () => {
      await running.open(); // The superuser owns the table.
      await running.queryIn("postgres", "CREATE USER reader PASSWORD 'hidden'; GRANT SELECT ON coroom_objects TO reader");
      return urlWith({ user: "reader", password: "hidden" });
    },
    /GRANT SELECT, INSERT, UPDATE, DELETE ON coroom_objects TO "reader"/,
  ],
])("[PGO7] a server %s stops the start, and the error names the remedy but no password", async (_, urlOf, remedy) => {
  const url = await urlOf();
  const error = (await connectPostgres(url).catch((cause: unknown) => cause)) as Error;
  expect(error).toMatchObject({ name: "StartError", message: expect.stringMatching(remedy) });
  const { password } = new URL(url);
  if (password !== "") expect(`${error.message} ${(error.cause as Error | undefined)?.message}`).not.toContain(password);
});

test("[PGO8] a user with the four privileges on the table needs no others", async () => {
  await running.open();
  await running.queryIn(
    "postgres",
    "CREATE USER writer PASSWORD 'hidden'; REVOKE CREATE ON SCHEMA public FROM public; GRANT SELECT, INSERT, UPDATE, DELETE ON coroom_objects TO writer",
  );
  const store = postgresObjects(await connectPostgres(urlWith({ user: "writer", password: "hidden" })), "granted");
  await store.write("acme.a/1", bytesOf("one"));
  await store.write("acme.a/1", bytesOf("two"));
  expect([await store.read("acme.a/1"), await store.list()]).toEqual([bytesOf("two"), new Map([["acme.a/1", 3]])]);
  await store.remove("acme.a/1");
});

test("[PGO9] the folder of a Unix socket may be the host", async () => {
  const { password, port } = new URL(running.server.url);
  const { ask } = await connectPostgres(`postgres://coroom:${password}@${encodeURIComponent(tmpdir())}:${port}/postgres`);
  expect(await ask("looking", "SELECT inet_server_addr()", [])).toEqual([[null]]); // No address: not over TCP.
});

test("[PGO10] the numbers of running and waiting statements are reported while all connections are in use", async () => {
  const uses: PostgresUse[] = [];
  const { ask } = await connectPostgres(urlWith({}), (use) => uses.push({ ...use }));
  await Promise.all(Array.from({ length: 11 }, () => ask("reading", "SELECT 1", [])));
  expect(Math.max(...uses.map(({ running: executed }) => executed))).toBe(8);
  expect(Math.max(...uses.map(({ waiting }) => waiting))).toBe(3);
  expect(uses.at(-1)).toEqual({ running: 0, waiting: 0 });
  await expect(ask("failing", "SELECT nothing", [])).rejects.toThrow("refuses with 42703");
  expect(uses.at(-1)).toEqual({ running: 0, waiting: 0 });
});

test("[PGO11] a statement that waits too long for a free connection fails with this reason, not with an unreachable server", async () => {
  const { ask } = await connectPostgres(urlWith({}));
  const holder = new pg.Client(urlWith({})); // A pool would end the idle connection, and with it the lock, within the limit.
  await holder.connect();
  await holder.query("SELECT pg_advisory_lock(1)");
  const held = Array.from({ length: 8 }, () => ask("waiting for the lock", "SELECT pg_advisory_xact_lock(1)", []));
  await expect(ask("writing acme.a/1", "SELECT 1", [])).rejects.toThrow(
    /^writing acme.a\/1 failed: none of the 8 connections to PostgreSQL at .* was free for 10 s\. Find the statements/,
  );
  await holder.end();
  await Promise.all(held);
  expect(await ask("reading", "SELECT 1", [])).toEqual([[1]]);
});

test("[PGO12] a statement whose connection the server ends fails as with an unreachable server, not as a refusal", async () => {
  const { ask } = await connectPostgres(urlWith({}));
  const writing = ask("writing acme.a/1", "SELECT pg_sleep(60) /* ended */", []).catch((error: unknown) => error);
  const end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%/* ended */' AND pid <> pg_backend_pid()";
  await vi.waitFor(async () => expect(await ask("ending", end, [])).toEqual([[true]]));
  expect(await writing).toMatchObject({
    message: expect.stringMatching(/^writing acme.a\/1 failed: check that PostgreSQL at .* is reachable$/),
  });
  expect(await ask("reading", "SELECT 1", [])).toEqual([[1]]);
});

test("[PGO13] a server that starts or stops is told from one that refuses the start", async () => {
  const answers = createServer((socket) => socket.once("data", () => socket.end(startingUp())));
  await once(answers.listen(0, "127.0.0.1"), "listening");
  const { port } = answers.address() as AddressInfo;
  await expect(connectPostgres(urlWith({ port }))).rejects.toThrow(
    /is starting or stopping \(the database system is starting up\): start Coroom again when it accepts connections$/,
  );
  answers.close();
});

test("[PGO14] a limit of the user's connections, and a missing privilege, name their remedy at the start and later", async () => {
  await running.open();
  await running.queryIn(
    "postgres",
    "CREATE USER limited PASSWORD 'hidden'; GRANT SELECT, INSERT, UPDATE, DELETE ON coroom_objects TO limited",
  );
  const url = urlWith({ user: "limited", password: "hidden" });
  const store = postgresObjects(await connectPostgres(url), "limited");
  await running.queryIn("postgres", "ALTER ROLE limited CONNECTION LIMIT 0");
  const limit = /has no free connection \(too many connections for role "limited"\)\..*CONNECTION LIMIT of the role/;
  await expect(connectPostgres(url)).rejects.toThrow(limit);
  await running.queryIn("postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'limited'");
  await vi.waitFor(() => expect(store.write("acme.a/1", bytesOf("one"))).rejects.toThrow(limit));
  await running.queryIn("postgres", "ALTER ROLE limited CONNECTION LIMIT -1; REVOKE INSERT ON coroom_objects FROM limited");
  await expect(store.write("acme.a/1", bytesOf("one"))).rejects.toThrow(
    /acme\.a\/1 failed: .*GRANT SELECT, INSERT, UPDATE, DELETE ON coroom_objects TO "limited"$/,
  );
});

/** What PostgreSQL sends while it recovers after a crash: an ErrorResponse with severity, code and message. */
function startingUp(): Buffer {
  const fields = Buffer.from("SFATAL\0C57P03\0Mthe database system is starting up\0\0");
  const head = Buffer.alloc(5);
  head.write("E");
  head.writeInt32BE(4 + fields.length, 1);
  return Buffer.concat([head, fields]);
}

test("[PGO15] while the server is down, refuses the user or lacks the table, the watch names the remedy, and the metric is 1", async () => {
  await running.open();
  await running.queryIn("postgres", "CREATE DATABASE watched");
  await running.queryIn("postgres", "CREATE USER watcher PASSWORD 'hidden'");
  await connectPostgres(urlWith({ database: "watched" }));
  const grant = "GRANT SELECT, INSERT, UPDATE, DELETE ON coroom_objects TO watcher";
  await running.queryIn("watched", grant);
  await running.queryIn("watched", "CHECKPOINT"); // The crash below would take them back.
  const [clock, metrics] = [new FakeClock(), documentServiceMetrics(new Registry())];
  const url = urlWith({ database: "watched", user: "watcher", password: "hidden" });
  const watch = watchStore({ snapshotsStore: "postgres", postgresUrl: url }, { clock, log: SILENT_LOG, metrics });
  const found = async (remedy: RegExp | undefined): Promise<void> =>
    vi.waitFor(
      async () => {
        clock.turn(5_000);
        if (remedy === undefined) expect(watch.obstacle()).toBeUndefined();
        else expect(watch.obstacle()).toMatch(remedy);
        expect((await metrics.storeUnusable.get()).values[0]!.value).toBe(remedy === undefined ? 0 : 1);
      },
      { timeout: 20_000, interval: 100 },
    );
  expect(watch.obstacle()).toBeUndefined();
  await running.server.crash(() => found(/does not answer \(.*\): start it/));
  await found(undefined);
  await running.queryIn("watched", "ALTER ROLE watcher PASSWORD 'other'");
  await found(/refuses the password of the user watcher/);
  await running.queryIn("watched", "ALTER ROLE watcher PASSWORD 'hidden'; REVOKE INSERT ON coroom_objects FROM watcher");
  await found(/may not use the table coroom_objects .*GRANT/);
  await running.queryIn("watched", "DROP TABLE coroom_objects");
  await found(/has no table coroom_objects\. Restore it from a backup/);
  watch.stop();
});
