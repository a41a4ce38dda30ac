/**
 * Leaderboards for the tests of one file: on a real redis-server and nats-server, reading a log that is made up, at any
 * date one likes.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { jetstream } from "@nats-io/jetstream";
import { Registry } from "prom-client";
import { afterAll, afterEach, beforeAll } from "vitest";

import type { Engine } from "../../engines/engine.ts";
import type { BoardSnapshot } from "../../shared/bus/board-messages.ts";
import { subjectsOf } from "../../shared/bus/subjects.ts";
import type { Clock } from "../../shared/time/clock.ts";
import { readSettings } from "../../shared/settings/settings.ts";
import type { Millis, UnixMillis } from "../../shared/ids.ts";
import { kvLeases } from "../../shared/io/kv-leases.ts";
import { connectNats, type NatsConnection } from "../../shared/io/nats.ts";
import { pinoLog } from "../../shared/io/pino-log.ts";
import { type RedisConnection, redisConnection } from "../../shared/io/redis.ts";
import { systemClock } from "../../shared/io/system-clock.ts";
import { sharedSettings } from "../../shared/settings/common-settings.ts";
import { startTestNats, startTestRedis } from "../../test/contract/test-engines.ts";
import { leaderboardSettings } from "../config.ts";
import { kvArchive } from "../io/kv-archive.ts";
import { kvCheckpoints } from "../io/kv-checkpoints.ts";
import { redisClosings, redisProgress } from "../io/redis-progress.ts";
import { redisTenants } from "../io/redis-tenants.ts";
import { keysOf } from "../boards/keys.ts";
import { LeaderboardHost, type LeaderboardPorts } from "../leaderboard-host.ts";
import { leaderboardMetrics } from "../metrics.ts";
import type { MadeUpLog } from "./made-up-log.ts";
import { redisBoard } from "../io/redis-board-writes.ts";
import { redisNames } from "../io/redis-ports.ts";

const LOG = pinoLog({}, process.env["TEST_LOG"] ?? "silent");
/** Points of a user in a minute at most: small, so that the cap and ties are met often. */
export const POINTS_PER_MINUTE_MAX = 20;

/** Runs on from where a test sets it. */
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
  readonly line: RedisConnection;
  readonly shown: BoardSnapshot[];
  readonly registry: Registry;
};

export class LeaderboardRig {
  #dataDir = "";
  #redis: Engine | undefined;
  #natsServer: Engine | undefined;
  #nats: NatsConnection | undefined;
  readonly #lines: RedisConnection[] = [];
  readonly #hosts: LeaderboardHost[] = [];
  #services = 0;

  private constructor() {}

  /** To be called once, outside of the tests. What a test started ends with it. */
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

  /** `meddle`: with what it sees of the world. */
  async start(
    environment: string,
    log: MadeUpLog,
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
    const line = redisConnection(this.redis.url, LOG);
    this.#lines.push(line);
    const boards = redisBoard(line.redis, keys, { hotMembers: 2 * config.boardShownMax, tail: config.boardTail, roles: config.boardRoles });
    const tenants = redisTenants(line.redis, keys, { roles: config.boardRoles });
    const service = `service-${++this.#services}`;
    const shown: BoardSnapshot[] = [];
    let names = 0;
    const ports = meddle({
      boards,
      reads: boards,
      closings: redisClosings(line, keys),
      progress: redisProgress(line, keys),
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
      names: redisNames(line.redis, keys, { namesMax: 10 }),
      shown: { publish: (news) => void (news.kind === "shown" && shown.push(news)) },
    });
    const registry = new Registry();
    const host = new LeaderboardHost(ports, { ...config, service }, { clock, log: LOG, metrics: leaderboardMetrics(registry) });
    this.#hosts.push(host);
    return { host, ports, line, shown, registry };
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
    for (const line of this.#lines.splice(0)) line.stop();
  }

  async #end(): Promise<void> {
    await this.#nats?.close();
    await Promise.all([this.#redis?.stop(), this.#natsServer?.stop()]);
    rmSync(this.#dataDir, { recursive: true, force: true });
  }
}
