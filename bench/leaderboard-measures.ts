/**
 * Measures the boards in three ways. Speed: the time until a log is counted, compared with the same script calls sent
 * directly to Redis. Reads: the time to read a rank as a board grows. Memory: the bytes per member of the ordered part
 * and of the hash with all scores, compared with one sorted set of all members.
 */

import { createHash } from "node:crypto";
import { performance } from "node:perf_hooks";
import { jetstream } from "@nats-io/jetstream";
import { Registry } from "prom-client";

import { subjectsOf } from "../shared/bus/subjects.ts";
import { Prng } from "../shared/collections/prng.ts";
import type { RoomKey, Seq, UnixMillis, UserId } from "../shared/ids.ts";
import { kvLeases } from "../shared/io/kv-leases.ts";
import { ensureLogStreams } from "../shared/io/log-stream.ts";
import { connectNats } from "../shared/io/nats.ts";
import { type RedisConnection, redisConnection } from "../shared/io/redis.ts";
import { systemClock } from "../shared/io/system-clock.ts";
import { sharedSettings } from "../shared/settings/common-settings.ts";
import { readSettings } from "../shared/settings/settings.ts";
import { SILENT_LOG } from "../shared/testing/silent-log.ts";
import { NOTHING_APPLIED, ranksWithin, type ScoreBatch } from "../leaderboard/boards/board.ts";
import { keysOf } from "../leaderboard/boards/keys.ts";
import { ALL_TIME } from "../leaderboard/boards/windows.ts";
import { leaderboardSettings } from "../leaderboard/config.ts";
import { stampOf } from "../leaderboard/io/board-hashes.ts";
import {
  activityRemoval,
  SHORT_READ_WAITS,
  jetstreamActivities,
  jetstreamLog,
  ReadingInterval,
} from "../leaderboard/io/jetstream-activities.ts";
import { kvArchive } from "../leaderboard/io/kv-archive.ts";
import { kvCheckpoints } from "../leaderboard/io/kv-checkpoints.ts";
import { type RedisBoard, redisBoard } from "../leaderboard/io/redis-boards.ts";
import { redisClosings, redisNames, redisProgress } from "../leaderboard/io/redis-ports.ts";
import { redisTenants } from "../leaderboard/io/redis-tenants.ts";
import { LeaderboardHost } from "../leaderboard/leaderboard-host.ts";
import { leaderboardMetrics } from "../leaderboard/metrics.ts";
import type { BoardStore } from "../leaderboard/ports.ts";
import { recordOf } from "../leaderboard/testing/records.ts";

export type Engines = { readonly natsUrl: string; readonly redisUrl: string };
type UpdateLoad = { readonly rooms: number; readonly users: number; readonly edits: number; readonly seed: number };
/** `nodeCpu`, `redisCpu`: seconds of CPU of this process and of redis-server. */
export type UpdateLeg = { readonly seconds: number; readonly nodeCpu: number; readonly redisCpu: number };
type UpdateFigures = {
  readonly edits: number;
  readonly batches: number;
  readonly projector: UpdateLeg;
  readonly bare: UpdateLeg;
  readonly projectorHash: string;
  readonly bareHash: string;
};

const HOT_MEMBERS = 200;
const WAYS = 256;
const PUBLISHED_AT_A_TIME = 500;

export async function connectedRedis(url: string): Promise<RedisConnection> {
  const connection = redisConnection(url, SILENT_LOG);
  await new Promise((resolve) => connection.redis.once("ready", resolve));
  return connection;
}

/** First part of a log, in which each room appears for the first time. It is checked but not timed. */
const WARM_SHARE = 0.2;

/** Writes the log first. The measured time runs from the end of the log's first part until the last edit is counted. */
export async function benchUpdates(engines: Engines, load: UpdateLoad, environment: string): Promise<UpdateFigures> {
  const [nats, connection] = [await connectNats({ servers: engines.natsUrl, name: "bench" }), await connectedRedis(engines.redisUrl)];
  const subjects = subjectsOf(environment);
  await ensureLogStreams(nats, subjects, { partitions: 1, replicas: 1 });
  const rooms = Array.from({ length: load.rooms }, (_, index) => `bench.room-${index}` as RoomKey);
  await writeLog(nats, subjects, rooms, load);

  const config = readSettings(
    { ...sharedSettings, ...leaderboardSettings },
    { env: {}, flags: { environment, boardPointsPerMinuteMax: "1000000", boardsLeaseMs: "600000" } },
  ); // A lease longer than the run: without a second leaderboard service, a takeover would only count records twice.
  const keys = keysOf(environment);
  const boards = redisBoard(connection.redis, keys, { hotMembers: HOT_MEMBERS, tail: "counted", roles: ["everyone"] });
  const batches: { room: RoomKey; batch: ScoreBatch }[] = [];
  let counted = 0;
  let warm: { readonly begin: Promise<Mark>; readonly batches: number; readonly edits: number } | undefined;
  let done: () => void;
  const allCounted = new Promise<void>((resolve) => (done = resolve));
  const watched: BoardStore = {
    ...boards,
    apply: async (room, batch) => {
      const write = await boards.apply(room, batch);
      batches.push({ room, batch });
      counted += batch.applied.seq - batch.after.seq;
      if (warm === undefined && counted >= load.edits * WARM_SHARE)
        warm = { begin: markNow(connection), batches: batches.length, edits: counted };
      if (counted === load.edits) done();
      return write;
    },
  };
  let names = 0;
  const tenants = redisTenants(connection.redis, keys, { roles: config.boardRoles, hotMembers: HOT_MEMBERS });
  const intervals = () => [new ReadingInterval(systemClock, { restMs: () => config.boardReadMs, ...SHORT_READ_WAITS })];
  const ports = {
    boards: watched,
    reads: boards,
    closings: redisClosings(connection, keys, 1),
    progress: redisProgress(connection, keys),
    log: await jetstreamLog(nats, subjects, intervals()),
    activities: await jetstreamActivities(nats, subjects, intervals(), {
      partitions: 1,
      replicas: 1,
      bytesMax: config.boardActivityBytesMax,
      dedupeMs: config.boardActivityDedupeMs,
    }),
    activityRemoval: await activityRemoval(nats, subjects, 1),
    leases: await kvLeases(jetstream(nats), subjects.boardsBucket, 1),
    checkpoints: await kvCheckpoints(nats, subjects.boardCheckpointsBucket, {
      replicas: 1,
      partitions: 1,
      newName: () => `bench-${++names}`,
    }),
    ...(await kvArchive(nats, subjects, { replicas: 1, daysMax: 1 })),
    tenants,
    closedTenants: tenants,
    names: redisNames(connection.redis, keys, { perRoom: 1, perTenant: 1 }),
    shown: { publish: () => {} },
  };
  const host = new LeaderboardHost(
    ports,
    { ...config, service: "bench", boardsDrainMsMax: 1 },
    { clock: systemClock, log: SILENT_LOG, metrics: leaderboardMetrics(new Registry()), isRedisAway: () => false },
  );
  await allCounted;
  const { begin, batches: warmBatches, edits: warmEdits } = warm ?? { begin: markNow(connection), batches: 0, edits: 0 };
  const projector = legOf(await begin, await markNow(connection));
  await host.stop();

  const bare = redisBoard(connection.redis, keysOf(`${environment}-bare`), {
    hotMembers: HOT_MEMBERS,
    tail: "counted",
    roles: ["everyone"],
  });
  await sendBare(bare, batches.slice(0, warmBatches));
  const bareBegin = await markNow(connection);
  await sendBare(bare, batches.slice(warmBatches));
  const bareLeg = legOf(bareBegin, await markNow(connection));
  const [projectorHash, bareHash] = [await hashOf(boards, rooms), await hashOf(bare, rooms)];
  connection.stop();
  await nats.close();
  return { edits: load.edits - warmEdits, batches: batches.length - warmBatches, projector, bare: bareLeg, projectorHash, bareHash };
}

async function writeLog(
  nats: Awaited<ReturnType<typeof connectNats>>,
  subjects: ReturnType<typeof subjectsOf>,
  rooms: readonly RoomKey[],
  load: UpdateLoad,
): Promise<void> {
  const prng = new Prng(load.seed);
  const heads = new Map<RoomKey, number>();
  const log = jetstream(nats);
  for (let written = 0; written < load.edits; written += PUBLISHED_AT_A_TIME) {
    const some = Array.from({ length: Math.min(PUBLISHED_AT_A_TIME, load.edits - written) }, () => {
      const room = rooms[prng.below(rooms.length)]!;
      const seq = (heads.get(room) ?? 0) + 1;
      heads.set(room, seq);
      return { room, bytes: recordOf(seq, [{ user: `user-${prng.below(load.users)}` as UserId, bytes: 30, time: 0 as UnixMillis }]) };
    });
    await Promise.all(some.map(({ room, bytes }) => log.publish(subjects.log(0, room), bytes)));
  }
}

/** Sends the calls that the service made, in the same order within each room and with the same number of calls in flight. */
async function sendBare(bare: RedisBoard, batches: readonly { room: RoomKey; batch: ScoreBatch }[]): Promise<void> {
  const byRoom = new Map<RoomKey, ScoreBatch[]>();
  for (const { room, batch } of batches) {
    const ofRoom = byRoom.get(room);
    if (ofRoom === undefined) byRoom.set(room, [batch]);
    else ofRoom.push(batch);
  }
  await eachOf([...byRoom], WAYS, async ([room, ofRoom]) => {
    for (const batch of ofRoom) await bare.apply(room, batch);
  });
}

type Mark = { readonly at: number; readonly node: number; readonly redis: number };

async function markNow({ redis }: RedisConnection): Promise<Mark> {
  const { user, system } = process.cpuUsage();
  const at = performance.now();
  const info = await redis.info("cpu");
  const redisCpu = [...info.matchAll(/^used_cpu_(?:user|sys):([\d.]+)/gm)].reduce((sum, [, seconds]) => sum + Number(seconds), 0);
  return { at, node: (user + system) / 1e6, redis: redisCpu };
}

function legOf(begin: Mark, end: Mark): UpdateLeg {
  return { seconds: (end.at - begin.at) / 1000, nodeCpu: end.node - begin.node, redisCpu: end.redis - begin.redis };
}

async function hashOf(boards: RedisBoard, rooms: readonly RoomKey[]): Promise<string> {
  const hash = createHash("sha256");
  for (const room of rooms) hash.update(JSON.stringify((await boards.read(room, "everyone", ALL_TIME)).hot));
  return hash.digest("hex").slice(0, 12);
}

type LargeBoard = {
  readonly connection: RedisConnection;
  readonly boards: RedisBoard;
  readonly room: RoomKey;
  readonly allOrdered: string;
  readonly members: number;
};

/** Scores like those of people: few high ones, many low ones. Determined by the seed. */
export function scoresOf(members: number, seed: number): { user: string; score: number; reachedAt: number }[] {
  const prng = new Prng(seed);
  return Array.from({ length: members }, (_, index) => ({
    user: `user-${String(index).padStart(8, "0")}`,
    score: 1 + Math.floor(50 * (1 / (1 - prng.unit() * 0.99999) - 1)),
    reachedAt: index + 1,
  }));
}

const MEMBERS_AT_A_TIME = 500;
const UNUSED = { period: 0, hasBegun: false, points: new Map<UserId, number>() };

/**
 * Fills a board of this size through the real script, with an ordered tail, and one sorted set of all members beside
 * it.
 */
export async function fillLargeBoard(redisUrl: string, members: number, environment: string, seed: number): Promise<LargeBoard> {
  const connection = await connectedRedis(redisUrl);
  const boards = redisBoard(connection.redis, keysOf(environment), { hotMembers: HOT_MEMBERS, tail: "ordered", roles: ["everyone"] });
  const room = `bench.large-${members}` as RoomKey;
  const allOrdered = `${environment}:ordered:${members}`;
  const scores = scoresOf(members, seed);
  for (let at = 0; at < members; at += MEMBERS_AT_A_TIME) {
    const some = scores.slice(at, at + MEMBERS_AT_A_TIME);
    const awards = some.map(({ user, score, reachedAt }) => ({ member: user as UserId, points: score, reachedAt }));
    const written = boards.apply(room, {
      after: { seq: at as Seq, activity: 0, time: NOTHING_APPLIED.time },
      applied: { ...NOTHING_APPLIED, seq: (at + some.length) as Seq },
      uses: { edits: UNUSED, deeds: UNUSED, present: UNUSED },
      windows: [ALL_TIME],
      awards: new Map([["everyone" as const, awards]]),
    });
    await Promise.all([
      written,
      connection.redis.zadd(allOrdered, ...some.flatMap(({ user, score, reachedAt }) => [score, stampOf(reachedAt) + user])),
    ]);
  }
  return { connection, boards, room, allOrdered, members };
}

type ReadFigures = Readonly<
  Record<"first 100" | "own rank, as a range" | "own rank, exact, with 5 around" | "own rank, one sorted set", readonly number[]>
>;

/** Milliseconds of each read, one after the other, of random members. */
export async function benchReads(
  { connection, boards, room, allOrdered, members }: LargeBoard,
  reads: number,
  seed: number,
): Promise<ReadFigures> {
  const prng = new Prng(seed);
  const scores = scoresOf(members, seed);
  const { bands } = await boards.read(room, "everyone", ALL_TIME);
  const timed = async (read: () => Promise<unknown>): Promise<number[]> => {
    const times: number[] = [];
    for (let left = reads; left > 0; left--) {
      const begin = performance.now();
      await read();
      times.push(performance.now() - begin);
    }
    return times;
  };
  return {
    "first 100": await timed(() => boards.read(room, "everyone", ALL_TIME)),
    "own rank, as a range": await timed(async () => {
      const [own] = await boards.members(room, "everyone", ALL_TIME, [scores[prng.below(members)]!.user]);
      return ranksWithin(bands, own!.score);
    }),
    "own rank, exact, with 5 around": await timed(() =>
      boards.places(room, "everyone", ALL_TIME, { kind: "around", member: scores[prng.below(members)]!.user, around: 5 }),
    ),
    "own rank, one sorted set": await timed(() => {
      const { user, reachedAt } = scores[prng.below(members)]!;
      return connection.redis.zrevrank(allOrdered, stampOf(reachedAt) + user);
    }),
  };
}

type MemoryFigures = {
  readonly hot: number;
  readonly full: number;
  readonly counts: number;
  readonly bands: number;
  readonly allOrdered: number;
};

/** Bytes as Redis counts them, over every entry. */
export async function benchMemory({ connection, room, allOrdered }: LargeBoard, environment: string): Promise<MemoryFigures> {
  const bytes = async (key: string): Promise<number> => Number(await connection.redis.call("MEMORY", "USAGE", key, "SAMPLES", "0"));
  const { hot, full, counts, inBand } = keysOf(environment).board(room, "everyone", ALL_TIME);
  let bands = 0;
  for (const band of await connection.redis.hkeys(counts)) bands += await bytes(`${inBand}${band}`);
  return { hot: await bytes(hot), full: await bytes(full), counts: await bytes(counts), bands, allOrdered: await bytes(allOrdered) };
}

export function percentile(times: readonly number[], percent: number): number {
  const sorted = times.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))] ?? Number.NaN;
}

/** Runs `work` for each entry, at most `atATime` at once. After a failure it waits for the started ones, then throws the failure. */
function eachOf<Entry>(entries: readonly Entry[], atATime: number, work: (entry: Entry) => Promise<unknown>): Promise<void> {
  return new Promise((resolve, reject) => {
    let next = 0;
    let underWay = 0;
    let failure: { readonly cause: unknown } | undefined;
    const advance = (): void => {
      while (failure === undefined && underWay < atATime && next < entries.length) {
        underWay += 1;
        work(entries[next++]!)
          .catch((cause: unknown) => (failure ??= { cause }))
          .finally(() => {
            underWay -= 1;
            advance();
          });
      }
      if (underWay > 0) return;
      if (failure !== undefined) reject(failure.cause);
      else if (next === entries.length) resolve();
    };
    advance();
  });
}
