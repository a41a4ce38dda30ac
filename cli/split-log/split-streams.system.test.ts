/**
 * A split of the log on real nats-servers: whatever step a kill interrupts, the next run completes the split, and every
 * message keeps its sequence, its time and its content.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { jetstream, jetstreamManager, type JetStreamManager } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { headers } from "nats";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";

import { startNatsCluster } from "../../engines/nats-cluster.ts";
import { encodeJson } from "../../shared/bus/json-messages.ts";
import { partitionOf, roomOfSubject, subjectsOf } from "../../shared/bus/subjects.ts";
import type { RoomKey } from "../../shared/ids.ts";
import { joinBus } from "../../shared/io/bus-announcements.ts";
import { checkLogPartitions, ensureLogStreams, statedPartitions, statePartitions } from "../../shared/io/log-stream.ts";
import { closeNats, connectNats, type NatsConnection } from "../../shared/io/nats.ts";
import { systemClock } from "../../shared/io/system-clock.ts";
import { type RealNats, startRealNats, until } from "../../test/contract/real-nats.ts";
import { readSettings } from "../../shared/settings/settings.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import { ownAnnouncement } from "../bus-process.ts";
import { splitLogSettings } from "../command-settings.ts";
import { natsUsers } from "../local-engines.ts";
import { withUser } from "../local-addresses.ts";
import { LogSplit, splitLog } from "./split-log.ts";
import { planSplit } from "./split-plan.ts";

let server: RealNats;
beforeAll(async () => {
  server = await startRealNats();
});
afterAll(() => server.stop());

const ROOMS = Array.from({ length: 24 }, (_, index) => `acme.room-${index}` as RoomKey);
type Subjects = ReturnType<typeof subjectsOf>;
type System = { readonly nats: NatsConnection; readonly manager: JetStreamManager; readonly subjects: Subjects };

/** Fails every request from the `after`-th on, like a command that is killed there. */
function cutAfter(nats: NatsConnection, after: number): NatsConnection {
  let requests = 0;
  const request: NatsConnection["request"] = async (subject, payload, options) => {
    if (++requests > after) throw new Error("killed");
    return nats.request(subject, payload, options);
  };
  return Object.assign(Object.create(nats) as NatsConnection, { request });
}

async function put({ nats }: System, subject: string, text: string, expected?: number): Promise<{ seq?: number; error?: object }> {
  const head = headers();
  if (expected !== undefined) head.set("Nats-Expected-Last-Subject-Sequence", String(expected));
  return (await nats.request(subject, text, { headers: head, timeout: 10_000 })).json();
}

/** A log with trimmed rooms and a gap at its end, with leases, checkpoints of boards and activities. */
async function oldSystem(environment: string, partitions: number, replicas = 1, servers = server.url): Promise<System> {
  const nats = await connectNats({ servers, name: "test" });
  onTestFinished(() => closeNats(nats));
  const system = { nats, manager: await jetstreamManager(nats), subjects: subjectsOf(environment) };
  const { manager, subjects } = system;
  await ensureLogStreams(nats, subjects, { partitions, replicas, bytesMax: 8 * 1024 ** 2 });
  const kvm = new Kvm(jetstream(nats));
  const [documents, boards, points] = await Promise.all(
    [subjects.documentsBucket, subjects.boardsBucket, subjects.boardCheckpointsBucket].map((bucket) => kvm.create(bucket)),
  );
  const last = new Map<RoomKey, number>();
  for (let edit = 0; edit < 3; edit++)
    for (const room of ROOMS) {
      const { seq } = await put(system, subjects.log(partitionOf(room, partitions), room), `${room} ${edit}`, last.get(room) ?? 0);
      last.set(room, seq!);
    }
  for (const room of ROOMS.slice(0, 8)) {
    const partition = partitionOf(room, partitions);
    await manager.streams.purge(subjects.logStream(partition), { filter: subjects.log(partition, room), keep: 1 });
  }
  for (let partition = 0; partition < partitions; partition++) {
    const { state } = await manager.streams.info(subjects.logStream(partition));
    await put(system, subjects.logOfPartition(partition).replace("*.*", "=.filler"), "x");
    const lease = { holder: "killed", floor: state.last_seq + 1, said: { service: "killed", number: 4 }, last: { streamSeq: 1, id: "a" } };
    for (const bucket of [documents!, boards!]) await bucket.put(`partition.${partition}`, encodeJson(lease));
    await manager.streams.add({
      name: subjects.activityStream(partition),
      subjects: [subjects.activityOfPartition(partition)],
      first_seq: 5_000,
      num_replicas: replicas,
    });
  }
  for (const room of ROOMS) await points!.put(`${partitionOf(room, partitions)}.${room}`, encodeJson({ room }));
  for (const room of ROOMS.slice(0, 4)) await put(system, subjects.activity(partitionOf(room, partitions), room), `activity ${room}`);
  return system;
}

/** All messages of rooms, by room and sequence, and the end of each stream. */
async function contentOf({ manager, subjects }: System, kind: "log" | "activity", partitions: number) {
  const messages: Record<string, string> = {};
  const ends: number[] = [];
  for (let partition = 0; partition < partitions; partition++) {
    const stream = kind === "log" ? subjects.logStream(partition) : subjects.activityStream(partition);
    const { state } = await manager.streams.info(stream);
    ends.push(state.last_seq);
    for (let seq = state.first_seq; state.messages > 0 && seq <= state.last_seq; seq++) {
      const message = await manager.streams.getMessage(stream, { seq }).catch(() => null);
      const room = message === null ? undefined : roomOfSubject(message.subject);
      if (room === undefined) continue;
      expect(partitionOf(room, partitions), `${room} in ${stream}`).toBe(partition);
      messages[`${room} ${seq}`] = `${message!.timestamp} ${message!.string()}`;
    }
  }
  return { messages, ends };
}

async function run(system: System, wanted: number, nats = system.nats): Promise<"nothing" | "completed"> {
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

const countsOf = async ({ nats, subjects }: System, partitions: number): Promise<boolean> =>
  checkLogPartitions(nats, subjects, partitions).catch(() => false);

test.each([
  [1, 3],
  [2, 4],
])("[SPLS1] a split of %i partitions into %i that is killed at each of its requests is completed by the next runs", async (from, to) => {
  const system = await oldSystem(`spls1-${from}`, from);
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
  const system = await oldSystem("spls2", 1);
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
  const system = await oldSystem("spls3", 2);
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
  const system = await oldSystem("spls4", 1);
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
  const system = await oldSystem("spls5", 1, 3, engines.map(({ url }) => url).join(","));
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
});

/** Runs the command. Returns what it printed. */
async function command(environment: string, partitions: number, natsUrl = server.url): Promise<string[]> {
  const lines: string[] = [];
  const flags = { environment, natsUrl, logPartitions: String(partitions) };
  await splitLog(readSettings(splitLogSettings, { flags, env: {} }), (line) => void lines.push(line));
  return lines;
}

test("[SPLS6] while a process runs the command names it and changes nothing, and a statement that a kill left is withdrawn", async () => {
  const system = await oldSystem("spls6", 1);
  const { manager, subjects } = system;
  const running = await connectNats({ servers: server.url, name: "running" });
  await joinBus(running, subjects, ownAnnouncement(["room-server"]), { clock: systemClock, log: SILENT_LOG });
  await expect(command("spls6", 3)).rejects.toThrow(
    new RegExp(`split-log needs a stopped system, and these run: room-server on .*, process ${process.pid}. Stop all processes`),
  );
  expect(await statedPartitions(manager, subjects)).toEqual({ kind: "settled", count: 1 });
  await statePartitions(manager, subjects, { kind: "copying", from: 1, to: 3 });
  expect(await command("spls6", 1), "without a stop").toEqual(["the split is cancelled. The log has 1 partitions"]);
  await closeNats(running);
  expect(await command("spls6", 3)).toContain("Set COROOM_LOG_PARTITIONS=3 for every role, and start the system");
  expect(await command("spls6", 3)).toEqual(["the log has 3 partitions"]);
});

test("[SPLS7] a process of a release that answers nothing is noticed by its heartbeats", async () => {
  const { nats, manager, subjects } = await oldSystem("spls7", 1);
  const beating = setInterval(() => nats.publish(subjects.vitals, "{}"), 1_000);
  onTestFinished(() => clearInterval(beating));
  await expect(command("spls7", 3)).rejects.toThrow(/these run: a process that sends to spls7\.vitals\. Stop/);
  expect(await statedPartitions(manager, subjects)).toEqual({ kind: "settled", count: 1 });
});

test("[SPLS8] without users of NATS for the new partitions, or beside streams of them, the command changes nothing", async () => {
  const passwordOf = (role: string): string => `the password of ${role}`;
  const guarded = await startRealNats({ users: natsUsers({ environment: "spls8", logPartitions: 1 }, passwordOf) });
  onTestFinished(() => guarded.stop());
  const as = (role: "operator" | "room-server"): string => withUser(guarded.url, role, passwordOf(role));
  const server = await connectNats({ servers: as("room-server"), name: "test", inboxPrefix: "spls8.inbox.room-server" });
  onTestFinished(() => closeNats(server));
  await ensureLogStreams(server, subjectsOf("spls8"), { partitions: 1, replicas: 1 });
  await expect(command("spls8", 3, as("operator"))).rejects.toThrow(/may not use spls8_log_2\. .*coroom nats-users --log-partitions 3/);

  const { manager, subjects } = await oldSystem("spls8", 1);
  await manager.streams.add({ name: subjects.logStream(1), subjects: [subjects.logOfPartition(1)] });
  await expect(command("spls8", 3)).rejects.toThrow(/streams of further ones, such as spls8_log_1\. Remove them/);
  expect(await statedPartitions(manager, subjects)).toEqual({ kind: "settled", count: 1 });
});
