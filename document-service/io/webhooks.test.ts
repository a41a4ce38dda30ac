import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";

import { expect, onTestFinished, test } from "vitest";

import { AssertionError } from "../../shared/assert.ts";
import type { UnixMillis } from "../../shared/ids.ts";
import type { DeliveryOutcome } from "../ports.ts";
import { webhookCalls } from "./webhooks.ts";

const NOW = Date.UTC(2026, 10, 28, 12) as UnixMillis;

async function deliver(answer: RequestListener, webhookTimeoutMs = 10_000): Promise<DeliveryOutcome> {
  const server = createServer((request, response) => void request.resume().on("end", () => answer(request, response)));
  server.listen(0, "127.0.0.1");
  onTestFinished(() => void server.close().closeAllConnections());
  await once(server, "listening");
  const calls = webhookCalls({ webhookSecrets: new Map([["acme", "whsec_c2VjcmV0"]]), webhookTimeoutMs }, { wallNow: () => NOW });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  return calls.deliver({ name: "acme", tenant: undefined, url }, "id", { type: "room.deleted", tenant: "acme", room: "notes", at: 0 });
}

test("[WEBH8] a failed delivery is repeated when the endpoint asks for it, in seconds or at a date", async () => {
  const failedWith = (retryAfter: string) => deliver((_, response) => response.writeHead(503, { "retry-after": retryAfter }).end());
  const failed = { kind: "failed", why: "HTTP 503" };
  expect(await failedWith("90")).toEqual({ ...failed, retryAfterMs: 90_000 });
  expect(await failedWith("Sat, 28 Nov 2026 12:01:30 GMT")).toEqual({ ...failed, retryAfterMs: 90_000 });
  for (const none of ["Sat, 28 Nov 2026 11:00:00 GMT", "-5", "soon", ""]) expect(await failedWith(none)).toEqual(failed);
});

test("[WEBH12] an event is never signed with an empty secret", async () => {
  const calls = webhookCalls({ webhookSecrets: new Map(), webhookTimeoutMs: 1_000 }, { wallNow: () => NOW });
  const event = { type: "room.deleted", tenant: "acme", room: "notes", at: 0 } as const;
  await expect(calls.deliver({ name: "acme", tenant: undefined, url: "http://127.0.0.1:9/" }, "id", event)).rejects.toThrow(AssertionError);
});

test("[WEBH9] a redirect is a failure and is not followed, and 410 refuses the event", async () => {
  let requests = 0;
  const redirect: RequestListener = (_, response) => void ((requests += 1), response.writeHead(307, { location: "/elsewhere" }).end());
  expect([await deliver(redirect), requests]).toEqual([{ kind: "failed", why: "HTTP 307" }, 1]);
  expect(await deliver((_, response) => response.writeHead(410).end())).toEqual({ kind: "refused", why: "HTTP 410" });
});

test("[WEBH10] an answer counts by its status, even if its body never ends; an endpoint that does not answer in time has failed", async () => {
  expect(await deliver((_, response) => response.writeHead(200).write("so far"))).toEqual({ kind: "delivered" });
  expect(await deliver(() => {}, 50)).toEqual({ kind: "failed", why: "no answer within 50 ms" });
});
