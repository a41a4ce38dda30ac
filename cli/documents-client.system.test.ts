/** Requests for documents to a server that is not ready at first, never ready, or refuses. */

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import { DocumentsClient } from "./documents-client.ts";

type Answer = { readonly status: number; readonly body: string; readonly retryAfter?: string };

const NOT_READY: Answer = { status: 503, body: JSON.stringify({ error: "not-ready", message: "ask again" }), retryAfter: "0" };

let server: Server;
let client: DocumentsClient;
let asked: number;
/** The answers in order. The last one repeats. */
let answers: readonly Answer[];

beforeAll(async () => {
  server = createServer((_, response) => {
    const { status, body, retryAfter } = answers[Math.min(asked, answers.length - 1)]!;
    asked += 1;
    response.writeHead(status, retryAfter === undefined ? {} : { "retry-after": retryAfter }).end(body);
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  client = new DocumentsClient(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, async () => "t.o.k");
});
beforeEach(() => {
  asked = 0;
});
afterAll(() => server.close());

test("[DCL1] a request is repeated after the pause that the answer names", async () => {
  answers = [NOT_READY, { ...NOT_READY, status: 429 }, { status: 200, body: "content" }];
  const { bytes } = await client.ask("/notes/document");
  expect([new TextDecoder().decode(bytes), asked]).toEqual(["content", 3]);
});

test("[DCL2] after six answers that it is not ready the gateway's message is the error", async () => {
  answers = [NOT_READY];
  await expect(client.ask("/notes/document")).rejects.toMatchObject({ status: 503, code: "not-ready", message: "ask again" });
  expect(asked).toBe(6);
});

test("[DCL3] other refusals are not repeated, also of a server that is no gateway", async () => {
  answers = [{ status: 404, body: JSON.stringify({ error: "no-such-text", message: "name a text" }) }];
  await expect(client.ask("/notes/document")).rejects.toMatchObject({ status: 404, code: "no-such-text", message: "name a text" });
  answers = [{ status: 502, body: "<html>" }];
  await expect(client.ask("/notes/document")).rejects.toThrow(/HTTP 502\. Set --url/);
  expect(asked).toBe(2);
});

test("[DCL4] a deletion whose data is still being removed is done", async () => {
  answers = [{ status: 202, body: JSON.stringify({ deleted: true }) }];
  expect((await client.ask("/notes", { method: "DELETE" })).status).toBe(202);
  expect(asked).toBe(1);
});
