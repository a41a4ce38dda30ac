/** `coroom bench` against real processes. */

import { afterAll, beforeAll, expect, test } from "vitest";

import { readSettings } from "../../shared/settings/settings.ts";
import { SystemCluster } from "../../test/system/cluster.ts";
import { eventually } from "../../test/system/eventually.ts";
import { benchSettings } from "./bench-settings.ts";
import { bench } from "./bench-command.ts";
import type { BenchFigures } from "./figures.ts";

const TENANT = "coroom-bench";
const PARTICIPANTS_MAX = 3;

let cluster: SystemCluster;
beforeAll(async () => {
  cluster = await SystemCluster.start({ gateways: 1, roomServers: 1, settings: { PARTICIPANTS_PER_ROOM_MAX: String(PARTICIPANTS_MAX) } });
});
afterAll(() => cluster?.stop());

async function run(flags: Record<string, string>, signal = new AbortController().signal) {
  const printed: string[] = [];
  const token = await cluster.token("*", "operator", { tenant: TENANT, rights: ["read", "write", "admin"] });
  const config = readSettings(benchSettings, { flags: { url: cluster.gateways[0]!.httpUrl, token, ...flags }, env: {} });
  const failure = await bench(config, (line) => void printed.push(line), signal).then(
    () => undefined,
    (error: Error) => error.message,
  );
  const rooms = await fetch(`${cluster.gateways[0]!.httpUrl}/v1/rooms`, { headers: { authorization: `Bearer ${token}` } });
  return { printed, failure, stored: ((await rooms.json()) as { rooms: unknown[] }).rooms };
}

test("[BNC24] every edit of a run is acknowledged and received by everybody, and no room is left", async () => {
  const { printed, failure, stored } = await run({
    rooms: "2",
    people: "3",
    editRate: "20",
    cursorRate: "30",
    seconds: "2",
    json: "true",
  });
  expect([failure, printed.length, stored]).toEqual([undefined, 1, []]);
  const figures = JSON.parse(printed[0]!) as BenchFigures;
  expect(figures).toMatchObject({
    tenant: TENANT,
    connections: { wanted: 6, opened: 6, joinMs: { count: 6 } },
    edits: { sent: 40, acknowledged: 40, received: 80, expected: 80, repeated: 0, missing: [] },
    cursors: { sent: 60 },
    rooms: { deleted: 2, left: [] },
  });
  expect(figures.edits.acknowledgedMs!.count).toBe(40);
  expect(figures.edits.receivedMs!.count).toBe(80);
  expect(figures.cursors.seen).toBeGreaterThan(0);
});

test("[BNC25] a stopped run reports what it measured, and deletes its rooms", async () => {
  const stop = new AbortController();
  const printed: string[] = [];
  const token = await cluster.token("*", "operator", { tenant: TENANT, rights: ["read", "write", "admin"] });
  const flags = { url: cluster.gateways[0]!.httpUrl, token, rooms: "2", people: "2", seconds: "600" };
  const stopped = bench(readSettings(benchSettings, { flags, env: {} }), (line) => void printed.push(line), stop.signal).catch(
    (error: Error) => error.message,
  );
  await eventually("the load runs", () => printed.some((line) => line.includes("have joined")));
  stop.abort();
  expect(await stopped).toMatch(/^stopped by a signal after \d+ of 600 s/);
  expect(printed.at(-1)).toMatch(/4 of 4 opened[^]*rooms {11}2 deleted$/m);
  const rooms = await fetch(`${cluster.gateways[0]!.httpUrl}/v1/rooms`, { headers: { authorization: `Bearer ${token}` } });
  expect(await rooms.json()).toMatchObject({ rooms: [] });
});

test("[BNC26] people whom the gateway does not admit are counted by its reason, and the others are measured", async () => {
  const { printed, failure } = await run({
    rooms: "1",
    people: String(PARTICIPANTS_MAX + 1),
    editRate: "5",
    cursorRate: "0",
    seconds: "1",
  });
  expect(failure).toBeUndefined();
  expect(printed.at(-1)).toMatch(/3 of 4 opened[^]*refusals +\d+ room-full: /);
});
