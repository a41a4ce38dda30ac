import type { Msg, Status } from "@nats-io/nats-core";
import { Registry } from "prom-client";
import { expect, test } from "vitest";

import { subjectsOf } from "../../shared/bus/subjects.ts";
import type { Epoch, Millis, RoomKey, Seq, ServerId, UnixMillis } from "../../shared/ids.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import { roomServerMetrics } from "../metrics.ts";
import type { DecodedRecord } from "../ports.ts";
import { jetstreamAppend } from "./jetstream-append.ts";
import { LogStorage } from "./log-storage.ts";

const EXPECTED: DecodedRecord = {
  streamSeq: 5,
  record: { kind: "epoch", id: "s.1", time: 0 as UnixMillis, epoch: 1 as Epoch, head: 0 as Seq },
};

/**
 * One append in flight over a connection whose state the test sets, to a log that needs this long to return its last
 * record.
 */
async function appending(lookMs: number) {
  const clock = new FakeClock();
  const counts = { looks: 0, sent: 0 };
  let sendStatus: (status: Status) => void = () => {};
  const nats: Partial<NatsConnection> = {
    subscribe: () => ({}) as ReturnType<NatsConnection["subscribe"]>,
    publish: () => void (counts.sent += 1),
    closed: () => new Promise(() => {}),
    async *status() {
      for (;;) yield await new Promise<Status>((resolve) => (sendStatus = resolve));
    },
  };
  const readLast = (): Promise<DecodedRecord> => {
    counts.looks += 1;
    return new Promise((resolve) => clock.after(lookMs, () => resolve(EXPECTED)));
  };
  const options = { server: "s" as ServerId, partitions: 1, appendAnswerMsMax: 500 };
  const deps = {
    readLast,
    checkpoints: { newest: async () => undefined },
    clock,
    log: SILENT_LOG,
    metrics: roomServerMetrics(new Registry()),
  };
  const append = jetstreamAppend(nats as NatsConnection, subjectsOf("test"), options, deps);
  const record = { id: "s.2", bytes: new Uint8Array(1), expectedId: "s.1", expectedStreamSeq: 5 };
  const abandon = append("acme.notes" as RoomKey, record, () => {});
  const change = async (type: "disconnect" | "reconnect"): Promise<void> => {
    await clock.advance(1);
    sendStatus({ type, server: "127.0.0.1:4222" });
    await clock.advance(1);
  };
  await change("disconnect");
  return { counts, change, abandon, advance: (ms: number) => clock.advance(ms as Millis) };
}

test("[APO6] after a lost connection, the appender sends a record again however long the log takes to report its last record", async () => {
  for (const lookMs of [100, 600, 2_000]) {
    const { counts, change, advance } = await appending(lookMs);
    await change("reconnect");
    await advance(lookMs + 50);
    expect(counts.sent, `if a read takes ${lookMs} ms`).toBe(2);
  }
});

test("[APO7] an answer from a connection that was lost proves nothing, and nothing is asked while there is no connection", async () => {
  const { counts, change, advance } = await appending(600);
  await change("reconnect");
  await change("disconnect");
  await advance(10_000);
  expect(counts).toEqual({ looks: 1, sent: 1 });
  await change("reconnect");
  await advance(650);
  expect(counts.sent).toBe(2);
});

test("[APO9] a read that began on a lost connection sends nothing once the next connection is there", async () => {
  const { counts, change, advance } = await appending(600);
  await change("reconnect");
  await change("disconnect");
  await advance(300);
  await change("reconnect");
  await advance(350); // The first read would have ended.
  expect(counts.sent).toBe(1);
  await advance(400);
  expect(counts.sent).toBe(2);
});

test("[APO8] the appender does not send an append again that was abandoned while it queried the log", async () => {
  const { counts, change, abandon, advance } = await appending(600);
  await change("reconnect");
  abandon("stopped");
  await advance(10_000);
  expect(counts).toEqual({ looks: 1, sent: 1 });
});

/** Appends of many rooms to a log without a leader, where nothing receives them: NATS answers each at once, without content. */
async function appendingWithoutLeader(rooms: number) {
  const clock = new FakeClock();
  const registry = new Registry();
  const warnings: object[] = [];
  const questions: string[] = [];
  let receive: (error: Error | null, msg: Msg) => void = () => {};
  const nats: Partial<NatsConnection> = {
    subscribe: (_, options) => {
      receive = options!.callback!;
      return {} as ReturnType<NatsConnection["subscribe"]>;
    },
    publish: (_, __, options) => {
      const answer = { subject: options!.reply!, data: new Uint8Array() } as Msg;
      clock.after(1, () => receive(null, answer));
    },
    request: (subject) => {
      questions.push(subject);
      return Promise.reject(new Error("no responders"));
    },
    closed: () => new Promise(() => {}),
    async *status() {
      yield await new Promise<Status>(() => {});
    },
  };
  const append = jetstreamAppend(
    nats as NatsConnection,
    subjectsOf("test"),
    { server: "s" as ServerId, partitions: 1, appendAnswerMsMax: 500 },
    {
      readLast: async () => EXPECTED,
      checkpoints: { newest: async () => undefined },
      clock,
      log: { ...SILENT_LOG, warn: (facts) => void warnings.push(facts) },
      metrics: roomServerMetrics(registry),
      replicasOf: async () => 1,
    },
  );
  const record = { id: "s.2", bytes: new Uint8Array(1), expectedId: "s.1", expectedStreamSeq: 5 };
  for (let room = 0; room < rooms; room++) append(`acme.notes${room}` as RoomKey, record, () => {});
  await clock.advance(10_000);
  const retries = await registry.getSingleMetric("coroom_log_append_retries_total")!.get();
  return { warnings, questions, causes: retries.values.map(({ labels }) => labels["cause"]) };
}

test("[APO11] appends that the log does not accept are retried as unavailable, not as silent, and the log's storage is not tested", async () => {
  const { causes, questions } = await appendingWithoutLeader(1);
  expect(causes).toEqual(["unavailable"]);
  expect(questions).toEqual([]);
});

test("[APO12] while the log accepts no records, the server logs about one warning a second, however many rooms append", async () => {
  const { warnings } = await appendingWithoutLeader(500);
  expect(warnings.length).toBeGreaterThan(5);
  expect(warnings.length).toBeLessThanOrEqual(10);
});

/** The reports about a slow log after one append that is answered after this time. */
async function speedsOf(clock: FakeClock, answerMs: number): Promise<object[]> {
  const deps = { clock, log: SILENT_LOG, metrics: roomServerMetrics(new Registry()) };
  const storage = new LogStorage(deps);
  const speeds: object[] = [];
  storage.onSpeedChange((speed) => void speeds.push(speed));
  let receive: (error: Error | null, msg: Msg) => void = () => {};
  const nats: Partial<NatsConnection> = {
    subscribe: (_, options) => ((receive = options!.callback!), {} as ReturnType<NatsConnection["subscribe"]>),
    publish: (_, __, options) => {
      const data = new TextEncoder().encode('{"seq":6}');
      const answer = { subject: options!.reply!, data, json: () => ({ seq: 6 }) as never } as unknown as Msg;
      clock.after(answerMs, () => receive(null, answer));
    },
    closed: () => new Promise(() => {}),
    async *status() {
      yield await new Promise<Status>(() => {});
    },
  };
  const options = { server: "s" as ServerId, partitions: 1, appendAnswerMsMax: 60_000 };
  const logDeps = { ...deps, storage, readLast: async () => EXPECTED, checkpoints: { newest: async () => undefined } };
  const append = jetstreamAppend(nats as NatsConnection, subjectsOf("test"), options, logDeps);
  append("acme.notes" as RoomKey, { id: "s.2", bytes: new Uint8Array(1), expectedId: "s.1", expectedStreamSeq: 5 }, () => {});
  await clock.advance(answerMs);
  return speeds;
}

test("[APO13] an append is slow by the clock of the process, so that a simulated run does not depend on the speed of its machine", async () => {
  expect(await speedsOf(new FakeClock(), 1_500)).toEqual([{ state: "slow", forMs: 1_500, worstMs: 1_500 }]);
});

test("[APO14] a process that was paused during an append does not report a slow log", async () => {
  const [clock, pauseMs] = [new FakeClock(), 8_000];
  const now = clock.now.bind(clock);
  clock.now = () => (now() + (now() > 101 ? pauseMs : 0)) as Millis; // No timer runs during the pause.
  expect(await speedsOf(clock, 120)).toEqual([]);
});
