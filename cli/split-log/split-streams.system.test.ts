/**
 * A split of the log on real nats-servers: whatever step a kill interrupts, the next run completes the split, and every
 * message keeps its sequence, its time and its content.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DiscardPolicy, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { headers } from "nats";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";

import { partitionOf } from "../../shared/bus/subjects.ts";
import type { RoomKey } from "../../shared/ids.ts";
import { checkLogPartitions, ensureLogStreams, statedPartitions, statePartitions } from "../../shared/io/log-stream.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import { startNatsCluster } from "../../engines/nats-cluster.ts";
import { type RealNats, startRealNats, until } from "../../test/contract/real-nats.ts";
import { LogSplit } from "./split-log.ts";
import { planSplit } from "./split-plan.ts";
import { contentOf, type LogSystem, put, ROOMS, startLogSystem } from "./testing/log-system.ts";

let server: RealNats;
beforeAll(async () => {
  server = await startRealNats();
});
afterAll(() => server.stop());

/** Fails every request from the `after`-th on, like a command that is killed there. */
function cutAfter(nats: NatsConnection, after: number): NatsConnection {
  let requests = 0;
  const request: NatsConnection["request"] = async (subject, payload, options) => {
    if (++requests > after) throw new Error("killed");
    return nats.request(subject, payload, options);
  };
  return Object.assign(Object.create(nats) as NatsConnection, { request });
}

/** Appends one record to each subject, after its last sequence. Returns the sequence of the last one. */
async function putBatch({ nats }: LogSystem, ...records: readonly (readonly [string, number])[]): Promise<number | undefined> {
  for (const [index, [subject, expected]] of records.entries()) {
    const head = headers();
    head.set("Nats-Expected-Last-Subject-Sequence", String(expected));
    head.set("Nats-Batch-Id", `batch-${records[0]![0]}`);
    head.set("Nats-Batch-Sequence", String(index + 1));
    if (index < records.length - 1) nats.publish(subject, "batch", { headers: head });
    else {
      head.set("Nats-Batch-Commit", "1");
      return (await nats.request(subject, "batch", { headers: head, timeout: 10_000 })).json<{ seq?: number }>().seq;
    }
  }
  return undefined;
}

async function run(system: LogSystem, wanted: number, nats = system.nats): Promise<"nothing" | "completed"> {
  const manager = await jetstreamManager(nats, { checkAPI: false });
  const { subjects } = system;
  const plan = planSplit(await statedPartitions(manager, subjects), wanted);
  if (plan.kind === "refuse") throw new Error(plan.reason);
  if (plan.kind === "nothing") return "nothing";
  const split = new LogSplit({ nats, manager, subjects, print: () => {} }, plan);
  if (plan.kind === "cancel") await split.cancel();
  else {
    if (plan.kind === "copy") await split.copy();
    await split.move();
  }
  return "completed";
}

const countsOf = async ({ nats, subjects }: LogSystem, partitions: number): Promise<boolean> =>
  checkLogPartitions(nats, subjects, partitions).catch(() => false);

test.each([
  [1, 3],
  [2, 4],
])("[SPLS1] a split of %i partitions into %i that is killed at each of its requests is completed by the next runs", async (from, to) => {
  const system = await startLogSystem(server.url, `spls1-${from}`, from);
  const { manager, subjects, nats } = system;
  const [log, activities] = [await contentOf(system, "log", from), await contentOf(system, "activity", from)];
  expect(Object.keys(log.messages)).toHaveLength(ROOMS.length * 3 - 16);
  await statePartitions(manager, subjects, { kind: "copying", from, to });
  let kills = 0;
  for (;;) {
    const outcome = await run(system, to, cutAfter(nats, kills)).catch((error: unknown) => {
      if (!String(error).includes("killed") && !String((error as Error).cause).includes("killed")) throw error;
      return "killed" as const;
    });
    if (outcome !== "killed") break;
    kills += 1;
    expect(await countsOf(system, from), "no process starts meanwhile").toBe(false);
    expect(await countsOf(system, to)).toBe(false);
  }
  expect(kills).toBeGreaterThan(40);
  expect(await countsOf(system, to)).toBe(true);

  const after = await contentOf(system, "log", to);
  expect(after.messages).toEqual(log.messages);
  for (const [partition, end] of after.ends.entries()) expect(end).toBeGreaterThanOrEqual(log.ends[partition % from]!);
  const activitiesAfter = await contentOf(system, "activity", to);
  expect(activitiesAfter.messages).toEqual(activities.messages);
  const kvm = new Kvm(jetstream(nats));
  for (const bucket of [subjects.documentsBucket, subjects.boardsBucket]) {
    const leases = await kvm.open(bucket);
    for (let partition = 0; partition < to; partition++) {
      const lease = (await leases.get(`partition.${partition}`))!.json<{ floor: number; said?: object }>();
      const said = partition < from ? { said: { service: "killed", number: 4 } } : {};
      expect(lease).toEqual({ holder: "", floor: log.ends[partition % from], ...said });
    }
  }
  const points = await kvm.open(subjects.boardCheckpointsBucket);
  const keys: string[] = [];
  for await (const key of await points.keys()) keys.push(key);
  expect(keys.sort()).toEqual(ROOMS.map((room) => `${partitionOf(room, to)}.${room}`).sort());
  for (const key of keys) expect((await points.get(key))!.json()).toEqual({ room: key.slice(key.indexOf(".") + 1) });

  // A new partition is a stream like the others, and an owner continues in it.
  await ensureLogStreams(nats, subjects, { partitions: to, replicas: 1, bytesMax: 0 });
  const configs = await Promise.all(
    Array.from({ length: to }, async (_, partition) => {
      const { metadata: __, ...config } = (await manager.streams.info(subjects.logStream(partition))).config;
      return JSON.parse(
        JSON.stringify(config).replaceAll(`log.${partition}.`, "log.P.").replaceAll(`log_${partition}"`, 'log_P"'),
      ) as object;
    }),
  );
  for (const config of configs) expect(config).toEqual(configs[0]);
  expect(configs[0]).toMatchObject({ max_bytes: Math.floor((8 * 1024 ** 2) / to), max_msg_size: -1, discard: "new" });
  for (const room of ROOMS) {
    const seqs = Object.keys(log.messages).flatMap((key) => (key.startsWith(`${room} `) ? [Number(key.split(" ")[1])] : []));
    const former = await put(system, subjects.log(partitionOf(room, from), room), "late", 99_999);
    expect(former.error, "a former owner is fenced").toBeDefined();
    expect((await put(system, subjects.log(partitionOf(room, to), room), "next", Math.max(...seqs))).seq).toBeGreaterThan(
      Math.max(...log.ends),
    );
  }
});

test("[SPLS2] from the first step to the last no record and no activity is appended, so a paused owner's record is not acknowledged and lost", async () => {
  const system = await startLogSystem(server.url, "spls2", 1);
  const { manager, subjects, nats } = system;
  await statePartitions(manager, subjects, { kind: "copying", from: 1, to: 3 });
  const moved = ROOMS.find((room) => partitionOf(room, 3) !== 0)!;
  const last = (await manager.streams.getMessage(subjects.logStream(0), { last_by_subj: subjects.log(0, moved) }))!.seq;
  const split = new LogSplit({ nats, manager, subjects, print: () => {} }, { from: 1, to: 3 });
  await split.copy();
  expect((await put(system, subjects.log(0, moved), "late", last)).error).toMatchObject({ description: expect.stringMatching(/size/) });
  expect((await put(system, subjects.activity(0, moved), "late")).error).toBeDefined();
  await split.move();
  expect((await put(system, subjects.log(0, moved), "late", last)).error).toMatchObject({ err_code: 10_071 });
  expect((await put(system, subjects.log(partitionOf(moved, 3), moved), "next", last)).seq).toBeGreaterThan(last);
});

test("[SPLS3] a split that is cancelled while records are copied leaves the former log, which accepts records again", async () => {
  const system = await startLogSystem(server.url, "spls3", 2);
  const { manager, subjects, nats } = system;
  const before = await contentOf(system, "log", 2);
  await statePartitions(manager, subjects, { kind: "copying", from: 2, to: 4 });
  const copying = run(system, 4, cutAfter(nats, 25));
  await expect(copying).rejects.toThrow();
  expect(await run(system, 2)).toBe("completed");
  expect(await countsOf(system, 2)).toBe(true);
  expect(await contentOf(system, "log", 2)).toEqual(before);
  const names = (await manager.streams.list(subjects.logOfPartition("*")).next()).map(({ config }) => config.name).sort();
  expect(names).toEqual([subjects.logStream(0), subjects.logStream(1)]);
  for (const room of ROOMS) expect((await put(system, subjects.log(partitionOf(room, 2), room), "next")).seq).toBeGreaterThan(0);
});

test("[SPLS4] records that NATS lost in a copy are noticed before the origin's are removed", async () => {
  const system = await startLogSystem(server.url, "spls4", 1);
  const { manager, subjects, nats } = system;
  const before = await contentOf(system, "log", 1);
  await statePartitions(manager, subjects, { kind: "copying", from: 1, to: 3 });
  const split = new LogSplit({ nats, manager, subjects, print: () => {} }, { from: 1, to: 3 });
  await split.copy();
  const lost = ROOMS.find((room) => partitionOf(room, 3) === 2)!;
  await manager.streams.purge(subjects.logStream(2), { filter: subjects.log(2, lost) });
  await expect(split.move()).rejects.toThrow(new RegExp(`lost records of 1 rooms in ${subjects.logStream(2)}, for example ${lost}`));
  expect(await contentOf({ ...system }, "log", 1)).toEqual(before);
});

test("[SPLS5] a log with three copies is split, and the new partitions have three copies", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "coroom-split-"));
  const engines = await startNatsCluster({ dataDir, members: 3 });
  onTestFinished(async () => {
    await Promise.all(engines.map((engine) => engine.stop()));
    rmSync(dataDir, { recursive: true, force: true });
  });
  const system = await startLogSystem(engines.map(({ url }) => url).join(","), "spls5", 1, 3);
  const { manager, subjects } = system;
  const before = await contentOf(system, "log", 1);
  await statePartitions(manager, subjects, { kind: "copying", from: 1, to: 3 });
  expect(await run(system, 3)).toBe("completed");
  expect((await contentOf(system, "log", 3)).messages).toEqual(before.messages);
  for (const engine of engines) engine.kill("SIGKILL");
  await Promise.all(engines.map((engine) => engine.exited));
  await Promise.all(engines.map((engine) => engine.restart()));
  for (let partition = 0; partition < 3; partition++)
    await until(
      async () => {
        const info = await manager.streams.info(subjects.logStream(partition)).catch(() => undefined); // No leader yet.
        if (info === undefined) return false;
        const { config, cluster } = info;
        return config.num_replicas === 3 && (cluster?.replicas ?? []).filter(({ current }) => current).length === 2;
      },
      `${subjects.logStream(partition)} has three copies`,
    );
  expect((await contentOf(system, "log", 3)).messages, "after a kill of all servers").toEqual(before.messages);
  for (let partition = 0; partition < 3; partition++) {
    const [one, two] = ROOMS.filter((room) => partitionOf(room, 3) === partition);
    const last = async (room: RoomKey): Promise<number> =>
      (await manager.streams.getMessage(subjects.logStream(partition), { last_by_subj: subjects.log(partition, room) }))!.seq;
    expect(
      (await put(system, subjects.log(partition, one!), "next", (await last(one!)) - 1)).error,
      "a former owner is fenced",
    ).toBeDefined();
    const seq = (await put(system, subjects.log(partition, one!), "next", await last(one!))).seq!;
    expect(await putBatch(system, [subjects.log(partition, one!), seq], [subjects.log(partition, two!), await last(two!)])).toBe(seq + 2);
  }
});

test("[SPLS9] a full log is split without a loss, and takes records again once it is trimmed", async () => {
  const system = await startLogSystem(server.url, "spls9", 1);
  const { manager, subjects } = system;
  const stream = subjects.logStream(0);
  await manager.streams.update(stream, { max_bytes: 50_000, discard: DiscardPolicy.New });
  let isFull = false;
  for (let edit = 0; !isFull; edit++) {
    const room = ROOMS[edit % ROOMS.length]!;
    const { error } = await put(system, subjects.log(0, room), `${edit} ${"x".repeat(1_000)}`);
    isFull = error !== undefined;
  }
  const before = await contentOf(system, "log", 1);
  await statePartitions(manager, subjects, { kind: "copying", from: 1, to: 3 });
  expect(await run(system, 3)).toBe("completed");
  await ensureLogStreams(system.nats, subjects, { partitions: 3, replicas: 1, bytesMax: 0 });
  expect((await contentOf(system, "log", 3)).messages).toEqual(before.messages);
  for (const room of ROOMS) {
    const partition = partitionOf(room, 3);
    await manager.streams.purge(subjects.logStream(partition), { filter: subjects.log(partition, room), keep: 1 });
  }
  for (const room of ROOMS.slice(0, 3))
    expect((await put(system, subjects.log(partitionOf(room, 3), room), "next")).seq).toBeGreaterThan(0);
});
