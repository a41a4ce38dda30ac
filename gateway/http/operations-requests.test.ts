import { expect, test } from "vitest";

import type { GatewayReport } from "../../shared/bus/fleet-messages.ts";
import type { ServerId, UnixMillis } from "../../shared/ids.ts";
import type { Identity } from "../sessions/identity.ts";
import { moveAnswer, seenFleet, serverDrainAnswer } from "./operations-answers.ts";
import { drainRequest, eventsAfter, moveRequest, roomListRequest, slotsAfter } from "./operations-requests.ts";

const query = (text: string) => ({ query: new URLSearchParams(text) });
const body = (given: object) => ({ body: new TextEncoder().encode(JSON.stringify(given)) });

test("[ORQ1] a request lists one room more than the page holds, of all tenants unless an operator names one", () => {
  expect(roomListRequest(query("limit=10&search=plan"), undefined)).toEqual({ list: { search: "plan", limit: 11 }, limit: 10 });
  expect(roomListRequest(query("tenant=acme"), undefined)).toMatchObject({ list: { tenant: "acme", limit: 51 } });
  expect(roomListRequest(query("limit=0"), undefined)).toMatchObject({ status: 400 });
  expect(roomListRequest(query("limit=0x5"), undefined)).toMatchObject({ status: 400 });
  expect(roomListRequest(query("after=nothing"), undefined)).toMatchObject({ status: 400 });
});

test("[ORQ6] an administrator lists the rooms of its tenant, whether or not the request names it, and of no other", () => {
  const admin = { tenant: "acme", user: "ann", rooms: ["*"] } as unknown as Identity;
  for (const named of ["", "tenant=acme"]) expect(roomListRequest(query(named), admin)).toMatchObject({ list: { tenant: "acme" } });
  expect(roomListRequest(query("tenant=globex"), admin)).toMatchObject({ status: 403 });
});

test("[ORQ2] events and slots are asked for after a number, 0 by default", () => {
  expect(eventsAfter(query(""), undefined)).toEqual({ after: 0 });
  for (const after of ["-1", "1e3", ""]) {
    expect(eventsAfter(query(`after=${after}`), undefined), after).toMatchObject({ status: 400 });
    expect(slotsAfter(query(`after=${after}`)), after).toMatchObject({ status: 400 });
  }
});

test("[ORQ3] a move names a room and a server, a drain a server", () => {
  expect(moveRequest(body({ room: "notes", to: "rs-1" }))).toEqual({ room: "default.notes", to: "rs-1" });
  expect(moveRequest(body({ room: "notes", to: "no server" }))).toMatchObject({ status: 400 });
  expect(drainRequest(body({ server: "rs-1" }))).toEqual({ server: "rs-1" });
  expect(drainRequest(body({}))).toMatchObject({ status: 400 });
});

test("[ORQ4] a gateway that does not receive its own answer has lost NATS", () => {
  const report = (gateway: string, state: GatewayReport["state"] = "ready") => ({ gateway, state }) as GatewayReport;
  const other = report("two");
  const seen = (own: GatewayReport, gateways: readonly GatewayReport[]) => seenFleet(own, { gateways, servers: [], serversLost: [] });
  expect(seen(report("one"), [report("one"), other])).toMatchObject({ reachesNats: true });
  expect(seen(report("one"), [other])).toMatchObject({ gateways: [report("one", "degraded"), other], reachesNats: false });
  expect(seen(report("one", "draining"), [])).toMatchObject({ gateways: [report("one", "draining")], reachesNats: false });
});

test("[ORQ5] a refused move or drain is a conflict, and a silent server is unavailable", () => {
  const [to, from] = ["rs-2" as ServerId, "rs-1" as ServerId];
  expect(moveAnswer({ kind: "refused", reason: "it drains" }, to).status).toBe(409);
  expect(moveAnswer({ kind: "silent", server: from }, to).status).toBe(503);
  expect(moveAnswer({ kind: "open-nowhere" }, to).status).toBe(404);
  const server = { server: to, rooms: 3, draining: false, time: 1 as UnixMillis };
  expect(serverDrainAnswer(server, undefined).status).toBe(503);
  expect(serverDrainAnswer(server, { kind: "done" }).status).toBe(202);
});
