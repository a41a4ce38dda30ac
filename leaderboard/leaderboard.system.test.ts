/**
 * Leaderboards on a real redis-server and nats-server: whatever is killed, flushed, paused or started beside them, and
 * wherever windows end, the boards equal those that a pencil makes of the whole log.
 */

import { jetstream } from "@nats-io/jetstream";

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Registry } from "prom-client";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";

import type { Engine } from "../engines/engine.ts";
import { subjectsOf } from "../shared/bus/subjects.ts";
import type { Clock } from "../shared/clock.ts";
import { readSettings } from "../shared/config.ts";
import { type Millis, type RoomId, type RoomKey, type TenantId, type UnixMillis, type UserId, roomKey, roomOf } from "../shared/ids.ts";
import { kvLeases } from "../shared/io/kv-leases.ts";
import { connectNats, type NatsConnection } from "../shared/io/nats.ts";
import { pinoLog } from "../shared/io/pino-log.ts";
import { systemClock } from "../shared/io/system-clock.ts";
import { Prng } from "../shared/prng.ts";
import { sharedSettings } from "../shared/settings.ts";
import { eventually } from "../test/system/eventually.ts";
import { leaderboardSettings } from "./config.ts";
import { kvArchive } from "./io/kv-archive.ts";
import { kvCheckpoints } from "./io/kv-checkpoints.ts";
import { type RedisLine, redisLine } from "../shared/io/redis.ts";
import { redisBoard } from "./io/redis-board.ts";
import { redisTenants } from "./io/redis-tenants.ts";
import { redisNames } from "./io/redis-names.ts";
import { redisClosings, redisProgress } from "./io/redis-progress.ts";
import { NOTHING_APPLIED } from "./board.ts";
import { keysOf } from "./keys.ts";
import { LeaderboardHost, type LeaderboardPorts } from "./leaderboard-host.ts";
import { leaderboardMetrics } from "./metrics.ts";
import type { BoardShown } from "../shared/bus/board-messages.ts";
import { MadeUpLog } from "./testing/made-up-log.ts";
import { referenceBoards } from "./testing/reference-boards.ts";
import { parseWindow } from "./windows.ts";
import { startTestNats, startTestRedis } from "../test/contract/test-engines.ts";

const LOG = pinoLog({}, process.env["TEST_LOG"] ?? "silent");
const USERS = ["ann", "bob", "cy", "dee", "eve", "fay", "gus", "hal"] as UserId[];
const ROOMS = Array.from({ length: 6 }, (_, index) => `acme.room-${index}` as RoomKey);
/** A window's end is near: the last hour of a day, week, month and year. */
const NEW_YEARS_EVE = Date.UTC(2028, 11, 31, 23, 40) as UnixMillis;
const MINUTE_MS = 60_000;
const DEFAULTS = readSettings(leaderboardSettings, { env: {}, flags: {} });
const TENANT = "acme" as TenantId;

let dataDir: string;
let redisServer: Engine;
let natsServer: Engine;
let nats: NatsConnection;
const lines: RedisLine[] = [];
const hosts: LeaderboardHost[] = [];
let services = 0;

beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "coroom-leaderboard-"));
  [redisServer, natsServer] = await Promise.all([startTestRedis({ dataDir: join(dataDir, "redis") }), startTestNats({ dataDir: join(dataDir, "nats") })]);
  nats = await connectNats({ servers: natsServer.url, name: "test" });
}, 120_000);
afterEach(async () => {
  await Promise.all(hosts.splice(0).map((host) => host.stop()));
  for (const line of lines.splice(0)) line.stop();
});
afterAll(async () => {
  await nats?.close();
  await Promise.all([redisServer?.stop(), natsServer?.stop()]);
  rmSync(dataDir, { recursive: true, force: true });
});

/** Runs on from where a test sets it. */
class SetClock implements Clock {
  readonly #dateAhead: number;
  #advanced = 0;
  constructor(wallNow: UnixMillis) {
    this.#dateAhead = wallNow - Date.now();
  }
  now(): Millis {
    return (systemClock.now() + this.#advanced) as Millis;
  }
  wallNow(): UnixMillis {
    return (Date.now() + this.#dateAhead + this.#advanced) as UnixMillis;
  }
  advance(ms: number): void {
    this.#advanced += ms;
  }
  after(delayMs: number, run: () => void): () => void {
    return systemClock.after(delayMs, run);
  }
}

type Started = { readonly host: LeaderboardHost; readonly ports: LeaderboardPorts; readonly line: RedisLine; readonly shown: BoardShown[]; readonly registry: Registry };

async function start(environment: string, log: MadeUpLog, clock: Clock, flags: Record<string, string> = {}, meddle: (ports: LeaderboardPorts) => LeaderboardPorts = (ports) => ports): Promise<Started> {
  const config = readSettings({ ...sharedSettings, ...leaderboardSettings }, {
    env: {},
    flags: { environment, boardsLeaseMs: "400", boardTotalsMs: "50", boardBatchMs: "20", boardShownMax: "3", boardPointsPerMinuteMax: "20", boardCheckpointMsMax: "300", boardArchiveGraceMs: "1", ...flags },
  });
  const [subjects, keys] = [subjectsOf(environment), keysOf(environment)];
  const line = redisLine(redisServer.url, LOG);
  lines.push(line);
  const boards = redisBoard(line.redis, keys, { hotMembers: 2 * config.boardShownMax, tail: config.boardTail, roles: config.boardRoles });
  const tenants = redisTenants(line.redis, keys, { roles: config.boardRoles });
  const service = `service-${++services}`;
  const shown: BoardShown[] = [];
  let names = 0;
  const ports = meddle({
    boards,
    reads: boards,
    closings: redisClosings(line, keys),
    progress: redisProgress(line, keys),
    log,
    activities: log.activities,
    leases: await kvLeases(jetstream(nats), subjects.boardsBucket, 1),
    checkpoints: await kvCheckpoints(nats, subjects.boardCheckpointsBucket, { replicas: 1, partitions: config.logPartitions, newName: () => `${service}-${++names}` }),
    ...(await kvArchive(nats, subjects, { replicas: 1, daysMax: 400 })),
    tenants,
    closedTenants: tenants,
    names: redisNames(line.redis, keys, { namesMax: 10 }),
    shown: { publish: (news) => void (news.kind === "shown" && shown.push(news)) },
  });
  const registry = new Registry();
  const host = new LeaderboardHost(ports, { ...config, service }, { clock, log: LOG, metrics: leaderboardMetrics(registry) });
  hosts.push(host);
  return { host, ports, line, shown, registry };
}

/** Every window of every room, as it is read by anyone: from Redis, or from the archive once it is closed. */
async function expectReference(log: MadeUpLog, { host }: Started, scoring: { pointsPerMinuteMax: number } = { pointsPerMinuteMax: 20 }): Promise<void> {
  const options = { ...DEFAULTS, boardPointsPerMinuteMax: scoring.pointsPerMinuteMax };
  for (const room of ROOMS) {
    for (const [window, standings] of referenceBoards(log.doneIn(room), options)) {
      const expected = standings.map(({ member, score }) => ({ user: member, score }));
      const answer = await host.reader.page({ room, role: "everyone", window, ranking: "unique" }, { offset: 0, limit: 3 });
      expect(answer.kind === "page" ? answer.ranking.map(({ user, score }) => ({ user, score })) : answer, `${room} ${window}`).toEqual(expected.slice(0, 3));
      if (answer.kind === "page") expect([answer.about.members, answer.about.points], `${room} ${window}`).toEqual([standings.length, standings.reduce((sum, { score }) => sum + score, 0)]);
      for (const [index, { member, score }] of standings.entries()) {
        const own = await host.reader.member({ room, role: "everyone", window, ranking: "unique" }, member, 1);
        expect(own.kind === "member" ? own.own : own, `${room} ${window} ${member}`).toMatchObject({ user: member, score, rank: index + 1 });
      }
    }
  }
}

/** Every window of the tenant's rooms: what all have got in each room, however often it was told. */
async function expectTenantReference(log: MadeUpLog, { host }: Started): Promise<void> {
  const options = { ...DEFAULTS, boardPointsPerMinuteMax: 20 };
  const windows = new Map<string, Map<string, number>>();
  for (const key of ROOMS) {
    for (const [window, standings] of referenceBoards(log.doneIn(key), options)) {
      windows.set(window, (windows.get(window) ?? new Map()).set(roomOf(key), standings.reduce((sum, { score }) => sum + score, 0)));
    }
  }
  for (const [window, rooms] of windows) {
    const totals = [...rooms].sort(([a, points], [b, more]) => more - points || (a < b ? 1 : -1));
    const expected = totals.map(([room, points]) => ({ rank: totals.filter(([, more]) => more > points).length + 1, room, points }));
    await eventually(`the rooms of ${window} are ${JSON.stringify(expected)}`, async () => {
      const pages = [await host.tenants.page(TENANT, window, { offset: 0, limit: 2 }), await host.tenants.page(TENANT, window, { offset: 2, limit: 10 })];
      return JSON.stringify(pages.flatMap((page) => (page.kind === "rooms" ? page.ranking : []))) === JSON.stringify(expected);
    });
    for (const [room, points] of rooms) {
      const own = await host.tenants.room(roomKey(TENANT, room as RoomId), window);
      expect(own.kind === "room" ? [own.own, own.about.rooms] : own, `${window} ${room}`).toEqual([expected.find((ranked) => ranked.room === room && ranked.points === points), rooms.size]);
    }
  }
}

function type(log: MadeUpLog, prng: Prng, time: UnixMillis, edits: number): void {
  const anyone = (): UserId => USERS[prng.below(USERS.length)]!;
  for (let left = edits; left > 0; left--) {
    const room = ROOMS[prng.below(ROOMS.length)]!;
    const count = 1 + prng.below(3);
    log.append(room, Array.from({ length: count }, () => ({ user: anyone(), bytes: [10, 200, 5_000][prng.below(3)]!, time })));
    if (left % 4 === 0) log.tell(room, { kind: "deeds", deeds: [{ user: anyone(), kind: "comment", times: count }] }, time);
    if (left % 10 === 0) log.tell(room, { kind: "present", users: [...new Set([anyone(), anyone()])] }, time);
  }
}

async function counted(log: MadeUpLog, { ports }: Started): Promise<boolean> {
  try {
    const applied = await Promise.all(ROOMS.map(async (room) => {
      const { seq, activity } = (await ports.boards.load(room))?.applied ?? NOTHING_APPLIED;
      return seq === log.editsOf(room).length && activity === log.lastTold(room);
    }));
    return applied.every(Boolean);
  } catch {
    return false; // Redis is away.
  }
}

test("[LB1] every room's boards are counted in every window, across the ends of all of them", { timeout: 60_000 }, async () => {
  const [log, clock, prng] = [new MadeUpLog(1), new SetClock(NEW_YEARS_EVE), new Prng(1)];
  const started = await start("lb1", log, clock, { boardTail: "ordered", boardReadMembersMax: "6" }); // Two of eight are beyond the first ones.
  for (let minute = 0; minute < 40; minute++) {
    type(log, prng, clock.wallNow(), 10);
    clock.advance(MINUTE_MS);
  }
  await eventually("all is counted", () => counted(log, started));
  await expectReference(log, started);
  await expectTenantReference(log, started);
});

test("[LB2] Redis killed, flushed, and emptied while edits go on: all boards are put back and equal what they were", { timeout: 120_000 }, async () => {
  const [log, clock, prng] = [new MadeUpLog(1), new SetClock(NEW_YEARS_EVE), new Prng(2)];
  const started = await start("lb2", log, clock);
  for (let round = 0; round < 6; round++) {
    type(log, prng, clock.wallNow(), 40);
    await eventually("all is counted", () => counted(log, started));
    const seen = (await started.registry.getSingleMetric("coroom_boards_checkpoint_seconds")!.get()).values.length;
    if (round % 2 === 0) await eventually("there are checkpoints", async () => (await started.registry.getSingleMetric("coroom_boards_checkpoint_seconds")!.get()).values.length >= seen && (await started.ports.checkpoints.rooms(0)).length === ROOMS.length);
    type(log, prng, clock.wallNow(), 20);
    if (round % 3 === 0) await started.line.redis.flushall();
    else {
      if (round % 3 === 1) await started.line.redis.flushall();
      redisServer.kill("SIGKILL");
      await redisServer.restart();
    }
    type(log, prng, clock.wallNow(), 20);
    clock.advance(7 * MINUTE_MS);
  }
  await eventually("all is counted", () => counted(log, started));
  await expectReference(log, started);
  await expectTenantReference(log, started);
});

test("[LB3] rooms that nobody edits any more get their boards back too", { timeout: 60_000 }, async () => {
  const [log, clock, prng] = [new MadeUpLog(1), new SetClock(NEW_YEARS_EVE), new Prng(3)];
  const started = await start("lb3", log, clock);
  type(log, prng, clock.wallNow(), 60);
  await eventually("all is counted", () => counted(log, started));
  await eventually("all is in checkpoints", async () => (await started.ports.leases.read(0)).lease?.floor === (await log.end(0)));
  await started.line.redis.flushall();
  await eventually("all is put back", () => counted(log, started));
  await expectReference(log, started);
  await expectTenantReference(log, started);
});

test("[LB4] several leaderboards share the log, and stopped, started and forgotten ones among them change no score", { timeout: 120_000 }, async () => {
  const [log, clock, prng] = [new MadeUpLog(2), new SetClock(NEW_YEARS_EVE), new Prng(4)];
  const flags = { logPartitions: "2" };
  let [first, second] = [await start("lb4", log, clock, flags), await start("lb4", log, clock, flags)];
  for (let round = 0; round < 6; round++) {
    type(log, prng, clock.wallNow(), 60);
    if (round % 2 === 0) {
      await first.host.stop();
      first = await start("lb4", log, clock, flags);
    } else {
      // Cut off from its leases it believes in them no longer than the next renewal, while another takes over.
      const lease = await second.ports.leases.read(round % 4 === 1 ? 0 : 1);
      await second.ports.leases.write(round % 4 === 1 ? 0 : 1, { holder: "", floor: lease.lease?.floor ?? 0 }, lease.revision);
    }
    clock.advance(5 * MINUTE_MS);
    if (round % 3 === 2) await eventually("all is counted", () => counted(log, second));
  }
  type(log, prng, clock.wallNow(), 20);
  await eventually("all is counted", () => counted(log, second));
  await expectReference(log, second);
  await expectTenantReference(log, second);
});

test("[LB5] a window that ended is archived once, and read from there when Redis has it no more", { timeout: 60_000 }, async () => {
  const [log, clock, prng] = [new MadeUpLog(1), new SetClock(NEW_YEARS_EVE), new Prng(5)];
  const started = await start("lb5", log, clock);
  const other = await start("lb5", log, clock);
  type(log, prng, clock.wallNow(), 60);
  await eventually("all is counted", () => counted(log, started));
  const ended = ["2028-12-31T23", "2028-12-31", "2028-W52", "2028-12", "2028"];
  expect(await started.ports.archive.read(ROOMS[0]!, parseWindow(ended[0]!)!)).toBeUndefined();
  clock.advance(30 * MINUTE_MS);
  for (const id of ended) for (const room of ROOMS) await eventually(`${id} of ${room} is archived`, async () => (await started.ports.archive.read(room, parseWindow(id)!)) !== undefined);
  await eventually("nothing is left to archive but what still runs", async () => (await started.ports.closings.due(0, clock.wallNow(), 100)).length === 0);
  const hour = started.line.redis;
  expect(await hour.pttl(keysOf("lb5").board(ROOMS[0]!, "everyone", { id: ended[0]! }).full)).toBeGreaterThan(0);
  expect(await hour.pttl(keysOf("lb5").board(ROOMS[0]!, "everyone", { id: "all" }).full)).toBe(-1);
  // A second writer changes nothing.
  const before = await started.ports.archive.read(ROOMS[0]!, parseWindow("2028")!);
  expect(await other.ports.archive.write(ROOMS[0]!, parseWindow("2028")!, { applied: before!.applied, boards: [] })).toBe("there");
  for (const room of ROOMS) for (const id of ended) await hour.del(Object.values(keysOf("lb5").board(room, "everyone", { id })));
  for (const id of ended) await eventually(`${id} of the tenant is archived`, async () => (await started.ports.tenantArchive.read(TENANT, parseWindow(id)!)) !== undefined);
  for (const id of ended) await hour.del(keysOf("lb5").tenant(TENANT, { id }), keysOf("lb5").people(TENANT, { id }));
  clock.advance(1_000); // So that no snapshot is shared any more.
  await expectReference(log, other);
  await expectTenantReference(log, other);
  const rooms = await other.host.tenants.page(TENANT, "2028", { offset: 0, limit: 10 });
  expect(rooms.kind === "rooms" && [rooms.about.isArchived, rooms.about.rooms, rooms.about.people]).toEqual([true, ROOMS.length, USERS.length]);
});

test("[LB8] whoever dies between writing a closed window and letting it go: another finishes it, and each is written once", { timeout: 60_000 }, async () => {
  const [log, clock, prng] = [new MadeUpLog(1), new SetClock(NEW_YEARS_EVE), new Prng(8)];
  const written: string[] = [];
  const watched = (ports: LeaderboardPorts): LeaderboardPorts => ({
    ...ports,
    archive: {
      ...ports.archive,
      write: async (room, window, archived) => {
        const outcome = await ports.archive.write(room, window, archived);
        if (outcome === "written") written.push(`${room} ${window.id}`);
        return outcome;
      },
    },
    tenantArchive: {
      ...ports.tenantArchive,
      write: async (tenant, window, archived) => {
        const outcome = await ports.tenantArchive.write(tenant, window, archived);
        if (outcome === "written") written.push(`${tenant} ${window.id}`);
        return outcome;
      },
    },
  });
  const dying = (ports: LeaderboardPorts): LeaderboardPorts => ({
    ...watched(ports),
    closings: { ...ports.closings, finish: () => Promise.reject(new Error("it died")) },
    closedTenants: { ...ports.closedTenants, finish: () => Promise.reject(new Error("it died")) },
  });
  const first = await start("lb8", log, clock, {}, dying);
  type(log, prng, clock.wallNow(), 60);
  await eventually("all is counted", () => counted(log, first));
  clock.advance(30 * MINUTE_MS);
  await eventually("it has written some and let none go", () => written.length > 0);
  const second = await start("lb8", log, clock, {}, watched);
  await first.host.stop();
  const ended = ["2028-12-31T23", "2028-12-31", "2028-W52", "2028-12", "2028"];
  const wanted = [...ROOMS, TENANT].flatMap((owner) => ended.map((id) => `${owner} ${id}`)).sort();
  await eventually("all is written", () => written.length >= wanted.length);
  await eventually("nothing is left", async () => (await second.ports.closings.due(0, clock.wallNow(), 100)).length + (await second.ports.closedTenants.due(clock.wallNow(), 100)).length === 0);
  expect([...written].sort()).toEqual(wanted);
  await expectReference(log, second);
});

test("[LB6] a watched board is published when it changed, at most once in the push interval, and only by who counts it", { timeout: 60_000 }, async () => {
  const [log, clock] = [new MadeUpLog(1), new SetClock(NEW_YEARS_EVE)];
  const flags = { boardPushMs: "200", boardWatchMs: "3600000" };
  const [first, second] = [await start("lb6", log, clock, flags), await start("lb6", log, clock, flags)];
  const room = ROOMS[0]!;
  const all = () => [...first.shown, ...second.shown];
  const watch = () => [first, second].forEach(({ host }) => host.receiveWatch({ room, role: "everyone", window: "day", isNew: false }));
  log.append(room, [{ user: USERS[0]!, bytes: 1, time: clock.wallNow() }]);
  watch();
  await eventually("the first state is published", () => all().at(-1)?.seq === 1);
  expect(all().at(-1)).toMatchObject({ room, window: "day", windowId: "2028-12-31", seq: 1, members: 1, ranking: [["ann", 1, ""]] });
  const begin = performance.now();
  for (let edit = 0; edit < 100; edit++) {
    log.append(room, [{ user: USERS[edit % 2]!, bytes: 1, time: clock.wallNow() }]);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  await eventually("the last state is published", () => all().at(-1)?.ranking.every(([, score]) => score === 20) === true);
  expect(all().length).toBeLessThanOrEqual(3 + (performance.now() - begin) / 200);
  const count = all().length;
  // Over the cap nothing moves: the room is counted on, and nothing is published.
  for (const user of USERS.slice(0, 2)) log.append(room, [{ user, bytes: 1, time: clock.wallNow() }]);
  await eventually("all is counted", async () => (await first.ports.boards.load(room))?.applied.seq === 103);
  await new Promise((resolve) => setTimeout(resolve, 400)); // Twice the push interval, in which nothing may come.
  expect(all().length).toBe(count);
  clock.advance(30 * MINUTE_MS);
  await eventually("another day begins for those who watch", () => all().at(-1)?.windowId === "2029-01-01");
  expect(all().length).toBeLessThanOrEqual(count + 2); // Set ahead, the counter is behind for a moment, and current again.
});

test("[LB7] while Redis is away the log goes on and boards say so; afterwards they are right", { timeout: 60_000 }, async () => {
  const [log, clock, prng] = [new MadeUpLog(1), new SetClock(NEW_YEARS_EVE), new Prng(7)];
  const started = await start("lb7", log, clock, { boardBehindMsMax: "1500" });
  type(log, prng, clock.wallNow(), 30);
  await eventually("all is counted", () => counted(log, started));
  const question = { room: ROOMS[0]!, role: "everyone", window: "all", ranking: "unique" } as const;
  await eventually("the boards are up to date", async () => {
    const answer = await started.host.reader.page(question, { offset: 0, limit: 3 });
    return answer.kind === "page" && !answer.about.isBehind;
  });
  redisServer.kill("SIGSTOP");
  type(log, prng, clock.wallNow(), 30);
  clock.advance(10_000);
  redisServer.kill("SIGCONT");
  const answer = await started.host.reader.page(question, { offset: 0, limit: 3 });
  expect(answer.kind === "page" && answer.about.isBehind).toBe(true);
  await eventually("all is counted", () => counted(log, started));
  clock.advance(1_000); // So that no snapshot from before is shared any more.
  await expectReference(log, started);
});
