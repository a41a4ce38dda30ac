/**
 * Bursts of thousands of connections, half of which leave before their turn. The gateway admits all others and breaks
 * no connection. The test uses bare sockets, because a WebSocket client would cost more than the gateway.
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

type Arrival = { readonly socket: Socket; upgraded: boolean; answered: boolean; /** Ended by the gateway. */ ended: boolean };

/** Sends HELLO after the upgrade. `header` is the value of the Connection header. */
function connectAndGreet(port: number, hello: Uint8Array, header = "Upgrade"): Arrival {
  const socket = connect(port, "127.0.0.1");
  const arrival: Arrival = { socket, upgraded: false, answered: false, ended: false };
  socket.on("data", (bytes) => {
    if (arrival.upgraded) arrival.answered = true;
    const head = bytes.toString("latin1");
    const end = head.indexOf("\r\n\r\n");
    if (arrival.upgraded || !head.startsWith("HTTP/1.1 101 ")) return;
    [arrival.upgraded, arrival.answered] = [true, end + 4 < bytes.length];
    socket.write(masked(hello));
  });
  socket.on("end", () => (arrival.ended = true));
  socket.on("error", () => (arrival.ended = true));
  socket.write(
    `GET /v1/connect HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: ${header}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
  );
  return arrival;
}

/** A binary frame of a client, with a mask of zeros. */
function masked(payload: Uint8Array): Uint8Array {
  return Uint8Array.of(0x82, 0xfe, payload.length >> 8, payload.length & 255, 0, 0, 0, 0, ...payload);
}

test("[DOOR1] 2,000 connections arrive in bursts and half leave early: all others are admitted, and no connection breaks", async () => {
  const address = await rig.start({ connectsPerSecondMax: "500", connectionsPerUserMax: "10000" });
  const port = Number(address.split(":")[1]);
  const hello = encodeFrame({ type: "hello", version: 1, token: await tokenOf("ann"), agent: "test" });
  const prng = new Prng(SEED);
  const [staying, leaving]: [Arrival[], Arrival[]] = [[], []];
  for (let burst = 0; burst < BURSTS; burst++) {
    for (let index = 0; index < BURST; index++) (prng.chance(0.5) ? staying : leaving).push(connectAndGreet(port, hello));
    await new Promise((resolve) => setTimeout(resolve, prng.below(200)));
    for (const { socket } of leaving) if (prng.chance(0.7)) socket.destroy();
  }
  for (const { socket } of leaving) socket.destroy();
  await until(() => staying.every(({ answered }) => answered), "all remaining clients to be welcomed", WAIT_MS_MAX);
  await until(
    async () => (await metric(address, "coroom_gateway_connections")) === staying.length,
    "clients that left to be forgotten",
    WAIT_MS_MAX,
  );
  await until(async () => (await metric(address, "coroom_gateway_connects_waiting")) === 0, "an empty queue", WAIT_MS_MAX);
  expect(staying.filter(({ ended }) => ended)).toHaveLength(0);
  for (const { socket } of staying) socket.destroy();
  await until(async () => (await metric(address, "coroom_gateway_connections")) === 0, "the rest to be forgotten", WAIT_MS_MAX);
});

test("[DOOR2] an upgrade request with the header Connection: close is accepted like any other, also after it waited", async () => {
  const address = await rig.start({ connectsPerSecondMax: "20" });
  const hello = encodeFrame({ type: "hello", version: 1, token: await tokenOf("ann"), agent: "test" });
  const arrivals = Array.from({ length: 10 }, () => connectAndGreet(Number(address.split(":")[1]), hello, "close"));
  await until(() => arrivals.every(({ answered }) => answered), "everybody to be welcomed", WAIT_MS_MAX);
  expect(arrivals.filter(({ ended }) => ended)).toHaveLength(0);
  for (const { socket } of arrivals) socket.destroy();
  await until(async () => (await metric(address, "coroom_gateway_connections")) === 0, "them to be forgotten", WAIT_MS_MAX);
});
