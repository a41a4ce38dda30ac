/** The log's adapter on a real nats-server, over a connection that fails. */

import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "nats";
import { Registry } from "prom-client";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

import type { Checkpoint } from "../../shared/bus/checkpoint.ts";
import { encodeJson } from "../../shared/bus/json-messages.ts";
import { encodeEditsRecord, encodeEpochRecord, headOf } from "../../shared/bus/record.ts";
import { subjectsOf } from "../../shared/bus/subjects.ts";
import type { ClientId, Epoch, RoomKey, Seq, ServerId, UnixMillis, UserId } from "../../shared/ids.ts";
import { kvBucket } from "../../shared/io/jetstream-stores.ts";
import { ensureLogStreams } from "../../shared/io/log-stream.ts";
import { connectNats } from "../../shared/io/nats.ts";
import { systemClock } from "../../shared/io/system-clock.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import { TcpProxy } from "../../test/contract/tcp-proxy.ts";
import { type RealNats, startRealNats, until } from "../../test/contract/real-nats.ts";
import { roomServerMetrics } from "../metrics.ts";
import type { AppendOutcome, OutgoingRecord, RoomLog, DecodedRecord } from "../ports.ts";
import { jetstreamLog } from "./jetstream-log.ts";
import { kvCheckpoints } from "./nats-ports.ts";

const room = "acme.notes" as RoomKey;
const ann = "annannannannann1" as ClientId;
/** A log that the test writes to directly, on a machine under load. */
const ANSWER_MS_MAX = 30_000;

let nats: RealNats;
let proxy: TcpProxy;
let through: NatsConnection;
let direct: NatsConnection;
let log: RoomLog;
let other: RoomLog;
let environment: string;
let runs = 0;
let idsByPlace: Map<number, string>;

beforeAll(async () => {
  nats = await startRealNats();
});
afterAll(() => nats.stop());
beforeEach(async () => {
  environment = `log${++runs}`;
  idsByPlace = new Map();
  proxy = await TcpProxy.to(nats.url);
  through = await connectNats({ servers: proxy.url, name: "one" });
  direct = await connect({ servers: nats.url, maxReconnectAttempts: -1, reconnectTimeWait: 20 });
  await ensureLogStreams(direct, subjectsOf(environment), { partitions: 1, replicas: 1 });
  log = await logOf(through, "one");
  other = await logOf(direct, "two");
});
afterEach(async () => {
  await through.close();
  await direct.close();
  await proxy.close();
});

async function logOf(connection: NatsConnection, server: string): Promise<RoomLog> {
  const subjects = subjectsOf(environment);
  const checkpoints = await kvCheckpoints(connection, subjects.checkpointsBucket, 1);
  return jetstreamLog(
    connection,
    subjects,
    { server: server as ServerId, partitions: 1, appendAnswerMsMax: 100 },
    { checkpoints, clock: systemClock, log: SILENT_LOG, metrics: roomServerMetrics(new Registry()) },
  );
}

type Record = Omit<OutgoingRecord, "expectedId">;

const claim = (id: string, epoch: number, expectedStreamSeq: number): Record => ({
  id,
  expectedStreamSeq,
  bytes: encodeEpochRecord({ id, time: 0 as UnixMillis, epoch: epoch as Epoch, head: 0 as Seq }),
});

function edits(seq: number, expectedStreamSeq: number): Record {
  const id = `edits.${seq}`;
  const list = [{ client: ann, counter: seq, parentSeq: 0 as Seq, payload: new Uint8Array(20) }];
  return {
    id,
    expectedStreamSeq,
    bytes: encodeEditsRecord({
      id,
      time: 0 as UnixMillis,
      users: new Map([[ann, "ann" as UserId]]),
      edits: { epoch: 1 as Epoch, firstSeq: seq as Seq, edits: list },
    }),
  };
}

/** Behind the records that this test appended. */
function append(to: RoomLog, record: Record): Promise<AppendOutcome> {
  return new Promise((resolve) =>
    to.append(room, { ...record, expectedId: idsByPlace.get(record.expectedStreamSeq) }, (outcome) => {
      if (outcome.kind === "appended") idsByPlace.set(outcome.streamSeq, record.id);
      resolve(outcome);
    }),
  );
}

async function all(records: AsyncIterable<DecodedRecord>): Promise<DecodedRecord[]> {
  const list: DecodedRecord[] = [];
  for await (const record of records) list.push(record);
  return list;
}

test("[LOG1] an append returns the record's place, the next append expects that place, and the last record can be read back", async () => {
  expect(await log.readLast(room)).toBeUndefined();
  expect(await append(log, claim("one.1", 1, 0))).toEqual({ kind: "appended", streamSeq: 1 });
  expect(await append(log, claim("one.2", 2, 1))).toEqual({ kind: "appended", streamSeq: 2 });
  expect(await log.readLast(room)).toMatchObject({ streamSeq: 2, record: { id: "one.2", epoch: 2 } });
});

test("[LOG2] an append after another server's record is fenced, and stores nothing", async () => {
  await append(log, claim("one.1", 1, 0));
  expect(await append(other, claim("two.1", 2, 1))).toEqual({ kind: "appended", streamSeq: 2 });
  expect(await append(log, edits(1, 1))).toEqual({ kind: "fenced" });
  expect(await log.readLast(room)).toMatchObject({ streamSeq: 2, record: { id: "two.1" } });
});

test("[LOG12] the log reports whether a room has records after a given record without reading them", async () => {
  await append(log, claim("one.1", 1, 0));
  await direct.request(subjectsOf(environment).log(0, "acme.other" as RoomKey), "another room's", { timeout: ANSWER_MS_MAX });
  expect(await log.endsAt(room, 1)).toBe(true);
  await append(other, claim("two.1", 2, 1));
  expect([await log.endsAt(room, 1), await log.endsAt(room, 3)]).toEqual([false, true]);
});

test("[LOG3] an append whose answer was lost is found in the log, stored once", async () => {
  await append(log, claim("one.1", 1, 0));
  proxy.loseAnswers();
  const outcome = append(log, edits(1, 1));
  await until(async () => (await other.readLast(room))?.record.id === "edits.1", "the record in the log");
  proxy.cut();
  expect(await outcome).toEqual({ kind: "appended", streamSeq: 2 });
  expect(await all(other.read(room, 0, 2))).toHaveLength(2);
});

test("[LOG4] an append whose answer was lost is fenced if another server's claim follows it, although the log contains it", async () => {
  await append(log, claim("one.1", 1, 0));
  proxy.loseAnswers();
  const outcome = append(log, edits(1, 1));
  await until(async () => (await other.readLast(room))?.streamSeq === 2, "the record in the log");
  await append(other, claim("two.1", 2, 2));
  proxy.cut();
  expect(await outcome).toEqual({ kind: "fenced" });
});

test("[LOG5] an append during a lost connection arrives once the connection is back", async () => {
  await append(log, claim("one.1", 1, 0));
  proxy.cut();
  expect(await append(log, edits(1, 1))).toEqual({ kind: "appended", streamSeq: 2 });
});

test("[LOG14] an append during a lost connection is fenced if another record has taken the place of the expected one", async () => {
  await append(log, claim("one.1", 1, 0));
  proxy.hold();
  const outcome = append(log, edits(1, 1));
  const manager = await jetstreamManager(direct);
  const stream = subjectsOf(environment).logStream(0);
  await manager.streams.delete(stream); // The result for a log that has lost its end: the sequence is used again.
  await ensureLogStreams(direct, subjectsOf(environment), { partitions: 1, replicas: 1 });
  await append(other, claim("two.1", 2, 0));
  proxy.cut();
  proxy.release();
  expect(await outcome).toEqual({ kind: "fenced" });
  expect(await other.endsAt(room, 1)).toBe(true);
});

test("[LOG15] an append during a lost connection is fenced if a checkpoint covers a record that the log lost after the expected one", async () => {
  await append(log, claim("one.1", 1, 0));
  proxy.hold();
  const outcome = append(log, edits(1, 1));
  const checkpoint: Checkpoint = {
    epoch: 2 as Epoch,
    seq: 0 as Seq,
    streamSeq: 2,
    recordId: "two.1",
    time: 0 as UnixMillis,
    clients: [],
    snapshot: { object: "o", bytes: 1, sha256: "s" },
  };
  const bucket = await kvBucket(jetstream(direct), subjectsOf(environment).checkpointsBucket, { replicas: 1 });
  await bucket.put(room, encodeJson(checkpoint));
  proxy.cut();
  proxy.release();
  expect(await outcome).toEqual({ kind: "fenced" });
  expect(await other.endsAt(room, 1)).toBe(true);
});

test("[LOG6] an append that arrives late is fenced if another server has claimed the room in the meantime", async () => {
  await append(log, claim("one.1", 1, 0));
  proxy.hold();
  const outcome = append(log, edits(1, 1));
  await append(other, claim("two.1", 2, 1));
  proxy.release();
  expect(await outcome).toEqual({ kind: "fenced" });
  expect(await other.endsAt(room, 2)).toBe(true);
  expect((await all(other.read(room, 0, 2))).map(({ record }) => record.id)).toEqual(["one.1", "two.1"]);
});

test("[LOG7] an abandoned append is never settled", async () => {
  await append(log, claim("one.1", 1, 0));
  proxy.hold();
  let settled = false;
  const abandon = log.append(room, { ...edits(1, 1), expectedId: "one.1" }, () => (settled = true));
  abandon("stopped");
  proxy.release();
  await until(async () => (await other.readLast(room))?.streamSeq === 2, "the record in flight");
  expect(await append(log, edits(2, 2))).toEqual({ kind: "appended", streamSeq: 3 });
  expect(settled).toBe(false);
});

test("[LOG8] appends continue after nats-server is killed and restarted; no record is lost or stored twice", async () => {
  let streamSeq = ((await append(log, claim("one.1", 1, 0))) as { streamSeq: number }).streamSeq;
  const crashed = nats.crash();
  for (let seq = 1; seq <= 300; seq++) {
    const outcome = await append(log, edits(seq, streamSeq));
    expect(outcome.kind).toBe("appended");
    if (outcome.kind === "appended") streamSeq = outcome.streamSeq;
  }
  await crashed;
  const records = await until(() => all(other.read(room, 0, streamSeq)).catch(() => undefined), "the log");
  expect(records.map(({ record }) => headOf(record))).toEqual(Array.from({ length: 301 }, (_, index) => index));
});

test("[LOG9] a range is read in order, without other rooms' records and without trimmed records", async () => {
  const subjects = subjectsOf(environment);
  let streamSeq = 0;
  for (let seq = 1; seq <= 600; seq++) {
    if (seq % 3 === 0) await direct.request(subjects.log(0, "acme.other" as RoomKey), "beyond the range", { timeout: ANSWER_MS_MAX });
    const outcome = await append(log, edits(seq, streamSeq));
    if (outcome.kind === "appended") streamSeq = outcome.streamSeq;
  }
  const heads = async (after: number, to: number) => (await all(log.read(room, after, to))).map(({ record }) => headOf(record));
  const complete = await all(log.read(room, 0, streamSeq));
  expect(complete.map(({ record }) => headOf(record))).toEqual(Array.from({ length: 600 }, (_, index) => index + 1));
  expect(await heads(complete[99]!.streamSeq, complete[102]!.streamSeq)).toEqual([101, 102, 103]);
  await (
    await jetstreamManager(direct)
  ).streams.purge(subjects.logStream(0), { filter: subjects.log(0, room), seq: complete[590]!.streamSeq });
  expect(await heads(0, streamSeq)).toEqual([591, 592, 593, 594, 595, 596, 597, 598, 599, 600]);
  expect(await heads(streamSeq, streamSeq)).toEqual([]);
  expect(await heads(0, complete[580]!.streamSeq)).toEqual([]);
});

test("[LOG13] a read fails if the log lacks the last record of the requested range", async () => {
  await append(log, claim("one.1", 1, 0));
  await expect(all(log.read(room, 0, 2))).rejects.toThrow(/shows no record after 1/);
});

test("[LOG10] the log reports entries that are not records and does not guess at their meaning", async () => {
  await direct.request(subjectsOf(environment).log(0, room), "hello", { timeout: ANSWER_MS_MAX });
  await expect(log.readLast(room)).rejects.toThrow(/no record/);
});
