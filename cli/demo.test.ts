import { expect, test } from "vitest";

import type { HttpQuestion } from "../gateway/io/http-routes.ts";
import { demoRoutes, servesDemo } from "./demo.ts";

const local = { demo: true, production: false, jwtSecret: "", jwksUrl: "", jwksFile: "", tlsCertFile: "" };

test("[DEM1] tokens are handed out by local systems only: never for a secret that was given", () => {
  expect(servesDemo(local)).toBe(true);
  for (const given of [{ demo: false }, { production: true }, { jwtSecret: "x".repeat(32) }, { jwksUrl: "https://a/jwks" }, { jwksFile: "jwks.json" }, { tlsCertFile: "cert.pem" }]) {
    expect(servesDemo({ ...local, ...given }), JSON.stringify(given)).toBe(false);
  }
});

test.each([
  ["same-origin", 200],
  ["", 200], // No browser.
  ["cross-site", 403],
  ["same-site", 403],
])("[DEM2] a request from '%s' is answered with %i", async (site, status) => {
  const [route] = demoRoutes({ jwtSecret: "x".repeat(32), bots: { set: async () => 0 } });
  const question: HttpQuestion = { path: "/demo/token", parameters: [], query: new URLSearchParams({ room: "notes", user: "ada" }), header: (name) => (name === "sec-fetch-site" ? site : ""), address: undefined, body: new Uint8Array(), signal: new AbortController().signal };
  expect((await route!.answer(question)).status).toBe(status);
});
