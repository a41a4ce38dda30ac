/**
 * Checks the behaviour of the log that the room server, document service and leaderboard require. The same suite runs
 * on the real JetStream and on the simulator's. A difference between the two would make the simulator's results
 * worthless.
 */

import { jetstreamManager } from "@nats-io/jetstream";
import { headers, type MsgHdrs } from "nats";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { encodeEpochRecord } from "../../shared/bus/record.ts";
import { subjectsOf } from "../../shared/bus/subjects.ts";
import type { Epoch, RoomKey, Seq, UnixMillis } from "../../shared/ids.ts";
import { readLog } from "../../shared/io/log-reader.ts";
import { ensureLogStreams } from "../../shared/io/log-stream.ts";
import { connectNats, type NatsConnection } from "../../shared/io/nats.ts";
import { Scheduler } from "../sim/scheduler.ts";
import { SimBucket } from "../sim/sim-bucket.ts";
import { SimJetStream } from "../sim/sim-jetstream.ts";
import { SimNatsConnection } from "../sim/sim-nats-connection.ts";
import { SimNats } from "../sim/sim-nats.ts";
import { SimProcess } from "../sim/sim-process.ts";
import { Trace } from "../sim/trace.ts";
import { startRealNats } from "./real-nats.ts";

const subjects = subjectsOf("contract");
const notes = "acme.notes" as RoomKey;
const tasks = "acme.tasks" as RoomKey;

/** `settle`: advances time until the promise settles. The other methods read and trim the log as the tiers' adapters do. */
type LogCase = {
  readonly connection: NatsConnection;
  settle<Value>(promise: Promise<Value>): Promise<Value>;
  last(room: RoomKey): Promise<number | undefined>;
  read(room: RoomKey, after: number): Promise<number[]>;
  readAll(after: number): Promise<number[]>;
  trim(room: RoomKey, before: number): Promise<void>;
  stop(): Promise<void>;
};

async function realCase(): Promise<LogCase> {
  const server = await startRealNats();
  const connection = await connectNats({ servers: server.url, name: "test" });
  await ensureLogStreams(connection, subjects, { partitions: 1, replicas: 1 });
  const manager = await jetstreamManager(connection);
  const stream = subjects.logStream(0);
  const seqs = async (subject: string | undefined, after: number): Promise<number[]> => {
    const found: number[] = [];
    for await (const { streamSeq } of readLog(connection, { stream, subject }, after, Number.MAX_SAFE_INTEGER)) found.push(streamSeq);
    return found;
  };
  return {
    connection,
    settle: (promise) => promise,
    last: async (room) => (await manager.streams.getMessage(stream, { last_by_subj: subjects.log(0, room) }))?.seq,
    read: (room, after) => seqs(subjects.log(0, room), after),
    readAll: (after) => seqs(undefined, after),
    trim: async (room, before) => void (await manager.streams.purge(stream, { filter: subjects.log(0, room), seq: before })),
    stop: async () => {
      await connection.close();
      await server.stop();
    },
  };
}

function simulatedCase(): Promise<LogCase> {
  const trace = new Trace({ verbose: false });
  const scheduler = new Scheduler(trace, { explains: false });
  const nats = new SimNats(trace);
  const log = new SimJetStream(
    subjects,
    nats,
    scheduler,
    () => 1,
    () => {},
  );
  const connection = new SimNatsConnection(new SimProcess("test", scheduler, 0), nats, scheduler, () => 1);
  return Promise.resolve({
    connection: connection.nats,
    settle: async (promise) => {
      let isSettled = false;
      const all = promise.finally(() => (isSettled = true));
      await scheduler.runUntil(scheduler.now + 10_000, () => isSettled);
      return all;
    },
    last: (room) => connection.ask(() => log.last(room, scheduler.now)?.streamSeq),
    read: (room, after) => connection.ask(() => log.read(room, after, 100, scheduler.now).map(({ streamSeq }) => streamSeq)),
    readAll: (after) => connection.ask(() => log.readAll(after, 100, scheduler.now).map(({ streamSeq }) => streamSeq)),
    trim: (room, before) => connection.ask(() => void log.trim(room, before)),
    stop: () => Promise.resolve(),
  });
}

describe.each([
  ["the real server", realCase],
  ["the simulator", simulatedCase],
] as const)("the log in %s", (_, start) => {
  let log: LogCase;
  beforeEach(async () => {
    log = await start();
  });
  afterEach(() => log.stop());

  type Answer = { seq?: number; count?: number; error?: { err_code: number } };
  const record = encodeEpochRecord({ id: "server.1", time: 1 as UnixMillis, epoch: 1 as Epoch, head: 0 as Seq });
  const ask = async (to: RoomKey, head: MsgHdrs): Promise<Answer> => {
    const request = log.connection.request(subjects.log(0, to), record, { headers: head, timeout: 5_000 });
    return JSON.parse(new TextDecoder().decode((await log.settle(request)).data)) as Answer;
  };

  async function append(options: { expected?: number; to?: RoomKey } = {}): Promise<Answer> {
    const head = headers();
    if (options.expected !== undefined) head.set("Nats-Expected-Last-Subject-Sequence", String(options.expected));
    return ask(options.to ?? notes, head);
  }

  let batches = 0;
  /** `expected`: by room. `skipped`: the number of messages that are lost on the way. */
  async function appendBatch(expected: Readonly<Record<RoomKey, number>>, skipped = 0): Promise<Answer> {
    const id = `batch-${++batches}`;
    const messages = Object.entries(expected).map(([room, streamSeq], index) => {
      const head = headers();
      head.set("Nats-Expected-Last-Subject-Sequence", String(streamSeq));
      head.set("Nats-Batch-Id", id);
      head.set("Nats-Batch-Sequence", String(index + 1));
      return { room: room as RoomKey, head };
    });
    const last = messages.pop()!;
    last.head.set("Nats-Batch-Commit", "1");
    for (const { room, head } of messages.slice(skipped)) log.connection.publish(subjects.log(0, room), record, { headers: head });
    return ask(last.room, last.head);
  }

  test("[LGC1] an append with a wrong expected sequence is refused with 10071 and stores nothing", async () => {
    expect((await append({ expected: 0 })).seq).toBe(1);
    expect((await append({ expected: 0 })).error?.err_code).toBe(10_071);
    expect((await append({ expected: 7 })).error?.err_code).toBe(10_071);
    expect(await log.settle(log.readAll(0))).toEqual([1]);
  });

  test("[LGC2] the expected sequence is the room's own, and all rooms share one numbering", async () => {
    await append({ expected: 0 });
    expect((await append({ expected: 0, to: tasks })).seq).toBe(2);
    expect((await append({ expected: 1 })).seq).toBe(3);
    expect(await log.settle(log.last(notes))).toBe(3);
    expect(await log.settle(log.last(tasks))).toBe(2);
  });

  test("[LGC3] a batch is stored with consecutive sequences and republished, and its answer names the last sequence and the count", async () => {
    const republished: string[] = [];
    log.connection.subscribe(subjects.editsOut("*.*" as RoomKey), {
      callback: (_error, message) => void republished.push(`${message.subject} ${message.headers?.get("Nats-Sequence")}`),
    });
    await append({ expected: 0 });
    expect(await appendBatch({ [tasks]: 0, [notes]: 1 })).toMatchObject({ seq: 3, count: 2 });
    expect(republished).toEqual([`${subjects.editsOut(notes)} 1`, `${subjects.editsOut(tasks)} 2`, `${subjects.editsOut(notes)} 3`]);
    expect(await log.settle(log.readAll(0))).toEqual([1, 2, 3]);
  });

  test("[LGC4] a batch with one wrong expected sequence, or without its first message, is refused, and nothing of it is stored", async () => {
    await append({ expected: 0 });
    expect((await appendBatch({ [tasks]: 0, [notes]: 0 })).error?.err_code).toBe(10_071);
    expect((await appendBatch({ [tasks]: 0, [notes]: 1 }, 1)).error).toBeDefined();
    expect(await log.settle(log.readAll(0))).toEqual([1]);
    expect(await appendBatch({ [tasks]: 0, [notes]: 1 })).toMatchObject({ seq: 3, count: 2 });
  });

  test("[LGC5] a trim keeps the record that it names, and the next append expects the last record as before", async () => {
    for (const expected of [0, 1, 2]) await append({ expected });
    await log.settle(log.trim(notes, 3));
    expect(await log.settle(log.read(notes, 0))).toEqual([3]);
    expect((await append({ expected: 3 })).seq).toBe(4);
  });

  test("[LGC6] a trim past a room's end removes its last record, and the room expects 0 again", async () => {
    await append({ expected: 0 });
    await append({ expected: 0, to: tasks });
    await log.settle(log.trim(notes, 1_000));
    expect(await log.settle(log.read(notes, 0))).toEqual([]);
    expect((await append({ expected: 1 })).error?.err_code).toBe(10_071);
    expect((await append({ expected: 0 })).seq).toBe(3);
    expect(await log.settle(log.readAll(0))).toEqual([2, 3]);
  });

  test("[LGC7] a reader receives the records after a sequence in order, of one room or of all", async () => {
    for (const to of [notes, tasks, notes, tasks]) await append({ to });
    expect(await log.settle(log.read(notes, 1))).toEqual([3]);
    expect(await log.settle(log.readAll(1))).toEqual([2, 3, 4]);
  });

  test("[LGC8] the log republishes each stored record once, in order and before its answer", async () => {
    const received: string[] = [];
    log.connection.subscribe(subjects.editsOut(notes), {
      callback: (_error, message) => void received.push(`record ${message.headers?.get("Nats-Sequence")}`),
    });
    log.connection.subscribe("answers", {
      callback: (_error, message) => void received.push(`answer ${(JSON.parse(new TextDecoder().decode(message.data)) as Answer).seq}`),
    });
    await log.settle(log.connection.flush());
    for (let count = 0; count < 3; count++) log.connection.publish(subjects.log(0, notes), record, { reply: "answers" });
    await append({ expected: 0 });
    await append({ expected: 3 });
    await log.settle(log.connection.flush());
    expect(received).toEqual(["record 1", "answer 1", "record 2", "answer 2", "record 3", "answer 3", "record 4"]);
  });
});

test("[LGC9] a simulated bucket writes only where the revision is the newest, also after its end is lost", async () => {
  const scheduler = new Scheduler(new Trace({ verbose: false }), { explains: false });
  const bucket = new SimBucket<string>(scheduler);
  expect(bucket.write(notes, "one", 0)).toBe(true);
  expect(bucket.write(notes, "two", 0)).toBe(false);
  const syncedAt = scheduler.now;
  await scheduler.runUntil(scheduler.now + 10, () => false);
  expect(bucket.write(notes, "two", 1)).toBe(true);
  expect(bucket.read(notes)).toMatchObject({ revision: 2, entry: "two" });
  bucket.loseSince(syncedAt);
  expect(bucket.read(notes)).toMatchObject({ revision: 1, entry: "one" });
  expect(bucket.write(notes, "three", 1)).toBe(true);
});
