import { expect, test } from "vitest";

import type { ServerHeartbeat } from "../../shared/bus/placement-messages.ts";
import { HEARTBEAT_MS_MAX, Membership } from "../../shared/cluster/membership.ts";
import type { ServerId, UnixMillis } from "../../shared/ids.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import type { Peers } from "../ports.ts";
import { sendServerHeartbeats, isBelievedAlive, listenToPeers } from "./heartbeat-host.ts";

const beat = (server: string): ServerHeartbeat => ({ server: server as ServerId, rooms: 0, draining: false, time: 0 as UnixMillis });

function fakePeers() {
  const clock = new FakeClock();
  const published: ServerHeartbeat[] = [];
  let beatFrom: (heartbeat: ServerHeartbeat) => void = () => {};
  let receiveUnreached: (server: ServerId) => void = () => {};
  const gone = new Set<string>();
  const peers: Peers = {
    publishHeartbeat: (heartbeat) => void published.push(heartbeat),
    onHeartbeat: (receive) => (beatFrom = receive),
    onUnreached: (receive) => (receiveUnreached = receive),
    isGone: async (server) => gone.has(server),
  };
  return {
    clock,
    peers,
    published,
    gone,
    beatFrom: (server: string, everyMs?: number) => beatFrom({ ...beat(server), ...(everyMs === undefined ? {} : { everyMs }) }),
    endFrom: (server: string) => beatFrom({ ...beat(server), draining: true, ends: true }),
    suspect: (server: string) => receiveUnreached(server as ServerId),
  };
}
const own = "own" as ServerId;

test("[HRT1] only live servers are remembered, however many start and stop", () => {
  const { clock, peers, beatFrom } = fakePeers();
  const membership = new Membership({ silenceMsMax: 750 });
  const stop = listenToPeers(own, membership, peers, { clock, log: SILENT_LOG, receiveLost: () => {} });
  for (let come = 0; come < 1_000; come++) {
    beatFrom("stays");
    beatFrom(`rs-${come}`);
    clock.turn(100);
  }
  expect(membership.size).toBeLessThan(12);
  clock.turn(700);
  beatFrom("stays");
  clock.turn(100);
  expect(membership.size).toBe(1);
  expect(membership.isLive("stays" as ServerId, clock.now())).toBe(true);
  stop();
  expect(clock.pending).toBe(0);
});

test("[HRT2] a server sends its state and its interval in regular heartbeats until it stops, and then announces its end", () => {
  const { clock, peers, published } = fakePeers();
  let rooms = 0;
  const { stop } = sendServerHeartbeats(() => ({ server: "one" as ServerId, rooms: rooms++, draining: false }), peers, clock, 250);
  clock.turn(1_000);
  expect(published.map((heartbeat) => [heartbeat.time, heartbeat.rooms])).toEqual([
    [1, 0],
    [251, 1],
    [501, 2],
    [751, 3],
    [1_001, 4],
  ]);
  expect(published.every(({ everyMs }) => everyMs === 250)).toBe(true);
  stop();
  clock.turn(1_000);
  expect(published.map(({ rooms, ends = false }) => [rooms, ends])).toEqual([...[0, 1, 2, 3, 4].map((rooms) => [rooms, false]), [5, true]]);
});

function listening() {
  const peer = fakePeers();
  const lost: ServerId[] = [];
  const lines: object[] = [];
  const log = { ...SILENT_LOG, info: (facts: object) => void lines.push(facts), warn: (facts: object) => void lines.push(facts) };
  listenToPeers(own, new Membership({ silenceMsMax: 750 }), peer.peers, {
    clock: peer.clock,
    log,
    receiveLost: (server) => void lost.push(server),
  });
  const pass = async (ms: number, ...alive: string[]): Promise<void> => {
    for (let left = ms; left > 0; left -= 250) {
      for (const server of alive) peer.beatFrom(server);
      await peer.clock.advance(250);
    }
  };
  return { ...peer, lost, lines, pass };
}

test("[HRT3] a silent server is lost; a server that receives no heartbeats, not even its own, is cut off and declares no server lost", async () => {
  const one = listening();
  await one.pass(1_000, "own", "peer");
  await one.pass(1_000, "own");
  expect(one.lost).toEqual(["peer"]);
  expect(one.lines).toEqual([{ server: "peer", how: "its heartbeats are missed" }]);

  const deaf = listening();
  await deaf.pass(1_000, "own", "peer", "other");
  await deaf.pass(2_000);
  expect(deaf.lost).toEqual([]);
  expect(deaf.lines, "one line that names no server").toEqual([{}]);
});

test("[HRT4] an unreachable server is lost at once if NATS reports that nothing listens there, and only then", async () => {
  const { pass, gone, suspect, lost, clock } = listening();
  await pass(500, "own", "peer", "other");
  gone.add("peer");
  gone.add("stranger");
  suspect("other");
  suspect("peer");
  suspect("peer");
  suspect("stranger");
  await clock.advance(0);
  expect(lost).toEqual(["peer"]);
  await pass(1_000, "own", "other");
  expect(lost, "its missed heartbeats are no second loss").toEqual(["peer"]);
});

test("[HRT6] a server that announces its end is not waited for, and its rooms are taken over at once and only once", async () => {
  const { pass, endFrom, lost } = listening();
  await pass(500, "own", "peer");
  endFrom("peer");
  expect(lost).toEqual(["peer"]);
  await pass(1_000, "own");
  expect(lost).toEqual(["peer"]);
});

test("[HRT5] an owner without a received heartbeat counts as alive until every live server could be received, at any permitted interval", () => {
  const { clock, peers, beatFrom } = fakePeers();
  const membership = new Membership({ silenceMsMax: 150 }); // This server sends heartbeats every 50 ms.
  const since = clock.now();
  const stop = listenToPeers(own, membership, peers, { clock, log: SILENT_LOG, receiveLost: () => {} });
  const believed = (): boolean[] => ["slow", "dead"].map((server) => isBelievedAlive(membership, since, server as ServerId, clock.now()));
  clock.turn(75);
  expect(believed()).toEqual([true, true]);
  clock.turn(924);
  beatFrom("slow", HEARTBEAT_MS_MAX);
  clock.turn(500);
  expect(believed()).toEqual([true, true]);
  clock.turn(1);
  expect(believed()).toEqual([true, false]);
  stop();
});
