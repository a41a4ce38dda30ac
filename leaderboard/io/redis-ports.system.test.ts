/** The leaderboard's ports on a real redis-server. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { Registry } from "prom-client";
import { expect, test } from "vitest";

import type { RoomKey, Seq, TenantId, UnixMillis } from "../../shared/ids.ts";
import { systemClock } from "../../shared/io/system-clock.ts";
import { readSettings } from "../../shared/settings/settings.ts";
import { sharedSettings } from "../../shared/settings/common-settings.ts";
import type { Log } from "../../shared/process/log.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import { until } from "../../test/contract/real-nats.ts";
import { startTestRedis } from "../../test/contract/test-engines.ts";
import { NO_USES, NOTHING_APPLIED } from "../boards/board.ts";
import { tenantBoard } from "../boards/keys.ts";
import { ALL_TIME, type Window, WINDOW_KINDS, windowsAt } from "../boards/windows.ts";
import { leaderboardSettings } from "../config.ts";
import { leaderboardMetrics } from "../metrics.ts";
import { redisPorts } from "./redis-ports.ts";

/** The ports on a redis-server of their own. */
async function startPorts(log: Log = SILENT_LOG) {
  const dataDir = mkdtempSync(join(tmpdir(), "coroom-reads-"));
  const engine = await startTestRedis({ dataDir });
  const settings = readSettings({ ...sharedSettings, ...leaderboardSettings }, { env: {}, flags: {} });
  const deps = { clock: systemClock, log, metrics: leaderboardMetrics(new Registry()) };
  const { ports, reaches, stop } = redisPorts({ ...settings, redisUrl: engine.url }, deps);
  await until(
    () =>
      ports.progress.read(0).then(
        () => true,
        () => false,
      ),
    "the connections to Redis",
  );
  return {
    ports,
    reaches,
    url: engine.url,
    stop: async (): Promise<void> => {
      stop();
      await engine.stop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

const standingsOf = (count: number) =>
  Array.from({ length: count }, (_, user) => ({ member: `u${user}`, score: 1, reachedAt: 1 as UnixMillis }));
const dumpOf = (count: number, windows: readonly Window[]) => ({
  applied: { ...NOTHING_APPLIED, seq: 1 as Seq },
  uses: NO_USES,
  names: new Map(),
  boards: windows.map((window) => ({ role: "everyone" as const, window, standings: standingsOf(count) })),
});

test("[RDP1] a reader of a board does not wait for all writes that were sent before", async () => {
  const { ports, stop } = await startPorts();
  let written = 0;
  const writes = Array.from({ length: 60 }, async (_, room) => {
    await ports.boards.restore(`bulk.r${room}` as RoomKey, dumpOf(2_000, [ALL_TIME]));
    written += 1;
  });
  await ports.reads.read("quiet.plan" as RoomKey, "everyone", ALL_TIME);
  await Promise.all([ports.names.read("quiet.plan" as RoomKey, ["ann"]), ports.progress.read(0)]);
  expect(written).toBeLessThan(30);
  await Promise.all(writes);
  await stop();
});

test("[RDP2] scores of many people in several windows go to the tenant's boards in several scripts, so that others are served between", async () => {
  const { ports, url, stop } = await startPorts();
  const redis = new Redis(url);
  const scripts = async (): Promise<number> =>
    [...(await redis.info("commandstats")).matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)].reduce(
      (sum, [, calls]) => sum + Number(calls),
      0,
    );
  const send = async (room: RoomKey, count: number): Promise<number> => {
    const windows = windowsAt(1 as UnixMillis, WINDOW_KINDS);
    await ports.boards.restore(room, dumpOf(count, windows));
    const before = await scripts();
    await ports.tenants.sendTotals(
      room,
      windows.map((window) => ({ window, members: new Set(standingsOf(count).map(({ member }) => member)) })),
    );
    const { members } = await ports.reads.read(tenantBoard("acme" as TenantId, "people"), "everyone", windows[0]!);
    expect(members).toBe(count);
    return (await scripts()) - before;
  };
  await send("acme.first" as RoomKey, 1); // Loads the script.
  expect(await send("acme.few" as RoomKey, 20)).toBe(1);
  expect(await send("acme.many" as RoomKey, 500)).toBeGreaterThanOrEqual(WINDOW_KINDS.length);
  redis.disconnect();
  await stop();
});

test("[RDP3] an outage of the connection for reads alone is reported once, and gateways ask another leaderboard meanwhile", async () => {
  const lines: [object, string][] = [];
  const note = (facts: object, text: string): void => void lines.push([facts, text]);
  const { ports, reaches, url, stop } = await startPorts({ ...SILENT_LOG, warn: note, info: note });
  const redis = new Redis(url);
  await until(() => reaches() === true, "both connections to be found usable");
  await redis.config("SET", "maxclients", 1); // Open connections stay open.
  const clients = (await redis.client("LIST")) as string;
  const opened = [...clients.matchAll(/^id=(\d+) .*name=coroom /gm)].map(([, id]) => Number(id));
  await redis.call("CLIENT", "KILL", "ID", Math.max(...opened)); // The connection for reads is opened last.
  await until(() => reaches() === false, "the outage to be found");
  await expect(ports.progress.read(0)).rejects.toThrow();
  await ports.names.write("acme.plan" as RoomKey, "ann", "Ann");
  expect(lines).toMatchObject([[{ connection: "reads" }, expect.stringContaining("Redis does not answer")]]);
  await redis.config("SET", "maxclients", 100);
  await until(() => reaches() === true, "the end of the outage");
  await until(() => lines.length === 2, "its report");
  expect(lines[1]).toEqual([{ connection: "reads" }, "Redis answers again"]);
  expect(await ports.progress.read(0)).toBeUndefined();
  redis.disconnect();
  await stop();
});

test("[RDP4] boards can be read while Redis is full", async () => {
  const { ports, url, stop } = await startPorts();
  const redis = new Redis(url);
  const room = "acme.plan" as RoomKey;
  const people = tenantBoard("acme" as TenantId, "people");
  await ports.boards.restore(room, dumpOf(3, [ALL_TIME]));
  await ports.tenants.sendTotals(room, [{ window: ALL_TIME, members: new Set(["u0", "u1"]) }]);
  const read = () =>
    Promise.all([
      ports.reads.read(room, "everyone", ALL_TIME),
      ports.reads.read("acme.other" as RoomKey, "everyone", ALL_TIME),
      ports.reads.read(people, "everyone", ALL_TIME),
      ports.reads.members(room, "everyone", ALL_TIME, ["u0", "u7"]),
      ports.boards.load(room),
      ports.boards.dump(room, [ALL_TIME]),
    ]);
  const before = await read();
  await redis.config("SET", "maxmemory", 1);
  await expect(ports.names.write(room, "ann", "Ann"), "a write of a full Redis").rejects.toThrow("OOM");
  expect(await read()).toEqual(before);
  redis.disconnect();
  await stop();
});
