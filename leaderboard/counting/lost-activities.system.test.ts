/**
 * The stream of activities of a running leaderboard is lost, restored from an old backup, or ends too early. Activities
 * that are reported afterwards count.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test } from "vitest";

import { subjectsOf } from "../../shared/bus/subjects.ts";
import type { RoomKey, UserId } from "../../shared/ids.ts";
import { ensureLogStreams } from "../../shared/io/log-stream.ts";
import { connectNats, type NatsConnection } from "../../shared/io/nats.ts";
import { pinoLog } from "../../shared/io/pino-log.ts";
import type { Running } from "../../shared/process/lifecycle.ts";
import { sharedSettings } from "../../shared/settings/common-settings.ts";
import { readSettings } from "../../shared/settings/settings.ts";
import type { Engine } from "../../engines/engine.ts";
import { natsActivities } from "../../gateway/io/nats/nats-boards.ts";
import { startTestNats, startTestRedis } from "../../test/contract/test-engines.ts";
import { eventually } from "../../test/system/eventually.ts";
import { leaderboardSettings } from "../config.ts";
import { activityRemoval } from "../io/jetstream-activities.ts";
import { startLeaderboard } from "../main.ts";

const SECRET = "a secret of the tests, 32 characters";
const ROOM = "acme.notes" as RoomKey;
const subjects = subjectsOf("lost");

let dataDir: string;
let redis: Engine;
let server: Engine;
let nats: NatsConnection;
let leaderboard: Running & { url: string };
const registry = new Registry();
let sentCount = 0;

function start(into: Registry): Promise<Running & { url: string }> {
  const flags = {
    environment: "lost",
    natsUrl: server.url,
    redisUrl: redis.url,
    internalSecret: SECRET,
    boardKinds: "comment:1",
    boardPushMs: "20",
  };
  return startLeaderboard(readSettings({ ...sharedSettings, ...leaderboardSettings }, { flags, env: {} }), {
    log: pinoLog({}, process.env["TEST_LOG"] ?? "silent"),
    registry: into,
  });
}

beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "coroom-lost-activities-"));
  [redis, server] = await Promise.all([
    startTestRedis({ dataDir: join(dataDir, "redis") }),
    startTestNats({ dataDir: join(dataDir, "nats") }),
  ]);
  nats = await connectNats({ servers: server.url, name: "test" });
  await ensureLogStreams(nats, subjects, { partitions: 1, replicas: 1 });
  leaderboard = await start(registry);
});
afterAll(async () => {
  await leaderboard?.stop();
  await nats?.close();
  await Promise.all([redis?.stop(), server?.stop()]);
  rmSync(dataDir, { recursive: true, force: true });
});

/** A repeated id names the same activity, whose answer was lost. */
function sendActivity(id = `comment-${++sentCount}`, room = ROOM): Promise<string> {
  return natsActivities(nats, subjects, { logPartitions: 1 }).storeActivity(
    room,
    { kind: "deeds", deeds: [{ user: "ann" as UserId, kind: "comment", times: 1 }] },
    id,
  );
}

async function board(room: string): Promise<{ points?: number; isBehind?: boolean }> {
  const answer = await fetch(`${leaderboard.url}/v1/rooms/${room}/leaderboard`, {
    headers: { "x-coroom-internal": SECRET, "x-coroom-tenant": "acme" },
  });
  return (await answer.json()) as { points?: number; isBehind?: boolean };
}

async function points(): Promise<number> {
  return (await board("notes")).points ?? 0;
}

test("[BLOST1] a lost stream of activities is created again while the leaderboard runs, and later activities count", async () => {
  for (const id of ["one", "two", "three"]) await eventually(`${id} is stored`, async () => (await sendActivity(id)) === "stored");
  await eventually("three are counted", async () => (await points()) === 3);
  await (await jetstreamManager(nats)).streams.delete(subjects.activityStream(0));
  await eventually("something is taken again", async () => (await sendActivity("four")) === "stored");
  await eventually("and counted", async () => (await points()) === 4);
  await eventually("five is stored", async () => (await sendActivity("five")) === "stored");
  await eventually("as is all that follows", async () => (await points()) === 5);
});

test("[BLOST2] a stream of activities restored from an old backup continues above the counted sequences", async () => {
  const before = await points();
  const { streams } = await jetstreamManager(nats);
  const { config } = await streams.info(subjects.activityStream(0));
  await eventually("it is put back before the leaderboard makes another", async () => {
    await streams.delete(config.name);
    return streams.add({ ...config, first_seq: 1 }).then(
      () => true,
      () => false,
    );
  });
  await eventually("it is found out", async () => {
    await sendActivity();
    return ((await registry.getSingleMetric("coroom_boards_rolled_back_activities_total")!.get()).values[0]?.value ?? 0) === 1;
  });
  const counted = await points();
  expect(counted).toBeGreaterThanOrEqual(before);
  await eventually("another is stored", async () => (await sendActivity("another")) === "stored");
  await eventually("new activities count", async () => (await points()) > counted);
});

test("[BLOST3] boards are up to date even if the last activity belonged to a deleted room and is gone", async () => {
  await leaderboard.stop();
  const [quiet, doomed] = ["acme.quiet", "acme.doomed"] as [RoomKey, RoomKey];
  for (const room of [quiet, doomed])
    await eventually("it is stored", async () => ["stored", "known"].includes(await sendActivity("before the start", room)));
  await (await activityRemoval(nats, subjects, 1)).removeAll(doomed);
  leaderboard = await start(new Registry());
  await eventually("what is there is counted, and nothing waited for", async () => {
    const { points: counted, isBehind } = await board("quiet");
    return counted === 1 && isBehind === false;
  });
});
