/**
 * A live gateway against hostile clients: noise, almost valid frames, floods, half frames, endless upgrades. The seed
 * decides what each client does. Meanwhile every edit of the honest clients is acknowledged and reaches all of them.
 */

import { connect as connectTcp, type Socket } from "node:net";
import { SignJWT } from "jose";
import { connect, type NatsConnection } from "nats";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test } from "vitest";

import { subjectsOf } from "../shared/bus/subjects.ts";
import { Prng } from "../shared/collections/prng.ts";
import { roomKey, type RoomId, type TenantId } from "../shared/ids.ts";
import type { Running } from "../shared/process/lifecycle.ts";
import { sharedSettings } from "../shared/settings/common-settings.ts";
import { readSettings } from "../shared/settings/settings.ts";
import { SILENT_LOG } from "../shared/testing/silent-log.ts";
import vectors from "../shared/wire/vectors.json" with { type: "json" };
import { type RealNats, startRealNats, until } from "../test/contract/real-nats.ts";
import { almostRight } from "../test/wire/mutate.ts";
import { bytesOf } from "../test/wire/vectors.ts";
import { gatewaySettings } from "./config.ts";
import { startGateway } from "./main.ts";
import { FakeLog, FakeOwner } from "./testing/fake-owner.ts";
import { WireClient } from "./testing/wire-client.ts";

const SECRET = "a secret of at least 32 bytes, for tests only";
const ROOM = "notes";
const frames = vectors.filter(({ frame }) => frame !== null).map(({ hex }) => bytesOf(hex));
const SEED = 20_260_701;
const STRANGERS = 160;
const AT_ONCE = 8;
const EDITS_EACH = 60;
/** Maximum growth of the process, sockets of the hostile clients included. */
const GROWTH_BYTES_MAX = 200 * 1024 ** 2;

let nats: RealNats;
let natsConnection: NatsConnection;
let gateway: Running & { readonly port: number };
let owner: FakeOwner;

beforeAll(async () => {
  nats = await startRealNats();
  natsConnection = await connect({ servers: nats.url });
  owner = new FakeOwner(natsConnection, subjectsOf("hostile"), new FakeLog(), roomKey("default" as TenantId, ROOM as RoomId), "rs-1");
  const flags = {
    environment: "hostile",
    natsUrl: nats.url,
    port: "0",
    jwtSecret: SECRET,
    drainMsMax: "0",
    helloMsMax: "5000",
    clientAddressHeader: "x-forwarded-for",
    connectionsPerIpMax: "20",
  };
  const config = { ...readSettings({ ...sharedSettings, ...gatewaySettings }, { flags, env: {} }), serverSilenceMsMax: 300 };
  gateway = await startGateway(config, { log: SILENT_LOG, registry: new Registry() });
});
afterAll(async () => {
  owner.stop();
  await gateway.stop();
  await natsConnection.close();
  await nats.stop();
});

const url = (): string => `ws://127.0.0.1:${gateway.port}/v1/connect`;

function tokenOf(user: string): Promise<string> {
  return new SignJWT({ rooms: ["*"], rights: ["read", "write"] })
    .setProtectedHeader({ alg: "HS256" })
    .setSubject(user)
    .setExpirationTime("1h")
    .sign(new TextEncoder().encode(SECRET));
}

async function metric(sample: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${gateway.port}/metrics`)).text();
  return Number(
    text
      .split("\n")
      .find((each) => each.startsWith(`${sample} `))
      ?.split(" ")[1] ?? 0,
  );
}

/** Sends edits, each after the ack of the previous one. */
async function typist(name: string, isOver: () => boolean): Promise<{ client: WireClient; edits: number }> {
  const client = await WireClient.greet(url(), await tokenOf(name));
  const { channel } = await client.join(ROOM, `${name}-${name}-key`);
  let counter = 0;
  while (counter < EDITS_EACH || !isOver()) {
    counter += 1;
    client.edit(channel, counter, `${name} ${counter}`, counter - 1);
    await client.until(
      () =>
        client.received.some(
          (frame) =>
            (frame.type === "ack" && frame.counter === counter) ||
            (frame.type === "committed" &&
              frame.edits.edits.some((edit) => new TextDecoder().decode(edit.payload) === `${name} ${counter}`)),
        ),
      `the ack of ${name}'s edit ${counter}`,
    );
    await new Promise((resolve) => setTimeout(resolve, 120)); // Stays within the rate of a connection.
  }
  return { client, edits: counter };
}

type Stranger = (prng: Prng, seed: number, from: string) => Promise<void>;

/** Sorted by increasing hostility. Each hostile client ends by itself. */
const STRANGERS_WAYS: Readonly<Record<string, Stranger>> = {
  "almost right before hello": async (_, seed, from) => throwAt(await opened(from), [...almostRight(seed, frames, 40)]),
  "almost right after hello": async (_, seed, from) => throwAt(await greeted(from, `stranger-${seed}`), [...almostRight(seed, frames, 40)]),
  "almost right in a room": async (_, seed, from) => {
    const client = await greeted(from, `stranger-${seed}`);
    void client?.join(ROOM, `stranger-${seed}`).catch(() => {});
    throwAt(client, [
      ...almostRight(
        seed,
        frames.filter((bytes) => bytes[0]! < 0x80 && bytes[0] !== 0x03),
        60,
      ),
    ]);
  },
  "a flood": async (prng, seed, from) => {
    const client = await greeted(from, `flooder-${seed % 3}`);
    const ping = Uint8Array.of(0x07, 0x01);
    throwAt(
      client,
      Array.from({ length: 1_000 }, () => (prng.chance(0.5) ? ping : new Uint8Array(1 + prng.below(4_000)).fill(0x7f))),
    );
  },
  "frames far too large": async (prng, _, from) => throwAt(await opened(from), [new Uint8Array(1_000_000 + prng.below(3_000_000))]),
  "half a frame": (prng) =>
    raw(
      `GET /v1/connect HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
      Uint8Array.of(0x82, 0xfe, 0xff, 0xff, 1, 2, 3, 4, prng.below(256)),
    ),
  "no HTTP at all": (prng) =>
    raw(
      "",
      Uint8Array.from({ length: 1 + prng.below(2_000) }, () => prng.below(256)),
    ),
};

async function opened(from: string): Promise<WireClient | undefined> {
  return WireClient.open(url(), { "x-forwarded-for": from }).catch(() => undefined); // A refusal is correct too.
}

async function greeted(from: string, user: string): Promise<WireClient | undefined> {
  const client = await opened(from);
  client?.send({ type: "hello", version: 1, token: await tokenOf(user), agent: "stranger" });
  return client;
}

function throwAt(client: WireClient | undefined, all: readonly Uint8Array[]): void {
  for (const bytes of all) if (client?.closed === undefined) client?.sendBytes(bytes);
  if (client !== undefined) strangers.push(client);
}

/** Sends these bytes on a bare socket, and nothing more until the gateway closes it. */
function raw(text: string, bytes: Uint8Array): Promise<void> {
  const socket = connectTcp(gateway.port, "127.0.0.1");
  socket.on("error", () => {});
  socket.write(text);
  socket.write(bytes);
  held.push(socket);
  return new Promise((resolve) => void socket.once("connect", () => resolve()));
}
const held: Socket[] = [];
const strangers: WireClient[] = [];

/** An upgrade with endless headers: the test adds one byte per round. */
function slowLoris(): Socket {
  const socket = connectTcp(gateway.port, "127.0.0.1");
  socket.on("error", () => {});
  socket.write("GET /v1/connect HTTP/1.1\r\nHost: h\r\nX-Slow: ");
  return socket;
}

test("[HOS1] hostile clients do not affect honest clients, and the gateway keeps nothing of them", async () => {
  const before = process.memoryUsage().rss;
  let isOver = false;
  const typing = ["ann", "bob", "cid"].map((name) => typist(name, () => isOver));
  await until(async () => (await metric("coroom_gateway_connections")) === 3, "the honest people");

  const prng = new Prng(SEED);
  const lorises = Array.from({ length: 50 }, slowLoris);
  const ways = Object.values(STRANGERS_WAYS);
  for (let number = 0; number < STRANGERS; number += AT_ONCE) {
    const some = Array.from({ length: AT_ONCE }, (_, index) =>
      ways[prng.below(ways.length)]!(prng, SEED + number + index, `203.0.113.${prng.below(20)}`),
    );
    await Promise.all(some);
    for (const loris of lorises) if (!loris.destroyed) loris.write("x");
  }
  isOver = true;
  const people = await Promise.all(typing);

  const edits = people.reduce((sum, person) => sum + person.edits, 0);
  await until(() => people.every(({ client }) => seqsOf(client).length >= edits), "everybody to have everything");
  for (const { client } of people) {
    expect(client.closed).toBeUndefined();
    expect(client.received.filter(({ type }) => type === "nack" || type === "left" || type === "error")).toEqual([]);
    expect(seqsOf(client).slice(0, edits)).toEqual(Array.from({ length: edits }, (_, index) => index + 1)); // Each once, in order.
  }

  for (const socket of [...held, ...lorises]) socket.destroy();
  for (const client of strangers) client.close();
  await until(async () => (await metric("coroom_gateway_connections")) === people.length, "the strangers to be gone");
  await until(async () => (await metric("coroom_gateway_connects_waiting")) === 0, "an empty queue");
  expect(process.memoryUsage().rss - before).toBeLessThan(GROWTH_BYTES_MAX);
  expect(await metric('coroom_gateway_closes_total{close="badFrame"}')).toBeGreaterThan(10);
  expect(await metric('coroom_gateway_abuse_total{measure="hold-off",suspect="address"}')).toBeGreaterThan(0);
  for (const { client } of people) client.close();
});

/** Seqs of acks and committed frames, in the order of arrival. */
function seqsOf(client: WireClient): number[] {
  return client.received.flatMap((frame) => {
    if (frame.type === "ack") return Array.from({ length: frame.count }, (_, index) => frame.seq + index);
    return frame.type === "committed" ? frame.edits.edits.map((_, index) => frame.edits.firstSeq + index) : [];
  });
}
