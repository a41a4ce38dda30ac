/** Sockets that never become clients. Each stage of a connection has a deadline and costs little memory until the deadline. */

import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { generateKeyPair, SignJWT } from "jose";
import { expect, test } from "vitest";

import { messagesOf } from "../shared/wire/parts.ts";
import { until } from "../test/contract/real-nats.ts";
import { gatewayRig, metric } from "./testing/gateway-rig.ts";
import type { WireClient } from "./testing/wire-client.ts";

const rig = gatewayRig("halfopen", { helloMsMax: "1000", abusePointsMax: "1000000" });
/** uWebSockets.js closes an incomplete request after ten seconds, and checks every four seconds. */
const REQUEST_MS_MAX = 60_000;
const EACH = 200;
const DRIP_MS = 300;
/** Both ends of all sockets, because clients and gateway share this process. */
const GROWTH_BYTES_MAX = 60 * 1024 ** 2;

/** How far each request gets, and the bytes that it then repeats slowly. */
const WAYS: Readonly<Record<string, { readonly head: string; readonly drip: string }>> = {
  "sends nothing": { head: "", drip: "" },
  "stops within a header": { head: "GET /v1/connect HTTP/1.1\r\nHost: h\r\nX-Slow: ", drip: "" },
  "never ends a header": { head: "GET /v1/connect HTTP/1.1\r\nHost: h\r\nX-Slow: ", drip: "x" },
  "never ends its headers": { head: "GET /v1/connect HTTP/1.1\r\nHost: h\r\n", drip: "X: y\r\n" },
  "never ends its body": { head: "POST /v1/admin/kick HTTP/1.1\r\nHost: h\r\nContent-Length: 60000\r\n\r\n", drip: "x" },
};

test("[HALF1] a request that never completes is cut, however slowly it sends, and many of them cost little", async () => {
  const address = await rig.start();
  const before = process.memoryUsage().rss;
  const ends = new Map<string, number>(Object.keys(WAYS).map((way) => [way, 0]));
  const sockets: Socket[] = [];
  const drips: NodeJS.Timeout[] = [];
  for (const [way, { head, drip }] of Object.entries(WAYS)) {
    for (let index = 0; index < EACH; index++) {
      const socket = connect(Number(address.split(":")[1]), "127.0.0.1");
      socket.on("error", () => {}); // A write to a closed connection. The close event follows.
      socket.once("close", () => ends.set(way, ends.get(way)! + 1));
      socket.write(head);
      if (drip !== "") drips.push(setInterval(() => socket.writable && socket.write(drip), DRIP_MS));
      sockets.push(socket);
    }
  }
  await until(
    () => [...ends.values()].every((count) => count === EACH),
    `all to be cut; so far ${JSON.stringify([...ends])}`,
    REQUEST_MS_MAX,
  );
  for (const drip of drips) clearInterval(drip);
  expect(process.memoryUsage().rss - before).toBeLessThan(GROWTH_BYTES_MAX);
  expect(await metric(address, "coroom_gateway_connects_total")).toBe(0);
});

const CHUNKED = "POST /v1/admin/kick HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
const TOO_LARGE = `11000\r\n${"x".repeat(0x11000)}\r\n`;

test.for([
  ["from the start", CHUNKED, ""],
  ["after it was too large", CHUNKED + TOO_LARGE, "connection: close"],
] as const)("[HALF5] a request whose body comes in chunks of one byte ends, and is counted: %s", async ([, head, answer]) => {
  const address = await rig.start();
  const socket = connect(Number(address.split(":")[1]), "127.0.0.1");
  socket.on("error", () => {}); // A write to a closed connection.
  let [received, isClosed] = ["", false];
  socket.once("close", () => (isClosed = true));
  socket.on("data", (bytes) => (received += bytes.toString().toLowerCase()));
  socket.write(head);
  await until(() => received.includes(answer), "the answer");
  socket.write("1\r\nx\r\n".repeat(50_000));
  await until(() => isClosed, "it to be closed");
  expect(await metric(address, 'coroom_gateway_limits_reached_total{limit="body"}')).toBe(1);
});

const UPGRADE = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\nOrigin: http://evil";

test.for([
  ["a route", "GET /healthz", ""],
  ["an unknown path", "DELETE /nothing", ""],
  ["a method that is not allowed", "PUT /healthz", "Content-Length: 0"],
  ["a preflight", "OPTIONS /v1/rooms", ""],
  ["an upgrade of another origin", "GET /", UPGRADE],
] as const)("[HALF6] a connection that sends requests without waiting for answers is closed: %s", async ([, line, headers]) => {
  const address = await rig.start({ allowedOrigins: "http://app" });
  const socket = connect(Number(address.split(":")[1]), "127.0.0.1");
  socket.on("error", () => {}); // A write to a closed connection.
  let [received, isClosed] = ["", false];
  socket.once("close", () => (isClosed = true));
  socket.on("data", (bytes) => (received += bytes.toString()));
  socket.write(`${line} HTTP/1.1\r\nHost: h\r\n${headers}${headers === "" ? "" : "\r\n"}\r\n`.repeat(1_000));
  await until(() => isClosed, "it to be closed");
  expect(received.split("HTTP/1.1 ").length - 1).toBeLessThan(1_000);
});

test("[HALF2] a WebSocket that sends no HELLO is closed with its code, and counted", async () => {
  const address = await rig.start();
  const silent = await Promise.all(Array.from({ length: 20 }, () => rig.connect(address)));
  for (const client of silent) expect((await client.end()).code).toBe(4007);
  expect(await metric(address, 'coroom_gateway_closes_total{close="helloTimeout"}')).toBe(20);
  await until(async () => (await metric(address, "coroom_gateway_connections")) === 0, "them to be forgotten");
});

test("[HALF3] a HELLO whose signing keys never arrive is refused with a time to retry", async () => {
  const held: Socket[] = [];
  const keys = createServer((socket) => void held.push(socket));
  await new Promise<void>((resolve) => void keys.listen(0, "127.0.0.1", resolve));
  const address = await rig.start({ jwtSecret: "", jwksUrl: `http://127.0.0.1:${(keys.address() as AddressInfo).port}/keys` });
  const { privateKey } = await generateKeyPair("ES256");
  const token = await new SignJWT({ rooms: ["*"], rights: ["read"] })
    .setProtectedHeader({ alg: "ES256" })
    .setSubject("ann")
    .setExpirationTime("1h")
    .sign(privateKey);
  const client = await rig.connect(address);
  client.send({ type: "hello", version: 1, token, agent: "test" });
  expect((await client.end()).code).toBe(4005);
  for (const socket of held) socket.destroy();
  await new Promise((resolve) => void keys.close(resolve));
});

test("[HALF4] unfinished messages and frames of clients with valid tokens use limited memory, and at the limit the oldest frame is dropped", async () => {
  const partialBytesMax = 2_000_000;
  const address = await rig.start({ partialBytesMax: String(partialBytesMax), helloMsMax: "60000" });
  const before = process.memoryUsage().rss;
  const clients = await Promise.all(Array.from({ length: 200 }, (_, index) => rig.greet(address, `hostile-${index}`)));
  for (const client of clients) client.sendUnfinished(new Uint8Array(2 * 16_384 - 1)); // The most that the gateway holds.
  await until(async () => (await metric(address, "coroom_gateway_connections")) === clients.length, "all to stay");
  for (const client of clients) client.sendUnfinished(new Uint8Array(65_536));
  for (const client of clients) expect((await client.end()).code).toBe(1006);
  expect(process.memoryUsage().rss - before).toBeLessThan(GROWTH_BYTES_MAX);

  const unfinished = messagesOf(new Uint8Array(700_000), { frameBytesMax: 16_384, partedFrameBytesMax: 786_432 }).slice(0, -1);
  const hostile: WireClient[] = [];
  for (let index = 0; index < 6; index++) {
    const client = await rig.greet(address, `slow-${index}`);
    await client.next("welcome");
    for (const part of unfinished) client.sendBytes(part);
    client.send({ type: "ping", nonce: index });
    await client.next("pong");
    hostile.push(client);
  }
  for (const oldest of hostile.slice(0, 4)) expect((await oldest.end()).code).toBe(4005);
  expect(hostile.slice(4).map(({ closed }) => closed)).toEqual([undefined, undefined]);
  expect(await metric(address, "coroom_gateway_partial_bytes")).toBeLessThanOrEqual(partialBytesMax);
  expect(await metric(address, 'coroom_gateway_limits_reached_total{limit="partial-frames"}')).toBe(4);
  const honest = await rig.greet(address, "honest");
  await honest.next("welcome");
  honest.send({ type: "renew", token: "x".repeat(100_000) });
  expect((await honest.end()).code, "the frame arrived").toBe(4101);
});
