import { expect, test } from "vitest";

import type { UnixMillis } from "../shared/ids.ts";
import { isOperatorPass } from "../shared/io/operator-pass.ts";
import type { ClientAddress } from "../shared/limits/client-address.ts";
import type { RouteRequest } from "../gateway/http/requests.ts";
import { demoRoutes, demoObstacle, noPageRoute } from "./demo.ts";

const local = { demo: true, production: false, jwtSecret: "", jwksUrl: "", jwksFile: "", tlsCertFile: "" };

test("[DEM1] only a local system issues tokens, and never with a configured secret", () => {
  expect(demoObstacle(local)).toBeUndefined();
  for (const [given, reason] of [
    [{ demo: false }, "COROOM_DEMO is off"],
    [{ production: true }, "COROOM_PRODUCTION is set"],
    [{ jwtSecret: "x".repeat(32) }, "COROOM_JWT_SECRET is set"],
    [{ jwksUrl: "https://a/jwks" }, "COROOM_JWKS_URL is set"],
    [{ jwksFile: "jwks.json" }, "COROOM_JWKS_FILE is set"],
    [{ tlsCertFile: "cert.pem" }, "COROOM_TLS_CERT_FILE is set"],
  ] as const) {
    expect(demoObstacle({ ...local, ...given })).toBe(reason);
  }
});

test("[DEM5] a system without a demo page shows at / the setting that disables it", async () => {
  const answer = await noPageRoute("COROOM_JWT_SECRET is set").answer({} as RouteRequest);
  expect(answer).toMatchObject({ status: 404, body: expect.stringContaining("COROOM_JWT_SECRET is set") });
});

test.each([
  ["same-origin", "", 200],
  ["same-origin", "http://localhost:5173", 200], // Through a proxy.
  ["", "", 200], // A client that is not a browser, or a page of the same origin.
  ["cross-site", "", 403],
  ["same-site", "", 403],
  // Browsers send no Sec-Fetch-Site to http://192.168.0.7.
  ["", "http://localhost:8080", 200],
  ["", "https://localhost:8080", 200],
  ["", "http://evil.example", 403],
  ["", "http://localhost:8081", 403],
  ["", "null", 403],
])("[DEM2] the answer to a request from '%s' with the origin '%s' has status %i", async (site, origin, status) => {
  const route = demoRoutes({ jwtSecret: "x".repeat(32), operatorSecret: "y".repeat(32), bots: { set: async () => 0 } }).find(
    ({ path }) => path === "/demo/token",
  );
  const question: RouteRequest = {
    path: "/demo/token",
    parameters: [],
    query: new URLSearchParams({ room: "notes", user: "ada" }),
    header: (name) => ({ "sec-fetch-site": site, origin, "host": "localhost:8080" })[name] ?? "",
    address: undefined,
    body: new Uint8Array(),
    signal: new AbortController().signal,
  };
  expect((await route!.answer(question)).status).toBe(status);
});

test.each([
  ["127.0.0.1:8080", 200],
  ["[::1]:8080", 200],
  ["localhost", 200],
  ["192.168.0.7:8080", 200],
  ["workshop:8080", 200],
  ["laptop.local:8080", 200],
  ["", 403],
  ["evil.example:8080", 403],
  ["127.0.0.1.evil.example", 403],
  ["evil.example.:8080", 403],
])("[DEM6] a page under %j gets a token with status %i, because a public name may be another site's", async (host, status) => {
  const route = demoRoutes({ jwtSecret: "x".repeat(32), operatorSecret: "", bots: { set: async () => 0 } }).find(
    ({ path }) => path === "/demo/token",
  );
  const question: RouteRequest = {
    path: "/demo/token",
    parameters: [],
    query: new URLSearchParams({ room: "notes", user: "ada" }),
    header: (name) => (name === "host" ? host : ""),
    address: undefined,
    body: new Uint8Array(),
    signal: new AbortController().signal,
  };
  expect((await route!.answer(question)).status).toBe(status);
});

test("[DEM3] an operator pass is issued only to a page on the same machine, and never with a configured secret", async () => {
  const secret = "y".repeat(32);
  const passFor = async (
    host: string,
    { address, site = "same-origin", operatorSecret = secret }: { address?: ClientAddress; site?: string; operatorSecret?: string } = {},
  ) => {
    const route = demoRoutes({ jwtSecret: "x".repeat(32), operatorSecret, bots: { set: async () => 0 } }).find(
      ({ path }) => path === "/demo/operator",
    )!;
    const headers: Record<string, string> = { host, "sec-fetch-site": site };
    return route.answer({
      path: "/demo/operator",
      parameters: [],
      query: new URLSearchParams(),
      header: (name) => headers[name] ?? "",
      address,
      body: new Uint8Array(),
      signal: new AbortController().signal,
    });
  };
  const given = await passFor("127.0.0.1:8080");
  expect(isOperatorPass((JSON.parse(String(given.body)) as { pass: string }).pass, secret, Date.now() as UnixMillis)).toBe(true);
  for (const refused of [
    passFor("coroom.example"),
    passFor("127.0.0.1.example"),
    passFor("localhost", { address: "192.0.2.7" as ClientAddress }),
    passFor("localhost", { site: "cross-site" }),
    passFor("localhost", { operatorSecret: "" }),
  ])
    expect((await refused).status).toBe(403);
});
