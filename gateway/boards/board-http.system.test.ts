/** Board requests over the HTTP API of a gateway. The leaderboard is a plain HTTP server of this test. */

import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";

import { SignJWT } from "jose";
import { connect, type NatsConnection } from "nats";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test } from "vitest";

import { encodeJson } from "../../shared/bus/json-messages.ts";
import { subjectsOf } from "../../shared/bus/subjects.ts";
import { readSettings } from "../../shared/settings/settings.ts";
import { sharedSettings } from "../../shared/settings/common-settings.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import { Declared } from "../../test/contract/declared.ts";
import { type RealNats, startRealNats, until } from "../../test/contract/real-nats.ts";
import { gatewaySettings } from "../config.ts";
import { startGateway } from "../main.ts";

const SECRET = "a secret of at least 32 bytes, for tests only";
const BURST = 20;
const declared = new Declared(new URL("../../leaderboard/openapi.json", import.meta.url));

let nats: RealNats;
let natsConnection: NatsConnection;
let gateway: Awaited<ReturnType<typeof startGateway>>;
let leaderboard: Server;
let heart: NodeJS.Timeout;
let metrics: Registry;
/** Requests that the leaderboard received. */
const asked: { url: string; internal: string; tenant: string; method?: string; body?: string }[] = [];

beforeAll(async () => {
  nats = await startRealNats();
  natsConnection = await connect({ servers: nats.url });
  leaderboard = createServer(async (incoming, response) => {
    const { url = "", headers, method = "" } = incoming;
    const body = Buffer.concat(await incoming.toArray()).toString();
    asked.push({
      url,
      internal: String(headers["x-coroom-internal"]),
      tenant: String(headers["x-coroom-tenant"]),
      ...(method === "GET" ? {} : { method, body }),
    });
    if (url.includes("rebuilt"))
      return void response
        .writeHead(503, { "content-type": "application/json", "retry-after": "1" })
        .end('{"error":"rebuilding","message":"ask again in a second"}');
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ ranking: [] }));
  }).listen(0, "127.0.0.1");
  const flags = {
    environment: "boards",
    natsUrl: nats.url,
    port: "0",
    jwtSecret: SECRET,
    internalSecret: "between us",
    boardReadBurst: String(BURST),
    boardReadsPerSecond: "1",
  };
  metrics = new Registry();
  gateway = await startGateway(
    { ...readSettings({ ...sharedSettings, ...gatewaySettings }, { flags, env: {} }), serverSilenceMsMax: 300 },
    { log: SILENT_LOG, registry: metrics },
  );
});
afterAll(async () => {
  clearInterval(heart);
  await gateway.stop();
  await natsConnection.close();
  leaderboard.close();
  await nats.stop();
});

function bearer(user: string, claims: object = {}, expires: number | string = "1h"): Promise<string> {
  return new SignJWT({ tenant: "acme", rooms: ["notes/*", "rebuilt"], rights: ["read"], ...claims })
    .setProtectedHeader({ alg: "HS256" })
    .setSubject(user)
    .setExpirationTime(expires)
    .sign(new TextEncoder().encode(SECRET));
}

async function get(
  path: string,
  token?: string,
  init: { method: "POST"; body: string } | { method: "GET" } = { method: "GET" },
): Promise<{ status: number; error: string | undefined; retryAfter: string | null }> {
  const response = await fetch(`http://127.0.0.1:${gateway.port}${path}`, {
    ...init,
    headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
  });
  const body = (await response.json()) as { error?: string };
  const { error } = body;
  if (error !== undefined) declared.expect({ method: init.method, path: path.split("?")[0]!, status: response.status, body }); // The leaderboard, which is a fake here, sends all other answers.
  return { status: response.status, error, retryAfter: response.headers.get("retry-after") };
}

test("[HTTP20] a board request fails with no-leaderboard until a leaderboard sends heartbeats, and is then forwarded to it", async () => {
  const token = await bearer("ann");
  expect(await get("/v1/rooms/notes%2F7/leaderboard", token)).toEqual({ status: 503, error: "no-leaderboard", retryAfter: "5" });

  const { port } = leaderboard.address() as AddressInfo;
  heart = setInterval(
    () =>
      natsConnection.publish(
        subjectsOf("boards").leaderboards,
        encodeJson({ service: "l1", url: `http://127.0.0.1:${port}`, time: Date.now() }),
      ),
    50,
  );
  let looks = 0; // Each request has its own user, so that no user exceeds the read rate.
  await until(
    async () => (await get("/v1/rooms/notes%2F7/leaderboard", await bearer(`looks on ${(looks += 1)}`))).status === 200,
    "a leaderboard",
  );
  asked.length = 0;
  await get(`/v1/rooms/notes%2F7/leaderboard?window=hour&limit=3&token=${token}`);
  await get("/v1/rooms/notes%2F7/leaderboard/me?around=2", await bearer("ann/ö"));
  await get("/v1/rooms/notes%2F7/leaderboard/members?user=a&user=b", token);
  await get("/v1/rooms/notes%2F7/leaderboard/members/bob%2F1", token);
  expect(asked.map(({ url }) => url)).toEqual([
    "/v1/rooms/notes%2F7/leaderboard?window=hour&limit=3",
    "/v1/rooms/notes%2F7/leaderboard/members/ann%2F%C3%B6?around=2",
    "/v1/rooms/notes%2F7/leaderboard/members?user=a&user=b",
    "/v1/rooms/notes%2F7/leaderboard/members/bob%2F1",
  ]);
  expect(new Set(asked.map(({ internal, tenant }) => `${internal}, ${tenant}`))).toEqual(new Set(["between us, acme"]));
  expect(await get("/v1/rooms/rebuilt/leaderboard", token)).toEqual({ status: 503, error: "rebuilding", retryAfter: "1" });
});

test("[HTTP21] only tokens that open the room for reading get its boards", async () => {
  for (const place of ["", "/me", "/members?user=a", "/members/a"]) {
    const path = `/v1/rooms/notes%2F7/leaderboard${place}`;
    expect((await get(path)).error).toBe("no-token");
    expect((await get(path, "nonsense")).error).toBe("token-refused");
    expect((await get(path, await bearer("ann", {}, 1))).error).toBe("token-expired");
    expect((await get(path, await bearer("cy", { rooms: ["other"] }))).error).toBe("not-allowed");
    expect((await get(path, await bearer("cy", { rights: ["write"] }))).error).toBe("not-allowed");
    expect((await get(path.replace("notes%2F7", "%00"), await bearer("cy"))).error).toBe("bad-room");
  }
});

test("[HTTP23] the right boards or admin opens the boards of the token's tenant", async () => {
  const paths = {
    "/v1/leaderboard/rooms": "/v1/leaderboard/rooms",
    "/v1/leaderboard/rooms/notes%2F7": "/v1/leaderboard/rooms/notes%2F7",
    "/v1/leaderboard/people": "/v1/leaderboard/people",
    "/v1/leaderboard/people/me": "/v1/leaderboard/people/members/dee",
    "/v1/leaderboard/people/members": "/v1/leaderboard/people/members",
    "/v1/leaderboard/people/members/bob%2F1": "/v1/leaderboard/people/members/bob%2F1",
  };
  for (const [path, forwarded] of Object.entries(paths)) {
    expect((await get(path)).error).toBe("no-token");
    expect((await get(path, await bearer(`cy ${path}`, { rooms: ["*"], rights: ["read", "write", "award"] }))).error).toBe("not-allowed");
    for (const claims of [
      { rooms: ["*"], rights: ["admin"] },
      { rooms: [], rights: ["boards"] },
    ]) {
      expect((await get(`${path}?window=day`, await bearer("dee", claims))).status).toBe(200);
      expect(asked.at(-1)).toEqual({ url: `${forwarded}?window=day`, internal: "between us", tenant: "acme" });
    }
  }
  expect((await get("/v1/leaderboard/people/members/%00", await bearer("eve", { rights: ["boards"] }))).error).toBe("bad-user");
});

test("[HTTP28] a POST with users reaches the leaderboard with its body, for the same tokens as a GET, up to 768 KB", async () => {
  const rank = (path: string, token?: string, body = '{"users":["ann"]}') => get(path, token, { method: "POST", body });
  const members = "/v1/rooms/notes%2F7/leaderboard/members";
  const body = JSON.stringify({ users: Array.from({ length: 1_000 }, (_, index) => String(index).padStart(128, "0")) });
  asked.length = 0;
  expect((await rank(`${members}?window=day&token=${await bearer("finn")}`, undefined, body)).status).toBe(200);
  expect((await rank("/v1/leaderboard/people/members", await bearer("finn", { rights: ["boards"] }), body)).status).toBe(200);
  const forwarded = { internal: "between us", tenant: "acme", method: "POST", body };
  expect(asked).toEqual([
    { ...forwarded, url: `${members}?window=day` },
    { ...forwarded, url: "/v1/leaderboard/people/members" },
  ]);
  asked.length = 0;
  for (const [path, other] of [
    [members, { rooms: ["other"] }],
    ["/v1/leaderboard/people/members", { rights: ["read"] }],
  ] as const) {
    expect((await rank(path)).error).toBe("no-token");
    expect((await rank(path, "nonsense")).error).toBe("token-refused");
    expect((await rank(path, await bearer("gil", {}, 1))).error).toBe("token-expired");
    expect((await rank(path, await bearer("gil", other))).error).toBe("not-allowed");
    expect((await rank(path, await bearer("gil"), "x".repeat(786_433))).error).toBe("too-large");
  }
  expect((await rank(members.replace("notes%2F7", "%00"), await bearer("gil"))).error).toBe("bad-room");
  expect(asked).toEqual([]);
});

/** Sends the path unchanged: fetch would normalise it. */
function statusOf(path: string, token: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    request({ port: gateway.port, path, headers: { authorization: `Bearer ${token}` } }, (answer) => resolve(answer.resume().statusCode))
      .on("error", reject)
      .end();
  });
}

test("[HTTP24] no name in a path reaches a board that the token does not open", async () => {
  const [token, reader] = [await bearer("eve"), await bearer("dee", { rights: ["boards"] })];
  asked.length = 0;
  const members = "/v1/rooms/notes%2F7/leaderboard/members";
  for (const user of ["..\\..\\..\\other\\leaderboard", "..\\..\\..\\..\\leaderboard\\rooms"])
    expect(await statusOf(`${members}/${user}`, token)).toBe(200);
  expect(await statusOf("/v1/leaderboard/rooms/..\\..\\rooms\\other\\leaderboard", reader)).toBe(200);
  expect(asked.map(({ url }) => url)).toEqual([
    `${members}/..%5C..%5C..%5Cother%5Cleaderboard`,
    `${members}/..%5C..%5C..%5C..%5Cleaderboard%5Crooms`,
    "/v1/leaderboard/rooms/..%5C..%5Crooms%5Cother%5Cleaderboard",
  ]);
  asked.length = 0;
  for (const path of [`${members}/..`, `${members}/.`, `${members}/%2e%2e`])
    expect([path, await statusOf(path, token)]).toEqual([path, 404]);
  expect(await statusOf(`${members.replace("/members", "/me")}`, await bearer(".."))).toBe(404);
  expect(asked).toEqual([]);
});

test("[HTTP22] a user above the rate of board reads is refused with a retry time, and other users are not affected", async () => {
  const [greedy, modest] = [await bearer("greedy"), await bearer("modest")];
  const answers = await Promise.all(Array.from({ length: 2 * BURST }, () => get("/v1/rooms/notes%2F7/leaderboard", greedy)));
  const refused = answers.filter(({ error }) => error === "rate-limited").length;
  expect(refused).toBeGreaterThan(0);
  expect(refused).toBeLessThanOrEqual(BURST); // The bucket refills while seconds pass.
  expect(answers.find(({ status }) => status === 429)?.retryAfter).toBe("1");
  expect((await get("/v1/rooms/notes%2F7/leaderboard", modest)).status).toBe(200);
  expect(await metrics.metrics()).toContain(`coroom_gateway_board_reads_total{status="429"} ${refused}\n`);
});
