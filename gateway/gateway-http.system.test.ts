/** Requests over the HTTP API of a gateway. The document service is a plain HTTP server of this test. */

import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, connect as connectTcp } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { SignJWT } from "jose";
import { connect, type NatsConnection } from "nats";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocket } from "ws";

import { encodeJson } from "../shared/bus/json-messages.ts";
import { subjectsOf } from "../shared/bus/subjects.ts";
import { readSettings } from "../shared/settings/settings.ts";
import { sharedSettings } from "../shared/settings/common-settings.ts";
import { SILENT_LOG } from "../shared/testing/silent-log.ts";
import { type RealNats, startRealNats, until } from "../test/contract/real-nats.ts";
import { gatewaySettings } from "./config.ts";
import { startGateway } from "./main.ts";

const SECRET = "a secret of at least 32 bytes, for tests only";
const snapshot = new Uint8Array(3_000_000).map((_, index) => index % 251);

let nats: RealNats;
let natsConnection: NatsConnection;
let gateway: Awaited<ReturnType<typeof startGateway>>;
let documents: Server;
let heart: NodeJS.Timeout;
let folder: string;
let address: string;
const asked: { url: string; internal: string; tenant: string }[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "coroom-static-"));
  mkdirSync(join(folder, "site", "assets"), { recursive: true });
  writeFileSync(join(folder, "secret.txt"), "secret");
  writeFileSync(join(folder, "site", "index.html"), "<h1>demo</h1>");
  writeFileSync(join(folder, "site", "assets", "app-1a2b.js"), "run()");
  symlinkSync(join(folder, "secret.txt"), join(folder, "site", "link.txt"));

  nats = await startRealNats();
  natsConnection = await connect({ servers: nats.url });
  documents = createServer(serveDocument).listen(0, "127.0.0.1");
  const flags = {
    environment: "http",
    natsUrl: nats.url,
    port: "0",
    jwtSecret: SECRET,
    internalSecret: "between us",
    allowedOrigins: "https://app.example",
    staticDir: join(folder, "site"),
    snapshotBurst: "1000",
    snapshotSharedMs: "0",
  };
  const config = { ...readSettings({ ...sharedSettings, ...gatewaySettings }, { flags, env: {} }), serverSilenceMsMax: 300 };
  gateway = await startGateway(config, {
    log: SILENT_LOG,
    registry: new Registry(),
    routes: [{ method: "get", path: "/demo/hello", answer: ({ query }) => ({ status: 200, body: `hello ${query.get("name")}` }) }],
  });
  address = `http://127.0.0.1:${gateway.port}`;
});
afterAll(async () => {
  clearInterval(heart);
  await gateway.stop();
  await natsConnection.close();
  documents.close();
  await nats.stop();
  rmSync(folder, { recursive: true });
});

function serveDocument(question: IncomingMessage, response: ServerResponse): void {
  asked.push({
    url: question.url!,
    internal: String(question.headers["x-coroom-internal"]),
    tenant: String(question.headers["x-coroom-tenant"]),
  });
  const headers = {
    "etag": '"2-40"',
    "x-coroom-seq": "40",
    "x-coroom-epoch": "2",
    "x-coroom-last-edit": "annannannannann1.7",
    "content-type": "application/octet-stream",
  };
  if (question.url?.includes("empty"))
    return void response.writeHead(404, { "content-type": "application/json" }).end('{"error":"no-document"}');
  if (question.headers["if-none-match"] === '"2-40"') return void response.writeHead(304, headers).end();
  response.writeHead(200, headers).end(snapshot);
}

function bearer(claims: object = {}): Promise<string> {
  return new SignJWT({ tenant: "acme", rooms: ["notes/*", "empty"], rights: ["read"], ...claims })
    .setProtectedHeader({ alg: "HS256" })
    .setSubject("ann")
    .setExpirationTime("1h")
    .sign(new TextEncoder().encode(SECRET));
}

async function get(path: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${address}${path}`, { headers });
}

test("[HTTP1] a snapshot is unavailable without a document service, and arrives completely with one", async () => {
  const authorization = `Bearer ${await bearer()}`;
  const path = "/v1/rooms/notes%2F7/snapshot";
  expect((await get(path, { authorization })).status).toBe(503);

  const { port } = documents.address() as AddressInfo;
  heart = setInterval(
    () =>
      natsConnection.publish(
        subjectsOf("http").documents,
        encodeJson({ service: "d1", url: `http://127.0.0.1:${port}`, time: Date.now() }),
      ),
    50,
  );
  const answer = await until(async () => {
    const response = await get(path, { authorization, origin: "https://app.example" });
    return response.status === 200 && response;
  }, "a snapshot");
  expect(
    Object.fromEntries(
      ["x-coroom-seq", "x-coroom-epoch", "x-coroom-last-edit", "etag", "access-control-allow-origin"].map((name) => [
        name,
        answer.headers.get(name),
      ]),
    ),
  ).toEqual({
    "x-coroom-seq": "40",
    "x-coroom-epoch": "2",
    "x-coroom-last-edit": "annannannannann1.7",
    "etag": '"2-40"',
    "access-control-allow-origin": "https://app.example",
  });
  for (const name of ["x-coroom-seq", "x-coroom-last-edit"]) expect(answer.headers.get("access-control-expose-headers")).toContain(name);
  expect(Buffer.from(await answer.arrayBuffer()).equals(Buffer.from(snapshot))).toBe(true);
  expect(asked.at(-1)).toEqual({ url: path, internal: "between us", tenant: "acme" });
});

test("[HTTP1] the gateway asks another document service when the first cannot serve the room", async () => {
  const standby = createServer((_, response) => void response.writeHead(503).end()).listen(0, "127.0.0.1");
  await once(standby, "listening");
  try {
    const { port } = standby.address() as AddressInfo;
    const before = asked.length;
    natsConnection.publish(subjectsOf("http").documents, encodeJson({ service: "d2", url: `http://127.0.0.1:${port}`, time: Date.now() }));
    await natsConnection.flush();
    const authorization = `Bearer ${await bearer()}`;
    for (let time = 0; time < 4; time++) expect((await get("/v1/rooms/notes%2F7/snapshot", { authorization })).status).toBe(200);
    expect(asked.length).toBe(before + 4);
  } finally {
    standby.close();
  }
});

test("[HTTP2] a snapshot that the client already has is not sent again", async () => {
  const response = await get(`/v1/rooms/notes%2F7/snapshot?token=${await bearer()}`, { "if-none-match": '"2-40"' });
  expect([response.status, response.headers.get("x-coroom-seq"), (await response.arrayBuffer()).byteLength]).toEqual([304, "40", 0]);
});

test("[HTTP32] a token of almost 16 KiB, which HELLO accepts, also fetches the snapshot, and long cookies do not prevent it", async () => {
  const rooms = Array.from({ length: 250 }, (_, project) => `projects/${project}/documents/with-a-long-name`);
  const token = await bearer({ rooms: [...rooms, "notes/7"] });
  expect(token.length).toBeGreaterThan(14_000);
  const path = "/v1/rooms/notes%2F7/snapshot";
  for (const headers of [
    { authorization: `Bearer ${token}` },
    { authorization: `Bearer ${await bearer()}`, cookie: `a=${"x".repeat(8_000)}` },
  ])
    expect((await get(path, headers)).status).toBe(200);
  expect((await get(path, { cookie: `a=${"x".repeat(25_000)}` })).status).toBe(431);
});

test("[HTTP3] only a token that opens the room gets a snapshot, and every refusal has its status and error code", async () => {
  const cases: [string, Record<string, string>, number, string][] = [
    ["/v1/rooms/notes%2F7/snapshot", {}, 401, "no-token"],
    ["/v1/rooms/notes%2F7/snapshot", { authorization: "Bearer nonsense" }, 401, "token-refused"],
    ["/v1/rooms/other/snapshot", { authorization: `Bearer ${await bearer()}` }, 403, "not-allowed"],
    ["/v1/rooms/notes%2F7/snapshot", { authorization: `Bearer ${await bearer({ rights: ["write"] })}` }, 403, "not-allowed"],
    ["/v1/rooms/%00/snapshot", { authorization: `Bearer ${await bearer({ rooms: ["*"] })}` }, 404, "no-such-room"],
    ["/v1/rooms/%zz/snapshot", { authorization: `Bearer ${await bearer({ rooms: ["*"] })}` }, 404, "no-such-room"],
    ["/v1/rooms/empty/snapshot", { authorization: `Bearer ${await bearer()}` }, 404, "no-document"],
  ];
  for (const [path, headers, status, error] of cases) {
    const response = await get(path, headers);
    expect([path, response.status, ((await response.json()) as { error: string }).error]).toEqual([path, status, error]);
  }
});

test("[HTTP4] health, readiness, metrics and additional routes answer", async () => {
  expect((await get("/healthz")).status).toBe(200);
  expect((await get("/readyz")).status).toBe(200);
  expect(await (await get("/metrics")).text()).toContain("coroom_gateway_connections 0");
  expect(await (await get("/demo/hello?name=Ann")).text()).toBe("hello Ann");
});

test("[HTTP5] a gateway that cannot reach NATS reports that it is not ready", async () => {
  await nats.crash(() => until(async () => (await get("/readyz")).status === 503, "readiness to end"));
  await until(async () => (await get("/readyz")).status === 200, "readiness to come back");
});

test("[HTTP6] files are served with their types, and no file outside their folder is served", async () => {
  const page = await get("/");
  expect([page.status, page.headers.get("content-type"), await page.text()]).toEqual([200, "text/html; charset=utf-8", "<h1>demo</h1>"]);
  const script = await get("/assets/app-1a2b.js");
  expect([script.headers.get("content-type"), script.headers.get("cache-control")]).toEqual([
    "text/javascript; charset=utf-8",
    "public, max-age=31536000, immutable",
  ]);
  for (const path of ["/nothing", "/assets", "/link.txt", "/..%2fsecret.txt", "/assets/..%2f..%2fsecret.txt", "/%00", "/%zz"]) {
    expect([path, (await get(path)).status]).toEqual([path, 404]);
  }
  expect(await raw("/../secret.txt")).toBe(404); // Sent on a bare socket, because browsers normalise such a path.
});

test("[HTTP7] a page of an allowed origin may send requests with a token", async () => {
  const preflight = (origin: string) =>
    fetch(`${address}/v1/rooms/empty/snapshot`, {
      method: "OPTIONS",
      headers: { origin, "access-control-request-method": "GET", "access-control-request-headers": "authorization" },
    });
  expect((await preflight("https://app.example")).headers.get("access-control-allow-headers")).toContain("authorization");
  expect((await preflight("https://evil.example")).headers.get("access-control-allow-origin")).toBeNull();
});

test("[HTTP9] a wrong method is answered with the right ones, and an unknown path with 404", async () => {
  const ask = async (path: string, method: string): Promise<unknown[]> => {
    const response = await fetch(`${address}${path}`, { method });
    return [response.status, response.headers.get("allow"), ((await response.json()) as { error: string }).error];
  };
  expect(await ask("/v1/rooms/notes/text", "POST")).toEqual([405, "GET, HEAD", "method-not-allowed"]);
  expect(await ask("/v1/rooms/notes/document", "PATCH")).toEqual([405, "GET, HEAD, PUT", "method-not-allowed"]);
  expect(await ask("/healthz", "DELETE")).toEqual([405, "GET, HEAD", "method-not-allowed"]);
  expect(await ask("/v1/rooms/notes/activities", "GET"), "beside the files of a folder").toEqual([405, "POST", "method-not-allowed"]);
  expect(await ask("/v1/rooms/notes/nothing", "PUT")).toEqual([404, null, "not-found"]);
  expect(await ask("/v1/connect", "GET"), "where a proxy passes no upgrade on").toEqual([426, null, "upgrade-required"]);
});

test("[HTTP35] a WebSocket opens on every path, and HTTP requests there receive the answer of their route", async () => {
  for (const [path, status] of [
    ["/", 200],
    ["/team/notes", 404],
    ["/assets/app-1a2b.js", 200],
    ["/v1/connect", 426],
    ["/healthz", 200],
    ["/v1/rooms/notes/document", 401],
  ] as const) {
    const socket = new WebSocket(`${address.replace("http", "ws")}${path}`);
    await once(socket, "open");
    socket.terminate();
    expect((await get(path)).status, path).toBe(status);
  }
});

test("[HTTP11] HEAD is answered like GET, without the body", async () => {
  for (const path of ["/healthz", "/readyz", "/", "/v1/rooms/notes/text", "/v1/openapi.json"]) {
    const [head, get] = [await fetch(`${address}${path}`, { method: "HEAD" }), await fetch(`${address}${path}`)];
    const body = await get.arrayBuffer();
    expect([path, head.status, head.headers.get("content-type"), await head.text()]).toEqual([
      path,
      get.status,
      get.headers.get("content-type"),
      "",
    ]);
    if (head.headers.get("content-encoding") === null)
      expect([path, head.headers.get("content-length")]).toEqual([path, String(body.byteLength)]);
  }
});

test("[HTTP10] the answer to HEAD has no body, so that the next answer on the connection follows directly", async () => {
  const { hostname, port } = new URL(address);
  const socket = connectTcp(Number(port), hostname);
  let received = "";
  socket.on("data", (data) => (received += data.toString()));
  const answers = (): string[] => received.split("\r\n\r\n");
  for (const [place, [method, path]] of [
    ["HEAD", "/v1/nothing"],
    ["HEAD", "/healthz"],
    ["GET", "/healthz"],
  ].entries()) {
    socket.write(`${method} ${path} HTTP/1.1\r\nHost: h\r\n\r\n`);
    await until(() => answers().length > place + 1, "the answer");
  }
  expect(answers().slice(0, 3)).toEqual([
    expect.stringMatching(/^HTTP\/1.1 404 /),
    expect.stringMatching(/^HTTP\/1.1 200 /),
    expect.stringMatching(/^HTTP\/1.1 200 /),
  ]);
  socket.destroy();
});

test("[HTTP8] in production only Prometheus gets the metrics, with a secret that is not valid elsewhere", async () => {
  const internalSecret = "between us, and at least 32 bytes long";
  const operatorSecret = "of operators, and at least 32 bytes long";
  const metricsSecret = "of Prometheus";
  const flags = {
    environment: "http",
    natsUrl: nats.url,
    port: "0",
    jwtSecret: SECRET,
    internalSecret,
    operatorSecret,
    metricsSecret,
    allowedOrigins: "https://app.example",
    production: "true",
    drainMsMax: "0",
  };
  const guarded = await startGateway(
    { ...readSettings({ ...sharedSettings, ...gatewaySettings }, { flags, env: {} }), serverSilenceMsMax: 300 },
    { log: SILENT_LOG, registry: new Registry() },
  );
  try {
    const metrics = (headers: Record<string, string>) => fetch(`http://127.0.0.1:${guarded.port}/metrics`, { headers });
    expect((await metrics({})).status).toBe(401);
    expect((await metrics({ authorization: `Bearer ${await bearer({ rights: ["admin"] })}` })).status).toBe(401);
    for (const secret of [internalSecret, operatorSecret]) expect((await metrics({ authorization: `Bearer ${secret}` })).status).toBe(401);
    expect((await metrics({ authorization: `Bearer ${metricsSecret}` })).status).toBe(200);
    const fleet = (secret: string) =>
      fetch(`http://127.0.0.1:${guarded.port}/v1/admin/fleet`, { headers: { authorization: `Bearer ${secret}` } });
    for (const secret of [internalSecret, metricsSecret]) expect((await fleet(secret)).status).toBe(401);
    expect((await fleet(operatorSecret)).status).toBe(200);
    expect((await fetch(`http://127.0.0.1:${guarded.port}/readyz`)).status).toBe(200); // Load balancers need no secret.
  } finally {
    await guarded.stop();
  }
});

function raw(path: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    request({ host: "127.0.0.1", port: gateway.port, path }, (response) => {
      response.resume();
      resolve(response.statusCode);
    })
      .on("error", reject)
      .end();
  });
}
