/**
 * Answers to the console by a gateway that cannot reach NATS. `gateway/operations.system.test.ts` covers all other
 * answers.
 */

import { Registry } from "prom-client";
import { expect, test } from "vitest";

import type { GatewayReport, RoomListReply } from "../../../shared/bus/fleet-messages.ts";
import type { ServerHeartbeat } from "../../../shared/bus/placement-messages.ts";
import type { ServerId, UnixMillis } from "../../../shared/ids.ts";
import { systemClock as clock } from "../../../shared/io/system-clock.ts";
import { gatewayMetrics } from "../../metrics.ts";
import { VitalsHistory } from "../../operations/vitals-history.ts";
import { RecentEventLog } from "../../operations/events-kept.ts";
import type { FleetControl, FleetSight, OpenRooms } from "../../ports.ts";
import type { RouteRequest } from "../../http/requests.ts";
import { operationsRoutes } from "./operations-routes.ts";

const OPERATOR = "a secret of operators, 32 characters";
const own: GatewayReport = { gateway: "gw-1", connections: 7, rooms: 2, shedLevel: 0, state: "ready" };
const LOST = { server: "rs-9" as ServerId, rooms: 12, at: 1_000 as UnixMillis };
const FEW = { eventsMax: 5, takeoversMax: 5 };
const other: GatewayReport = { ...own, gateway: "gw-2" };

async function ask(
  path: string,
  answering: readonly GatewayReport[],
  {
    kept = new RecentEventLog(FEW),
    query = "",
    account = () => own,
    leader = async (): Promise<string | undefined> => "placement-1",
    look = async (): Promise<FleetSight> => ({ gateways: answering, servers: [], serversLost: [LOST] }),
    servers = (): ServerHeartbeat[] => [],
    list = async (): Promise<RoomListReply[]> => [],
  } = {},
) {
  const fleet: FleetControl = {
    servers,
    look,
    leader,
    drainGateway: async () => undefined,
    drainServer: async () => undefined,
  };
  const routes = operationsRoutes(
    { verify: () => Promise.reject(new Error("operators show no token")) },
    {
      fleet,
      openRooms: { list } as Partial<OpenRooms> as OpenRooms,
      events: { read: async () => kept },
      vitals: new VitalsHistory({ slotsMax: 5, instancesMax: 5, roomsMax: 5 }),
      account,
      documents: { urls: () => ["http://127.0.0.1:1"] },
      leaderboards: { urls: () => [], withoutRedis: () => 1 },
    },
    { operatorSecret: OPERATOR, environment: "test", reads: { burst: 10, perSecond: 10 }, readersMax: 10 },
    { clock, metrics: gatewayMetrics(new Registry()) },
  );
  const question: RouteRequest = {
    path,
    parameters: [],
    query: new URLSearchParams(query),
    header: (name) => (name === "authorization" ? `Bearer ${OPERATOR}` : ""),
    address: undefined,
    body: new Uint8Array(),
    signal: new AbortController().signal,
  };
  const { status, body } = await routes.find((route) => route.path === path)!.answer(question);
  return { status, body: JSON.parse(String(body)) as Record<string, unknown> };
}

test("[OPR9] a gateway that does not receive its own answer reports that it cannot reach NATS, and its own state", async () => {
  const { status, body } = await ask("/v1/admin/fleet", []);
  expect([status, body]).toMatchObject([200, { reachesNats: false, gateways: [{ ...own, state: "degraded" }], placement: {} }]);
});

test("[OPR10] a gateway that receives its own answer reaches NATS, and reports the services that send heartbeats", async () => {
  const { body } = await ask("/v1/admin/fleet", [own, other]);
  expect(body).toMatchObject({
    reachesNats: true,
    gateways: [own, other],
    placement: { leader: "placement-1" },
    services: { documents: 1, leaderboards: 0 },
  });
});

test("[OPR14] a gateway that has lost NATS sends no request, and reports a loss during a request too", async () => {
  const degraded: GatewayReport = { ...own, state: "degraded" };
  const nobody = (): Promise<never> => Promise.reject(new Error("nobody is to be asked"));
  const known = await ask("/v1/admin/fleet", [own, other], { account: () => degraded, leader: nobody });
  expect(known.body).toMatchObject({ reachesNats: false, gateways: [degraded], placement: {} });
  let state: GatewayReport = own;
  const lost = await ask("/v1/admin/fleet", [own, other], {
    account: () => state,
    leader: async () => {
      state = degraded;
      return "placement-1";
    },
  });
  expect(lost.body).toMatchObject({ reachesNats: false, gateways: [degraded], placement: {} });
  expect(lost.body["placement"]).toEqual({});
});

test("[OPR17] when NATS falls silent during a request, the answer blames NATS and not the room servers", async () => {
  const server = { server: "rs-1", rooms: 3, draining: false } as ServerHeartbeat;
  let seen: FleetSight = { gateways: [own, other], servers: [server], serversLost: [] };
  const answer = (leader: () => Promise<string | undefined>) => ask("/v1/admin/fleet", [], { look: async () => seen, leader });
  const leads = await answer(async () => "placement-1"); // By now `servers()` is empty.
  expect(leads.body).toMatchObject({ reachesNats: true, servers: [{ server: "rs-1" }], serversLost: [] });
  const silent = await answer(async () => {
    seen = { gateways: [], servers: [], serversLost: [LOST] };
    return undefined;
  });
  expect(silent.body).toMatchObject({ reachesNats: false, gateways: [{ ...own, state: "degraded" }] });
});

test("[OPR11] without NATS a list of rooms is refused, because an empty list could be wrong", async () => {
  expect(await ask("/v1/admin/rooms", [])).toMatchObject({ status: 503, body: { error: "unavailable" } });
  expect(await ask("/v1/admin/rooms", [own])).toMatchObject({ status: 200, body: { rooms: [], serversKnown: 0 } });
});

test("[OPR19] a room server whose first heartbeat arrives during a request was not asked, so it is not missing in the answer", async () => {
  const started: ServerHeartbeat[] = [];
  const list = async () => (started.push({ server: "rs-2" } as ServerHeartbeat), []);
  expect((await ask("/v1/admin/rooms", [own], { servers: () => started, list })).body).toMatchObject({ serversKnown: 0 });
});

test("[OPR12] an answer holds the newest 500 events, oldest first", async () => {
  const kept = new RecentEventLog({ eventsMax: 10_000, takeoversMax: 5 });
  for (let seq = 1; seq <= 1_200; seq++) kept.receiveEvent(seq, { kind: "placement_leads", generation: seq, at: 1_000, by: "placement-1" });
  const seqs = async (after: number) =>
    ((await ask("/v1/admin/events", [own], { kept, query: `after=${after}` })).body["events"] as { seq: number }[]).map(({ seq }) => seq);
  for (const after of [0, 600]) {
    const answered = await seqs(after);
    expect([answered.length, answered[0], answered.at(-1)]).toEqual([500, 701, 1_200]);
  }
  expect(await seqs(1_198)).toEqual([1_199, 1_200]);
});

test("[OPR13] the fleet's answer lists gateways and leaderboards without Redis, and lost servers", async () => {
  const { body } = await ask("/v1/admin/fleet", [{ ...own, reachesRedis: false }, other]);
  expect(body).toMatchObject({
    gateways: [{ gateway: "gw-1", reachesRedis: false }, { gateway: "gw-2" }],
    serversLost: [{ server: "rs-9", rooms: 12, at: "1970-01-01T00:00:01.000Z" }],
    services: { leaderboardsWithoutRedis: 1 },
  });
});
