/**
 * Checks the behaviour of JetStream that the edit path requires, on the real server. The room server's appends and
 * claims and the document service's trims depend on it. A newer nats-server with other behaviour fails here.
 */

import { JetStreamApiError, jetstreamManager, type JetStreamManager } from "@nats-io/jetstream";
import { connect, headers, type NatsConnection } from "nats";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

import { subjectsOf } from "../../shared/bus/subjects.ts";
import type { RoomKey } from "../../shared/ids.ts";
import { followLog, restFor } from "../../shared/io/log-reader.ts";
import { ensureLogStreams } from "../../shared/io/log-stream.ts";
import { type RealNats, startRealNats, until } from "./real-nats.ts";

type PubAck = { seq?: number; duplicate?: boolean; error?: { err_code: number } };

const room = "acme.notes" as RoomKey;
const other = "acme.other" as RoomKey;
let nats: RealNats;
let connection: NatsConnection;
let manager: JetStreamManager;
let subjects: ReturnType<typeof subjectsOf>;
let runs = 0;

beforeAll(async () => {
  nats = await startRealNats();
});
afterAll(() => nats.stop());
beforeEach(async () => {
  connection = await connect({ servers: nats.url, maxReconnectAttempts: -1, reconnectTimeWait: 20 });
  subjects = subjectsOf(`facts${++runs}`);
  await ensureLogStreams(connection, subjects, { partitions: 1, replicas: 1 });
  manager = await jetstreamManager(connection);
});
afterEach(() => connection.close());

const stream = () => subjects.logStream(0);

async function append(text: string, options: { id?: string; expected?: number; to?: RoomKey } = {}): Promise<PubAck> {
  const head = headers();
  if (options.id !== undefined) head.set("Nats-Msg-Id", options.id);
  if (options.expected !== undefined) head.set("Nats-Expected-Last-Subject-Sequence", String(options.expected));
  return (await connection.request(subjects.log(0, options.to ?? room), text, { headers: head, timeout: 30_000 })).json<PubAck>();
}

async function last(of: RoomKey = room): Promise<{ seq: number; text: string } | undefined> {
  try {
    const message = await manager.streams.getMessage(stream(), { last_by_subj: subjects.log(0, of) });
    return message === null ? undefined : { seq: message.seq, text: message.string() };
  } catch (error) {
    if (error instanceof JetStreamApiError && error.code === 10_037) return undefined;
    throw error;
  }
}

test("[JS1] a wrong expected sequence is error 10071, and nothing is stored", async () => {
  expect((await append("one", { expected: 0 })).seq).toBe(1);
  expect((await append("two", { expected: 0 })).error?.err_code).toBe(10_071);
  expect((await append("two", { expected: 7 })).error?.err_code).toBe(10_071);
  expect(await last()).toEqual({ seq: 1, text: "one" });
  expect((await manager.streams.info(stream())).state.messages).toBe(1);
});

test("[JS2] the expected sequence is the subject's own: another room's records do not affect it", async () => {
  await append("one", { expected: 0 });
  await append("other", { expected: 0, to: other });
  expect((await append("two", { expected: 1 })).seq).toBe(3);
});

test("[JS3] a known message id is answered as a duplicate with the first message's sequence", async () => {
  await append("one", { id: "s.1" });
  await append("two", { id: "s.2" });
  expect(await append("one", { id: "s.1" })).toMatchObject({ seq: 1, duplicate: true });
});

test("[JS4] the expected sequence is checked before the message id: a repeat of a stored append is a mismatch, not a duplicate", async () => {
  expect((await append("one", { id: "s.1", expected: 0 })).seq).toBe(1);
  expect((await append("one", { id: "s.1", expected: 0 })).error?.err_code).toBe(10_071);
  expect(await last()).toEqual({ seq: 1, text: "one" });
});

test("[JS5] a refused append's message id is not remembered: the same id may be stored later", async () => {
  await append("one", { id: "s.1", expected: 0 });
  await append("two", { id: "s.2", expected: 0 });
  expect(await append("two", { id: "s.2", expected: 1 })).toMatchObject({ seq: 2 });
});

test("[JS6] a purge up to a sequence leaves that one; the expectation stays", async () => {
  for (let expected = 0; expected < 4; expected++) await append(`${expected}`, { expected });
  await manager.streams.purge(stream(), { filter: subjects.log(0, room), seq: 4 });
  expect(await last()).toEqual({ seq: 4, text: "3" });
  expect((await append("next", { expected: 4 })).seq).toBe(5);
});

test("[JS7] a purge that keeps one leaves the last record; the expectation stays", async () => {
  for (let expected = 0; expected < 3; expected++) await append(`${expected}`, { expected });
  await manager.streams.purge(stream(), { filter: subjects.log(0, room), keep: 1 });
  expect(await last()).toEqual({ seq: 3, text: "2" });
  expect((await append("next", { expected: 3 })).seq).toBe(4);
});

test("[JS8] a subject that was purged completely expects 0 again, and so does one purged past its end: the last record must be kept", async () => {
  await append("one", { expected: 0 });
  await manager.streams.purge(stream(), { filter: subjects.log(0, room) });
  expect(await last()).toBeUndefined();
  expect((await append("two", { expected: 1 })).error?.err_code).toBe(10_071);
  expect((await append("two", { expected: 0 })).seq).toBe(2);
  await manager.streams.purge(stream(), { filter: subjects.log(0, room), seq: 1_000 });
  expect(await last()).toBeUndefined();
  expect((await append("three", { expected: 2 })).error?.err_code).toBe(10_071);
});

test("[JS9] the stream republishes each record, in order, as stored, and before its answer", async () => {
  const received: string[] = [];
  const seqs: number[] = [];
  connection.subscribe(subjects.editsOut(room), {
    callback: (_, message) => {
      received.push(`record ${message.string()}`);
      seqs.push(Number(message.headers?.get("Nats-Sequence")));
    },
  });
  connection.subscribe("answers", { callback: (_, message) => void received.push(`answer ${message.json<PubAck>().seq}`) });
  for (let number = 1; number <= 50; number++) connection.publish(subjects.log(0, room), `${number}`, { reply: "answers" });
  await until(() => received.length === 100, "fifty records and answers");
  expect(received).toEqual(Array.from({ length: 50 }, (_, index) => [`record ${index + 1}`, `answer ${index + 1}`]).flat());
  expect(seqs).toEqual(Array.from({ length: 50 }, (_, index) => index + 1));
});

test("[JS10] neither a refused append nor a duplicate is republished", async () => {
  const received: string[] = [];
  connection.subscribe(subjects.editsOut(room), { callback: (_, message) => void received.push(message.string()) });
  await append("one", { id: "s.1", expected: 0 });
  await append("refused", { id: "s.2", expected: 0 });
  await append("one", { id: "s.1" });
  await append("two", { id: "s.3", expected: 1 });
  await until(() => received.includes("two"), "the last record");
  expect(received).toEqual(["one", "two"]);
});

test("[JS11] acknowledged records survive SIGKILL, and so do the expected sequence and the message ids", async () => {
  await append("one", { id: "s.1", expected: 0 });
  for (let expected = 1; expected < 200; expected++) await append(`${expected}`, { id: `s.${expected + 1}`, expected });
  await nats.crash();
  await until(
    () =>
      connection.flush().then(
        () => true,
        () => false,
      ),
    "the connection",
  );
  const found = await until(() => last().catch(() => undefined), "the stream");
  expect(found).toEqual({ seq: 200, text: "199" });
  expect((await append("late", { expected: 199 })).error?.err_code).toBe(10_071);
  expect(await append("one", { id: "s.1" })).toMatchObject({ seq: 1, duplicate: true });
  expect((await append("next", { expected: 200 })).seq).toBe(201);
});

test("[JS12] the last record is read through the stream's API, which its leader answers, not by a direct get, which any replica may answer", async () => {
  await append("one", { expected: 0 });
  const asked: string[] = [];
  connection.subscribe("$JS.API.>", { callback: (_, message) => void asked.push(message.subject) });
  await last();
  await until(() => asked.length > 0, "the question");
  expect(asked).toEqual([`$JS.API.STREAM.MSG.GET.${stream()}`]);
});

test("[JS13] a publish without a subscriber returns as 503 on its reply subject", async () => {
  const codes: (number | undefined)[] = [];
  connection.subscribe("told", { callback: (_, message) => void codes.push(message.headers?.code) });
  connection.publish(subjects.toOwner(room), "anyone?", { reply: "told" });
  await until(() => codes.length === 1, "the status");
  expect(codes).toEqual([503]);
});

test("[JS14] a read continues from record to record over purged ones, reports when there are no more, and accepts an empty log", async () => {
  const follow = await followLog(connection, subjects, restFor(5));
  const stopping = new AbortController();
  const read: string[] = [];
  const reading = (async () => {
    for await (const { room: of, streamSeq, bytes } of follow(0, { after: 0 }, stopping.signal))
      read.push(`${of} ${streamSeq} ${bytes.byteLength}`);
  })();
  const large = "x".repeat(1_500_000);
  await append("one", { expected: 0 });
  await until(() => read.length === 1, "the first record");
  await append(large, { expected: 1 });
  await append("to go", { to: other });
  await manager.streams.purge(stream(), { filter: subjects.log(0, other) });
  await append(large, { expected: 2 });
  await append("last", { expected: 4 });
  await until(() => read.some((connection) => connection.includes(" 5 ")), "the last record");
  stopping.abort();
  await reading;
  expect(read.filter((connection) => !connection.includes(other))).toEqual([
    `${room} 1 3`,
    `${room} 2 1500000`,
    `${room} 4 1500000`,
    `${room} 5 4`,
  ]);
});

test("[JS15] a read after more than a stream holds, or while the stream does not answer, throws", async () => {
  const follow = await followLog(connection, subjects, restFor(5));
  let read = 0;
  const readAll = async (partition: number, after: number) => {
    for await (const { streamSeq } of follow(partition, { after }, new AbortController().signal)) read = streamSeq;
  };
  await expect(readAll(0, 1)).rejects.toThrow("lost its end");
  await append("one", { expected: 0 });
  const reading = expect(readAll(0, 0)).rejects.toThrow(stream());
  await until(() => read === 1, "the first record");
  await manager.streams.delete(stream());
  await reading;
});
