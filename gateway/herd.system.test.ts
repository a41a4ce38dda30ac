/**
 * A herd at a gateway's door: bursts of thousands, many of which are gone before their turn. Whoever stays is let in,
 * and no line breaks that nobody broke. On bare sockets: a WebSocket client would cost more than the gateway.
 */

import { connect, type Socket } from "node:net";

import { expect, test } from "vitest";

import { Prng } from "../shared/collections/prng.ts";
import { encodeFrame } from "../shared/wire/codec.ts";
import { until } from "../test/contract/real-nats.ts";
import { gatewayRig, metric, tokenOf } from "./testing/gateway-rig.ts";

const rig = gatewayRig("herd", { helloMsMax: "60000", connectQueueMax: "2000", abusePointsMax: "1000000" });
const SEED = 20_260_702;
const BURSTS = 8;
const BURST = 250;
const WAIT_MS_MAX = 60_000;

type Comer = { readonly socket: Socket; upgraded: boolean; answered: boolean; /** By the other side. */ ended: boolean };

/** Says HELLO once it is upgraded. `header`: what it says of its connection. */
function come(port: number, hello: Uint8Array, header = "Upgrade"): Comer {
  const socket = connect(port, "127.0.0.1");
  const comer: Comer = { socket, upgraded: false, answered: false, ended: false };
  socket.on("data", (bytes) => {
    if (comer.upgraded) comer.answered = true;
    const head = bytes.toString("latin1");
    const end = head.indexOf("\r\n\r\n");
    if (comer.upgraded || !head.startsWith("HTTP/1.1 101 ")) return;
    [comer.upgraded, comer.answered] = [true, end + 4 < bytes.length];
    socket.write(masked(hello));
  });
  socket.on("end", () => (comer.ended = true));
  socket.on("error", () => (comer.ended = true));
  socket.write(
    `GET /v1/connect HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: ${header}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
  );
  return comer;
}

/** A binary frame of a client, with a mask of zeros. */
function masked(payload: Uint8Array): Uint8Array {
  return Uint8Array.of(0x82, 0xfe, payload.length >> 8, payload.length & 255, 0, 0, 0, 0, ...payload);
}

test("[DOOR1] of 2,000 that come in bursts half are gone before their turn; all others are let in, and no line breaks", async () => {
  const address = await rig.start({ connectsPerSecondMax: "500" });
  const port = Number(address.split(":")[1]);
  const hello = encodeFrame({ type: "hello", version: 1, token: await tokenOf("ann"), agent: "test" });
  const prng = new Prng(SEED);
  const [staying, leaving]: [Comer[], Comer[]] = [[], []];
  for (let burst = 0; burst < BURSTS; burst++) {
    for (let index = 0; index < BURST; index++) (prng.chance(0.5) ? staying : leaving).push(come(port, hello));
    await new Promise((resolve) => setTimeout(resolve, prng.below(200)));
    for (const { socket } of leaving) if (prng.chance(0.7)) socket.destroy();
  }
  for (const { socket } of leaving) socket.destroy();
  await until(() => staying.every(({ answered }) => answered), "everybody who stayed to be welcomed", WAIT_MS_MAX);
  await until(
    async () => (await metric(address, "coroom_gateway_connections")) === staying.length,
    "those who left to be forgotten",
    WAIT_MS_MAX,
  );
  await until(async () => (await metric(address, "coroom_gateway_connects_waiting")) === 0, "nobody to wait", WAIT_MS_MAX);
  expect(staying.filter(({ ended }) => ended)).toHaveLength(0);
  for (const { socket } of staying) socket.destroy();
  await until(async () => (await metric(address, "coroom_gateway_connections")) === 0, "the rest to be forgotten", WAIT_MS_MAX);
});

test("[DOOR2] a request that asks for its line to be closed is upgraded like any other, also when it has to wait", async () => {
  const address = await rig.start({ connectsPerSecondMax: "20" });
  const hello = encodeFrame({ type: "hello", version: 1, token: await tokenOf("ann"), agent: "test" });
  const crowd = Array.from({ length: 10 }, () => come(Number(address.split(":")[1]), hello, "close"));
  await until(() => crowd.every(({ answered }) => answered), "everybody to be welcomed", WAIT_MS_MAX);
  expect(crowd.filter(({ ended }) => ended)).toHaveLength(0);
  for (const { socket } of crowd) socket.destroy();
  await until(async () => (await metric(address, "coroom_gateway_connections")) === 0, "them to be forgotten", WAIT_MS_MAX);
});
