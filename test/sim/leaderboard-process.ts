/**
 * One run of a leaderboard. It assembles the parts as `leaderboard/main.ts` does, over a simulated log, Redis and
 * checkpoints. No process sends activities.
 */

import type { Seq } from "../../shared/ids.ts";
import { pause } from "../../shared/time/pause.ts";
import { type BoardsDump, isAhead } from "../../leaderboard/boards/board.ts";
import { LeaderboardHost } from "../../leaderboard/leaderboard-host.ts";
import type { ActivityStream } from "../../leaderboard/ports.ts";
import type { LeaderboardPortsInSim } from "./planted-hooks.ts";
import { kvLeasesOf, kvValuesOf, followLogOf } from "./service-ports.ts";
import { SimNatsConnection } from "./sim-nats-connection.ts";
import type { SimProcess } from "./sim-process.ts";
import type { World } from "./world.ts";

/** Timeout of a request to Redis. */
const REDIS_MS_MAX = 500;
const REST_MS = 60_000;

export class LeaderboardProcess {
  readonly process: SimProcess;
  readonly connection: SimNatsConnection;
  readonly host: LeaderboardHost;
  readonly #name: string;
  readonly #world: World;

  constructor(world: World, name: string) {
    this.#name = name;
    this.#world = world;
    this.process = world.process(name);
    this.connection = new SimNatsConnection(this.process, world.nats, world.scheduler, world.latencyMs);
    const ports = this.#ports();
    this.host = new LeaderboardHost(
      world.planted?.leaderboard?.(ports) ?? ports,
      { ...world.settings.leaderboard, service: name, logPartitions: 1 },
      { clock: this.process.clock, log: world.logOf(name), metrics: world.telemetry.leaderboard, isRedisAway: () => false },
    );
  }

  /** An orderly shutdown. */
  async stop(): Promise<void> {
    await this.host.stop();
    this.process.die();
    this.connection.end();
  }

  #ports(): LeaderboardPortsInSim {
    const { log: jetstream, stores, settings } = this.#world;
    const { redis, boardLeases } = stores!;
    const { clock } = this.process;
    const ask = <Answer>(run: () => Answer): Promise<Answer> => this.#askRedis(run);
    const readFrom = <Answer>(run: (asOf: number) => Answer): Promise<Answer> =>
      this.connection.read(run, (side) => jetstream.asOf("log", side));
    return {
      log: {
        follow: (_, from, signal) => followLogOf({ jetstream, readFrom, clock, restMs: settings.leaderboard.boardReadMs }, from, signal),
        end: () => readFrom((asOf) => jetstream.lastSeq(asOf)),
        readNow: () => Promise.resolve(),
      },
      activities: this.#noActivities(),
      activityRemoval: { removeAll: () => Promise.resolve() },
      leases: kvLeasesOf(this.connection, boardLeases, () => jetstream.takesWrites),
      checkpoints: this.#checkpoints(),
      boards: {
        load: (room) => ask(() => redis.load(room)),
        apply: (room, batch) => ask(() => redis.apply(room, batch)),
        dump: (room, windows) => ask(() => redis.dump(room, windows)),
        restore: (room, dump) => ask(() => redis.restore(room, dump)),
        remove: (room) => ask(() => redis.remove(room)),
      },
      progress: this.#progress(),
      ...NOT_IN_A_RUN,
    };
  }

  /** Behaves as `leaderboard/io/redis-ports.ts`. */
  #progress(): LeaderboardPortsInSim["progress"] {
    const { redis } = this.#world.stores!;
    const service = this.#name;
    const breaksAt = new Map<number, number>();
    let sentinels = 0;
    return {
      begin: async (partition, word) => {
        const sentinel = { service, number: ++sentinels };
        breaksAt.set(partition, redis.breaks);
        await this.#askRedis(() => redis.setWord(partition, { ...word, ...sentinel }));
        return sentinel;
      },
      beat: async (partition, word, last) => {
        if (last === undefined) return { kind: "lost" };
        const now = redis.breaks;
        const next = { service, number: ++sentinels };
        if (!(await this.#askRedis(() => redis.replaceWord(partition, last, { ...word, ...next })))) return { kind: "lost" };
        const isKept = breaksAt.get(partition) === now && last.service === service;
        breaksAt.set(partition, now);
        return { kind: isKept ? "kept" : "doubtful", sentinel: next };
      },
      read: (partition) => this.#askRedis(() => redis.word(partition)),
    };
  }

  /** Behaves as `leaderboard/io/kv-checkpoints.ts`: writes the object first, then the entry that names it. */
  #checkpoints(): LeaderboardPortsInSim["checkpoints"] {
    const { boardCheckpoints, boards } = this.#world.stores!;
    const takesWrites = (): boolean => this.#world.log.takesWrites;
    const values = kvValuesOf(this.connection, boardCheckpoints, {
      takesWrites,
      read: (room) =>
        this.connection.read(
          (asOf) => boardCheckpoints.entryAsOf(room, asOf),
          (side) => this.#world.log.asOf("checkpoints", side),
        ),
    });
    const askObjects = <Answer>(run: () => Answer): Promise<Answer> => this.connection.ask(run, () => boards.answers());
    let named = 0;
    return {
      mark: async (room) => {
        const { entry, revision } = await values.read(room);
        if (entry === undefined) return { seq: 0 as Seq, activity: 0, windows: [], revision, isDeleted: false };
        if (entry.kind === "deleted") return { seq: 0 as Seq, activity: 0, windows: [], revision, isDeleted: true };
        return {
          epoch: entry.epoch,
          time: entry.time,
          seq: entry.seq,
          activity: entry.activity,
          windows: entry.windows,
          revision,
          isDeleted: false,
        };
      },
      read: async (room) => {
        const { entry } = await values.read(room);
        if (entry?.kind !== "boards") return undefined;
        const dump = await askObjects(() => boards.read(entry.object));
        if (dump === undefined) throw new Error(`the boards' checkpoint of room ${room} was replaced while it was read`);
        return dump;
      },
      write: async (room, dump, revision) => {
        const object = `${room}/${this.#name}-${++named}`;
        if (!(await askObjects(() => boards.write(object, structuredClone(dump))))) throw new Error(`there is no storage for ${object}`);
        const { entry: before } = await values.read(room);
        if (before !== undefined && (before.kind === "deleted" || isAhead(before, dump.applied))) {
          await askObjects(() => boards.remove(object));
          return { kind: "superseded" };
        }
        const windows = windowsOf(dump);
        const { epoch, time, seq, activity } = dump.applied;
        const entry = { kind: "boards" as const, epoch, time, seq, activity, windows, object };
        const write = await values.write(room, entry, revision);
        const old = write.kind === "written" ? before?.object : write.isReplaced ? object : undefined;
        if (old !== undefined) await askObjects(() => boards.remove(old));
        return write;
      },
      remove: async (room) => {
        const { entry, revision } = await values.read(room);
        if (entry?.kind === "deleted") return entry.windows;
        const windows = entry?.windows ?? [];
        const write = await values.write(room, { kind: "deleted", windows }, revision);
        if (write.kind === "superseded")
          throw new Error(`the boards' checkpoint of room ${room} is written by another leaderboard as well`);
        if (entry !== undefined) await askObjects(() => boards.remove(entry.object));
        return windows;
      },
      rooms: () =>
        this.connection.ask(
          () => [...boardCheckpoints.all().keys()],
          () => boardCheckpoints.answers(),
        ),
      sweep: () => Promise.resolve(0),
    };
  }

  #noActivities(): ActivityStream {
    const { clock } = this.process;
    return {
      follow: async function* (_, _after, signal) {
        while (!signal.aborted) await pause(clock, REST_MS, signal);
        yield* [];
      },
      end: () => Promise.resolve(0),
      last: () => Promise.resolve(0),
      readNow: () => Promise.resolve(),
      forget: () => Promise.resolve(),
      forgotten: () => Promise.resolve(0),
    };
  }

  /** A request and its answer. Fails if Redis is unavailable or its connections broke meanwhile. */
  #askRedis<Answer>(run: () => Answer): Promise<Answer> {
    const { scheduler, latencyMs, stores } = this.#world;
    const { redis } = stores!;
    const { breaks } = redis;
    return new Promise((resolve, reject) => {
      const answer = (settle: () => void): void => void scheduler.after(latencyMs(), () => this.process.run(settle));
      scheduler.after(latencyMs(), () => {
        if (this.process.state === "dead") return;
        if (!redis.answers()) return void this.process.clock.after(REDIS_MS_MAX, () => reject(new Error("Redis does not answer")));
        if (redis.breaks !== breaks) return answer(() => reject(new Error("the connection to Redis broke")));
        const value = run();
        scheduler.after(latencyMs(), () =>
          this.process.run(() => (redis.breaks === breaks ? resolve(value) : reject(new Error("the connection to Redis broke")))),
        );
      });
    });
  }
}

/** No client watches boards in a run, and no window ends. */
const NOT_IN_A_RUN = {
  closings: {
    open: () => Promise.resolve(),
    due: () => Promise.resolve([]),
    finish: () => Promise.resolve(),
    remove: () => Promise.resolve(),
  },
  tenants: {
    sendTotals: () => Promise.resolve(),
    remove: () => Promise.resolve(),
  },
  closedTenants: { due: () => Promise.resolve([]), finish: () => Promise.resolve() },
  archive: { write: () => Promise.resolve("written"), read: () => Promise.resolve(undefined), remove: () => Promise.resolve() },
  names: { write: () => Promise.resolve("written"), read: () => Promise.resolve(new Map()) },
  reads: {
    read: () => Promise.reject(new Error("nobody reads boards in a run")),
    members: () => Promise.resolve([]),
    places: () => Promise.resolve(undefined),
    all: async function* () {
      yield* [];
    },
  },
  shown: { publish: () => {} },
} satisfies Partial<LeaderboardPortsInSim>;

function windowsOf({ boards }: BoardsDump): BoardsDump["boards"][number]["window"][] {
  return [...new Map(boards.map(({ window }) => [window.id, window])).values()];
}
