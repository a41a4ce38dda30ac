/** A probe of real processes: its measurements without and during failures. */

import { Registry } from "prom-client";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import * as Y from "yjs";

import { roomKey, type RoomId, type TenantId } from "../shared/ids.ts";
import type { Running } from "../shared/process/lifecycle.ts";
import { readSettings } from "../shared/settings/settings.ts";
import { SILENT_LOG } from "../shared/testing/silent-log.ts";
import { CLOSE } from "../shared/wire/close-codes.ts";
import { CoroomProvider } from "../client/index.ts";
import { SystemCluster } from "../test/system/cluster.ts";
import { eventually } from "../test/system/eventually.ts";
import { ownerOf } from "../test/system/owner.ts";
import { probeSettings } from "./config.ts";
import { startProbe } from "./main.ts";
import { PROBE_ROOM_KINDS, type ProbeRoomKind } from "./plan.ts";

const TENANT = "coroom-probe";

let cluster: SystemCluster;
let registry: Registry;
let probe: Running;

beforeAll(async () => {
  cluster = await SystemCluster.start({ gateways: 2, roomServers: 2, settings: { PING_INTERVAL_MS: "500" } });
});
beforeEach(async () => {
  registry = new Registry();
  const flags = { probeGatewayUrls: cluster.gateways.map(({ url }) => url).join(","), probeReconnectMs: "1000" };
  probe = await startProbe(
    { ...readSettings(probeSettings, { flags, env: {} }), jwtSecret: cluster.internalSecret, jwtIssuer: "", jwtAudience: "" },
    { log: SILENT_LOG, registry },
  );
  await eventually("everybody is in their room", isComplete);
});
afterEach(async () => {
  await probe.stop();
});
afterAll(() => cluster?.stop());

type Value = { readonly metricName?: string; readonly labels: Readonly<Record<string, string | number>>; readonly value: number };

async function values(name: string): Promise<readonly Value[]> {
  return (await registry.getSingleMetric(name)!.get()).values as Value[];
}

/** The sum over all kinds of rooms. */
async function total(name: string): Promise<number> {
  return (await values(name)).reduce((sum, { value }) => sum + value, 0);
}

/** The count of a histogram. */
async function count(name: string, room: ProbeRoomKind): Promise<number> {
  return (await values(name)).find(({ metricName, labels }) => metricName === `${name}_count` && labels["room"] === room)?.value ?? 0;
}

/** How many values exceeded one of a histogram's bounds, in seconds. */
async function countAbove(name: string, room: ProbeRoomKind, bound: number): Promise<number> {
  const within = (await values(name)).find(({ labels }) => labels["room"] === room && labels["le"] === bound)?.value ?? 0;
  return (await count(name, room)) - within;
}

/** Without the visitors, which reconnect regularly. */
async function isComplete(): Promise<boolean> {
  return (await total("coroom_probe_away_participants")) <= PROBE_ROOM_KINDS.length;
}

async function nothingIsLost(): Promise<void> {
  expect([
    await total("coroom_probe_edits_lost_total"),
    await total("coroom_probe_rolled_back_total"),
    await total("coroom_probe_refused_total"),
  ]).toEqual([0, 0, 0]);
}

test("[PSY1] the probe sees edits and presence arrive in rooms of every kind, and measures connection times", async () => {
  const measured = [
    "coroom_probe_propagation_seconds",
    "coroom_probe_ack_seconds",
    "coroom_probe_presence_seconds",
    "coroom_probe_connection_round_trip_seconds",
    "coroom_probe_first_message_seconds",
    "coroom_probe_reconnect_seconds",
  ];
  for (const name of measured)
    for (const room of PROBE_ROOM_KINDS)
      await eventually(
        `${name} of ${room} rooms`,
        async () => (await count(name, room)) >= (name === "coroom_probe_reconnect_seconds" ? 1 : 3),
      );
  await eventually("many see each edit of a large room", async () => (await count("coroom_probe_propagation_seconds", "large")) > 50);
  await nothingIsLost();
});

test("[PSY2] a probed document is an ordinary document, and stays small", async () => {
  await eventually("many edits were made", async () => (await count("coroom_probe_ack_seconds", "edit_heavy")) >= 40);
  const doc = new Y.Doc();
  const reader = new CoroomProvider({
    url: cluster.gateways[0]!.url,
    room: "probe-edit-heavy-1",
    doc,
    token: await cluster.token("probe-edit-heavy-1", "reader", { tenant: TENANT, rights: ["read"] }),
  });
  await eventually("it is read", () => reader.synced);
  expect([...doc.getMap("probe").keys()].toSorted()).toEqual(["0", "1"]);
  expect(Y.encodeStateAsUpdate(doc).byteLength).toBeLessThan(1_000);
  reader.destroy();
});

test("[PSY3] when a gateway is killed the probe reports which participants returned and which found no gateway, and loses nothing", async () => {
  const [before, failedBefore] = [
    await count("coroom_probe_reconnect_seconds", "large"),
    await total("coroom_probe_connect_failures_total"),
  ];
  await cluster.gateways[1]!.process.kill();
  await eventually("half of the large room came back", async () => (await count("coroom_probe_reconnect_seconds", "large")) > before + 20);
  await eventually("some found none there", async () => (await total("coroom_probe_connect_failures_total")) > failedBefore);
  const causes = (await values("coroom_probe_connect_failures_total")).map(({ labels }) => String(labels["cause"]));
  expect(causes.filter((cause) => cause === "unreachable" || cause === "broken")).not.toEqual([]);
  const others = causes.filter((cause) => !["unreachable", "broken"].includes(cause));
  expect(others.filter((cause) => !(cause in CLOSE))).toEqual([]); // Reason of the gateway that half of them tried at once.
  await eventually("everybody is back", isComplete);
  const arrived = await count("coroom_probe_propagation_seconds", "small");
  await eventually("edits arrive", async () => (await count("coroom_probe_propagation_seconds", "small")) > arrived + 3);
  await nothingIsLost();
  await cluster.gateways[1]!.process.startAgain();
});

test("[PSY4] a paused owner shows in the edit times, and loses nothing", async () => {
  const measured = ["coroom_probe_propagation_seconds", "coroom_probe_ack_seconds"];
  const before = await Promise.all(measured.map((name) => countAbove(name, "edit_heavy", 0.25)));
  const owner = await ownerOf(cluster, roomKey(TENANT as TenantId, "probe-edit-heavy-1" as RoomId));
  owner.signal("SIGSTOP");
  for (const [index, name] of measured.entries())
    await eventually(`${name} says so`, async () => (await countAbove(name, "edit_heavy", 0.25)) > before[index]!);
  owner.signal("SIGCONT");
  const arrived = await count("coroom_probe_propagation_seconds", "small");
  await eventually("edits arrive", async () => (await count("coroom_probe_propagation_seconds", "small")) > arrived + 5);
  await nothingIsLost();
});

test("[PSY5] while no server owns a room, the age of its oldest waiting edit grows", async () => {
  for (const server of cluster.roomServers) server.signal("SIGSTOP");
  await eventually("an edit waits", async () =>
    (await values("coroom_probe_oldest_edit_seconds")).some(({ labels, value }) => labels["room"] === "small" && value > 2),
  );
  const continuedAt = performance.now();
  for (const server of cluster.roomServers) server.signal("SIGCONT");
  let ages: readonly Value[] = [];
  await eventually("all edits from before came through", async () => {
    const seconds = (performance.now() - continuedAt) / 1000;
    ages = await values("coroom_probe_oldest_edit_seconds");
    return ages.every(({ value }) => value < seconds);
  }).catch((error: Error) => {
    throw new Error(`${error.message}: ${JSON.stringify(ages)}`); // Names the kind of room.
  });
  await nothingIsLost();
});
