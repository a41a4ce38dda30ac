import { Registry } from "prom-client";
import { expect, test } from "vitest";

import { natsRoomServers } from "../../placement/io/nats-questions.ts";
import { encodeJson } from "../../shared/bus/json-messages.ts";
import type { ClaimReply, ClaimRequest, LogEnd } from "../../shared/bus/placement-messages.ts";
import type { Epoch, Millis, RoomKey, Seq, ServerId, UnixMillis } from "../../shared/ids.ts";
import { subjectsOf } from "../../shared/bus/subjects.ts";
import { commandServer } from "../../shared/io/move-room.ts";
import type { NatsConnection } from "../../shared/io/nats.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import { natsOtherServers } from "../io/nats-ports.ts";
import { CommandCheck, Drain, Handover } from "./handovers.ts";
import { RoomHandovers, RoomTakeovers } from "./handovers-host.ts";
import { roomServerMetrics } from "../metrics.ts";
import type { OtherServers } from "../ports.ts";

const [own, peer, third] = ["one", "two", "three"] as ServerId[] as [ServerId, ServerId, ServerId];
const room = "acme.notes" as RoomKey;
const END: LogEnd = { id: "one.7", streamSeq: 40, epoch: 3 as Epoch, head: 12 as Seq };

type World = {
  owned: RoomKey[];
  end: LogEnd | undefined;
  follows: boolean;
  expects: boolean;
  reply: (server: ServerId, request: ClaimRequest) => ClaimReply | undefined;
  located: ServerId | undefined;
};

/** Records each request, in order. */
function serverWith(more: Partial<World> = {}) {
  const world: World = {
    owned: [room],
    end: END,
    follows: true,
    expects: true,
    reply: (server) => ({ kind: "owned", server, epoch: 4 as Epoch }),
    located: undefined,
    ...more,
  };
  const requests: string[] = [];
  const claims: ClaimRequest[] = [];
  let stopping = false;
  const rooms = {
    get isStopping() {
      return stopping;
    },
    has: (key: RoomKey) => world.owned.includes(key),
    owned: () => [...world.owned],
    drain: () => void (stopping = true),
    unfollow: () => void requests.push("unfollow"),
    expect: async () => (requests.push("expect"), world.expects),
    beginHandOver: async (key: RoomKey) => (requests.push(`stop ${key}`), world.end),
    endHandOver: (key: RoomKey, outcome: string) => void requests.push(`${outcome} ${key}`),
  };
  const replicas = { follow: async () => (requests.push("follow"), world.follows) };
  const others: OtherServers = {
    follow: async (server) => (requests.push(`${server} follows`), world.follows),
    expect: async (server) => (requests.push(`${server} expects`), world.expects),
    claim: async (server, request) => (requests.push(`${server} claims`), claims.push(request), world.reply(server, request)),
    locate: async () => world.located,
  };
  const clock = { now: () => 0 as Millis, wallNow: () => 0 as UnixMillis, after: () => () => {} };
  const metrics = roomServerMetrics(new Registry());
  const [parts, deps] = [
    { rooms, replicas, others },
    { clock, log: SILENT_LOG, metrics, available: () => [own, peer, third] },
  ];
  const handovers = new RoomHandovers(own, parts, { handOverMsMax: 1_000 }, deps);
  return { handovers, requests, claims, metrics, world, parts, deps };
}

test("[HND1] the owner stops only once the next owner has a replica and receives the room's edits, and sends it the end of the log", async () => {
  const { handovers, requests, claims } = serverWith();
  expect(await handovers.handOver(room, peer)).toEqual({ kind: "done" });
  expect(requests).toEqual(["two follows", "two expects", `stop ${room}`, "two claims", `handed-over ${room}`]);
  expect(claims).toEqual([{ room, suspect: own, end: END }]);
});

test.each<[string, Partial<World>, string[]]>([
  ["has no replica", { follows: false }, ["two follows"]],
  ["does not receive the edits", { expects: false }, ["two follows", "two expects"]],
  ["does not answer", { reply: () => undefined }, ["two follows", "two expects", `stop ${room}`, "two claims", `keep ${room}`]],
  [
    "refuses",
    { reply: () => ({ kind: "refused", reason: "full" }) },
    ["two follows", "two expects", `stop ${room}`, "two claims", `keep ${room}`],
  ],
  [
    "finds that a third server owns it",
    { reply: () => ({ kind: "elsewhere", server: third, epoch: 9 as Epoch }) },
    ["two follows", "two expects", `stop ${room}`, "two claims", `keep ${room}`],
  ],
])("[HND2] a room stays with its owner if the target %s", async (_, more, expected) => {
  const { handovers, requests } = serverWith(more);
  expect((await handovers.handOver(room, peer)).kind).toBe("refused");
  expect(requests).toEqual(expected);
});

test("[HND3] a room that this server does not own, or whose log does not settle, is not claimed by any server", async () => {
  const { handovers, requests } = serverWith({ end: undefined });
  expect(await handovers.handOver(room, peer)).toMatchObject({ kind: "refused" });
  expect(requests).not.toContain("two claims");
  expect((await handovers.handOver(room, own)).kind).toBe("refused");
});

test("[HND4] a command of a plan older than one already received is refused; an operator's command is not", async () => {
  const { handovers, requests } = serverWith({ owned: [] });
  expect((await handovers.answerCommand({ kind: "follow", room, generation: 7 })).kind).toBe("done");
  expect(await handovers.answerCommand({ kind: "unfollow", room, generation: 6 })).toEqual({
    kind: "refused",
    reason: "the plan of generation 6 is stale: generation 7 was received",
  });
  expect((await handovers.answerCommand({ kind: "unfollow", room, generation: 0 })).kind).toBe("done");
  expect((await handovers.answerCommand({ kind: "expect", room, generation: 0 })).kind).toBe("done");
  expect(requests).toEqual(["follow", "unfollow", "expect"]);
});

test("[HND5] a draining server accepts no rooms, and tries other servers if one does not accept a room", async () => {
  const { handovers, requests } = serverWith({
    located: peer,
    reply: (server) => (server === peer ? undefined : { kind: "owned", server, epoch: 4 as Epoch }),
  });
  await handovers.drain();
  expect(requests.filter((text) => text.includes("claims"))).toEqual(["two claims"]); // Placement names no other server.
  expect((await handovers.answerCommand({ kind: "follow", room: "acme.other" as RoomKey, generation: 0 })).kind).toBe("refused");

  const alone = serverWith({ reply: (server) => (server === peer ? undefined : { kind: "owned", server, epoch: 4 as Epoch }) });
  await alone.handovers.drain();
  expect(alone.requests.filter((text) => text.startsWith("handed-over"))).toEqual([`handed-over ${room}`]);
});

test("[HND6] a drain also hands over rooms whose claim ends meanwhile, and a later command hands over what was left", async () => {
  const late = "acme.late" as RoomKey;
  const { handovers, requests, world } = serverWith({
    reply: (server) => (world.owned.push(late), { kind: "owned", server, epoch: 4 as Epoch }),
  });
  await handovers.drain();
  const handedOver = () => requests.filter((text) => text.startsWith("handed-over"));
  expect(handedOver()).toEqual([`handed-over ${room}`, `handed-over ${late}`]);
  world.owned = [late];
  expect(await handovers.answerCommand({ kind: "drain" })).toEqual({ kind: "done" });
  await handovers.drain();
  expect(handedOver()).toEqual([`handed-over ${room}`, `handed-over ${late}`, `handed-over ${late}`]);
});

test("[HND7] a drain whose time is over tries no other server for a room, and begins no handover", () => {
  const drain = new Drain(own, { until: 1_000 as Millis, ownedRooms: () => [room] });
  const located = { kind: "located", room, named: undefined, available: [peer, third] } as const;
  drain.receiveDrainInput({ kind: "begun" }, 0 as Millis);
  expect(drain.receiveDrainInput(located, 500 as Millis)).toMatchObject([{ kind: "hand-over" }]);
  expect(drain.receiveDrainInput({ kind: "handover-ended", room, isDone: false }, 1_000 as Millis)).toEqual([{ kind: "ended" }]);

  const late = new Drain(own, { until: 1_000 as Millis, ownedRooms: () => [room] });
  late.receiveDrainInput({ kind: "begun" }, 999 as Millis);
  expect(late.receiveDrainInput(located, 1_000 as Millis)).toEqual([{ kind: "ended" }]);
});

test("[HND10] a drain tries three servers for a room, and leaves it to the gateways after that", () => {
  const available = ["two", "three", "four", "five", "six"] as ServerId[];
  const drain = new Drain(own, { until: 1_000 as Millis, ownedRooms: () => [room] });
  let effects = drain.receiveDrainInput({ kind: "begun" }, 0 as Millis);
  let tried = 0;
  while (effects.some(({ kind }) => kind === "locate")) {
    tried += 1;
    expect(drain.receiveDrainInput({ kind: "located", room, named: undefined, available }, 0 as Millis)).toMatchObject([
      { kind: "hand-over" },
    ]);
    effects = drain.receiveDrainInput({ kind: "handover-ended", room, isDone: false }, 0 as Millis);
  }
  expect([tried, effects]).toEqual([3, [{ kind: "ended" }]]);
});

test("[HND11] the time limit of an append that settles in time does not end the handover", () => {
  const handover = new Handover(own, room, peer);
  const receive = (input: Parameters<Handover["receiveHandoverInput"]>[0]) => handover.receiveHandoverInput(input, 0 as Millis);
  for (const input of [{ kind: "begun" }, { kind: "followed", isReady: true }, { kind: "expected", isReady: true }] as const)
    receive(input);
  expect(receive({ kind: "stopped", end: END })).toMatchObject([{ kind: "claim" }]);
  expect(receive({ kind: "timed-out" })).toEqual([]);
});

const lost = "two" as ServerId;

/** `taken`: whether this server won the room. A claim is settled when the test calls `settle`. */
function takeoversOf(count: number, taken: (room: RoomKey) => boolean) {
  const rooms = Array.from({ length: count }, (_, index) => `acme.r${index}` as RoomKey);
  const [asked, settle] = [[] as RoomKey[], [] as (() => void)[]];
  const takeOver = (room: RoomKey, from: ServerId): Promise<boolean> => {
    expect(from).toBe(lost);
    asked.push(room);
    return new Promise((resolve) => settle.push(() => resolve(taken(room))));
  };
  const takeovers = new RoomTakeovers(
    { rooms: { takeOver }, replicas: { roomsOf: (server) => (server === lost ? rooms : []) } },
    { clock: new FakeClock(), log: SILENT_LOG, metrics: roomServerMetrics(new Registry()) },
  );
  return { takeovers, asked, settle };
}

test("[TKO1] all rooms of a lost server are taken over, a limited number at a time", async () => {
  const { takeovers, asked, settle } = takeoversOf(300, () => true);
  const done = takeovers.receiveLost(lost);
  expect(asked).toHaveLength(128);
  settle.shift()!();
  await new Promise(setImmediate);
  expect(asked).toHaveLength(129);
  for (let settled = 1; settled < 300; settled++) {
    settle.shift()!();
    await new Promise(setImmediate);
  }
  await done;
  expect(new Set(asked).size).toBe(300);
});

test("[TKO2] a room that another server claimed does not end the takeover; a lost server without replicas here causes no claims", async () => {
  const { takeovers, asked, settle } = takeoversOf(2, (room) => room === "acme.r0");
  const done = takeovers.receiveLost(lost);
  for (const one of settle) one();
  await done;
  await takeovers.receiveLost("three" as ServerId);
  expect(asked).toEqual(["acme.r0", "acme.r1"]);
});

test("[HND9] a server carries out the plans of a placement whose lease was restored from an older copy, after a minute", () => {
  const check = new CommandCheck();
  const receive = (generation: number, now: number) =>
    check.receiveCommand({ kind: "unfollow", room, generation }, { isStopping: false, hasRoom: false }, now as Millis)?.kind ?? "accepted";
  expect([receive(900, 0), receive(899, 30_000), receive(900, 40_000)]).toEqual(["accepted", "refused", "accepted"]);
  expect([receive(12, 99_999), receive(12, 100_000)]).toEqual(["refused", "accepted"]);
  expect([receive(13, 100_001), receive(12, 100_002)]).toEqual(["accepted", "refused"]);
});

test("[HND8] placement and operators wait for a handover whose steps all take their longest time", async () => {
  let waitedMs = 0;
  const subjects = subjectsOf("test");
  const nats = {
    request: async (subject: string, _: Uint8Array, { timeout }: { timeout: number }) => {
      waitedMs += timeout;
      return { data: encodeJson(subject === subjects.claim(peer) ? { kind: "owned", server: peer, epoch: 4 } : { kind: "done" }) };
    },
  } as unknown as NatsConnection;
  const { parts, deps } = serverWith();
  const clock = { ...deps.clock, after: (ms: number) => ((waitedMs += ms), () => {}) };
  const others = natsOtherServers(nats, subjects);
  const handovers = new RoomHandovers(own, { ...parts, others }, { handOverMsMax: 1_000 }, { ...deps, clock });
  expect(await handovers.handOver(room, peer)).toEqual({ kind: "done" });
  const handoverMs = waitedMs;
  const command = { kind: "hand-over", room, to: peer, generation: 0 } as const;
  for (const order of [() => natsRoomServers(nats, subjects).order(own, command), () => commandServer({ nats, subjects }, own, command)]) {
    waitedMs = 0;
    await order();
    expect(waitedMs).toBeGreaterThan(handoverMs);
  }
});
