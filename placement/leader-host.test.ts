import { Registry } from "prom-client";
import { expect, test } from "vitest";

import type {
  ClaimReply,
  ClaimRequest,
  PlannedRoom,
  ServerCommand,
  ServerCommandReply,
  ServerHeartbeat,
} from "../shared/bus/placement-messages.ts";
import type { Epoch, RoomKey, ServerId, UnixMillis } from "../shared/ids.ts";
import type { Lease } from "../shared/cluster/lease.ts";
import { Membership } from "../shared/cluster/membership.ts";
import { FakeClock } from "../shared/testing/fake-clock.ts";
import type { Log } from "../shared/process/log.ts";
import { SILENT_LOG } from "../shared/testing/silent-log.ts";
import { refusalOfClaim, refusalOfCommand } from "./leader.ts";
import { LeaderHost, type LeaderOptions } from "./leader-host.ts";
import { placementMetrics } from "./metrics.ts";
import { PlacementView } from "./view.ts";

const [a, b] = ["a", "b"] as ServerId[] as [ServerId, ServerId];
const [room, other] = ["acme.notes", "acme.other"] as RoomKey[] as [RoomKey, RoomKey];
const rooms = Array.from({ length: 100 }, (_, index) => `acme.r${index}` as RoomKey);
const HEARTBEAT_MS = 50;
const OPTIONS: LeaderOptions = {
  holder: "one",
  leaseMs: 1_000,
  controlLoopMs: 10_000,
  hotShare: 0.3,
  hotRoomCalmMs: 30_000,
  imbalance: 0.1,
  movesMax: 64,
  followsMax: 500,
  fullShare: 0.9,
  reliefMax: 8,
  keepsReplicas: true,
};
const beat = (server: ServerId, more: Partial<ServerHeartbeat> = {}): ServerHeartbeat => ({
  server,
  rooms: 1,
  draining: false,
  time: 0 as UnixMillis,
  ...more,
});

function leaderOf(options: Partial<LeaderOptions> = {}, silenceMsMax = 750, log: Log = SILENT_LOG) {
  const clock = new FakeClock();
  const kept: { lease: Lease | undefined; revision: number } = { lease: undefined, revision: 0 };
  const requests: string[] = [];
  const planned = new Map<RoomKey, PlannedRoom | undefined>();
  const state = {
    bucketAnswers: true,
    plansAreConfirmed: true,
    planIsKept: true,
    planIsWatched: true,
    alive: [a, b],
    heartbeats: new Map<ServerId, Partial<ServerHeartbeat>>(),
    refuses: false,
    refusesClaims: false,
    claims: Promise.resolve(),
    orders: Promise.resolve(),
  };
  const ports = {
    leases: {
      read: async () => {
        if (!state.bucketAnswers) throw new Error("no answer");
        return { ...kept };
      },
      write: async (_: number, lease: Lease, revision: number) => {
        if (!state.bucketAnswers) throw new Error("no answer");
        if (!state.plansAreConfirmed && lease.floor > (kept.lease?.floor ?? 0)) throw new Error("no answer");
        if (revision !== kept.revision) return { kind: "superseded" } as const;
        [kept.lease, kept.revision] = [lease, revision + 1];
        return { kind: "written", revision: kept.revision } as const;
      },
    },
    plans: {
      onEntry: async () => {},
      write: async (key: RoomKey, entry: PlannedRoom) => {
        if (!state.planIsKept) throw new Error("no answer");
        planned.set(key, entry);
      },
      remove: async (key: RoomKey, generation: number) => {
        if (!state.planIsKept) throw new Error("no answer");
        if ((planned.get(key)?.generation ?? 0) > generation) return false;
        planned.set(key, undefined);
        if (state.planIsWatched) view.receivePlanned(key, undefined);
        return true;
      },
    },
    servers: {
      claim: async (server: ServerId, request: ClaimRequest) => {
        requests.push(`${server} claims ${request.room}`);
        await state.claims;
        return state.refuses || state.refusesClaims ? undefined : ({ kind: "owned", server, epoch: 2 as Epoch } as const);
      },
      order: async (server: ServerId, order: ServerCommand) => {
        requests.push(`${server}: ${order.kind}${"generation" in order ? ` of plan ${order.generation}` : ""}`);
        await state.orders;
        return state.refuses ? ({ kind: "refused", reason: "busy" } as const) : ({ kind: "done" } as const);
      },
    },
    operations: { report: () => {} },
  };
  const membership = new Membership({ silenceMsMax });
  const view = new PlacementView();
  const leader = new LeaderHost(
    view,
    membership,
    ports,
    { ...OPTIONS, ...options },
    { clock, log, metrics: placementMetrics(new Registry()) },
  );
  leader.start();
  const pass = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= HEARTBEAT_MS) {
      for (const server of state.alive) membership.receiveHeartbeat(beat(server, state.heartbeats.get(server)), clock.now());
      await clock.advance(HEARTBEAT_MS);
    }
  };
  return { clock, leader, view, pass, requests, planned, kept, state, membership, timers: () => clock.pending };
}

test("[LDR1] the leader listens before its first decision, and stores a plan's generation in the lease before any step of the plan", async () => {
  const { view, pass, requests, planned, kept } = leaderOf();
  view.receiveEntry(room, { owner: a, epoch: 1 as Epoch });
  await pass(1_400);
  expect([kept.lease, requests]).toEqual([undefined, []]);
  await pass(1_000);
  expect(kept.lease).toEqual({ holder: "one", floor: 1 });
  expect(requests).toEqual(["b: follow of plan 1"]);
  expect(planned.get(room)).toMatchObject({
    owner: a,
    replica: b,
    generation: 1,
    reason: "b keeps its replica, on another server than its owner a",
  });
});

test("[LDR2] the rooms of a silent server are claimed at once by the servers with a replica, except rooms that were taken over unasked", async () => {
  const { view, pass, requests, state } = leaderOf();
  view.receiveEntry(room, { owner: a, epoch: 1 as Epoch });
  await pass(2_500);
  view.receiveEntry(other, { owner: a, epoch: 1 as Epoch });
  requests.length = 0;
  state.alive = [b];
  await pass(900);
  expect(requests).toEqual(["b claims acme.other"]);
  view.receiveEntry(other, { owner: b, epoch: 2 as Epoch });
  await pass(1_500);
  expect(requests).toEqual(["b claims acme.other", "b claims acme.notes"]); // The server has not claimed that room.
});

test("[LDR14] a leader that received no heartbeat at all waits for the heartbeats of all before it assigns a room to another", async () => {
  const { view, pass, requests, state } = leaderOf({ controlLoopMs: 1_000 });
  view.receiveEntry(room, { owner: a, epoch: 1 as Epoch });
  await pass(2_500);
  requests.length = 0;
  state.alive = [];
  await pass(5_000);
  state.alive = [b];
  await pass(1_200);
  state.alive = [a, b];
  await pass(3_000);
  expect(requests).toEqual([]);
  state.alive = [b];
  await pass(3_000);
  expect(requests[0]).toBe("b claims acme.notes");
});

test("[LDR15] a plan that the lease could not store is made again as soon as the bucket answers", async () => {
  const { view, pass, requests, state } = leaderOf();
  view.receiveEntry(room, { owner: a, epoch: 1 as Epoch });
  await pass(2_500);
  view.receiveEntry(other, { owner: a, epoch: 1 as Epoch });
  requests.length = 0;
  [state.alive, state.plansAreConfirmed] = [[b], false];
  await pass(1_500);
  state.plansAreConfirmed = true;
  await pass(500);
  expect(requests).toContain("b claims acme.other");
});

test("[LDR7] the reason for a room's owner stays readable after its replica was placed again", async () => {
  const { view, pass, planned, state, requests } = leaderOf({ controlLoopMs: 1_000 });
  view.receiveEntry(room, { owner: a, epoch: 1 as Epoch });
  await pass(2_500);
  state.alive = [b];
  await pass(900);
  view.receiveEntry(room, { owner: b, epoch: 2 as Epoch });
  state.alive = [a, b];
  await pass(2_500);
  expect(requests).not.toContain("b claims acme.notes");
  expect(planned.get(room)).toMatchObject({ owner: b, replica: a, ownerReason: "a was gone; b had a replica" });
});

test("[LDR3] a leader decides nothing while the bucket does not answer, and does nothing more once another leader succeeds it", async () => {
  const { view, pass, requests, kept, state } = leaderOf();
  state.bucketAnswers = false;
  view.receiveEntry(room, { owner: a, epoch: 1 as Epoch });
  await pass(4_000);
  expect(requests).toEqual([]);
  state.bucketAnswers = true;
  await pass(2_000);
  expect(requests).toEqual(["b: follow of plan 1"]);
  [kept.lease, kept.revision] = [{ holder: "two", floor: 5 }, kept.revision + 1];
  state.alive = [b];
  await pass(900);
  expect(requests).toEqual(["b: follow of plan 1"]);
});

test("[LDR4] a refused step is planned again", async () => {
  const { view, pass, requests, state, planned } = leaderOf({ controlLoopMs: 1_000 });
  state.refuses = true;
  view.receiveEntry(room, { owner: a, epoch: 1 as Epoch });
  await pass(2_000);
  expect([requests, planned.size]).toEqual([["b: follow of plan 1"], 0]);
  state.refuses = false;
  await pass(1_500);
  expect(requests).toEqual(["b: follow of plan 1", "b: follow of plan 2"]);
  expect(planned.get(room)).toMatchObject({ generation: 2 });
});

test("[LDR5] the replica of a released room is dropped", async () => {
  const { view, pass, requests, planned } = leaderOf({ controlLoopMs: 1_000 });
  view.receiveEntry(room, { owner: a, epoch: 1 as Epoch });
  await pass(2_000);
  view.receiveEntry(room, undefined);
  await pass(1_500);
  expect(requests.slice(0, 2)).toEqual(["b: follow of plan 1", "b: unfollow of plan 1"]);
  expect(planned.get(room)).toBeUndefined();
});

test("[LDR6] a stopped leader does nothing more", async () => {
  const { leader, view, pass, requests, timers } = leaderOf();
  view.receiveEntry(room, { owner: a, epoch: 1 as Epoch });
  leader.stop();
  await pass(3_000);
  expect([requests, timers()]).toEqual([[], 0]);
});

test("[LDR8] a replica whose entry the plan bucket did not store is planned again, so that every process can read it", async () => {
  const { view, pass, planned, requests, state } = leaderOf({ controlLoopMs: 1_000 });
  view.receiveEntry(room, { owner: a, epoch: 1 as Epoch });
  state.planIsKept = false;
  await pass(2_500);
  expect([planned.has(room), requests[0]]).toEqual([false, "b: follow of plan 1"]);
  state.planIsKept = true;
  await pass(1_500);
  expect(planned.get(room)).toMatchObject({ owner: a, replica: b });
});

test("[LDR9] a server that took over a room from its replica keeps no replica when the next server takes the room from it", async () => {
  const { view, pass, requests, planned } = leaderOf({ controlLoopMs: 10_000 });
  view.receiveEntry(room, { owner: a, epoch: 1 as Epoch });
  await pass(2_000);
  expect(requests).toEqual(["b: follow of plan 1"]);
  view.receiveEntry(room, { owner: b, epoch: 2 as Epoch });
  expect([view.replicaOf(room), view.ownerReasonOf(room)]).toEqual([undefined, "a was gone; b had a replica"]);
  view.receiveEntry(room, { owner: a, epoch: 3 as Epoch });
  await pass(10_000);
  expect(requests).toEqual(["b: follow of plan 1", "b: follow of plan 2"]);
  expect(planned.get(room)).toMatchObject({ owner: a, replica: b, generation: 2 });
});

test("[LDR10] a leader leaves a lost server's unclaimed rooms alone once that server returns, others take the rooms, or another process leads", async () => {
  const returns = ({ state }: ReturnType<typeof leaderOf>): void => void (state.alive = [a, b]);
  const succeeded = ({ kept }: ReturnType<typeof leaderOf>): void =>
    void ([kept.lease, kept.revision] = [{ holder: "two", floor: 5 }, kept.revision + 1]);
  const taken = ({ view }: ReturnType<typeof leaderOf>): void =>
    rooms.forEach((key) => view.receiveEntry(key, { owner: b, epoch: 2 as Epoch }));
  for (const change of [returns, succeeded, taken]) {
    const leading = leaderOf({ keepsReplicas: false, leaseMs: 5_000 }); // The other process holds the lease until then.
    const { view, pass, requests, state } = leading;
    for (const key of rooms) view.receiveEntry(key, { owner: a, epoch: 1 as Epoch });
    await pass(2_000);
    const claims = () => requests.filter((text) => text.includes(" claims ")).length;
    let goOn = (): void => {};
    state.claims = new Promise((resolve) => (goOn = resolve));
    state.alive = [b];
    await pass(900);
    expect(claims()).toBe(32);
    change(leading);
    await pass(2_500);
    goOn();
    await pass(1_000);
    expect(claims()).toBe(32);
  }
});

test("[LDR11] a step of a new plan that waited for a step of the previous plan belongs to the new plan", async () => {
  const { view, pass, requests, planned, state } = leaderOf({ controlLoopMs: 1_000 });
  for (let index = 0; index < 20; index++)
    view.receiveEntry(`acme.room${index}` as RoomKey, { owner: index % 2 === 0 ? a : b, epoch: 1 as Epoch });
  let goOn = (): void => {};
  state.orders = new Promise((resolve) => (goOn = resolve));
  await pass(3_000);
  expect([requests.length, requests.every((text) => text.endsWith("follow of plan 1"))]).toEqual([16, true]);
  requests.length = 0;
  goOn();
  await pass(50);
  expect([requests.length, requests.every((text) => text.endsWith("follow of plan 2"))]).toEqual([4, true]);
  expect([...planned.values()].filter((entry) => entry?.generation === 2).length).toBe(4);
});

test("[LDR20] a step that ends after another leader planned the room writes no entry over that one, also in a process that leads again", async () => {
  for (const leadsAgain of [false, true]) {
    const { view, pass, requests, planned, kept, state } = leaderOf();
    view.receiveEntry(room, { owner: a, epoch: 1 as Epoch });
    let goOn = (): void => {};
    state.orders = new Promise((resolve) => (goOn = resolve));
    await pass(2_500);
    expect(requests).toEqual(["b: follow of plan 1"]);
    [kept.lease, kept.revision] = [{ holder: "two", floor: 2 }, kept.revision + 1];
    await pass(500); // This leader fails to renew the lease.
    const other: PlannedRoom = { owner: a, replica: b, reason: "by the new leader", generation: 2, at: 0 as UnixMillis };
    planned.set(room, other);
    view.receivePlanned(room, other);
    if (leadsAgain) await pass(3_000);
    expect(kept.lease?.holder).toBe(leadsAgain ? "one" : "two");
    goOn();
    await pass(50);
    expect(planned.get(room)).toEqual(other);
  }
});

test("[LDR21] a step that ends after another leader succeeded, which has not planned the room, writes its entry", async () => {
  const { view, pass, planned, kept, state } = leaderOf();
  view.receiveEntry(room, { owner: a, epoch: 1 as Epoch });
  let goOn = (): void => {};
  state.orders = new Promise((resolve) => (goOn = resolve));
  await pass(2_500);
  [kept.lease, kept.revision] = [{ holder: "two", floor: 2 }, kept.revision + 1];
  await pass(500); // This leader fails to renew the lease.
  goOn();
  await pass(50);
  expect([kept.lease?.holder, planned.get(room)]).toMatchObject(["two", { owner: a, replica: b, generation: 1 }]);
});

test("[LDR12] the leader decides nothing before it could receive a server with the longest permitted heartbeat interval", async () => {
  const { clock, view, requests, membership } = leaderOf({}, 300);
  view.receiveEntry(room, { owner: a, epoch: 1 as Epoch });
  for (let ms = 0; ms < 10_000; ms += HEARTBEAT_MS) {
    if (ms % 1_000 === 950) membership.receiveHeartbeat(beat(a, { everyMs: 1_000 }), clock.now());
    membership.receiveHeartbeat(beat(b, { everyMs: HEARTBEAT_MS }), clock.now());
    await clock.advance(HEARTBEAT_MS);
  }
  expect(requests).toEqual(["b: follow of plan 1"]);
});

test("[LDR13] a formerly hot room returns to the general pool after it has been calm for long enough, and not before", async () => {
  const { view, pass, requests, state } = leaderOf({ controlLoopMs: 1_000, hotRoomCalmMs: 5_000, keepsReplicas: false });
  const labels = { host: "", zone: "", pool: "dedicated" };
  const load = (share: number) => state.heartbeats.set(b, { labels, load: { used: share, hot: [{ room, share }] } });
  view.receiveEntry(room, { owner: b, epoch: 1 as Epoch });
  load(0.5);
  await pass(9_000);
  load(0.1);
  await pass(4_000);
  expect(requests).toEqual([]);
  await pass(3_000);
  expect([...new Set(requests.map((each) => each.split(" of plan")[0]))], "planned until the world shows it").toEqual(["b: hand-over"]);
});

test("[LDR16] a leader plans above the highest generation of the planned entries, after the lease was restored from an older copy", async () => {
  const { view, pass, requests, planned, kept } = leaderOf();
  view.receiveEntry(room, { owner: a, epoch: 1 as Epoch });
  view.receivePlanned(room, { owner: a, replica: "gone" as ServerId, reason: "", generation: 40, at: 0 as UnixMillis });
  kept.lease = { holder: "", floor: 3 };
  await pass(2_500);
  expect([planned.get(room)?.replica, view.replicaOf(room)]).toEqual([b, b]);
  expect([requests, kept.lease?.floor]).toEqual([["b: follow of plan 41", "gone: unfollow of plan 41"], 41]);
  await pass(30_000);
  expect(requests).toHaveLength(2);
});

test("[LDR17] every room of a lost server is claimed at once, also while replicas of other rooms are slow to place", async () => {
  const c = "c" as ServerId;
  const { view, pass, requests, state } = leaderOf();
  state.alive = [a, b, c];
  await pass(2_500);
  for (const key of rooms) view.receiveEntry(key, { owner: "lost" as ServerId, epoch: 1 as Epoch });
  state.orders = new Promise(() => {});
  await pass(10_050);
  expect(new Set(requests.filter((request) => request.includes("claims"))).size).toBe(rooms.length);
});

test("[LDR18] a move that waits for its turn is dropped once the next decision finds nothing to do", async () => {
  const { view, pass, requests, state } = leaderOf({ controlLoopMs: 1_000, keepsReplicas: false });
  for (const key of rooms) view.receiveEntry(key, { owner: a, epoch: 1 as Epoch });
  let goOn = (): void => {};
  state.orders = new Promise((resolve) => (goOn = resolve));
  await pass(2_500);
  expect(requests).toHaveLength(4);
  for (const key of rooms.slice(0, 50)) view.receiveEntry(key, { owner: b, epoch: 2 as Epoch });
  await pass(1_500);
  goOn();
  await pass(1_500);
  expect(requests).toHaveLength(4);
});

test("[LDR19] while a lost server's room is not claimed, its replica stays where it is", async () => {
  const c = "c" as ServerId;
  const { view, pass, requests, state, planned } = leaderOf();
  state.alive = [a, b, c];
  view.receiveEntry(room, { owner: a, epoch: 1 as Epoch });
  await pass(2_500);
  const replica = planned.get(room)?.replica;
  const other = replica === b ? c : b;
  requests.length = 0;
  state.alive = [b, c];
  state.refusesClaims = true;
  await pass(15_000);
  expect(requests.filter((request) => request.includes(" claims ")).length).toBeGreaterThan(0);
  expect(requests.filter((request) => request.startsWith(`${other}: follow`))).toEqual([]);
  expect(planned.get(room)?.replica).toBe(replica);
});

test("[LDR22] the former replica of a room stays until the next one is complete", async () => {
  const c = "c" as ServerId;
  const { view, pass, requests, state, planned } = leaderOf({ controlLoopMs: 1_000 });
  view.receiveEntry(room, { owner: a, epoch: 1 as Epoch });
  await pass(2_500);
  expect(requests).toEqual(["b: follow of plan 1"]);
  state.heartbeats.set(c, { labels: { host: "", zone: "far", pool: "" } });
  [state.alive, state.refuses] = [[a, b, c], true];
  await pass(1_000);
  expect([requests, planned.get(room)?.replica]).toEqual([["b: follow of plan 1", "c: follow of plan 2"], b]);
  state.refuses = false;
  await pass(1_200);
  expect(requests.slice(2)).toEqual(["c: follow of plan 3", "b: unfollow of plan 3"]);
  expect(planned.get(room)?.replica).toBe(c);
});

test("[LDR23] a server that refused to follow a room, and perhaps completed its replica later, drops it once another server is chosen", async () => {
  const c = "c" as ServerId;
  const { view, pass, requests, state } = leaderOf({ controlLoopMs: 1_000 });
  view.receiveEntry(room, { owner: a, epoch: 1 as Epoch });
  state.refuses = true;
  await pass(2_200);
  expect(requests).toEqual(["b: follow of plan 1"]);
  await pass(1_000);
  expect(requests.slice(1), "the same server is asked again, and may have its replica by now").toEqual(["b: follow of plan 2"]);
  state.heartbeats.set(c, { labels: { host: "", zone: "far", pool: "" } });
  [state.alive, state.refuses] = [[a, b, c], false];
  await pass(3_000);
  expect(requests.slice(2)).toEqual(["b: unfollow of plan 3", "c: follow of plan 3"]);
});

test("[LDR24] a server that refused to follow a room drops its replica once the room needs none", async () => {
  const { view, pass, requests, state } = leaderOf({ controlLoopMs: 1_000 });
  view.receiveEntry(room, { owner: a, epoch: 1 as Epoch });
  state.refuses = true;
  await pass(2_200);
  view.receiveEntry(room, undefined);
  await pass(2_000);
  expect(requests).toEqual(["b: follow of plan 1", "b: unfollow of plan 1"]);
});

test("[LDR25] a replica that is complete only after another leader chose another server is dropped", async () => {
  const c = "c" as ServerId;
  const { view, pass, requests, kept, state } = leaderOf();
  view.receiveEntry(room, { owner: a, epoch: 1 as Epoch });
  let goOn = (): void => {};
  state.orders = new Promise((resolve) => (goOn = resolve));
  await pass(2_500);
  [kept.lease, kept.revision] = [{ holder: "two", floor: 2 }, kept.revision + 1];
  await pass(500); // This leader fails to renew the lease.
  view.receivePlanned(room, { owner: a, replica: c, reason: "by the new leader", generation: 2, at: 0 as UnixMillis });
  goOn();
  await pass(50);
  expect(requests).toEqual(["b: follow of plan 1", "b: unfollow of plan 1"]);
});

test("[LDR26] the entry of a released room is removed also after the plan bucket did not answer", async () => {
  const { view, pass, planned, state } = leaderOf({ controlLoopMs: 1_000 });
  view.receiveEntry(room, { owner: a, epoch: 1 as Epoch });
  await pass(2_500);
  expect(planned.get(room)).toMatchObject({ replica: b });
  view.receiveEntry(room, undefined);
  state.planIsKept = false;
  await pass(1_500);
  expect(planned.get(room)).toMatchObject({ replica: b });
  state.planIsKept = true;
  await pass(1_500);
  expect(planned.get(room)).toBeUndefined();
});

test("[LDR27] a replica that ends only after a newer plan is ended with that plan, because its server ignores older commands", async () => {
  const c = "c" as ServerId;
  const { view, pass, requests, state } = leaderOf({ controlLoopMs: 1_000 });
  view.receiveEntry(room, { owner: a, epoch: 1 as Epoch });
  await pass(2_500);
  let goOn = (): void => {};
  state.orders = new Promise((resolve) => (goOn = resolve));
  state.heartbeats.set(c, { labels: { host: "", zone: "far", pool: "" } });
  state.alive = [a, b, c];
  await pass(1_000);
  expect(requests).toEqual(["b: follow of plan 1", "c: follow of plan 2"]);
  view.receiveEntry(other, { owner: c, epoch: 1 as Epoch });
  await pass(1_000);
  expect(requests.slice(2)).toEqual([expect.stringMatching("follow of plan 3")]);
  goOn();
  await pass(50);
  expect(requests.slice(3)).toEqual(["b: unfollow of plan 3"]);
});

test("[LDR28] the replica of a released room stays until the room's entry is removed, because the room may open again before", async () => {
  const { view, pass, requests, planned, state } = leaderOf({ controlLoopMs: 1_000 });
  view.receiveEntry(room, { owner: a, epoch: 1 as Epoch });
  await pass(2_500);
  view.receiveEntry(room, undefined);
  state.planIsKept = false;
  await pass(1_500);
  view.receiveEntry(room, { owner: a, epoch: 2 as Epoch });
  state.planIsKept = true;
  await pass(1_500);
  expect(planned.get(room)).toMatchObject({ replica: b });
  expect(requests).toEqual(["b: follow of plan 1"]);
});

test("[LDR29] a leader forgets a released room whose entry is gone, also if its watch missed the removal", async () => {
  const { view, pass, requests, state } = leaderOf({ controlLoopMs: 1_000 });
  view.receiveEntry(room, { owner: a, epoch: 1 as Epoch });
  await pass(2_500);
  state.planIsWatched = false;
  view.receiveEntry(room, undefined);
  await pass(5_000);
  expect(requests).toEqual(["b: follow of plan 1", "b: unfollow of plan 1"]);
});

test("[LDR30] refusals of many steps for one reason are one line with their number", async () => {
  const lines: object[] = [];
  const { view, pass, requests, state } = leaderOf({ imbalance: 1 }, 750, { ...SILENT_LOG, warn: (facts) => void lines.push(facts) });
  for (const each of rooms) view.receiveEntry(each, { owner: a, epoch: 1 as Epoch });
  state.refuses = true;
  await pass(3_500);
  expect(requests).toHaveLength(rooms.length);
  const line = { kind: "follow", by: b, refused: "busy", steps: 100, firstRoom: expect.any(String) as string };
  expect(lines).toEqual([line]);
});

test("[LDR33] refusals that the log does not have yet are written when placement stops", async () => {
  const lines: object[] = [];
  const log = { ...SILENT_LOG, warn: (facts: object) => void lines.push(facts) };
  const { view, pass, leader, requests, state, timers } = leaderOf({ imbalance: 1 }, 750, log);
  for (const each of rooms) view.receiveEntry(each, { owner: a, epoch: 1 as Epoch });
  state.refuses = true;
  while (requests.length === 0) await pass(HEARTBEAT_MS);
  expect(lines).toEqual([]);
  leader.stop();
  expect(lines).toMatchObject([{ kind: "follow", by: b, refused: "busy" }]);
  expect(timers()).toBe(0);
});

test("[LDR31] takeovers that are no longer needed are no warning", async () => {
  const [lines, warnings]: [object[], object[]] = [[], []];
  const log = { ...SILENT_LOG, info: (facts: object) => void lines.push(facts), warn: (facts: object) => void warnings.push(facts) };
  const { view, pass, state } = leaderOf({ keepsReplicas: false }, 750, log);
  for (const each of rooms) view.receiveEntry(each, { owner: a, epoch: 1 as Epoch });
  await pass(2_500);
  let resolve = (): void => {};
  state.claims = new Promise((settled) => (resolve = settled));
  state.alive = [b];
  await pass(1_000);
  warnings.length = 0; // The loss itself.
  state.alive = [a, b];
  await pass(100);
  resolve();
  await pass(1_500);
  expect(warnings).toEqual([]);
  expect(lines.at(-1)).toMatchObject({ kind: "promote", refused: "its owner a sends heartbeats again", steps: 68 });
});

test("[LDR32] a claim or a command counts as carried out only if the server answers so", () => {
  const claims: (ClaimReply | undefined)[] = [
    undefined,
    { kind: "refused", reason: "full" },
    { kind: "owned", server: b, epoch: 1 as Epoch },
  ];
  expect(claims.map(refusalOfClaim)).toEqual(["no answer", "full", undefined]);
  const commands: (ServerCommandReply | undefined)[] = [undefined, { kind: "refused", reason: "full" }, { kind: "done" }];
  expect(commands.map(refusalOfCommand)).toEqual(["no answer", "full", undefined]);
});
