/** What the console is answered by a gateway that NATS does not reach; all else is `gateway/operations.system.test.ts`. */

import { Registry } from "prom-client";
import { expect, test } from "vitest";

import type { GatewayAccount } from "../../shared/bus/fleet-messages.ts";
import type { ServerId, UnixMillis } from "../../shared/ids.ts";
import { systemClock as clock } from "../../shared/io/system-clock.ts";
import { gatewayMetrics } from "../metrics.ts";
import { EventsKept } from "../operations/events-kept.ts";
import type { Fleet, OpenRooms } from "../ports.ts";
import type { HttpQuestion } from "./http-routes.ts";
import { operationsRoutes } from "./operations-routes.ts";

const OPERATOR = "a secret of operators, 32 characters";
const own: GatewayAccount = { gateway: "gw-1", connections: 7, rooms: 2, shedLevel: 0, state: "ready" };
const FEW = { eventsMax: 5, takeoversMax: 5 };
const other: GatewayAccount = { ...own, gateway: "gw-2" };

async function ask(
  path: string,
  heard: readonly GatewayAccount[],
  { kept = new EventsKept(FEW), query = "", account = () => own, leader = async (): Promise<string> => "placement-1" } = {},
) {
  const fleet: Fleet = {
    servers: () => [],
    serversLost: () => [{ server: "rs-9" as ServerId, rooms: 12, at: 1_000 as UnixMillis }],
    gateways: async () => heard,
    leader,
    drainGateway: async () => undefined,
    drainServer: async () => undefined,
  };
  const routes = operationsRoutes(
    { verify: () => Promise.reject(new Error("operators show no token")) },
    {
      fleet,
      openRooms: { list: async () => [] } as Partial<OpenRooms> as OpenRooms,
      events: { read: async () => kept },
      account,
      documents: { urls: () => ["http://127.0.0.1:1"] },
      leaderboards: { urls: () => [], withoutRedis: () => 1 },
    },
    { internalSecret: OPERATOR, environment: "test", reads: { burst: 10, perSecond: 10 }, readersMax: 10 },
    { clock, metrics: gatewayMetrics(new Registry()) },
  );
  const question: HttpQuestion = {
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

test("[OPR9] a gateway that does not hear itself says that it does not reach NATS, and how it is all the same", async () => {
  const { status, body } = await ask("/v1/admin/fleet", []);
  expect([status, body]).toMatchObject([200, { reachesNats: false, gateways: [{ ...own, state: "degraded" }], placement: {} }]);
});

test("[OPR10] one that hears itself among others reaches NATS, and says which services it hears", async () => {
  const { body } = await ask("/v1/admin/fleet", [own, other]);
  expect(body).toMatchObject({
    reachesNats: true,
    gateways: [own, other],
    placement: { leader: "placement-1" },
    services: { documents: 1, leaderboards: 0 },
  });
});

test("[OPR14] a gateway that knows its NATS lost asks nobody, and says so also where it is lost while it asks", async () => {
  const degraded: GatewayAccount = { ...own, state: "degraded" };
  const nobody = (): Promise<never> => Promise.reject(new Error("nobody is to be asked"));
  const known = await ask("/v1/admin/fleet", [own, other], { account: () => degraded, leader: nobody });
  expect(known.body).toMatchObject({ reachesNats: false, gateways: [degraded], placement: {} });
  let state: GatewayAccount = own;
  const lost = await ask("/v1/admin/fleet", [own, other], {
    account: () => state,
    leader: async () => {
      state = degraded;
      return "placement-1";
    },
  });
  expect(lost.body).toMatchObject({ reachesNats: false, gateways: [degraded, other], placement: {} });
  expect(lost.body["placement"]).toEqual({});
});

test("[OPR11] without NATS a list of no rooms is refused, for nobody knows that there are none", async () => {
  expect(await ask("/v1/admin/rooms", [])).toMatchObject({ status: 503, body: { error: "unavailable" } });
  expect(await ask("/v1/admin/rooms", [own])).toMatchObject({ status: 200, body: { rooms: [], serversKnown: 0 } });
});

test("[OPR12] of however many events the newest 500 are answered, oldest first", async () => {
  const kept = new EventsKept({ eventsMax: 10_000, takeoversMax: 5 });
  for (let seq = 1; seq <= 1_200; seq++) kept.receive(seq, { kind: "placement_leads", generation: seq, at: 1_000, by: "placement-1" });
  const seqs = async (after: number) =>
    ((await ask("/v1/admin/events", [own], { kept, query: `after=${after}` })).body["events"] as { seq: number }[]).map(({ seq }) => seq);
  for (const after of [0, 600]) {
    const told = await seqs(after);
    expect([told.length, told[0], told.at(-1)]).toEqual([500, 701, 1_200]);
  }
  expect(await seqs(1_198)).toEqual([1_199, 1_200]);
});

test("[OPR13] gateways and leaderboards that do not reach Redis, and servers that were lost, are told with the fleet", async () => {
  const { body } = await ask("/v1/admin/fleet", [{ ...own, reachesRedis: false }, other]);
  expect(body).toMatchObject({
    gateways: [{ gateway: "gw-1", reachesRedis: false }, { gateway: "gw-2" }],
    serversLost: [{ server: "rs-9", rooms: 12, at: "1970-01-01T00:00:01.000Z" }],
    services: { leaderboardsWithoutRedis: 1 },
  });
});
