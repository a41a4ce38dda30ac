import { Registry } from "prom-client";
import { expect, test } from "vitest";

import { readSettings } from "../shared/config.ts";
import type { Epoch, Millis, RoomKey, Seq, UnixMillis } from "../shared/ids.ts";
import { BacklogBudget } from "./backlog.ts";
import { roomHostOptions, roomServerSettings } from "./config.ts";
import { roomServerMetrics } from "./metrics.ts";
import type { Beacon, StoredRecord } from "./ports.ts";
import { Replicas } from "./replicas-host.ts";

const room = "acme.notes" as RoomKey;
const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const epochRecord = (epoch: number, streamSeq: number): StoredRecord => ({ streamSeq, record: { kind: "epoch", id: `one.${epoch}`, time: 0 as UnixMillis, epoch: epoch as Epoch, head: 0 as Seq } });

function replicasWith(settings: Record<string, string> = {}) {
  let now = 0;
  let timers: { at: number; run: () => void }[] = [];
  const clock = {
    now: () => now as Millis,
    wallNow: () => now as UnixMillis,
    after: (delayMs: number, run: () => void) => {
      const timer = { at: now + delayMs, run };
      timers.push(timer);
      return () => void (timers = timers.filter((other) => other !== timer));
    },
  };
  const stored: StoredRecord[] = [epochRecord(1, 5)];
  const state = { natsAnswers: true, subscriptions: 0, reads: 0 };
  let hear: (heard: StoredRecord | Beacon) => void = () => {};
  let loseLine: () => void = () => {};
  const answering = async <Value>(value: () => Value): Promise<Value> => {
    if (!state.natsAnswers) throw new Error("no answer");
    return value();
  };
  const ports = {
    log: {
      append: () => () => {},
      readLast: () => answering(() => (state.reads++, stored.at(-1))),
      read: async function* (_: RoomKey, after: number, through: number) {
        yield* stored.filter(({ streamSeq }) => streamSeq > after && streamSeq <= through);
      },
    },
    checkpoints: { newest: async () => undefined },
    fanOut: {
      subscribe: (_: RoomKey, receive: typeof hear) =>
        answering(() => {
          hear = receive;
          state.subscriptions += 1;
          return { isOpen: () => true, close: async () => void (state.subscriptions -= 1) };
        }),
      onGap: (receive: () => void) => (loseLine = receive),
    },
  };
  const options = roomHostOptions(readSettings(roomServerSettings, { flags: settings, env: {} }), undefined);
  const metrics = roomServerMetrics(new Registry());
  const replicas = new Replicas(ports, options, { clock, log: silent, metrics, budget: new BacklogBudget({ bytesMax: 1_000_000 }) });
  const settle = async (ms = 0): Promise<void> => {
    for (const end = now + ms; now < end; now += 100) {
      const due = timers.filter(({ at }) => at <= now);
      timers = timers.filter((timer) => !due.includes(timer));
      for (const { run } of due) run();
      await new Promise((resolve) => setImmediate(resolve));
    }
    await new Promise((resolve) => setImmediate(resolve)); // Whatever was promised is kept.
  };
  return { replicas, state, stored, settle, hear: (heard: StoredRecord | Beacon) => hear(heard), loseLine: () => loseLine() };
}

test("[RPH1] following resolves once the copy has all that the log had, and a second time at once", async () => {
  const { replicas, state } = replicasWith();
  expect(await replicas.follow(room)).toBe(true);
  expect(await replicas.follow(room)).toBe(true);
  expect([replicas.size, state.subscriptions, state.reads]).toEqual([1, 1, 1]);
});

test("[RPH2] who takes the copy has what was read and what was heard since, and it is kept here no longer", async () => {
  const { replicas, state, hear, settle } = replicasWith();
  await replicas.follow(room);
  hear(epochRecord(2, 9));
  expect(replicas.take(room)?.last).toEqual({ id: "one.2", streamSeq: 9 });
  await settle();
  expect([replicas.size, state.subscriptions, replicas.take(room)]).toEqual([0, 0, undefined]);
});

test("[RPH3] a copy taken before it is warm leaves nobody waiting", async () => {
  const { replicas } = replicasWith();
  const followed = replicas.follow(room);
  replicas.unfollow(room);
  expect(await followed).toBe(false);
});

test("[RPH4] what was said while the line was lost is read from the log", async () => {
  const { replicas, stored, settle, loseLine } = replicasWith();
  await replicas.follow(room);
  stored.push(epochRecord(2, 9));
  loseLine();
  await settle();
  expect(replicas.take(room)?.last).toEqual({ id: "one.2", streamSeq: 9 });
});

test("[RPH5] what NATS does not answer is asked again until it does", async () => {
  const { replicas, state, settle } = replicasWith();
  state.natsAnswers = false;
  const followed = replicas.follow(room);
  await settle(2_500);
  state.natsAnswers = true;
  await settle(2_500);
  expect(await followed).toBe(true);
});

test("[RPH6] there are no more copies than may be, and one that nobody adds to is let go", async () => {
  const { replicas, settle } = replicasWith({ replicasMax: "1", roomIdleMsMax: "5000" });
  expect(await replicas.follow(room)).toBe(true);
  expect(await replicas.follow("acme.other" as RoomKey)).toBe(false);
  await settle(12_000);
  expect(replicas.size).toBe(0);
  expect(await replicas.follow("acme.other" as RoomKey)).toBe(true);
  replicas.stop();
});
