import { setImmediate } from "node:timers/promises";

import { Registry } from "prom-client";
import { expect, test } from "vitest";

import type { RoomEntry } from "../../shared/bus/placement-messages.ts";
import type { OperationsReport } from "../../shared/bus/operations-events.ts";
import { ownersRecordOf } from "../../shared/testing/owners-record.ts";
import { readSettings } from "../../shared/settings/settings.ts";
import type { ClientId, Epoch, GatewayId, RoomKey, Seq, ServerId, UnixMillis, UserId } from "../../shared/ids.ts";
import type { Log } from "../../shared/process/log.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import { BacklogBudget } from "../rooms/backlog.ts";
import { Loading } from "../rooms/loading.ts";
import { roomHostOptions, roomServerSettings } from "../config.ts";
import { roomServerMetrics } from "../metrics.ts";
import type { LastRecord, OutgoingRecord, Receiver, DecodedRecord } from "../ports.ts";
import { OwnedRooms, type OwnedRoomsPorts, type ReplicaSource } from "./owned-rooms-host.ts";
import { wholeRange } from "../io/jetstream-log.ts";

const room = "acme.notes" as RoomKey;
const own = "one" as ServerId;
const peer = "two" as ServerId;
const ann = { user: "ann" as UserId, client: "annannannannann1" as ClientId };

function world(options: { settings?: Record<string, string>; entry?: RoomEntry; registry?: Registry; log?: Log } = {}) {
  const clock = new FakeClock();
  const stored: LastRecord[] = [];
  const reports: OperationsReport[] = [];
  const state = {
    logAnswers: true,
    natsAnswers: true,
    inhabited: false,
    entry: options.entry,
    subscribed: false,
    abandonedCount: 0,
    withdrawMs: 0,
    entryFound: Promise.resolve(),
    endRead: Promise.resolve(),
    copy: "none" as "none" | "cold" | "warm",
    shown: Number.POSITIVE_INFINITY,
    presenceCount: 0,
    presenceOf: [] as string[],
    subscribes: Promise.resolve(),
  };
  let owner: Receiver | undefined;
  const logs = new Map([[room, stored]]);
  const logOf = (key: RoomKey): LastRecord[] => logs.get(key) ?? logs.set(key, []).get(key)!;
  const append = (stored: LastRecord[], record: OutgoingRecord): { kind: "appended"; streamSeq: number } | { kind: "fenced" } => {
    if ((stored.at(-1)?.streamSeq ?? 0) !== record.expectedStreamSeq) return { kind: "fenced" };
    stored.push({ record: ownersRecordOf(record.bytes), streamSeq: stored.length + 1 });
    return { kind: "appended", streamSeq: stored.length };
  };
  const answering = async <Value>(value: () => Value | Promise<Value>): Promise<Value> => {
    if (!state.natsAnswers) throw new Error("no answer");
    return value();
  };
  const shownBehind = async function* (key: RoomKey, read: number) {
    yield* logOf(key).filter(
      (one): one is DecodedRecord => one.record.kind !== "deleted" && one.streamSeq > read && one.streamSeq <= state.shown,
    );
  };
  const ports: OwnedRoomsPorts = {
    log: {
      append: (key, record, settled) => {
        if (state.logAnswers) void setImmediate().then(() => settled(append(logOf(key), record)));
        return () => void (state.abandonedCount += 1);
      },
      readLast: (key) =>
        answering(() => {
          const last = logOf(key).at(-1);
          return state.endRead.then(() => last);
        }),
      endsAt: (key, streamSeq) => answering(() => (logOf(key).at(-1)?.streamSeq ?? 0) <= streamSeq),
      read: (key, after, through) => wholeRange((read) => shownBehind(key, read), after, through, clock),
      advance: () => Promise.reject(new Error("no checkpoint is ahead of the log here")),
    },
    inbox: {
      subscribe: (_, receiver) =>
        answering(async () => {
          owner = receiver;
          await state.subscribes;
          state.subscribed = true;
          return { isOpen: () => state.subscribed, close: async () => void (state.subscribed = false) };
        }),
    },
    gateways: { answer: () => {}, broadcast: () => {} },
    presence: {
      begin: (key) => void state.presenceOf.push(`begin ${key}`),
      receivePresence: () => void (state.presenceCount += 1),
      end: (key) => void state.presenceOf.push(`end ${key}`),
      isInhabited: () => state.inhabited,
    },
    checkpoints: { newest: async () => undefined },
    entries: {
      find: () => state.entryFound.then(() => state.entry),
      announce: async (_, epoch) => void (state.entry = { owner: own, epoch }),
      withdraw: async (_, epoch) => {
        if (state.withdrawMs > 0) await new Promise<void>((resolve) => clock.after(state.withdrawMs, resolve));
        if (state.entry?.owner === own && state.entry.epoch <= epoch) state.entry = undefined;
      },
      forget: async () => void (state.entry = undefined),
    },
    seal: { sealOf: () => new Uint8Array(16), isGenuine: () => true },
    epochs: { after: (known: Epoch) => (known + 1) as Epoch },
    operations: { report: (event) => void reports.push(event) },
  };
  const hostOptions = roomHostOptions(readSettings(roomServerSettings, { flags: options.settings ?? {}, env: {} }), undefined);
  const budget = new BacklogBudget({ bytesMax: 1_000_000 });
  const replicas: ReplicaSource = {
    has: () => state.copy !== "none",
    ownerOf: () => (state.copy === "warm" ? peer : undefined),
    take: () => {
      const { copy } = state;
      state.copy = "none";
      if (copy !== "warm") return undefined;
      return {
        loading: new Loading(undefined, hostOptions, budget, clock.now()),
        last: { id: "two.1", streamSeq: 1, epoch: 1 as Epoch, head: 0 as Seq },
        isProven: true,
      };
    },
    follow: async () => {
      state.copy = "cold";
      return true;
    },
    unfollow: () => void (state.copy = "none"),
  };
  const host = new OwnedRooms(own, ports, hostOptions, {
    clock,
    log: options.log ?? SILENT_LOG,
    metrics: roomServerMetrics(options.registry ?? new Registry()),
    budget,
    replicas,
    loads: { count: () => {} },
    isLive: (server) => server === peer,
  });
  const send = (counter: number) =>
    owner?.receiveMessage(
      {
        kind: "edits",
        gateway: "gw" as GatewayId,
        edits: [{ author: ann, counter, ackedThrough: 0, parentSeq: 0 as Seq, payload: new Uint8Array(1) }],
      },
      20,
    );
  const showPresence = () => owner?.receivePresence({ kind: "sync", gateway: "gw" as GatewayId });
  return { host, clock, stored, state, reports, send, showPresence };
}

const claimed = (epoch: number) => ({ kind: "owned", server: own, epoch });
const otherClaim = (epoch: number): DecodedRecord["record"] => ({
  kind: "epoch",
  id: `two.${epoch}`,
  time: 0 as UnixMillis,
  epoch: epoch as Epoch,
  head: 0 as Seq,
});

test("[HOST1] a room is claimed, announced, and its edits appended", async () => {
  const { host, clock, stored, state, send } = world();
  expect(await host.claim({ room })).toEqual(claimed(1));
  send(1);
  await clock.advance(100);
  expect(stored.map(({ record }) => record.kind)).toEqual(["epoch", "edits"]);
  expect(state.entry).toEqual({ owner: own, epoch: 1 });
  expect(host.rooms).toBe(1);
});

test("[HOST1] a room whose entry the bucket did not store is announced again at the next request", async () => {
  const { host, state } = world();
  await host.claim({ room });
  state.entry = { owner: "dead" as ServerId, epoch: 0 as Epoch };
  expect(await host.claim({ room })).toEqual(claimed(1));
  expect(state.entry).toEqual({ owner: own, epoch: 1 });
});

test("[HOST2] simultaneous requests for a room receive the answer of one claim", async () => {
  const { host, stored } = world();
  expect(await Promise.all([host.claim({ room }), host.claim({ room }), host.claim({ room })])).toEqual([
    claimed(1),
    claimed(1),
    claimed(1),
  ]);
  expect(stored).toHaveLength(1);
});

test("[HOST3] the room of a live server stays with it unless that server is the suspect; the room of a dead server is claimed", async () => {
  const entry = { owner: peer, epoch: 4 as Epoch };
  expect(await world({ entry }).host.claim({ room })).toEqual({ kind: "elsewhere", server: peer, epoch: 4 });
  expect(await world({ entry }).host.claim({ room, suspect: peer })).toEqual(claimed(1));
  expect(await world({ entry: { owner: "dead" as ServerId, epoch: 4 as Epoch } }).host.claim({ room })).toEqual(claimed(1));
});

test("[HOST4] a request for a room that this server lost unnoticed leads to a new claim; without an answer from the log it is refused", async () => {
  const { host, stored, state } = world();
  await host.claim({ room });
  state.natsAnswers = false;
  expect(await host.claim({ room })).toMatchObject({ kind: "refused" });
  state.natsAnswers = true;
  expect(await host.claim({ room })).toEqual(claimed(1));
  stored.push({ record: otherClaim(2), streamSeq: 2 });
  expect(await host.claim({ room })).toEqual(claimed(3));
});

test("[HOST33] the late answer to a check from before a lost connection does not answer a request that came after it", async () => {
  const { host, stored, state } = world();
  await host.claim({ room });
  const answers: (() => void)[] = [];
  const holdNext = (): void => void (state.endRead = new Promise((resolve) => answers.push(resolve)));
  const settled: unknown[] = [];
  const ask = async (): Promise<void> => {
    holdNext();
    host.receiveReconnect();
    void host.claim({ room }).then((reply) => settled.push(reply));
    await setImmediate();
  };
  await ask();
  stored.push({ record: otherClaim(2), streamSeq: 2 });
  await ask();
  state.endRead = Promise.resolve();
  answers[0]!();
  await setImmediate();
  expect(settled, "the first answer is older than the other owner's claim").toEqual([]);
  answers[1]!();
  await setImmediate();
  await setImmediate();
  expect(settled).toEqual([claimed(3), claimed(3)]);
});

test("[HOST33] the late failure of a check from before a lost connection does not end the check after it", async () => {
  const { host, state } = world();
  await host.claim({ room });
  let fail = (): void => {};
  state.endRead = new Promise((_, reject) => (fail = () => reject(new Error("the connection was lost"))));
  host.receiveReconnect();
  const first = host.claim({ room });
  await setImmediate();
  let answer = (): void => {};
  state.endRead = new Promise((resolve) => (answer = resolve));
  host.receiveReconnect();
  const second = host.claim({ room });
  await setImmediate();
  fail();
  await setImmediate();
  answer();
  expect([await first, await second]).toEqual([claimed(1), claimed(1)]);
});

test("[HOST39] after a pause of the process as long as missed heartbeats, a room that another server took over ends within a second", async () => {
  const { host, clock, stored } = world();
  await host.claim({ room });
  stored.push({ record: otherClaim(2), streamSeq: 2 });
  await clock.advance(3_000);
  expect(host.rooms, "a quiet room does not notice it by itself").toBe(1);
  await clock.afterPause(10_000);
  await clock.advance(1_000);
  expect(host.rooms).toBe(0);
});

test("[HOST5] a request reveals a lost subscription, and the room is claimed again", async () => {
  const { host, state } = world();
  await host.claim({ room });
  state.subscribed = false;
  expect(await host.claim({ room })).toEqual(claimed(2));
  expect(state.subscribed).toBe(true);
});

test("[HOST6] a claim without an answer from the log is refused after its time limit, and its append is abandoned", async () => {
  const { host, clock, state } = world({ settings: { claimMsMax: "1000" } });
  state.logAnswers = false;
  const reply = host.claim({ room });
  await clock.advance(2_500);
  expect(await reply).toMatchObject({ kind: "refused" });
  expect(state.abandonedCount).toBe(1);
  expect(state.subscribed).toBe(false);
  expect(host.rooms).toBe(0);
});

test("[HOST35] a subscription that is confirmed after the claim has failed is closed, so that no gateway sends to this server", async () => {
  const { host, clock, state } = world({ settings: { claimMsMax: "1000" } });
  let confirm = (): void => {};
  state.subscribes = new Promise((resolve) => (confirm = resolve));
  const reply = host.claim({ room });
  await clock.advance(2_500);
  expect(await reply).toMatchObject({ kind: "refused" });
  confirm();
  await setImmediate();
  expect(state.subscribed).toBe(false);
});

test("[HOST36] a handover ends, however the owner loses the room or keeps it, and an expectation that fails is refused", async () => {
  const handover = async () => {
    const of = world();
    await of.host.claim({ room });
    of.state.logAnswers = false;
    of.send(1);
    return { ...of, end: of.host.beginHandOver(room) };
  };
  const kept = await handover();
  kept.host.endHandOver(room, "keep");
  expect(await kept.end, "its append did not settle in time").toBeUndefined();

  const fenced = world();
  await fenced.host.claim({ room });
  fenced.send(1);
  fenced.stored.push({ record: otherClaim(2), streamSeq: 2 });
  expect(await fenced.host.beginHandOver(room), "another server claimed it").toBeUndefined();

  const { host, state } = world();
  state.natsAnswers = false;
  expect(await host.expect(room)).toBe(false);
});

test("[HOST37] a room with members is not released, and its presence ends with the ownership", async () => {
  const { host, clock, state } = world({ settings: { roomIdleMsMax: "3000" } });
  await host.claim({ room });
  state.inhabited = true;
  await clock.advance(20_000);
  expect([host.rooms, state.presenceOf]).toEqual([1, [`begin ${room}`]]);
  state.inhabited = false;
  await clock.advance(5_000);
  expect([host.rooms, state.presenceOf]).toEqual([0, [`begin ${room}`, `end ${room}`]]);
});

test("[HOST38] the edits of a fenced append are not counted as committed", async () => {
  const registry = new Registry();
  const { host, clock, stored, send } = world({ registry });
  await host.claim({ room });
  send(1);
  await clock.advance(100);
  stored.push({ record: otherClaim(2), streamSeq: 3 });
  send(2);
  await clock.advance(100);
  expect(host.rooms).toBe(0);
  expect(await registry.getSingleMetricAsString("coroom_edits_committed_total")).toContain("coroom_edits_committed_total 1");
});

test("[HOST7] a server owns at most its maximum number of rooms", async () => {
  const { host } = world({ settings: { roomsMax: "1" } });
  await host.claim({ room });
  expect(await host.claim({ room: "acme.other" as RoomKey })).toMatchObject({
    kind: "refused",
    reason: expect.stringContaining("COROOM_ROOMS_MAX"),
  });
  expect(await host.claim({ room })).toMatchObject({ kind: "owned" });
});

test("[HOST20] a server at its maximum claims no more of many requested rooms and counts the refusals; a released room makes place for another", async () => {
  const registry = new Registry();
  const { host, clock } = world({ settings: { roomsMax: "3", roomIdleMsMax: "1000" }, registry });
  const ask = (count: number) =>
    Promise.all(Array.from({ length: count }, (_, index) => host.claim({ room: `acme.r${index}` as RoomKey })));
  const first = ask(10);
  await clock.advance(100);
  expect((await first).map(({ kind }) => kind).sort()).toEqual([...Array<string>(3).fill("owned"), ...Array<string>(7).fill("refused")]);
  expect(host.rooms).toBe(3);
  expect(await registry.getSingleMetricAsString("coroom_room_server_limits_reached_total")).toContain('{limit="rooms"} 7');
  await clock.advance(3_000);
  const again = ask(1);
  await clock.advance(100);
  expect((await again)[0]).toMatchObject({ kind: "owned" });
});

test("[HOST21] two requests for the same room both succeed when only one place is free", async () => {
  const { host, clock } = world({ settings: { roomsMax: "1" } });
  const both = Promise.all([host.claim({ room }), host.claim({ room })]);
  await clock.advance(100);
  expect((await both).map(({ kind }) => kind)).toEqual(["owned", "owned"]);
});

test("[HOST8] a stopping server commits waiting edits, removes its entries, and refuses claims", async () => {
  const { host, clock, stored, state, send } = world();
  state.withdrawMs = 300;
  await host.claim({ room });
  await clock.advance(50);
  send(1);
  send(2);
  let hasStopped = false;
  const stopped = host.stop().then(() => (hasStopped = true));
  expect(await host.claim({ room })).toMatchObject({ kind: "refused" });
  await clock.advance(200);
  expect([host.rooms, hasStopped], "the bucket has not answered").toEqual([0, false]);
  await clock.advance(300);
  await stopped;
  expect(stored.map(({ record }) => record.kind)).toEqual(["epoch", "edits", "edits"]);
  expect(state.entry).toBeUndefined();
});

test("[HOST30] a room that is claimed again before the bucket removed its entry keeps the new entry", async () => {
  const { host, clock, state } = world({ settings: { roomIdleMsMax: "1000" } });
  state.withdrawMs = 3_000;
  await host.claim({ room });
  await clock.advance(2_000);
  expect([host.rooms, state.entry], "the removal is on its way").toEqual([0, { owner: own, epoch: 1 }]);
  expect(await host.claim({ room })).toEqual(claimed(2));
  await clock.advance(3_000);
  expect(state.entry).toEqual({ owner: own, epoch: 2 });
});

test("[HOST31] thousands of claims that NATS does not answer write few lines to the log", async () => {
  let lines = 0;
  const { host, state } = world({ log: { ...SILENT_LOG, warn: () => void (lines += 1) } });
  state.natsAnswers = false;
  const claims = Array.from({ length: 1_000 }, (_, index) => host.claim({ room: `acme.r${index}` as RoomKey }));
  expect((await Promise.all(claims)).map(({ kind }) => kind)).toEqual(claims.map(() => "refused"));
  expect(lines).toBeGreaterThan(0);
  expect(lines).toBeLessThanOrEqual(10);
});

test("[HOST9] a stopping server waits at most its release time for a log that does not answer", async () => {
  const { host, clock, state, send } = world({ settings: { releaseMsMax: "1000" } });
  await host.claim({ room });
  await clock.advance(50);
  state.logAnswers = false;
  send(1);
  const stopped = host.stop();
  await clock.advance(1_500);
  await stopped;
  expect(state.abandonedCount).toBe(1);
});

test("[HOST34] a stopping server releases a room whose handover fails, with its edits and its entry", async () => {
  const { host, clock, stored, state, send } = world();
  await host.claim({ room });
  expect(await host.beginHandOver(room)).toMatchObject({ streamSeq: 1 });
  send(1);
  let hasStopped = false;
  void host.stop().then(() => (hasStopped = true));
  await clock.advance(500);
  host.endHandOver(room, "keep");
  await clock.advance(500);
  expect([hasStopped, state.entry, state.subscribed, stored.at(-1)?.record.kind]).toEqual([true, undefined, false, "edits"]);
});

test("[HOST22] a deleted room is not claimed, and its entry is removed, whichever server it names", async () => {
  const { host, stored, state } = world({ entry: { owner: "dead" as ServerId, epoch: 4 as Epoch } });
  stored.push({ record: { kind: "deleted", id: "deletion.1", time: 0 as UnixMillis }, streamSeq: 1 });
  expect(await host.claim({ room })).toEqual({ kind: "deleted" });
  expect([host.rooms, state.entry, state.subscribed]).toEqual([0, undefined, false]);
});

test("[HOST22] the log refuses the next edit of a deleted room's owner, and the next request receives that the room is deleted", async () => {
  const { host, clock, stored, send } = world();
  await host.claim({ room });
  stored.push({ record: { kind: "deleted", id: "deletion.1", time: 0 as UnixMillis }, streamSeq: 2 });
  send(1);
  await clock.advance(100);
  expect(stored.map(({ record }) => record.kind)).toEqual(["epoch", "deleted"]);
  expect(await host.claim({ room })).toEqual({ kind: "deleted" });
});

test("[HOST23] a replica that a claim took is kept again if the claim fails, complete or not, and only then", async () => {
  const late = world();
  late.state.copy = "warm";
  late.stored.push({ record: otherClaim(1), streamSeq: 1 }, { record: otherClaim(2), streamSeq: 2 }); // Another server was faster than the replica knows.
  expect(await late.host.takeOver(room, peer)).toBe(false);
  expect([late.stored.length, late.state.copy]).toEqual([2, "cold"]);

  const unanswered = world({ settings: { claimMsMax: "1000" } });
  unanswered.state.copy = "cold";
  unanswered.state.logAnswers = false;
  const reply = unanswered.host.claim({ room });
  await unanswered.clock.advance(2_500);
  expect([(await reply).kind, unanswered.state.copy]).toEqual(["refused", "cold"]);

  const inTime = world();
  inTime.state.copy = "warm";
  inTime.stored.push({ record: otherClaim(1), streamSeq: 1 });
  expect(await inTime.host.takeOver(room, peer)).toBe(true);
  expect(inTime.state.copy).toBe("none");
  inTime.stored.push({ record: otherClaim(3), streamSeq: 3 });
  inTime.send(1); // The owner notices that it is fenced.
  await inTime.clock.advance(100);
  expect([inTime.host.rooms, inTime.state.copy]).toEqual([0, "none"]);

  const deleted = world();
  deleted.state.copy = "warm";
  deleted.stored.push(
    { record: otherClaim(1), streamSeq: 1 },
    { record: { kind: "deleted", id: "deletion.1", time: 0 as UnixMillis }, streamSeq: 2 },
  );
  expect(await deleted.host.takeOver(room, peer)).toBe(false);
  expect(deleted.state.copy).toBe("none");
});

test("[HOST23] without an earlier replica none is kept after a failed claim", async () => {
  const { host, clock, state } = world({ settings: { claimMsMax: "1000" } });
  state.logAnswers = false;
  const reply = host.claim({ room });
  await clock.advance(2_500);
  expect([(await reply).kind, state.copy]).toEqual(["refused", "none"]);
});

test("[HOST24] a claim fails if the log does not show everything up to the claim's own record", async () => {
  const registry = new Registry();
  const { host, clock, stored, state, send } = world({ registry });
  await host.claim({ room });
  send(1);
  await clock.advance(100);
  stored.push({ record: { kind: "epoch", id: "two.2", time: 0 as UnixMillis, epoch: 2 as Epoch, head: 1 as Seq }, streamSeq: 3 });
  state.shown = 1;
  const behind = host.claim({ room });
  await clock.advance(3_000);
  expect([(await behind).kind, host.rooms]).toEqual(["owned", 0]); // The server won the claim, then released the room.
  expect(await registry.getSingleMetricAsString("coroom_room_server_log_holes_total")).toContain("coroom_room_server_log_holes_total 0");

  state.shown = Number.POSITIVE_INFINITY;
  expect(await host.claim({ room })).toEqual(claimed(4));
  send(1); // A repeat: the log contains it.
  await clock.advance(100);
  expect(stored.map(({ record }) => record.kind)).toEqual(["epoch", "edits", "epoch", "epoch", "epoch"]);
});

test("[HOST25] a replica that was unfollowed is not kept again after the claim that took it", async () => {
  const kept: string[] = [];
  for (const isUnfollowed of [false, true]) {
    const { host, clock, stored, state } = world({ settings: { claimMsMax: "1000" } });
    state.copy = "warm";
    stored.push({ record: otherClaim(1), streamSeq: 1 });
    state.logAnswers = false;
    const taken = host.takeOver(room, peer);
    await clock.advance(100);
    expect(state.copy).toBe("none");
    if (isUnfollowed) host.unfollow(room);
    await clock.advance(2_500);
    expect(await taken).toBe(false);
    kept.push(state.copy);
  }
  expect(kept).toEqual(["cold", "none"]);
});

test("[HOST26] a claim request that waited for the bucket during a takeover is answered like a later request", async () => {
  const { host, clock, stored, state } = world();
  let answerEntry = (): void => {};
  state.entryFound = new Promise((resolve) => (answerEntry = resolve));
  state.copy = "warm";
  stored.push({ record: otherClaim(1), streamSeq: 1 });
  const replies: unknown[] = [];
  void host.claim({ room }).then((reply) => replies.push(reply));
  expect(await host.takeOver(room, peer)).toBe(true);
  expect(replies).toEqual([]);
  answerEntry();
  await clock.advance(100);
  expect(replies).toEqual([claimed(2)]);
});

test("[HOST27] presence messages reach a room's presence while the room is here", async () => {
  const { host, clock, state, showPresence } = world();
  await host.claim({ room });
  showPresence();
  expect(state.presenceCount).toBe(1);
  const stopped = host.stop();
  await clock.advance(1_000);
  await stopped;
  showPresence();
  expect(state.presenceCount).toBe(1);
});

test("[HOST32] a gateway that asks for the owner of the presence before the claim is won is answered once it is", async () => {
  const { host, clock, state, showPresence } = world();
  let answerEnd = (): void => {};
  state.endRead = new Promise((resolve) => (answerEnd = resolve));
  const claim = host.claim({ room });
  await clock.advance(10);
  showPresence();
  expect(state.presenceCount).toBe(0);
  answerEnd();
  expect(await claim).toEqual(claimed(1));
  expect(state.presenceCount).toBe(1);
});

test("[HOST32] a gateway that asks for the owner of the presence is answered while the room still loads", async () => {
  const { host, clock, stored, state, showPresence } = world();
  stored.push({ record: otherClaim(1), streamSeq: 1 });
  state.shown = 0;
  await host.claim({ room });
  showPresence();
  expect(state.presenceCount, "the log does not show its records yet").toBe(1);
  state.shown = Number.POSITIVE_INFINITY;
  await clock.advance(3_000);
  expect(host.owned()).toEqual([room]);
});

test("[HOST28] a claim reports the earlier owner unless that owner had released the room", async () => {
  const claims = async (of: ReturnType<typeof world>, suspect?: ServerId) => {
    await (suspect === undefined ? of.host.claim({ room }) : of.host.claim({ room, suspect }));
    return of.reports;
  };
  const report = { kind: "room_claimed", room, epoch: 1 };
  expect(await claims(world())).toEqual([report]);
  expect(await claims(world({ entry: { owner: own, epoch: 0 as Epoch } }))).toEqual([report]);
  expect(await claims(world({ entry: { owner: "dead" as ServerId, epoch: 0 as Epoch } }))).toEqual([{ ...report, from: "dead" }]);
  expect(await claims(world({ entry: { owner: peer, epoch: 0 as Epoch } }), peer)).toEqual([{ ...report, from: peer }]);

  const unasked = world();
  unasked.stored.push({ record: otherClaim(1), streamSeq: 1 });
  unasked.state.copy = "warm";
  expect(await unasked.host.takeOver(room, peer)).toBe(true);
  expect(unasked.reports).toEqual([{ ...report, epoch: 2, from: peer }]);

  const handed = world({ entry: { owner: peer, epoch: 1 as Epoch } });
  handed.stored.push({ record: otherClaim(1), streamSeq: 1 });
  const expecting = handed.host.expect(room);
  expect(await expecting).toBe(true);
  await handed.host.claim({ room, end: { id: "two.1", streamSeq: 1, epoch: 1 as Epoch, head: 0 as Seq } });
  expect(handed.reports).toEqual([{ ...report, epoch: 2 }]);
});

test("[HOST29] an expected room that is claimed gets an epoch above the one that the requester knows", async () => {
  const { host, stored } = world();
  stored.push({ record: otherClaim(1), streamSeq: 1 });
  expect(await host.expect(room)).toBe(true);
  expect(await host.claim({ room, above: 7 as Epoch })).toEqual(claimed(8));
});
