/** Pages of a tenant's boards: many clients poll them, and cost one call to a leaderboard per second. */

import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

import { Registry } from "prom-client";
import { afterEach, beforeEach, expect, test } from "vitest";

import { FakeClock } from "../../../shared/testing/fake-clock.ts";
import type { HttpAnswer } from "../../http/answers.ts";
import { gatewayMetrics } from "../../metrics.ts";
import type { Identity } from "../../sessions/identity.ts";
import type { HttpTokens } from "./authenticate.ts";
import { activityRoutes, boardRoutes } from "./board-routes.ts";
import { bytesOf } from "./call-services.ts";
import { serviceHttp } from "./service-http.ts";

const NO_RIGHTS = { read: true, write: true, admin: false, award: false, boards: false };
/** The token names the tenant and the user: `acme/ann`, or `acme/ann!` without the right to see the boards. */
const tokens: HttpTokens = {
  verify: async (token) => {
    const [tenant, user] = token.replace("!", "").split("/");
    const rights = { ...NO_RIGHTS, boards: !token.endsWith("!") };
    return { kind: "valid", identity: { tenant, user, rooms: ["*"], rights } as unknown as Identity };
  },
};

let page: { status: number; etag: string; body: string };
/** Path and tenant of each call that the leaderboard received. */
let asked: string[];
let leaderboard: ReturnType<typeof createServer>;

beforeEach(async () => {
  asked = [];
  page = { status: 200, etag: 'W/"one"', body: '{"ranking":[]}' };
  leaderboard = createServer(({ url, headers }, response) => {
    asked.push(`${String(headers["x-coroom-tenant"])} ${url}`);
    const given = page.status === 200 ? { "etag": page.etag, "cache-control": "private, max-age=5" } : {};
    response.writeHead(page.status, { "content-type": "application/json", ...given, "content-length": page.body.length }).end(page.body);
  }).listen(0, "127.0.0.1");
  await once(leaderboard, "listening");
});
afterEach(() => {
  leaderboard.closeAllConnections();
  leaderboard.close();
});

function gateway(bytesMax = 1_000) {
  const [clock, metrics] = [new FakeClock(), gatewayMetrics(new Registry())];
  const leaderboards = {
    urls: () => [`http://127.0.0.1:${(leaderboard.address() as AddressInfo).port}`],
    firstHeartbeat: Promise.resolve(),
    ask: serviceHttp(),
  };
  const options = {
    internalSecret: "",
    boardReads: { burst: 1, perSecond: 1 },
    readersMax: 100_000,
    sharedPages: { sharedMs: 1_000, bytesMax, isKept: (status: number) => status < 400 || status === 404 },
  };
  const routes = boardRoutes(tokens, leaderboards, options, { clock, metrics });
  const get = async (path: string, token: string, ifNoneMatch = ""): Promise<HttpAnswer> => {
    const [pathname, query] = path.split("?");
    const answer = await routes
      .find((route) => route.path === pathname)!
      .answer({
        parameters: [],
        query: new URLSearchParams(query),
        header: (name) => (name === "authorization" ? `Bearer ${token}` : name === "if-none-match" ? ifNoneMatch : ""),
        body: new Uint8Array(0),
        signal: new AbortController().signal,
        path: pathname!,
        address: undefined,
      });
    answer.onEnded?.();
    return answer;
  };
  return { get, clock };
}

const textOf = async ({ body }: HttpAnswer): Promise<string> => new TextDecoder().decode(await bytesOf(body ?? ""));

test("[HTTP30] thousands of clients that poll a tenant's board cost one call per second, and get 304 while it is unchanged", async () => {
  const { get, clock } = gateway();
  const path = "/v1/leaderboard/people?window=day";
  const poll = (second: number, etag: string) =>
    Promise.all(Array.from({ length: 2_000 }, (_, user) => get(path, `acme/user-${second}-${user}`, etag)));
  const first = await poll(0, "");
  expect(new Set(first.map(({ status }) => status))).toEqual(new Set([200]));
  expect(await textOf(first[1_999]!)).toBe('{"ranking":[]}');
  clock.turn(500);
  expect(new Set((await poll(1, 'W/"one"')).map(({ status }) => status))).toEqual(new Set([304]));
  expect(asked).toEqual(["acme /v1/leaderboard/people?window=day"]);

  clock.turn(500);
  const [unchanged] = await poll(2, '"other", W/"one"');
  expect(unchanged).toMatchObject({ status: 304, headers: { "etag": 'W/"one"', "cache-control": "private, max-age=5" } });
  page = { status: 200, etag: 'W/"two"', body: '{"ranking":[1]}' };
  clock.turn(1_000);
  const changed = await poll(3, 'W/"one"');
  expect([changed[7]!.status, await textOf(changed[7]!)]).toEqual([200, '{"ranking":[1]}']);
  expect(asked).toHaveLength(3);
});

test("[HTTP30] a shared page is only for readers of the same tenant who have the right, and each board has its own", async () => {
  const { get } = gateway();
  for (const board of ["people", "rooms"]) {
    expect((await get(`/v1/leaderboard/${board}`, `acme/ann ${board}`)).status).toBe(200);
    expect(await get(`/v1/leaderboard/${board}`, `acme/bob ${board}!`, 'W/"one"')).toMatchObject({ status: 403 });
    expect((await get(`/v1/leaderboard/${board}`, `globex/cy ${board}`)).status).toBe(200);
    expect(await get(`/v1/leaderboard/${board}`, `globex/cy ${board}`), "one user above the rate").toMatchObject({ status: 429 });
    expect((await get(`/v1/leaderboard/${board}?role=editors&token=t`, `acme/dee ${board}`)).status).toBe(200);
    expect((await get(`/v1/leaderboard/${board}?token=u&role=editors&nonsense=1`, `acme/eve ${board}`)).status).toBe(200);
    expect(asked.splice(0)).toEqual([
      `acme /v1/leaderboard/${board}`,
      `globex /v1/leaderboard/${board}`,
      `acme /v1/leaderboard/${board}?role=editors`,
    ]);
  }
});

test("[HTTP30] a window without points is shared too, and a leaderboard that is not ready is asked again", async () => {
  const { get } = gateway();
  page = { status: 404, etag: "", body: '{"error":"unknown-window"}' };
  for (const user of ["ann", "bob", "cy"]) expect((await get("/v1/leaderboard/people?window=last-hour", `acme/${user}`)).status).toBe(404);
  expect(asked).toHaveLength(1);
  page = { status: 503, etag: "", body: '{"error":"rebuilding"}' };
  for (const user of ["dee", "eve"]) expect((await get("/v1/leaderboard/rooms", `acme/${user}`)).status).toBe(503);
  expect(asked).toHaveLength(3);
});

test("[HTTP31] a page that does not fit in memory is fetched for each client, also for a 304", async () => {
  const { get } = gateway(5);
  const answers = await Promise.all(["ann", "bob"].map((user) => get("/v1/leaderboard/people", `acme/${user}`)));
  for (const answer of answers) expect(await textOf(answer)).toBe('{"ranking":[]}');
  expect(await get("/v1/leaderboard/people", "acme/cy", 'W/"one"')).toMatchObject({ status: 304 });
  expect(asked).toHaveLength(3);
});

const RATE = { burst: 10, perSecond: 10 };

test("[HTTP37] a tenant with any number of backends reports a limited number of bytes, so that reports of others have space", async () => {
  const stored: string[] = [];
  const clock = new FakeClock();
  const metrics = gatewayMetrics(new Registry());
  const [route] = activityRoutes(
    {
      verify: async (bearer) => {
        const [tenant, user] = bearer.split("/");
        return { kind: "valid", identity: { tenant, user, rooms: ["*"], rights: { award: true } } as unknown as Identity };
      },
    },
    { storeActivity: async (room) => (stored.push(room), "stored") },
    { kinds: ["comment"], reportRate: RATE, tenantBytes: { burst: 3_000, perSecond: 1_000 }, reportersMax: 10 },
    { clock, metrics },
  );
  const report = async (bearer: string): Promise<number> => {
    const answer = await route!.answer({
      parameters: ["notes"],
      query: new URLSearchParams(),
      header: (name) => (name === "authorization" ? `Bearer ${bearer}` : ""),
      body: new TextEncoder().encode(`{"id":"1","activities":[{"user":"${"中".repeat(128)}","kind":"comment"}]}`),
      signal: new AbortController().signal,
      path: "",
      address: undefined,
    });
    return answer.status;
  };
  const statuses: number[] = [];
  for (const backend of ["a", "b", "c", "d", "e"]) statuses.push(await report(`acme/${backend}`));
  expect(statuses).toEqual([202, 202, 202, 429, 429]);
  expect(await metrics.limitsReached.get()).toMatchObject({ values: [{ labels: { limit: "tenant-activities" }, value: 2 }] });
  expect(await report("other/a")).toBe(202);
  clock.turn(1_000);
  expect(await report("acme/d")).toBe(202);
  expect(stored).toHaveLength(5);
});

test("[HTTP33] the id of a report belongs to its sender, so that two backends may use the same one", async () => {
  const ids: string[] = [];
  const [route] = activityRoutes(
    {
      verify: async (user) => ({
        kind: "valid",
        identity: { tenant: "acme", user, rooms: ["*"], rights: { award: true } } as unknown as Identity,
      }),
    },
    { storeActivity: async (_room, _activity, id) => (ids.push(id), "stored") },
    { kinds: ["comment"], reportRate: RATE, tenantBytes: { burst: 10_000, perSecond: 10_000 }, reportersMax: 10 },
    { clock: new FakeClock(), metrics: gatewayMetrics(new Registry()) },
  );
  for (const backend of ["crm", "forum", "crm"])
    await route!.answer({
      parameters: ["notes"],
      query: new URLSearchParams(),
      header: (name) => (name === "authorization" ? `Bearer ${backend}` : ""),
      body: new TextEncoder().encode('{"id":"1","activities":[{"user":"ann","kind":"comment","times":1}]}'),
      signal: new AbortController().signal,
      path: "",
      address: undefined,
    });
  expect([ids.length, new Set(ids).size, ids[0] === ids[2]]).toEqual([3, 2, true]);
});

test("[HTTP38] a report with an unknown field is refused, because a misspelt one would count wrong points", async () => {
  const [route] = activityRoutes(
    {
      verify: async (user) => ({
        kind: "valid",
        identity: { tenant: "acme", user, rooms: ["*"], rights: { award: true } } as unknown as Identity,
      }),
    },
    { storeActivity: async () => "stored" },
    { kinds: ["comment"], reportRate: RATE, tenantBytes: { burst: 10_000, perSecond: 10_000 }, reportersMax: 10 },
    { clock: new FakeClock(), metrics: gatewayMetrics(new Registry()) },
  );
  const report = async (body: object): Promise<number> => {
    const answer = await route!.answer({
      parameters: ["notes"],
      query: new URLSearchParams(),
      header: (name) => (name === "authorization" ? "Bearer crm" : ""),
      body: new TextEncoder().encode(JSON.stringify(body)),
      signal: new AbortController().signal,
      path: "",
      address: undefined,
    });
    return answer.status;
  };
  const comment = { user: "ann", kind: "comment" };
  expect(await report({ id: "1", activities: [comment] })).toBe(202);
  expect(await report({ id: "2", activities: [{ ...comment, time: 5 }] })).toBe(400);
  expect(await report({ id: "3", activities: [comment], board: "x" })).toBe(400);
});
