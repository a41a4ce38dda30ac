import { expect, onTestFinished, test } from "vitest";

import type { HttpAnswer } from "../../http/answers.ts";
import { serveRoutes } from "./serve-routes.ts";
import { loadUws } from "../sockets/load-uws.ts";
import { listen } from "../sockets/uws-server.ts";

async function serving(answer: () => HttpAnswer | Promise<HttpAnswer>): Promise<{ url: string; errors: string[] }> {
  const errors: string[] = [];
  const uws = loadUws();
  const app = uws.App();
  serveRoutes(app, [{ method: "get", path: "/asked", answer }], {
    allowedOrigins: [],
    clientAddressHeader: "",
    answerStallMsMax: 1_000,
    onStalled: () => {},
    bodiesBytesMax: 1_000_000,
    onBodiesFull: () => {},
    log: { debug: () => {}, info: () => {}, warn: () => {}, error: (_, message) => void errors.push(message) },
  });
  const { port } = await listen(uws, app, { host: "127.0.0.1", port: 0 });
  onTestFinished(() => void app.close());
  return { url: `http://127.0.0.1:${port}/asked`, errors };
}

test("[HTTP25] a route that fails is answered with 500, and the connection stays open", async () => {
  const { url, errors } = await serving(() => Promise.reject(new Error("NATS is away")));
  const answer = await fetch(url);
  expect([answer.status, await answer.json()]).toEqual([500, { error: "failed", message: expect.stringContaining("try again") }]);
  expect(errors).toEqual(["an HTTP request failed"]);
});

test("[HTTP26] an answer that ends early after its head breaks the connection, so that no client treats it as complete", async () => {
  const broken = async function* (): AsyncGenerator<Uint8Array> {
    yield new Uint8Array(10);
    throw new Error("its source is gone");
  };
  const { url, errors } = await serving(() => ({ status: 200, body: broken(), bodyBytes: 20 }));
  await expect(fetch(url).then((answer) => answer.arrayBuffer())).rejects.toThrow();
  expect(errors).toEqual(["an HTTP answer broke off"]);
});
