import { Registry } from "prom-client";
import { expect, test } from "vitest";

import { type DeletedRecord, encodeEditsRecord } from "../../shared/bus/record.ts";
import type { ClientId, Epoch, RoomKey, Seq, ServerId, UnixMillis, UserId } from "../../shared/ids.ts";
import { readSettings } from "../../shared/settings/settings.ts";
import { ownersRecordOf } from "../../shared/testing/owners-record.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import { roomHostOptions, roomServerSettings } from "../config.ts";
import { roomServerMetrics } from "../metrics.ts";
import type { Beacon, DecodedRecord, KnownCheckpoint, LastRecord } from "../ports.ts";
import { BacklogBudget } from "../rooms/backlog.ts";
import { Replicas } from "./replicas-host.ts";

const room = "acme.notes" as RoomKey;
const epochRecord = (epoch: number, streamSeq: number): DecodedRecord => ({
  streamSeq,
  record: { kind: "epoch", id: `one.${epoch}`, time: 0 as UnixMillis, epoch: epoch as Epoch, head: 0 as Seq, before: (epoch - 1) as Epoch },
});

const ann = { user: "ann" as UserId, client: "annannannannann1" as ClientId };
const EDIT = ownersRecordOf(
  encodeEditsRecord({
    id: "one.2",
    time: 0 as UnixMillis,
    users: new Map([[ann.client, ann.user]]),
    edits: {
      epoch: 1 as Epoch,
      firstSeq: 1 as Seq,
      edits: [{ client: ann.client, counter: 1, parentSeq: 0 as Seq, payload: new Uint8Array(1) }],
    },
  }),
);

function replicasWith(settings: Record<string, string> = {}) {
  const clock = new FakeClock();
  const stored: LastRecord[] = [epochRecord(1, 5)];
  const state = {
    natsAnswers: true,
    subscriptions: 0,
    subscribing: 0,
    reads: 0,
    reading: 0,
    readingMost: 0,
    stall: Promise.resolve(),
    checkpoint: undefined as KnownCheckpoint,
  };
  let announce: (announced: DecodedRecord | Beacon | DeletedRecord) => void = () => {};
  let reconnect: () => void = () => {};
  const answering = async <Value>(value: () => Value): Promise<Value> => {
    if (!state.natsAnswers) throw new Error("no answer");
    return value();
  };
  const ports = {
    log: {
      append: () => () => {},
      endsAt: async () => true,
      readLast: async () => {
        state.readingMost = Math.max(state.readingMost, ++state.reading);
        await state.stall;
        state.reading -= 1;
        return answering(() => (state.reads++, stored.at(-1)));
      },
      read: async function* (_: RoomKey, after: number, through: number) {
        yield* stored.filter(
          (one): one is DecodedRecord => one.record.kind !== "deleted" && one.streamSeq > after && one.streamSeq <= through,
        );
      },
    },
    checkpoints: { newest: async () => state.checkpoint },
    fanOut: {
      subscribe: async (_: RoomKey, receive: typeof announce) => {
        state.subscribing += 1;
        await state.stall;
        return answering(() => {
          announce = receive;
          state.subscriptions += 1;
          return { isOpen: () => true, close: async () => void (state.subscriptions -= 1) };
        });
      },
      onGap: (receive: () => void) => (reconnect = receive),
    },
  };
  const options = roomHostOptions(readSettings(roomServerSettings, { flags: settings, env: {} }), undefined);
  const metrics = roomServerMetrics(new Registry());
  const budget = new BacklogBudget({ bytesMax: 1_000_000 });
  const replicas = new Replicas(ports, options, { clock, log: SILENT_LOG, metrics, budget });
  const settle = (ms = 0): Promise<void> => clock.advance(ms);
  return {
    replicas,
    state,
    stored,
    settle,
    budget,
    announce: (announced: DecodedRecord | Beacon | DeletedRecord) => announce(announced),
    reconnect: () => reconnect(),
  };
}

test("[RPH1] following resolves once the replica has everything that the log had; a second request resolves at once", async () => {
  const { replicas, state } = replicasWith();
  expect(await replicas.follow(room)).toBe(true);
  expect(await replicas.follow(room)).toBe(true);
  expect([replicas.size, state.subscriptions, state.reads]).toEqual([1, 1, 1]);
});

test("[RPH2] a taken replica contains what was read and announced, and is no longer kept here", async () => {
  const { replicas, state, announce, settle } = replicasWith();
  await replicas.follow(room);
  announce(epochRecord(2, 9));
  expect(replicas.take(room)?.last).toMatchObject({ id: "one.2", streamSeq: 9 });
  await settle();
  expect([replicas.size, state.subscriptions, replicas.take(room)]).toEqual([0, 0, undefined]);
});

test("[RPH3] taking a replica that is not complete resolves the waiting requests", async () => {
  const { replicas } = replicasWith();
  const followed = replicas.follow(room);
  replicas.unfollow(room);
  expect(await followed).toBe(false);
});

test("[RPH4] a replica reads the records sent during a lost connection from the log", async () => {
  const { replicas, stored, settle, reconnect } = replicasWith();
  await replicas.follow(room);
  stored.push(epochRecord(2, 9));
  reconnect();
  await settle();
  expect(replicas.take(room)?.last).toMatchObject({ id: "one.2", streamSeq: 9 });
});

test("[RPH5] a request that NATS does not answer is repeated until it does", async () => {
  const { replicas, state, settle } = replicasWith();
  state.natsAnswers = false;
  const followed = replicas.follow(room);
  await settle(2_500);
  state.natsAnswers = true;
  await settle(2_500);
  expect(await followed).toBe(true);
});

test("[RPH11] a request is refused before its sender stops waiting, and the replica is still made", async () => {
  const { replicas, state, settle } = replicasWith();
  state.natsAnswers = false;
  let answer: boolean | undefined;
  void replicas.follow(room).then((isWarm) => (answer = isWarm));
  await settle(7_900);
  expect(answer).toBeUndefined();
  await settle(1_100);
  expect(answer).toBe(false);
  state.natsAnswers = true;
  await settle(1_000);
  expect(replicas.ownerOf(room)).toBe("one");
});

test("[RPH6] the number of replicas is limited, and a replica without announcements is dropped", async () => {
  const { replicas, settle } = replicasWith({ replicasMax: "1", roomIdleMsMax: "5000" });
  expect(await replicas.follow(room)).toBe(true);
  expect(await replicas.follow("acme.other" as RoomKey)).toBe(false);
  await settle(12_000);
  expect(replicas.size).toBe(0);
  expect(await replicas.follow("acme.other" as RoomKey)).toBe(true);
  replicas.stop();
});

test("[RPH7] the replica of a deleted room is released, whether an announcement, the log or the checkpoint reports the deletion, and no request waits for it", async () => {
  const announced = replicasWith();
  await announced.replicas.follow(room);
  announced.announce({ kind: "deleted", id: "deletion.1", time: 0 as UnixMillis });
  const read = replicasWith();
  read.stored.push({ streamSeq: 9, record: { kind: "deleted", id: "deletion.1", time: 0 as UnixMillis } });
  expect(await read.replicas.follow(room)).toBe(false);
  const checkpointed = replicasWith();
  checkpointed.state.checkpoint = "deleted";
  expect(await checkpointed.replicas.follow(room)).toBe(false);
  for (const { replicas, settle, state } of [announced, read, checkpointed]) {
    await settle();
    expect([replicas.size, state.subscriptions]).toEqual([0, 0]);
  }
});

test("[RPH8] on a stalled connection one subscription is awaited, and none is added each second", async () => {
  const { replicas, state, settle } = replicasWith();
  state.natsAnswers = false;
  const followed = replicas.follow(room);
  await settle();
  state.natsAnswers = true;
  let resume = (): void => {};
  state.stall = new Promise((resolve) => (resume = resolve));
  await settle(5_500);
  resume();
  expect(await followed).toBe(true);
  expect([state.subscribing, state.subscriptions]).toEqual([2, 1]); // NATS did not answer the first.
});

test("[RPH9] the replica of a room without edits is kept while the owner's beacons arrive", async () => {
  const { replicas, settle, announce } = replicasWith({ roomIdleMsMax: "5000" });
  await replicas.follow(room);
  for (let beacons = 0; beacons < 20; beacons++) {
    await settle(2_500);
    announce({ kind: "beacon", head: 0 as Seq });
  }
  expect(replicas.ownerOf(room)).toBe("one");
  await settle(11_000);
  expect(replicas.size).toBe(0);
});

test("[RPH10] after a reconnect all replicas read the log's end, a limited number at once", async () => {
  const { replicas, stored, state, settle, reconnect } = replicasWith();
  const rooms = Array.from({ length: 1_000 }, (_, index) => `acme.room${index}` as RoomKey);
  for (const one of rooms) await replicas.follow(one);
  stored.push(epochRecord(2, 9));
  let resume = (): void => {};
  state.stall = new Promise((resolve) => (resume = resolve));
  reconnect();
  await settle();
  expect(state.reading).toBe(64);
  resume();
  await settle();
  expect(state.readingMost).toBe(64);
  expect(rooms.filter((one) => replicas.take(one)?.last.streamSeq !== 9)).toEqual([]);
});

test("[RPH12] the subscription of a replica that is dropped while it subscribes is closed", async () => {
  const { replicas, state, settle } = replicasWith();
  let resume = (): void => {};
  state.stall = new Promise((resolve) => (resume = resolve));
  void replicas.follow(room);
  await settle();
  replicas.unfollow(room);
  resume();
  await settle();
  expect([state.subscribing, state.subscriptions]).toEqual([1, 0]);
});

test("[RPH13] a replica reads the log only once it is subscribed, also if the connection is lost before", async () => {
  const { replicas, state, settle, reconnect } = replicasWith();
  let resume = (): void => {};
  state.stall = new Promise((resolve) => (resume = resolve));
  const followed = replicas.follow(room);
  reconnect();
  await settle();
  expect(state.reading).toBe(0);
  resume();
  expect(await followed).toBe(true);
  expect(state.reads).toBe(1);
});

test("[RPH14] a replica is kept as long as it is requested, although the room is quiet", async () => {
  const { replicas, settle } = replicasWith({ roomIdleMsMax: "5000" });
  for (let requests = 0; requests < 4; requests++) {
    expect(await replicas.follow(room)).toBe(true);
    await settle(8_000);
  }
  expect(replicas.size).toBe(1);
});

test("[RPH15] a replica that is dropped releases its memory", async () => {
  const { replicas, stored, budget } = replicasWith();
  stored.push({ record: EDIT, streamSeq: 7 });
  await replicas.follow(room);
  expect(budget.bytes).toBeGreaterThan(0);
  replicas.unfollow(room);
  expect(budget.bytes).toBe(0);
});

test("[RPH16] the rooms of a lost server are listed with the most recently announced first", async () => {
  const { replicas, settle, announce } = replicasWith();
  const rooms = ["acme.a", "acme.b", "acme.c"] as RoomKey[];
  for (const one of rooms) {
    await replicas.follow(one);
    await settle(10);
    announce({ kind: "beacon", head: 0 as Seq });
  }
  expect(replicas.roomsOf("one" as ServerId)).toEqual(["acme.c", "acme.b", "acme.a"]);
});
