/**
 * Leaderboards for the tests of one file, on a real redis-server and nats-server. They read a made-up log at a date that
 * the test sets.
 */

import { jetstream } from "@nats-io/jetstream";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Registry } from "prom-client";
import { afterAll, afterEach, beforeAll, expect } from "vitest";

import type { Engine } from "../../engines/engine.ts";
import type { BoardSnapshot } from "../../shared/bus/board-messages.ts";
import { subjectsOf } from "../../shared/bus/subjects.ts";
import type { Prng } from "../../shared/collections/prng.ts";
import { type Millis, type RoomKey, roomOf, type TenantId, type UnixMillis, type UserId } from "../../shared/ids.ts";
import { kvLeases } from "../../shared/io/kv-leases.ts";
import { connectNats, type NatsConnection } from "../../shared/io/nats.ts";
import { pinoLog } from "../../shared/io/pino-log.ts";
import { type RedisConnection, redisConnection } from "../../shared/io/redis.ts";
import { systemClock } from "../../shared/io/system-clock.ts";
import { sharedSettings } from "../../shared/settings/common-settings.ts";
import { readSettings } from "../../shared/settings/settings.ts";
import type { Clock } from "../../shared/time/clock.ts";
import { startTestNats, startTestRedis } from "../../test/contract/test-engines.ts";
import { eventually } from "../../test/system/eventually.ts";
import { type CountedPosition, NOTHING_APPLIED } from "../boards/board.ts";
import { keysOf, TENANT_RANKINGS, tenantBoard } from "../boards/keys.ts";
import { parseWindow, WINDOW_KINDS, type WindowKind } from "../boards/windows.ts";
import { leaderboardSettings } from "../config.ts";
import { kvArchive } from "../io/kv-archive.ts";
import { kvCheckpoints } from "../io/kv-checkpoints.ts";
import { redisBoard } from "../io/redis-boards.ts";
import { redisClosings, redisNames, redisProgress } from "../io/redis-ports.ts";
import { redisTenants } from "../io/redis-tenants.ts";
import { LeaderboardHost, type LeaderboardPorts } from "../leaderboard-host.ts";
import { leaderboardMetrics } from "../metrics.ts";
import type { FakeEditLog } from "./fake-edit-log.ts";
import type { BoardQuestion } from "../reading/board-answers.ts";
import { referenceBoards, referenceTenantBoards } from "./reference-boards.ts";

const LOG = pinoLog({}, process.env["TEST_LOG"] ?? "silent");
/** Maximum points of a user per minute: small, so that caps and ties are frequent. */
const POINTS_PER_MINUTE_MAX = 20;

/** Runs from the time that a test sets. */
export class SetClock implements Clock {
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

export type Started = {
  readonly host: LeaderboardHost;
  readonly ports: LeaderboardPorts;
  readonly connection: RedisConnection;
  readonly shown: BoardSnapshot[];
  readonly registry: Registry;
  /** Sentences of all warnings. */
  readonly warnings: readonly string[];
};

export class LeaderboardRig {
  #dataDir = "";
  #redis: Engine | undefined;
  #natsServer: Engine | undefined;
  #nats: NatsConnection | undefined;
  readonly #connections: RedisConnection[] = [];
  readonly #hosts: LeaderboardHost[] = [];
  #services = 0;

  private constructor() {}

  /** Call once, outside the tests. Everything that a test started stops with the test. */
  static forThisFile(): LeaderboardRig {
    const rig = new LeaderboardRig();
    beforeAll(() => rig.#begin());
    afterEach(() => rig.#endHosts());
    afterAll(() => rig.#end());
    return rig;
  }

  get natsUrl(): string {
    return this.#natsServer!.url;
  }

  get redis(): Engine {
    return this.#redis!;
  }

  /** Waits for the connection to Redis, because commands fail before it. `meddle` replaces ports of the leaderboard. */
  async start(
    environment: string,
    log: FakeEditLog,
    clock: Clock,
    flags: Record<string, string> = {},
    meddle: (ports: LeaderboardPorts) => LeaderboardPorts = (ports) => ports,
  ): Promise<Started> {
    const config = readSettings(
      { ...sharedSettings, ...leaderboardSettings },
      {
        env: {},
        flags: {
          environment,
          boardsLeaseMs: "400",
          boardTotalsMs: "50",
          boardBatchMs: "20",
          boardShownMax: "3",
          boardPointsPerMinuteMax: String(POINTS_PER_MINUTE_MAX),
          boardCheckpointMsMax: "300",
          boardArchiveGraceMs: "1",
          ...flags,
        },
      },
    );
    const [subjects, keys, nats] = [subjectsOf(environment), keysOf(environment), this.#nats!];
    const connection = redisConnection(this.redis.url, LOG);
    this.#connections.push(connection);
    await eventually("Redis is connected", () => connection.redis.status === "ready");
    const boards = redisBoard(connection.redis, keys, {
      hotMembers: 2 * config.boardShownMax,
      tail: config.boardTail,
      roles: config.boardRoles,
    });
    const tenants = redisTenants(connection.redis, keys, { roles: config.boardRoles, hotMembers: 2 * config.boardShownMax });
    const service = `service-${++this.#services}`;
    const shown: BoardSnapshot[] = [];
    let names = 0;
    const ports = meddle({
      boards,
      reads: boards,
      closings: redisClosings(connection, keys, config.logPartitions),
      progress: redisProgress(connection, keys),
      log,
      activities: log.activities,
      activityRemoval: { removeAll: async () => {} },
      leases: await kvLeases(jetstream(nats), subjects.boardsBucket, 1),
      checkpoints: await kvCheckpoints(nats, subjects.boardCheckpointsBucket, {
        replicas: 1,
        partitions: config.logPartitions,
        newName: () => `${service}-${++names}`,
      }),
      ...(await kvArchive(nats, subjects, { replicas: 1, daysMax: 400 })),
      tenants,
      closedTenants: tenants,
      names: redisNames(connection.redis, keys, { perRoom: 10, perTenant: 20 }),
      shown: { publish: (update) => void (update.kind === "shown" && shown.push(update)) },
    });
    const registry = new Registry();
    const warnings: string[] = [];
    const warn = (facts: object, sentence: string): void => {
      warnings.push(sentence);
      LOG.warn(facts, sentence);
    };
    const host = new LeaderboardHost(
      ports,
      { ...config, service },
      { clock, log: { ...LOG, warn }, metrics: leaderboardMetrics(registry), isRedisAway: connection.isAway },
    );
    this.#hosts.push(host);
    return { host, ports, connection, shown, registry, warnings };
  }

  async #begin(): Promise<void> {
    this.#dataDir = mkdtempSync(join(tmpdir(), "coroom-leaderboard-"));
    [this.#redis, this.#natsServer] = await Promise.all([
      startTestRedis({ dataDir: join(this.#dataDir, "redis") }),
      startTestNats({ dataDir: join(this.#dataDir, "nats") }),
    ]);
    this.#nats = await connectNats({ servers: this.#natsServer.url, name: "test" });
  }

  async #endHosts(): Promise<void> {
    await Promise.all(this.#hosts.splice(0).map((host) => host.stop()));
    for (const connection of this.#connections.splice(0)) connection.stop();
  }

  async #end(): Promise<void> {
    await this.#nats?.close();
    await Promise.all([this.#redis?.stop(), this.#natsServer?.stop()]);
    rmSync(this.#dataDir, { recursive: true, force: true });
  }
}

export const USERS = ["ann", "bob", "cy", "dee", "eve", "fay", "gus", "hal"] as UserId[];
export const ROOMS = Array.from({ length: 6 }, (_, index) => `acme.room-${index}` as RoomKey);
export const TENANT = "acme" as TenantId;
/** Close to the end of every window: the last hour of a day, week, month and year. */
export const NEW_YEARS_EVE = Date.UTC(2028, 11, 31, 23, 40) as UnixMillis;
export const MINUTE_MS = 60_000;
export const SCORING = { ...readSettings(leaderboardSettings, { env: {}, flags: {} }), boardPointsPerMinuteMax: POINTS_PER_MINUTE_MAX };

/**
 * Compares every window of every room, read from Redis or, after its end, from the archive. `kinds`: the counted windows.
 * Others must be unknown.
 */
export async function expectReference(log: FakeEditLog, { host }: Started, kinds: readonly WindowKind[] = WINDOW_KINDS): Promise<void> {
  for (const room of ROOMS) {
    for (const [window, standings] of referenceBoards(log.doneIn(room), SCORING)) {
      if (!kinds.includes(parseWindow(window)!.kind)) {
        const question = { owner: room, role: "everyone", window, ranking: "unique" } as const;
        expect(await host.reader.page(question, { offset: 0, limit: 3 }), `${room} ${window}`).toEqual({ kind: "unknown-window" });
        continue;
      }
      const expected = standings.map(({ member, score }) => ({ user: member, score }));
      const answer = await host.reader.page({ owner: room, role: "everyone", window, ranking: "unique" }, { offset: 0, limit: 3 });
      expect(answer.kind === "page" ? answer.ranking.map(({ user, score }) => ({ user, score })) : answer, `${room} ${window}`).toEqual(
        expected.slice(0, 3),
      );
      if (answer.kind === "page") {
        expect([answer.about.members, answer.about.points], `${room} ${window}`).toEqual([
          standings.length,
          standings.reduce((sum, { score }) => sum + score, 0),
        ]);
      }
      for (const [index, { member, score }] of standings.entries()) {
        const own = await host.reader.member({ owner: room, role: "everyone", window, ranking: "unique" }, member, 1);
        expect(own.kind === "member" ? own.own : own, `${room} ${window} ${member}`).toMatchObject({
          user: member,
          score,
          rank: index + 1,
        });
      }
    }
  }
}

/** Compares every window of the tenant's people and rooms, even if scores were sent repeatedly, page by page and member by member. */
export async function expectTenantReference(
  log: FakeEditLog,
  { host }: Started,
  rooms: readonly RoomKey[] = ROOMS,
  kinds: readonly WindowKind[] = WINDOW_KINDS,
): Promise<void> {
  const done = new Map(rooms.map((room) => [roomOf(room) as string, log.doneIn(room)]));
  for (const [window, boards] of referenceTenantBoards(done, SCORING)) {
    if (!kinds.includes(parseWindow(window)!.kind)) continue;
    for (const ranking of TENANT_RANKINGS) {
      const question: BoardQuestion = { owner: tenantBoard(TENANT, ranking), role: "everyone", window, ranking: "unique" };
      const expected = boards[ranking].map(({ member, score }, index) => ({ rank: index + 1, user: member, score }));
      await eventually(`the ${ranking} of ${window} are ${JSON.stringify(expected)}`, async () => {
        const pages = [
          await host.reader.page(question, { offset: 0, limit: 2 }),
          await host.reader.page(question, { offset: 2, limit: 10 }),
        ];
        return JSON.stringify(pages.flatMap((page) => (page.kind === "page" ? page.ranking : []))) === JSON.stringify(expected);
      });
      for (const [index, own] of expected.entries()) {
        const answer = await host.reader.member(question, own.user, 1);
        expect(answer, `${ranking} ${window} ${own.user}`).toMatchObject({
          own,
          about: { members: expected.length, points: expected.reduce((sum, { score }) => sum + score, 0) },
          neighbours: expected.slice(Math.max(0, index - 1), index + 2),
        });
      }
    }
  }
}

export function type(log: FakeEditLog, prng: Prng, time: UnixMillis, edits: number): void {
  const anyone = (): UserId => USERS[prng.below(USERS.length)]!;
  for (let left = edits; left > 0; left--) {
    const room = ROOMS[prng.below(ROOMS.length)]!;
    const count = 1 + prng.below(3);
    log.append(
      room,
      Array.from({ length: count }, () => ({ user: anyone(), bytes: [10, 200, 5_000][prng.below(3)]!, time })),
    );
    if (left % 4 === 0) log.addActivity(room, { kind: "deeds", deeds: [{ user: anyone(), kind: "comment", times: count }] }, time);
    if (left % 10 === 0) log.addActivity(room, { kind: "present", users: [...new Set([anyone(), anyone()])] }, time);
  }
}

export function appliedOf(stored: Awaited<ReturnType<LeaderboardPorts["boards"]["load"]>>): CountedPosition {
  return stored === undefined || stored === "deleted" ? NOTHING_APPLIED : stored.applied;
}

export async function counted(log: FakeEditLog, { ports }: Started): Promise<boolean> {
  try {
    const applied = await Promise.all(
      ROOMS.map(async (room) => {
        const { seq, activity } = appliedOf(await ports.boards.load(room));
        return seq === log.editsOf(room).length && activity === log.lastActivity(room);
      }),
    );
    return applied.every(Boolean);
  } catch {
    return false; // Redis is away.
  }
}
