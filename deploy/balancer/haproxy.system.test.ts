/**
 * The balancer of `deploy/compose.yaml` before two real gateways, with the SDK as its client: members of a room meet on
 * one gateway, and meet again on the other when theirs drains or dies.
 */

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import { FIRST_START_MS_MAX } from "../../test/system/browser.ts";
import { eventually } from "../../test/system/eventually.ts";
import { SystemCluster } from "../../test/system/cluster.ts";
import { insertion, Person } from "../../test/system/person.ts";
import { type RunningBalancer, startBalancer } from "./start-balancer.ts";

const STOP_MS_MAX = 10_000;
const CONNECTIONS_MAX = 1_000;
const MEMBERS = 4;
/** Rooms whose routing keys are on different gateways. Which one, depends on HAProxy's ring only. */
const ROOMS_TRIED = 20;

let folder: string;
let cluster: SystemCluster;
let balancer: RunningBalancer;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "coroom-haproxy-"));
  cluster = await SystemCluster.start({ gateways: 2, roomServers: 1, settings: { DRAIN_MS_MAX: "20000" } });
  balancer = await startBalancer(
    cluster.gateways.map(({ httpUrl }) => new URL(httpUrl).host),
    folder,
    CONNECTIONS_MAX,
  );
}, FIRST_START_MS_MAX);

afterAll(async () => {
  await balancer?.process.stop(STOP_MS_MAX);
  await cluster?.stop();
  rmSync(folder, { recursive: true, force: true });
});

beforeEach(async () => {
  await eventually("no client is left", async () => (await connections()).every((count) => count === 0));
});

async function connections(): Promise<number[]> {
  return Promise.all(
    cluster.gateways.map(async ({ httpUrl }) => {
      const metrics = await fetch(`${httpUrl}/metrics`).then(
        (answer) => answer.text(),
        () => "", // The gateway was killed.
      );
      return Number(/^coroom_gateway_connections (\d+)$/m.exec(metrics)?.[1] ?? 0);
    }),
  );
}

const enter = (room: string, name: string): Promise<Person> => Person.enter(cluster, balancer, room, name, { merging: false });

/** A new room for each gateway. */
async function roomsOnEach(prefix: string): Promise<string[]> {
  const found: (string | undefined)[] = [undefined, undefined];
  for (let index = 0; index < ROOMS_TRIED && found.includes(undefined); index++) {
    const room = `${prefix}-${index}`;
    const person = await enter(room, "scout");
    await person.untilText("");
    found[(await connections()).indexOf(1)] ??= room;
    person.leave();
    await eventually("the scout has left", async () => (await connections()).every((count) => count === 0));
  }
  return found.map((room) => room!);
}

/** Members enter alternately, so that neither gateway has more than its share. */
async function fill(rooms: readonly string[]): Promise<Person[][]> {
  const people: Person[][] = rooms.map(() => []);
  for (let member = 0; member < MEMBERS; member++) {
    for (const [index, room] of rooms.entries()) {
      const person = await enter(room, `${room}-${member}`);
      await person.untilText("");
      people[index]!.push(person);
    }
  }
  return people;
}

async function writeTogether(people: readonly Person[]): Promise<void> {
  people[0]!.type(insertion("together "));
  for (const person of people) await person.untilText(people[0]!.text);
  await people[0]!.untilSaved();
  for (const person of people) expect([...person.disorders, ...person.errors]).toEqual([]);
}

/** Until the balancer passes clients on to the gateway again. */
async function startAgain(gateway: number): Promise<void> {
  const timesUp = (): number => readFileSync(balancer.logFile, "utf8").split(`gateways-by-room/gateway-${gateway + 1} is UP`).length;
  const before = timesUp();
  await cluster.gateways[gateway]!.process.startAgain();
  await eventually("the balancer uses the gateway again", () => timesUp() > before);
}

test("[BAL1] the balancer passes on the longest URL and headers that a gateway accepts", async () => {
  const statusOf = async (length: number): Promise<number> =>
    (await fetch(`${balancer.url.replace("ws", "http")}/readyz`, { headers: { cookie: `a=${"x".repeat(length)}` } })).status;
  expect(await statusOf(19_000)).toBe(200);
  expect(await statusOf(21_000), "the gateway refuses it").toBe(431);
});

test("[WIRE55] members of a room meet on one gateway, and on the other one when theirs drains", async () => {
  const rooms = await roomsOnEach("drained");
  const people = await fill(rooms);
  expect(await connections()).toEqual([MEMBERS, MEMBERS]);
  const { process } = cluster.gateways[0]!;
  const ended = process.exited;
  process.signal("SIGTERM");
  expect((await ended).code).toBe(0);
  await eventually("all have moved", async () => (await connections())[1] === 2 * MEMBERS);
  for (const members of people) await writeTogether(members);
  for (const person of people.flat()) person.leave();
  await startAgain(0);
});

test("[WIRE55] members of a room whose gateway is killed meet on the other one", async () => {
  const rooms = await roomsOnEach("killed");
  const people = await fill(rooms);
  expect(await connections()).toEqual([MEMBERS, MEMBERS]);
  await cluster.gateways[1]!.process.kill();
  await eventually("all have moved", async () => (await connections())[0] === 2 * MEMBERS);
  for (const members of people) await writeTogether(members);
  for (const person of people.flat()) person.leave();
  await startAgain(1);
});
