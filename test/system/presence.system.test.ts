/** Presence end to end: gateways and a room server on a real nats-server, clients on real sockets. */

import { setTimeout as sleep } from "node:timers/promises";

import { Registry } from "prom-client";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";

import type { Running } from "../../shared/process/lifecycle.ts";
import { sharedSettings } from "../../shared/settings/common-settings.ts";
import { readSettings } from "../../shared/settings/settings.ts";
import { SILENT_LOG } from "../../shared/testing/silent-log.ts";
import { encodePoint } from "../../shared/wire/positions.ts";
import { CURSOR } from "../../shared/wire/presence.ts";
import { makeToken } from "../../cli/token.ts";
import { gatewaySettings } from "../../gateway/config.ts";
import { startGateway } from "../../gateway/main.ts";
import { roomServerSettings } from "../../room-server/config.ts";
import { startRoomServer } from "../../room-server/main.ts";
import { type RealNats, startRealNats, until } from "../contract/real-nats.ts";
import { Onlooker } from "./onlooker.ts";

const SECRET = "a secret of at least 32 bytes, for tests only";
const ROOM = "notes";
/** A long limit: on a slow machine nothing is shed. */
const UNDISTURBED_MS = "60000";

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
  const flags = {
    environment,
    natsUrl: nats.url,
    port: "0",
    jwtSecret: SECRET,
    drainMsMax: "0",
    shedDelayMsMin: UNDISTURBED_MS,
    shedNatsLagMsMin: UNDISTURBED_MS,
    ...settings,
  };
  const config = { ...readSettings({ ...sharedSettings, ...gatewaySettings }, { flags, env: {} }), serverSilenceMsMax: 300 };
  const started = await startGateway(config, { log: SILENT_LOG, registry: new Registry() });
  running.push(started);
  return `ws://127.0.0.1:${started.port}`;
}

async function roomServer(settings: Record<string, string> = {}): Promise<void> {
  const flags = { environment, natsUrl: nats.url, roomSecret: SECRET, heartbeatMs: "50", shareDelayMsMin: UNDISTURBED_MS, ...settings };
  const config = readSettings({ ...sharedSettings, ...roomServerSettings }, { flags, env: {} });
  running.push(await startRoomServer(config, { log: SILENT_LOG, registry: new Registry() }));
}

async function scrape(url: string, name: string): Promise<number> {
  const metrics = await (await fetch(`${url.replace("ws:", "http:")}/metrics`)).text();
  return Number(new RegExp(`^${name}(?:{.*})? (.*)$`, "m").exec(metrics)?.[1] ?? "0");
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

test("[PRE6] a client that does not read receives no presence until it reads, then a snapshot, and receives every edit", async () => {
  await roomServer();
  const url = await gateway({ slowBytesMax: String(16 * 1024 ** 2), slowMsMax: "60000" });
  const [ann, bob] = [await enter(url, "ann"), await enter(url, "bob")];
  const others = await Promise.all(Array.from({ length: 32 }, (_, index) => enter(url, `crowd-${index}`)));
  await until(() => bob.names().length === 34, "bob to see all");

  bob.connection.pause();
  const avatar = (turn: number) => ({ name: "avatar", value: new Uint8Array(8_000).fill(turn) });
  let turn = 0;
  await until(
    () => {
      turn += 1;
      for (const person of others) person.show(avatar(turn % 250));
      return new Promise<boolean>((resolve) =>
        setTimeout(() => void scrape(url, "coroom_gateway_presence_behind_total").then((behind) => resolve(behind > 0)), 50),
      );
    },
    "bob to be found behind",
    30_000,
  );
  ann.connection.edit(ann.channel, 1, "an edit");
  for (const person of others) person.show(avatar(251));
  await until(() => others.every((person) => ann.field(person.client, "avatar")?.[0] === 251), "ann to see the newest");

  bob.connection.resume();
  await until(() => others.every((person) => bob.field(person.client, "avatar")?.[0] === 251), "bob to see the newest");
  await until(() => bob.connection.committed().size > 0, "bob to have the edit, which goes another way");
  expect([...bob.connection.committed().values()]).toEqual(["an edit"]);
});

test("[PRE7] a user who may only read is a participant and can show presence", async () => {
  await roomServer();
  const url = await gateway();
  const [ann, reader] = [await enter(url, "ann"), await enter(url, "reader", ["read"])];
  reader.show(at(1, 1));
  await until(() => ann.field(reader.client, CURSOR), "the reader's cursor");
  expect(ann.participant(reader.client)).toMatchObject({ name: "reader", canWrite: false, spectator: false });
});

test("[PRE8] a user without input for a while is a spectator until the next input", async () => {
  await roomServer();
  const url = await gateway({ spectatorAfterMs: "300", editBurst: "1000000" });
  const [ann, bob] = [await enter(url, "ann"), await enter(url, "bob")];
  await until(() => ann.participant(bob.client)?.spectator, "bob to be a spectator");
  let counter = 0;
  const types = (): void => bob.connection.edit(bob.channel, (counter += 1), "an edit"); // Bob is an editor for a moment only.
  await until(() => (types(), ann.participant(bob.client)?.spectator === false), "bob to be an editor again");
});

test("[PRE9] presence above the rate is dropped, and presence far above the rate closes the connection", async () => {
  await roomServer();
  const url = await gateway();
  const ann = await enter(url, "ann");
  for (let frame = 0; frame < 100; frame++) ann.show(at(frame, 0));
  await until(async () => (await scrape(url, "coroom_gateway_presence_refused_total")) > 0, "some to be passed over");
  expect(ann.isConnected).toBe(true);
  for (let frame = 0; frame < 1_000; frame++) ann.show(at(frame, 0));
  expect(await ann.connection.end()).toMatchObject({ code: 4006 });
});

test("[PRE10] a client that shows too many bytes receives an error, and its later presence is shown", async () => {
  await roomServer();
  const url = await gateway();
  const [ann, bob] = [await enter(url, "ann"), await enter(url, "bob")];
  ann.show({ name: "avatar", value: new Uint8Array(9_000) });
  expect((await ann.connection.next("error")).message).toContain("8192 bytes");
  ann.show(at(1, 1));
  await until(() => bob.field(ann.client, CURSOR), "the cursor");
  expect(bob.field(ann.client, "avatar")).toBeUndefined();
});

test("[PRE11] a client that joins a room of few people receives its mode, which is flat", async () => {
  await roomServer();
  const ann = await enter(await gateway(), "ann");
  expect(await ann.connection.next("mode")).toMatchObject({ mode: "flat", presencePerSecond: 30, shed: 0 });
});

test("[PRE12] a participant that moves from a draining gateway to another one is seen throughout, and leaves when it is gone", async () => {
  await roomServer();
  const [one, two] = [await gateway({ drainMsMax: "10000" }), await gateway()];
  const [draining] = running.splice(1, 1);
  const token = await makeToken(
    { room: [ROOM], user: "ann", name: "ann", rights: ["read", "write"], tenant: "default", ttl: 3600 },
    SECRET,
  );
  const ann = await Onlooker.enter({ urls: [one, two], token, room: ROOM, clientKey: "ann-client-key" });
  people.push(ann);
  const [bob, last] = [await enter(two, "bob"), await enter(one, "last")]; // The gateway drains until the last client has gone.
  ann.show(at(1, 1));
  await until(() => bob.field(ann.client, CURSOR) !== undefined, "ann's cursor");
  const sights: boolean[] = [];
  bob.onDelta = (everybody) => sights.push([...everybody.values()].some(({ participant }) => participant.client === ann.client));

  const drained = draining!.stop();
  await ann.connection.next("going-away");
  ann.connection.close();
  await sleep(300); // Several ticks, in which a slow client connects.
  void ann.stay();
  await until(() => ann.isConnected, "ann to connect again");
  ann.show(at(2, 2));
  await until(() => bob.field(ann.client, CURSOR)?.join() === encodePoint({ x: 2, y: 2 }).join(), "ann's cursor over the other gateway");
  expect(new Set(sights)).toEqual(new Set([true]));

  last.leave();
  await drained;
  ann.leave();
  await until(() => bob.names().join() === "bob", "ann to leave");
});
