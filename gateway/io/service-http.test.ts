import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

import { afterEach, expect, test } from "vitest";

import { serviceHttp } from "./service-http.ts";

const QUESTION = { method: "GET", headers: {} };
const servers: Server[] = [];
afterEach(() => servers.splice(0).forEach((server) => server.closeAllConnections()));

async function serving(server: Server): Promise<URL> {
  servers.push(server.listen(0, "127.0.0.1"));
  await once(server, "listening");
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
}

test("[ASK1] a crowd's questions share a few connections, and each gets its answer", async () => {
  let connections = 0;
  const url = await serving(createServer((_, response) => void setImmediate(() => response.end("here"))).on("connection", () => (connections += 1)));
  const ask = serviceHttp();
  const answers = await Promise.all(
    Array.from({ length: 300 }, async () => {
      const answer = await ask(url, QUESTION, undefined);
      const chunks = await answer!.toArray();
      return Buffer.concat(chunks as Buffer[]).toString();
    }),
  );
  expect(answers).toEqual(Array.from({ length: 300 }, () => "here"));
  expect(connections).toBeLessThanOrEqual(64);
});

test("[ASK2] nobody there, a line that breaks and an asker who has gone are told as no answer", async () => {
  const ask = serviceHttp();
  const url = await serving(createServer((request) => request.socket.destroy()));
  expect(await ask(url, QUESTION, undefined)).toBeUndefined();
  expect(await ask(url, QUESTION, AbortSignal.abort())).toBeUndefined();
  servers[0]!.close();
  expect(await ask(url, QUESTION, undefined)).toBeUndefined();
});
