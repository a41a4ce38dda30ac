import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";

import { Webhook } from "standardwebhooks";
import { expect, onTestFinished, test, vi } from "vitest";

import { type RoomId, type RoomKey, roomKey, type TenantId, type UnixMillis } from "../../shared/ids.ts";
import { webhookEndpoints } from "../../shared/settings/webhook-endpoints.ts";
import type { ApplicationAnswer } from "../ports.ts";
import { applicationContent } from "./application-content.ts";

const SECRET = `whsec_${Buffer.from("a secret of the tests, 32 bytes!").toString("base64")}`;
const BYTES_MAX = 1_000;

type Asking = { readonly urls?: (url: string) => string; readonly timeoutMs?: number };

/** `urls`: of the server, as in the setting. */
async function application(answer: RequestListener, { urls = (url) => url, timeoutMs = 10_000 }: Asking = {}) {
  const server = createServer((request, response) => void answer(request, response));
  server.listen(0, "127.0.0.1");
  onTestFinished(() => void server.close().closeAllConnections());
  await once(server, "listening");
  const firstContentUrls = webhookEndpoints(urls(`http://127.0.0.1:${(server.address() as AddressInfo).port}/content`));
  return applicationContent(
    {
      firstContentUrls,
      webhookSecrets: new Map(firstContentUrls.map(({ name }) => [name, SECRET])),
      firstContentTimeoutMs: timeoutMs,
      documentBodyBytesMax: BYTES_MAX,
      firstContentCallsMax: 2,
    },
    { wallNow: () => Date.now() as UnixMillis },
  );
}

const keyOf = (tenant: string): RoomKey => roomKey(tenant as TenantId, "notes/1" as RoomId);

async function ask(answer: RequestListener, asking?: Asking): Promise<ApplicationAnswer> {
  return (await application(answer, asking))(keyOf("acme"));
}

const failed = (why: RegExp) => ({ kind: "failed", why: expect.stringMatching(why) as string });

test("[FCD1] the request names the room and is signed, and the answer is passed on with its type", async () => {
  const verified: unknown[] = [];
  const answer = await ask((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      verified.push(new Webhook(SECRET).verify(Buffer.concat(chunks).toString(), request.headers as Record<string, string>));
      response.writeHead(200, { "content-type": "text/plain" }).end("words");
    });
  });
  expect(verified).toMatchObject([{ type: "document.requested", data: { tenant: "acme", room: "notes/1" } }]);
  expect(answer).toEqual({ kind: "content", contentType: "text/plain", content: new TextEncoder().encode("words") });
});

test("[FCD2] only 204 means that there is no content; a 404, a redirect and an error are failures", async () => {
  expect(await ask((_, response) => response.writeHead(204).end())).toEqual({ kind: "none" });
  expect(await ask((_, response) => response.writeHead(404).end("no route"))).toEqual(failed(/^HTTP 404.*answer 204/));
  let requests = 0;
  const redirect: RequestListener = (_, response) => void ((requests += 1), response.writeHead(307, { location: "/elsewhere" }).end());
  expect([await ask(redirect), requests]).toEqual([failed(/^HTTP 307/), 1]);
  expect(await ask((_, response) => response.writeHead(500).end())).toEqual(failed(/^HTTP 500/));
});

test("[FCD3] content above the limit is a failure, also if it is compressed or never ends", async () => {
  const large = "x".repeat(BYTES_MAX + 1);
  expect(await ask((_, response) => response.writeHead(200).end(large))).toEqual(failed(/longer than 1000 bytes/));
  const compressed: RequestListener = (_, response) => response.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync(large));
  expect(await ask(compressed)).toEqual(failed(/longer than 1000 bytes/));
  expect(await ask((_, response) => void response.writeHead(200).write(large))).toEqual(failed(/longer than 1000 bytes/));
});

test("[FCD4] an application that does not answer in time, or whose answer breaks off, has failed", async () => {
  expect(await ask(() => {}, { timeoutMs: 50 })).toEqual(failed(/no answer within 50 ms/));
  const slowBody: RequestListener = (_, response) => void response.writeHead(200, { "content-length": "5" }).write("so");
  expect(await ask(slowBody, { timeoutMs: 200 })).toEqual(failed(/no answer within 200 ms/));
  const broken: RequestListener = (_, response) => {
    response.writeHead(200, { "content-length": "5" }).write("so", () => response.destroy());
  };
  expect(await ask(broken)).toEqual(failed(/broke off/));
  const damaged: RequestListener = (_, response) => void response.writeHead(200, { "content-encoding": "gzip" }).end("no gzip");
  expect(await ask(damaged)).toEqual(failed(/broke off/));
});

test("[FCD5] a room of a tenant without an application, which a gateway with other settings requests, does not open empty", async () => {
  let requests = 0;
  const count: RequestListener = (_, response) => void ((requests += 1), response.writeHead(500).end());
  expect([await ask(count, { urls: (url) => `other=${url}` }), requests]).toEqual([failed(/set it here as on gateways/), 0]);
});

test("[FCD11] beyond the limit of concurrent requests to an application its rooms wait, and those of others do not", async () => {
  const held: (() => void)[] = [];
  const receive: RequestListener = (request, response) => {
    const isOther = request.url === "/content/other";
    if (isOther) response.writeHead(204).end();
    else held.push(() => response.writeHead(204).end());
  };
  const request = await application(receive, { urls: (url) => `${url}, other=${url}/other` });
  const all = ["a", "b", "c"].map((tenant) => request(keyOf(tenant)));
  expect(await request(keyOf("other"))).toEqual({ kind: "none" });
  await vi.waitFor(() => expect(held).toHaveLength(2));
  held[0]!();
  await vi.waitFor(() => expect(held).toHaveLength(3));
  for (const answer of held.slice(1)) answer();
  expect(await Promise.all(all)).toEqual([{ kind: "none" }, { kind: "none" }, { kind: "none" }]);
});
