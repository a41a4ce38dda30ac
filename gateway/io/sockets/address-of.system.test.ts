/** Which address a request comes from, by the header lines that a balancer makes of what a client sends. */

import { request } from "node:http";

import { afterAll, beforeAll, expect, test } from "vitest";

import { addressOf } from "./address-of.ts";
import { loadUws } from "./load-uws.ts";
import { listen } from "./uws-server.ts";

const HEADER = "x-forwarded-for";
const app = loadUws().App();
let port: number;

beforeAll(async () => {
  app.get("/*", (res, req) => void res.end(addressOf(res, req, HEADER) ?? "this machine"));
  port = (await listen(loadUws(), app, { host: "127.0.0.1", port: 0 })).port;
});
afterAll(() => void app.close());

function addressBy(...lines: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    request(
      { port, headers: { "X-Forwarded-For": [...lines] } },
      (answer) => void answer.toArray().then((parts) => resolve(Buffer.concat(parts as Buffer[]).toString()), reject),
    )
      .on("error", reject)
      .end();
  });
}

test("[ADR3] of several headers the balancer's own is the last, whatever the client sent", async () => {
  expect(await addressBy("203.0.113.7")).toBe("203.0.113.7");
  expect(await addressBy("198.51.100.1", "203.0.113.7")).toBe("203.0.113.7");
  expect(await addressBy("198.51.100.1, 198.51.100.2", "198.51.100.3", "198.51.100.4, 203.0.113.7")).toBe("203.0.113.7");
  expect(await addressBy()).toBe("this machine");
});
