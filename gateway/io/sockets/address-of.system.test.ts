/** The client address of a request, from the header values that a balancer produces. */

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

function addressBy(...values: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    request(
      { port, headers: { "X-Forwarded-For": [...values] } },
      (answer) => void answer.toArray().then((parts) => resolve(Buffer.concat(parts as Buffer[]).toString()), reject),
    )
      .on("error", reject)
      .end();
  });
}

test("[ADR3] the last header value is the balancer's own, with any header of the client", async () => {
  expect(await addressBy("203.0.113.7")).toBe("203.0.113.7");
  expect(await addressBy("198.51.100.1", "203.0.113.7")).toBe("203.0.113.7");
  expect(await addressBy("198.51.100.1, 198.51.100.2", "198.51.100.3", "198.51.100.4, 203.0.113.7")).toBe("203.0.113.7");
  expect(await addressBy()).toBe("this machine");
});
