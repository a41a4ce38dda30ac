/** Presence end to end: gateways and a room server on a real nats-server, people on real sockets. */

import { Registry } from "prom-client";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

import { makeToken } from "../../cli/token.ts";
import { gatewaySettings } from "../../gateway/config.ts";
import { startGateway } from "../../gateway/main.ts";
import { roomServerSettings } from "../../room-server/config.ts";
import { startRoomServer } from "../../room-server/main.ts";
import { readSettings } from "../../shared/config.ts";
import type { Running } from "../../shared/lifecycle.ts";
import type { Log } from "../../shared/log.ts";
import { sharedSettings } from "../../shared/settings.ts";
import { CURSOR } from "../../shared/wire/presence.ts";
import { encodePoint } from "../../shared/wire/positions.ts";
import { type RealNats, startRealNats, until } from "../contract/real-nats.ts";
import { Onlooker } from "./onlooker.ts";

const SECRET = "a secret of at least 32 bytes, for tests only";
const ROOM = "notes";
const silent: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

let nats: RealNats;
let environment: string;
let runs = 0;
let running: Running[];
let people: Onlooker[];

beforeAll(async () => {
  nats = await startRealNats();
});
afterAll(() => nats.stop());
beforeEach(() => {
  environment = `presence${++runs}`;
  [running, people] = [[], []];
});
afterEach(async () => {
  for (const person of people) person.leave();
  for (const part of running.reverse()) await part.stop();
});

async function gateway(settings: Record<string, string> = {}): Promise<string> {
  const flags = { environment, natsUrl: nats.url, port: "0", jwtSecret: SECRET, drainMsMax: "0", ...settings };
  const config = { ...readSettings({ ...sharedSettings, ...gatewaySettings }, { flags, env: {} }), serverSilenceMsMax: 300 };
  const started = await startGateway(config, { log: silent, registry: new Registry() });
  running.push(started);
  return `ws://127.0.0.1:${started.port}`;
}

async function roomServer(settings: Record<string, string> = {}): Promise<void> {
  const flags = { environment, natsUrl: nats.url, roomSecret: SECRET, heartbeatMs: "50", ...settings };
  const config = readSettings({ ...sharedSettings, ...roomServerSettings }, { flags, env: {} });
  running.push(await startRoomServer(config, { log: silent, registry: new Registry() }));
}

async function enter(url: string, user: string, rights = ["read", "write"]): Promise<Onlooker> {
  const token = await makeToken({ room: [ROOM], user, name: user, rights, tenant: "default", ttl: 3600 }, SECRET);
  const person = await Onlooker.enter({ urls: [url], token, room: ROOM, clientKey: `${user}-client-key` });
  people.push(person);
  return person;
}

const at = (x: number, y: number) => ({ name: CURSOR, value: encodePoint({ x, y }) });

test("[PRE1] two people on two gateways see each other, and each other's cursor move", async () => {
  await roomServer();
  const [here, there] = [await gateway(), await gateway()];
  const [ann, bob] = [await enter(here, "ann"), await enter(there, "bob")];
  await until(() => ann.names().length === 2 && bob.names().length === 2, "both to see both");
  expect(ann.names()).toEqual(["ann", "bob"]);

  ann.show(at(3, 4));
  await until(() => bob.field(ann.client, CURSOR), "the cursor");
  expect(bob.field(ann.client, CURSOR)).toEqual(encodePoint({ x: 3, y: 4 }));
  ann.show(at(5, 6));
  await until(() => bob.field(ann.client, CURSOR)?.[0] === encodePoint({ x: 5, y: 6 })[0], "the cursor to move");

  ann.leave();
  await until(() => bob.names().length === 1, "ann to be gone");
  expect(bob.names()).toEqual(["bob"]);
});
