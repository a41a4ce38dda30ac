import { Registry } from "prom-client";
import { expect, test } from "vitest";

import type { PlannedRoom, RoomEntry, ServerHeartbeat, ServerCommand } from "../shared/bus/placement-messages.ts";
import type { Epoch, RoomKey, ServerId, UnixMillis } from "../shared/ids.ts";
import type { Lease } from "../shared/cluster/lease.ts";
import { FakeClock } from "../shared/testing/fake-clock.ts";
import { SILENT_LOG } from "../shared/testing/silent-log.ts";
import { placementMetrics } from "./metrics.ts";
import { hostPlacement, type PlacementOptions, type PlacementPorts } from "./placement-host.ts";

const [a, b] = ["a", "b"] as ServerId[] as [ServerId, ServerId];
const room = "acme.notes" as RoomKey;
const HEARTBEAT_MS = 50;
const OPTIONS: PlacementOptions = {
  holder: "one",
  serverSilenceMsMax: 750,
  placementLeaseMs: 1_000,
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
const PLANNED: PlannedRoom = { owner: a, replica: b, reason: "another server than its owner", generation: 1, at: 0 as UnixMillis };

/** The fake stores the plan at once, and the room's entry when the test decides. */
function placementWith() {
  const clock = new FakeClock();
  const [requests, planned]: [string[], (PlannedRoom | undefined)[]] = [[], []];
  let lease: Lease | undefined;
  let receiveHeartbeat: (heartbeat: ServerHeartbeat) => void = () => {};
  let sendEntry: (entry: RoomEntry) => void = () => {};
  const ports: PlacementPorts = {
    rooms: {
      entry: async () => undefined,
      onEntry: (receive) => new Promise((resolve) => (sendEntry = (entry) => (receive(room, entry), resolve()))),
    },
    plans: {
      onEntry: async (receive) => receive(room, PLANNED),
      write: async (_, entry) => void planned.push(entry),
      remove: async () => planned.push(undefined) > 0,
    },
    pins: { onEntry: async () => {} },
    leases: {
      read: async () => ({ lease, revision: 0 }),
      write: async (_, written) => ((lease = written), { kind: "written", revision: 0 }),
    },
    questions: { onLocate: () => {}, onHeartbeat: (receive) => void (receiveHeartbeat = receive) },
    servers: {
      claim: async () => undefined,
      order: async (server: ServerId, { kind }: ServerCommand) => (requests.push(`${server}: ${kind}`), { kind: "done" }),
    },
    operations: { report: () => {} },
  };
  const { stop } = hostPlacement(ports, OPTIONS, { clock, log: SILENT_LOG, metrics: placementMetrics(new Registry()) });
  const pass = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= HEARTBEAT_MS) {
      for (const server of [a, b]) receiveHeartbeat({ server, rooms: 1, draining: false, time: 0 as UnixMillis });
      await clock.advance(HEARTBEAT_MS);
    }
  };
  return {
    requests,
    planned,
    pass,
    stop,
    lease: () => lease,
    sendEntry: () => sendEntry({ owner: a, epoch: 1 as Epoch }),
    timers: () => clock.pending,
  };
}

test("[PLH1] a process leads only once it knows every room: a room with a late entry does not count as released", async () => {
  const { requests, planned, pass, lease, sendEntry } = placementWith();
  await pass(5_000);
  expect(lease()).toBeUndefined();
  sendEntry();
  await pass(5_000);
  expect(lease()).toMatchObject({ holder: "one" });
  expect([requests, planned]).toEqual([[], []]);
});

test("[PLH2] a process that is stopped before it knows every room does not begin to lead", async () => {
  const { pass, stop, lease, sendEntry, timers } = placementWith();
  stop();
  sendEntry();
  await pass(5_000);
  expect([lease(), timers()]).toEqual([undefined, 0]);
});
