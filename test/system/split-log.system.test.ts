/**
 * A stopped system gets more partitions of its log with `coroom split-log`, which is killed in between. Afterwards the
 * system has every text, history, board and deletion, continues each room's seqs, and stores edits of clients that
 * were offline once.
 */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { afterEach, expect, test } from "vitest";

import { decodeRecord } from "../../shared/bus/record.ts";
import { partitionOf, subjectsOf } from "../../shared/bus/subjects.ts";
import type { RoomKey } from "../../shared/ids.ts";
import { statedPartitions } from "../../shared/io/log-stream.ts";
import { closeNats, connectNats, type NatsConnection } from "../../shared/io/nats.ts";
import { spawnChild, type ChildProcessHandle } from "../../engines/child.ts";
import { askAgain } from "./ask-again.ts";
import { type Process, SystemCluster } from "./cluster.ts";
import { eventually } from "./eventually.ts";
import { insertion, Person } from "./person.ts";

const PARTITIONS = 3;
const ROOMS = Array.from({ length: 9 }, (_, index) => `notes-${index}`);
const DELETED = "deleted-notes";
const keyOf = (room: string): RoomKey => `default.${room}` as RoomKey;

let cluster: SystemCluster;
let nats: NatsConnection;
let token: string;
const people: Person[] = [];
afterEach(async () => {
  for (const person of people.splice(0)) person.leave();
  if (nats !== undefined) await closeNats(nats);
  await cluster?.stop();
});

type Json = {
  error?: string;
  versions?: { name: string | null; seq: number }[];
  ranking?: { user: string; score: number }[];
};

async function ask(method: string, place: string, body?: object): Promise<{ status: number; json: Json; seq: number }> {
  return askAgain(`${method} ${place}`, async () => {
    const response = await fetch(`${cluster.gateways[0]!.httpUrl}/v1/rooms/${place}`, {
      method,
      headers: { authorization: `Bearer ${token}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const bytes = Buffer.from(await response.arrayBuffer());
    const json = response.headers.get("content-type") === "application/json" ? (JSON.parse(bytes.toString()) as Json) : {};
    return { status: response.status, json, seq: Number(response.headers.get("x-coroom-seq")) };
  });
}

const scoresOf = async (room: string): Promise<string[]> =>
  ((await ask("GET", `${room}/leaderboard`)).json.ranking ?? []).map(({ user, score }) => `${user} ${score}`);
const versionsOf = async (room: string) => ((await ask("GET", `${room}/versions`)).json.versions ?? []).filter(({ name }) => name !== null);
const seqOf = async (room: string): Promise<number> => (await ask("GET", `${room}/snapshot`)).seq;

/** All processes, in the order of their start. */
const processes = (): Process[] => [
  cluster.placement,
  ...cluster.documentServices,
  ...cluster.roomServers,
  ...cluster.leaderboards,
  ...cluster.gateways.map(({ process }) => process),
];

const logFile = () => join(cluster.folder, "split-log.log");

function splitLog(partitions: number): Promise<ChildProcessHandle> {
  return spawnChild({
    path: process.execPath,
    args: ["dist/cli/main.js", "split-log", "--log-partitions", String(partitions)],
    env: { COROOM_NATS_URL: cluster.natsUrlAs("operator"), COROOM_ENVIRONMENT: cluster.environment },
    cwd: ".",
    logFile: logFile(),
  });
}

/** Returns what this run of the command printed, after its end. */
async function completed(partitions: number): Promise<{ code: number | null; printed: string }> {
  const before = sizeOfLog();
  const { code } = await (await splitLog(partitions)).exited;
  return { code, printed: readFileSync(logFile(), "utf8").slice(before) };
}

function sizeOfLog(): number {
  try {
    return readFileSync(logFile(), "utf8").length;
  } catch {
    return 0; // No run yet.
  }
}

/** Types one edit in each room, and returns once all are saved. */
async function typeEverywhere(words: string): Promise<void> {
  for (const person of people) person.type(insertion(`${words}-${person.name} `));
  await Promise.all(people.map((person) => person.untilSaved()));
}

test("[SPLIT1] a system is split from one partition into three, and loses and repeats nothing", async () => {
  cluster = await SystemCluster.start({
    gateways: 1,
    roomServers: 2,
    leaderboards: 1,
    userPartitions: PARTITIONS,
    settings: {
      DOCUMENTS_READ_MS: "50",
      SNAPSHOT_AGE_MS_MAX: "200",
      SNAPSHOT_INTERVAL_MS_MIN: "1",
      SNAPSHOT_SHARED_MS: "0",
      HISTORY_SEGMENT_MS_MIN: "1",
      REPLAY_WINDOW_MS: "3000",
      BOARD_CHECKPOINT_MS_MAX: "500",
      BOARD_KINDS: "comment:5",
      BOARD_READ_BURST: "10000",
      SNAPSHOT_BURST: "1000",
      DOCUMENT_WRITE_BURST: "1000",
    },
  });
  nats = await connectNats({ servers: cluster.natsUrl, name: "split-log" });
  const manager = await jetstreamManager(nats);
  const subjects = subjectsOf(cluster.environment);
  token = await cluster.token("*", "admin", { rights: ["read", "write", "admin", "award"] });
  for (const [index, room] of [...ROOMS, DELETED].entries())
    people.push(await Person.enter(cluster, cluster.gateways[0]!, room, `user-${index}`, { merging: false }));
  for (let edit = 0; edit < 4; edit++) await typeEverywhere(`early${edit}`);
  for (const room of ROOMS.slice(0, 6)) {
    const body = { id: `c-${room}`, activities: [{ user: "ann", kind: "comment" }] };
    expect((await ask("POST", `${room}/activities`, body)).status).toBe(202);
    await eventually("a version has a name", async () => (await ask("POST", `${room}/versions`, { name: `v-${room}` })).status === 201);
  }
  const deleted = people.pop()!;
  expect((await ask("DELETE", DELETED)).status).toBe(200);
  deleted.leave();
  await typeEverywhere("late");
  for (const [index, room] of ROOMS.entries())
    await eventually(`the board of ${room} has all points`, async () => {
      const scores = await scoresOf(room);
      return scores.includes(`user-${index} 5`) && (index >= 6 || scores.includes("ann 5"));
    });
  const before = await Promise.all(
    ROOMS.map(async (room, index) => ({
      text: people[index]!.text,
      seq: people[index]!.room.seq,
      scores: await scoresOf(room),
      versions: await versionsOf(room),
    })),
  );
  expect(before.map(({ seq }) => seq)).toEqual(ROOMS.map(() => 5));

  const running = await completed(PARTITIONS);
  expect(running.code).toBe(1);
  expect(running.printed).toMatch(
    /split-log needs a stopped system, and these run: .*(gateway|room-server|leaderboard).* on .*, process \d+/,
  );
  expect((await completed(0)).code).not.toBe(0);

  // The last room server is paused, so nothing shows that it runs.
  const paused = cluster.roomServers.at(-1)!;
  await typeEverywhere("unsettled");
  paused.signal("SIGSTOP");
  for (const process of processes().toReversed()) if (process !== paused) await process.stop();
  for (const person of people) person.type(insertion(`offline-${person.name} `));

  const killed = await splitLog(PARTITIONS);
  await eventually("the split copies records", async () =>
    manager.streams.info(subjects.logStream(1)).then(
      () => true,
      () => false,
    ),
  );
  killed.kill("SIGKILL");
  await killed.exited;
  expect((await statedPartitions(manager, subjects))?.kind, "the kill came before the end").not.toBe("settled");
  await expect(cluster.documentService.startAgain()).rejects.toThrow(/is being split from 1 into 3 partitions\. Run coroom split-log/);
  const split = await completed(PARTITIONS);
  expect(split).toMatchObject({ code: 0, printed: expect.stringContaining("Set COROOM_LOG_PARTITIONS=3 for every role") });
  expect(await completed(PARTITIONS)).toMatchObject({ code: 0, printed: expect.stringContaining("the log has 3 partitions") });

  paused.signal("SIGCONT");
  expect((await paused.exited).code).toBe(1);
  expect(paused.printed()).toContain("the log was split into other partitions while this process was paused");
  for (const process of [cluster.placement, cluster.roomServers[0]!])
    await expect(process.startAgain()).rejects.toThrow(/has 3 partitions .*not 1\. Set COROOM_LOG_PARTITIONS=3/);
  for (const process of processes()) await process.startAgain({ LOG_PARTITIONS: String(PARTITIONS) });

  await Promise.all(people.map((person) => person.untilSaved()));
  for (const [index, room] of ROOMS.entries()) {
    const person = people[index]!;
    const words = (text: string): string[] => text.trim().split(" ").sort();
    expect(words(person.text)).toEqual(words(`${before[index]!.text}unsettled-${person.name} offline-${person.name} `));
    expect([...person.disorders, ...person.errors]).toEqual([]);
    expect(person.room.seq, "each edit has one seq").toBe(before[index]!.seq + 2);
    await eventually(`the snapshot of ${room} has everything`, async () => (await seqOf(room)) === person.room.seq);
    expect(await versionsOf(room)).toEqual(before[index]!.versions);
    const scores = before[index]!.scores.map((score) => (score === `${person.name} 5` ? `${person.name} 7` : score));
    await eventually(
      `the board of ${room} has each edit once`,
      async () => (await scoresOf(room)).toSorted().join() === scores.toSorted().join(),
    );
  }
  expect(await ask("GET", `${DELETED}/snapshot`)).toMatchObject({ status: 410 });

  // Every partition works: edits go on, and the log is trimmed behind snapshots, history and boards.
  await typeEverywhere("after");
  for (const person of people) expect(person.room.seq).toBe(8);
  const rooms = [...ROOMS, DELETED].map(keyOf);
  expect(new Set(rooms.map((room) => partitionOf(room, PARTITIONS))).size).toBe(PARTITIONS);
  for (let partition = 0; partition < PARTITIONS; partition++) {
    const own = rooms.filter((room) => partitionOf(room, PARTITIONS) === partition).map((room) => subjects.log(partition, room));
    await eventually(`partition ${partition} has only the last record of each of its rooms`, async () => {
      const { state } = await manager.streams.info(subjects.logStream(partition), { subjects_filter: ">" });
      const counts = Object.entries(state.subjects ?? {});
      return counts.every(([subject, count]) => own.includes(subject) && count === 1) && counts.length === own.length;
    });
  }
  const last = await manager.streams.getMessage(subjects.logStream(partitionOf(keyOf(DELETED), PARTITIONS)), {
    last_by_subj: subjects.log(partitionOf(keyOf(DELETED), PARTITIONS), keyOf(DELETED)),
  });
  expect(decodeRecord(last!.data)?.kind).toBe("deleted");
});
