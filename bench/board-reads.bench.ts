/**
 * The CPU of a board read over HTTP, in a leaderboard and in Redis. Boards of many rooms are read in turn, so that no
 * read shares the one before it (`boardPushMs`). A gateway is not part of it. CPU is measured, because time depends on
 * what else the machine does.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

import { subjectsOf } from "../shared/bus/subjects.ts";
import type { RoomKey, Seq } from "../shared/ids.ts";
import { ensureLogStreams } from "../shared/io/log-stream.ts";
import { connectNats } from "../shared/io/nats.ts";
import { positiveInteger } from "../shared/settings/settings.ts";
import { spawnChild } from "../engines/child.ts";
import { claimPort } from "../engines/free-port.ts";
import { startNatsServer } from "../engines/nats-server.ts";
import { startRedisServer } from "../engines/redis-server.ts";
import { NOTHING_APPLIED, type Use } from "../leaderboard/boards/board.ts";
import { keysOf } from "../leaderboard/boards/keys.ts";
import { ALL_TIME } from "../leaderboard/boards/windows.ts";
import { redisBoardWrites } from "../leaderboard/io/redis-boards.ts";
import { eventually } from "../test/system/eventually.ts";
import { defineExperiment } from "./experiment.ts";
import { connectedRedis, type Engines } from "./leaderboard-measures.ts";
import { cpuByRole, type ServerProcess } from "./server-usage.ts";

type BoardReadsLoad = { readonly rooms: number; readonly members: number; readonly reads: number };
/** Microseconds of CPU of one read. */
type BoardReadCost = { readonly read: string; readonly leaderboard: number; readonly redis: number };

const ENVIRONMENT = "bench-board-reads";
const SECRET = "the secret of a benchmark, 32 characters";
const IN_FLIGHT = 32;
const TEAM_USERS = 1_000;
const STOP_MS_MAX = 10_000;
const UNUSED: Use = { period: 0, points: new Map() };

type Read = { readonly path: string; readonly body?: string };

const user = (index: number): string => `user-${index}`;

function readsOf({ rooms, members }: BoardReadsLoad): Readonly<Record<string, (index: number) => Read>> {
  const board = (index: number): string => `/v1/rooms/room-${index % rooms}/leaderboard`;
  const team = JSON.stringify({ users: Array.from({ length: TEAM_USERS }, (_, index) => user(index % members)) });
  return {
    "first 100 places": (index) => ({ path: board(index) }),
    "first 10 places": (index) => ({ path: `${board(index)}?limit=10` }),
    "own rank, 5 around": (index) => ({ path: `${board(index)}/members/${user((7 * index) % members)}` }),
    "1,000 given users": (index) => ({ path: `${board(index)}/members`, body: team }),
    "first 100 places of one room": () => ({ path: board(0) }),
  };
}

/** Throws if a read fails. */
export async function benchBoardReads(engines: Engines, redisPid: number, load: BoardReadsLoad): Promise<readonly BoardReadCost[]> {
  await fillRooms(engines, load);
  const folder = mkdtempSync(join(tmpdir(), "coroom-bench-reads-"));
  const port = await claimPort(0, "127.0.0.1", "port");
  const settings = {
    ENVIRONMENT,
    NATS_URL: engines.natsUrl,
    REDIS_URL: engines.redisUrl,
    INTERNAL_SECRET: SECRET,
    BOARDS_PORT: String(port),
    LOG_PARTITIONS: "1",
    DATA_DIR: folder,
  };
  const child = await spawnChild({
    path: process.execPath,
    args: [resolve("dist/cli/main.js"), "start", "--roles", "leaderboard"],
    env: Object.fromEntries(Object.entries(settings).map(([name, value]) => [`COROOM_${name}`, value])),
    cwd: folder,
    logFile: join(folder, "leaderboard.log"),
  });
  const agent = new Agent({ keepAlive: true, maxSockets: IN_FLIGHT });
  const processes: ServerProcess[] = [
    { role: "leaderboard", pid: child.pid },
    { role: "redis", pid: redisPid },
  ];
  try {
    const { path } = readsOf(load)["first 100 places"]!(0);
    await eventually("the leaderboard answers", async () => (await ask(agent, port, { path }).catch(() => 0)) === 200);
    const costs: BoardReadCost[] = [];
    for (const [read, of] of Object.entries(readsOf(load))) {
      const before = cpuByRole(processes);
      let next = 0;
      const askInTurn = async (): Promise<void> => {
        while (next < load.reads) {
          const status = await ask(agent, port, of(next++));
          if (status !== 200) throw new Error(`${read} failed with HTTP ${status}`);
        }
      };
      await Promise.all(Array.from({ length: IN_FLIGHT }, askInTurn));
      const after = cpuByRole(processes);
      const micros = (role: string): number => ((after[role]! - before[role]!) / load.reads) * 1e6;
      costs.push({ read, leaderboard: micros("leaderboard"), redis: micros("redis") });
    }
    return costs;
  } finally {
    agent.destroy();
    await child.stop(STOP_MS_MAX);
    rmSync(folder, { recursive: true, force: true });
  }
}

async function fillRooms({ natsUrl, redisUrl }: Engines, { rooms, members }: BoardReadsLoad): Promise<void> {
  const nats = await connectNats({ servers: natsUrl, name: "bench" });
  await ensureLogStreams(nats, subjectsOf(ENVIRONMENT), { partitions: 1, replicas: 1 });
  await nats.close();
  const connection = await connectedRedis(redisUrl);
  const boards = redisBoardWrites(connection.redis, keysOf(ENVIRONMENT), { hotMembers: 200, tail: "counted", roles: ["everyone"] });
  const standings = Array.from({ length: members }, (_, index) => ({ member: user(index), score: members - index, reachedAt: index }));
  for (let room = 0; room < rooms; room++) {
    await boards.restore(`default.room-${room}` as RoomKey, {
      applied: { ...NOTHING_APPLIED, seq: members as Seq },
      uses: { edits: UNUSED, deeds: UNUSED, present: UNUSED },
      names: new Map(standings.map(({ member }) => [member, `Name of ${member}`])),
      boards: [{ role: "everyone", window: ALL_TIME, standings }],
    });
  }
  connection.stop();
}

/** Resolves with the status, once the answer is read. */
function ask(agent: Agent, port: number, { path, body }: Read): Promise<number> {
  const headers = { "x-coroom-internal": SECRET, "x-coroom-tenant": "default" };
  return new Promise((settle, reject) => {
    const sent = request({ host: "127.0.0.1", port, path, agent, headers, method: body === undefined ? "GET" : "POST" }, (answer) => {
      answer.resume().on("end", () => settle(answer.statusCode ?? 0));
    });
    sent.on("error", reject).end(body);
  });
}

export const boardReads = defineExperiment({
  name: "board-reads",
  summary: "CPU of board reads over HTTP, in a leaderboard and in Redis; a minute",
  settings: {
    rooms: { parse: positiveInteger, fallback: 2_000, meaning: "rooms with a board" },
    members: { parse: positiveInteger, fallback: 200, meaning: "members of each board" },
    reads: { parse: positiveInteger, fallback: 5_000, meaning: "reads of each kind" },
  },
  run: async (load, print) => {
    const dataDir = mkdtempSync(join(tmpdir(), "coroom-bench-boards-"));
    const [redis, nats] = await Promise.all([
      startRedisServer({ dataDir: join(dataDir, "redis") }),
      startNatsServer({ dataDir: join(dataDir, "nats") }),
    ]);
    try {
      for (const { read, leaderboard, redis: server } of await benchBoardReads({ natsUrl: nats.url, redisUrl: redis.url }, redis.pid, load))
        print(`  ${read.padEnd(30)} CPU of a read: leaderboard ${Math.round(leaderboard)} µs, Redis ${Math.round(server)} µs`);
    } finally {
      await Promise.all([redis.stop(), nats.stop()]);
      rmSync(dataDir, { recursive: true, force: true });
    }
  },
});
