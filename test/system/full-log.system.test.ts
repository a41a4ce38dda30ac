/**
 * A log whose storage is full, and has space again later. Either JetStream's limit is reached, or nats-server cannot
 * write to its files. For the second case, the test sets a limit of the operating system, which needs no privilege and
 * no special disk.
 */

import { execFileSync, spawnSync } from "node:child_process";

import { jetstreamManager } from "@nats-io/jetstream";
import { afterAll, beforeAll, expect, test } from "vitest";

import { connectNats, type NatsConnection } from "../../shared/io/nats.ts";
import { roomKey, type RoomId, type TenantId } from "../../shared/ids.ts";
import { claimPort } from "../../engines/free-port.ts";
import { SystemCluster } from "./cluster.ts";
import { eventually } from "./eventually.ts";
import { checkLog, readLog } from "./log-checks.ts";
import { insertion, Person } from "./person.ts";

const ROOM = "full";
const KEY = roomKey("default" as TenantId, ROOM as RoomId);
const BALLAST = { name: "ballast", subjects: ["ballast"] };

let cluster: SystemCluster;
let nats: NatsConnection;
let health: string;
beforeAll(async () => {
  const port = await claimPort(0, "127.0.0.1", "port");
  health = `http://127.0.0.1:${port}`;
  cluster = await SystemCluster.start({
    gateways: 1,
    roomServers: 1,
    fileBytesMax: 64 * 1024 ** 2,
    roomServerSettings: [{ HEALTH_PORT: String(port) }],
  });
  nats = await connectNats({ servers: cluster.natsUrl, name: "full-log" });
});
afterAll(async () => {
  await nats?.close();
  await cluster?.stop();
});

async function fill(): Promise<void> {
  await (await jetstreamManager(nats)).streams.add(BALLAST);
  for (const bytes of [500_000, 1_000]) {
    for (;;) {
      const answer = await nats.request("ballast", new Uint8Array(bytes), { timeout: 10_000 });
      if (answer.string().includes('"error"')) break;
    }
  }
}

async function freeSpace(): Promise<void> {
  await (await jetstreamManager(nats)).streams.delete(BALLAST.name);
}

const readiness = async () => {
  const answer = await fetch(`${health}/readyz`);
  return `${answer.status} ${(await answer.text()).trim()}`;
};
const metric = async () => /^coroom_room_server_log_full (\d)$/m.exec(await (await fetch(`${health}/metrics`)).text())?.[1];
const write = async (room: string) =>
  fetch(`${cluster.gateways[0]!.httpUrl}/v1/rooms/${room}/edits`, {
    method: "POST",
    headers: { "authorization": `Bearer ${await cluster.token(room, "backend")}`, "content-type": "application/octet-stream" },
    body: new Blob([new Uint8Array(insertion("over HTTP "))]),
  });

test("[LFUL1] while the storage of the log is full, edits are refused at once and it is reported; nothing acknowledged is lost", async () => {
  const ada = await Person.enter(cluster, cluster.gateways[0]!, ROOM, "ada", { merging: true });
  ada.type(insertion("before "));
  await ada.untilSaved();
  expect([await readiness(), await metric()]).toEqual(["200 ready", "0"]);

  await fill();
  ada.type(insertion("waits "));
  await eventually("the room refuses edits", () => ada.room.saving === "refusing");
  expect((await write(ROOM)).status).toBe(503);
  expect([await readiness(), await metric()]).toEqual([
    expect.stringMatching(/^503 the storage of the log is full\. Free disk space/),
    "1",
  ]);
  const reports = cluster.roomServers[0]!.printed().split("the storage of the log is full").length - 1;
  expect(reports, "logged once").toBe(1);
  expect(ada.room.saved).toBe(false);

  await freeSpace();
  await ada.untilSaved();
  await eventually("the room accepts edits", () => ada.room.saving === "saved");
  expect((await write(ROOM)).status).toBe(200);
  expect([await readiness(), await metric()]).toEqual(["200 ready", "0"]);
  for (const words of ["before ", "waits "]) expect(ada.text).toContain(words);
  expect(checkLog(await readLog(cluster.natsUrl, cluster.environment, KEY)).length).toBe(3);
  expect([...ada.disorders, ...ada.errors]).toEqual([]);
  ada.leave();
});

test("[LFUL2] a room server with edits that the full log refuses stops by itself, and the edits reach the log afterwards", async () => {
  const bob = await Person.enter(cluster, cluster.gateways[0]!, "stopping", "bob", { merging: true });
  bob.type(insertion("before "));
  await bob.untilSaved();
  await fill();
  bob.type(insertion("waits "));
  await eventually("the room refuses edits", () => bob.room.saving === "refusing");
  const server = cluster.roomServers[0]!;
  server.signal("SIGTERM");
  expect(await server.exited).toEqual({ code: 0, signal: null });
  await freeSpace();
  await server.startAgain();
  await bob.untilSaved();
  expect(bob.text).toContain("waits ");
  expect([...bob.disorders, ...bob.errors]).toEqual([]);
  bob.leave();
});

test("[LFUL4] a log at COROOM_LOG_BYTES_MAX refuses edits and reports it, and has space again once snapshots cover it", async () => {
  const port = await claimPort(0, "127.0.0.1", "port");
  const limited = await SystemCluster.start({
    gateways: 1,
    roomServers: 1,
    settings: {
      LOG_BYTES_MAX: "2000000",
      SNAPSHOT_AGE_MS_MAX: "10000",
      SNAPSHOT_BYTES_MAX: "100000000",
      REPLAY_WINDOW_MS: "2000",
      HISTORY_SEGMENT_MS_MIN: "500",
    },
    roomServerSettings: [{ HEALTH_PORT: String(port) }],
  });
  const ready = async () => (await (await fetch(`http://127.0.0.1:${port}/readyz`)).text()).trim();
  const dan = await Person.enter(limited, limited.gateways[0]!, ROOM, "dan", { merging: true });
  for (let edit = 0; edit < 8; edit++) dan.type(insertion("x".repeat(400_000)));
  await eventually("the room refuses edits", () => dan.room.saving === "refusing");
  expect(await ready()).toMatch(/^the storage of the log is full\. Free disk space/);
  expect(limited.roomServers[0]!.printed()).toContain('"kind":"log_storage","state":"full"');
  await dan.untilSaved();
  expect(await ready()).toBe("ready");
  expect(dan.text.length).toBe(8 * 400_000);
  expect([...dan.disorders, ...dan.errors]).toEqual([]);
  dan.leave();
  await limited.stop();
});

/** Maximum size of a file that the process may write; undefined: no limit. */
function limitFiles(pid: number, bytes: number | undefined): void {
  execFileSync("prlimit", ["--pid", String(pid), `--fsize=${bytes ?? "unlimited"}:unlimited`]);
}

const canLimitFiles = spawnSync("prlimit", ["--version"]).status === 0 && process.env["COROOM_TEST_ENGINES"] !== "containers";

test.skipIf(!canLimitFiles)(
  "[LFUL3] a nats-server that cannot write does not answer: edits are refused and it is reported, at the gateway too (needs prlimit)",
  async () => {
    const cleo = await Person.enter(cluster, cluster.gateways[0]!, "unwritable", "cleo", { merging: true });
    cleo.type(insertion("before "));
    await cleo.untilSaved();
    const gatewayReadiness = async () => (await (await fetch(`${cluster.gateways[0]!.httpUrl}/readyz`)).text()).trim();
    expect([await readiness(), await gatewayReadiness()]).toEqual(["200 ready", "ready"]);

    const engine = cluster.natsServers[0]!;
    limitFiles(engine.pid, 1);
    cleo.type(insertion("waits "));
    await eventually("the room refuses edits", () => cleo.room.saving === "refusing");
    const refused = await write("unwritable");
    expect([refused.status, await refused.json()]).toMatchObject([503, { error: "log-stalled" }]);
    expect([await readiness(), await metric()]).toEqual([
      expect.stringMatching(/^503 the log stores no records: the disk of a nats-server is full or broken\. Free space/),
      "1",
    ]);
    await eventually("the gateway reports it", async () => (await gatewayReadiness()).startsWith("the log stores no edits"));
    expect(cluster.roomServers[0]!.printed()).toContain('"kind":"log_storage","state":"broken"');

    limitFiles(engine.pid, undefined);
    await engine.restart(); // nats-server stores nothing in a stream whose file failed.
    await cleo.untilSaved();
    await eventually("the room accepts edits", () => cleo.room.saving === "saved");
    expect((await write("unwritable")).status).toBe(200);
    await eventually("everything is ready", async () => (await readiness()) === "200 ready" && (await gatewayReadiness()) === "ready");
    expect(cleo.text).toContain("waits ");
    expect([...cleo.disorders, ...cleo.errors]).toEqual([]);
    cleo.leave();
  },
);
