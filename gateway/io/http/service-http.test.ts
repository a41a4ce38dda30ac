import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

import { afterEach, expect, test } from "vitest";

import type { TenantId } from "../../../shared/ids.ts";
import { CERTIFICATE, KEY } from "../../../test/contract/certificate.ts";
import { eventually } from "../../../test/system/eventually.ts";
import { serviceHttp } from "./service-http.ts";

const QUESTION = { method: "GET", headers: {}, tenant: "acme" as TenantId };
const servers: Server[] = [];
afterEach(() => servers.splice(0).forEach((server) => server.closeAllConnections()));

async function serving(server: Server): Promise<URL> {
  servers.push(server.listen(0, "127.0.0.1"));
  await once(server, "listening");
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
}

test("[ASK1] many calls share a few connections, and each gets its answer", async () => {
  let connections = 0;
  const url = await serving(
    createServer((_, response) => void setImmediate(() => response.end("here"))).on("connection", () => (connections += 1)),
  );
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

test("[ASK6] a service over TLS answers a gateway that trusts its certificate; to another one it is missing, and the reason is reported", async () => {
  const server = createTlsServer({ cert: CERTIFICATE, key: KEY }, (_, response) => void response.end("over TLS"));
  servers.push(server.listen(0, "127.0.0.1"));
  await once(server, "listening");
  const url = new URL(`https://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  const failures: string[] = [];
  const onTlsFailure = (_: URL, cause: Error) => void failures.push(String((cause as NodeJS.ErrnoException).code));
  const answer = await serviceHttp({ ca: CERTIFICATE, onTlsFailure })(url, QUESTION, undefined);
  expect(Buffer.concat((await answer!.toArray()) as Buffer[]).toString()).toBe("over TLS");
  expect([await serviceHttp({ onTlsFailure })(url, QUESTION, undefined), failures]).toEqual([undefined, ["DEPTH_ZERO_SELF_SIGNED_CERT"]]);
  server.closeAllConnections();
  server.close();
  expect(await serviceHttp({ ca: CERTIFICATE, onTlsFailure })(url, QUESTION, undefined)).toBeUndefined();
  expect(failures, "a service that is gone").toHaveLength(1);
});

test("[ASK12] a service with another secret counts as missing, and each call is reported: its answer is not for the client", async () => {
  const url = await serving(createServer((_, response) => void response.writeHead(401).end("only gateways ask here")));
  const refused: string[] = [];
  const ask = serviceHttp({ onRefusedSecret: ({ href }) => void refused.push(href) });
  expect([await ask(url, QUESTION, undefined), await ask(url, QUESTION, undefined)]).toEqual([undefined, undefined]);
  expect(refused).toEqual([url.href, url.href]);
});

test("[ASK2] a missing service, a broken connection and a disconnected client all count as no answer", async () => {
  const ask = serviceHttp();
  const url = await serving(createServer((request) => request.socket.destroy()));
  expect(await ask(url, QUESTION, undefined)).toBeUndefined();
  expect(await ask(url, QUESTION, AbortSignal.abort())).toBeUndefined();
  servers[0]!.close();
  expect(await ask(url, QUESTION, undefined)).toBeUndefined();
});

test("[ASK3] a long answer arrives completely even if the service or its reader is slow", async () => {
  const LONG = Buffer.alloc(3_000_000, 7);
  const ask = serviceHttp({ silenceMsMax: 1_200 });
  const url = await serving(
    createServer(async ({ url: path }, response) => {
      response.writeHead(200, { "content-length": LONG.byteLength });
      if (path === "/slow")
        for (let start = 0; start < 1_500_000; start += 100_000) await sleep(100, response.write(LONG.subarray(start, start + 100_000)));
      response.end(LONG.subarray(path === "/slow" ? 1_500_000 : 0));
    }),
  );
  const bytesOf = async (path: string, afterFirst: () => Promise<unknown>): Promise<number> => {
    let bytes = 0;
    for await (const chunk of (await ask(new URL(path, url), QUESTION, undefined))!) {
      if (bytes === 0) await afterFirst();
      bytes += (chunk as Buffer).byteLength;
    }
    return bytes;
  };
  expect(await Promise.all([bytesOf("/slow", async () => {}), bytesOf("/fast", () => sleep(1_500))])).toEqual([
    LONG.byteLength,
    LONG.byteLength,
  ]);
});

test("[ASK5] a call that waits for a connection times out as well", async () => {
  const ask = serviceHttp({ silenceMsMax: 2_000 });
  const url = await serving(
    createServer(({ url: path }, response) => void (path === "/long" ? response.write("so far") : response.end("here"))),
  );
  const held = await Promise.all(Array.from({ length: 48 }, () => ask(new URL("/long", url), QUESTION, undefined)));
  expect(await ask(url, QUESTION, undefined)).toBeUndefined();
  const left = new AbortController();
  const abandoned = ask(url, QUESTION, left.signal);
  left.abort();
  expect(await abandoned).toBeUndefined();
  for (const answer of held) answer!.destroy();
  expect((await ask(url, QUESTION, undefined))?.statusCode, "the connections are free again").toBe(200);
});

test("[ASK7] answers that take long for one tenant delay no call of another", async () => {
  const waiting: (() => void)[] = [];
  let waited = 0;
  const ask = serviceHttp({ silenceMsMax: 60_000, onWait: () => (waited += 1) });
  const url = await serving(
    createServer(({ url: path }, response) => void (path === "/slow" ? waiting.push(() => response.end("late")) : response.end("here"))),
  );
  const slow = Array.from({ length: 100 }, () => ask(new URL("/slow", url), QUESTION, undefined));
  const answer = await ask(url, { ...QUESTION, tenant: "other" as TenantId }, undefined);
  expect([answer?.statusCode, waiting.length, waited]).toEqual([200, 48, 52]);
  answer!.resume();
  let answered = 0;
  for (const asked of slow) void asked.then((late) => ((answered += 1), late!.resume()));
  await eventually("all are answered", () => {
    for (const end of waiting.splice(0)) end();
    return answered === 100;
  });
});

test("[ASK9] a call for a client that has left already waits for no connection", async () => {
  const ask = serviceHttp({ silenceMsMax: 3_600_000 });
  const url = await serving(createServer((_, response) => void response.write("so far")));
  const held = await Promise.all(Array.from({ length: 48 }, () => ask(url, QUESTION, undefined)));
  expect(await ask(url, QUESTION, AbortSignal.abort())).toBeUndefined();
  for (const answer of held) answer!.destroy();
});

test("[ASK8] a call with a header that HTTP does not allow fails, and holds no connection", async () => {
  const ask = serviceHttp();
  const url = await serving(createServer((_, response) => void response.end("here")));
  for (let call = 0; call < 100; call++)
    await expect(ask(url, { ...QUESTION, headers: { "if-none-match": "\u{1f600}" } }, undefined)).rejects.toThrow("Invalid character");
  const answer = await ask(url, QUESTION, undefined);
  expect(answer?.statusCode).toBe(200);
  answer!.resume();
});

test("[ASK4] a call to a service that falls silent times out, before its answer and in the middle of it", async () => {
  const ask = serviceHttp({ silenceMsMax: 1_000 });
  const url = await serving(createServer(({ url: path }, response) => void (path === "/middle" && response.write("so far"))));
  expect(await ask(url, QUESTION, undefined)).toBeUndefined();
  const answer = await ask(new URL("/middle", url), QUESTION, undefined);
  await expect(answer!.toArray()).rejects.toThrow("aborted");
});
