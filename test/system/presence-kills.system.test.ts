/** Participant lists while gateways and room servers are killed. No participant is missing, and no participant who has left stays. */

import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";

import { Prng } from "../../shared/collections/prng.ts";
import { roomKey, type RoomId, type TenantId } from "../../shared/ids.ts";
import { encodePoint } from "../../shared/wire/positions.ts";
import { CURSOR } from "../../shared/wire/presence.ts";
import { soakLength } from "../soak.ts";
import { SystemCluster } from "./cluster.ts";
import { eventually } from "./eventually.ts";
import { Onlooker } from "./onlooker.ts";
import { ownerOf } from "./owner.ts";

const SEED = Number(process.env["COROOM_TEST_SEED"] ?? 20261121);
const PEOPLE = 6;
const KILLING_MS = soakLength(12_000, 300_000);
/** Long limits: on a slow machine no presence is shed, and no live process counts as dead. */
const UNDISTURBED = {
  SHED_DELAY_MS_MIN: "60000",
  SHED_NATS_LAG_MS_MIN: "60000",
  SHARE_DELAY_MS_MIN: "60000",
  PRESENCE_GATHER_MS: "1500",
  GATEWAY_SILENCE_MS_MAX: "4000",
};

let cluster: SystemCluster;
let people: Onlooker[] = [];
beforeAll(async () => {
  cluster = await SystemCluster.start({ gateways: 2, roomServers: 2, settings: UNDISTURBED });
});
afterAll(() => cluster?.stop());
afterEach(() => {
  for (const person of people) person.leave();
  people = [];
});

async function enter(room: string, name: string, gateway: number): Promise<Onlooker> {
  const urls = [0, 1].map((next) => cluster.gateways[(gateway + next) % 2]!.url);
  const person = await Onlooker.enter({ urls, token: await cluster.token(room, name), room, clientKey: `${name}-client-key` });
  people.push(person);
  return person;
}

const at = (x: number) => ({ name: CURSOR, value: encodePoint({ x, y: 0 }) });
const shows = (viewer: Onlooker, shown: Onlooker, x: number): boolean =>
  Buffer.from(viewer.field(shown.client, CURSOR) ?? []).equals(encodePoint({ x, y: 0 }));

test("[PRE2] a participant of a killed gateway disappears for the others, and returns under the same client id after its reconnect", async () => {
  const [stays, goes] = [await enter("killed-gateway", "stays", 0), await enter("killed-gateway", "goes", 1)];
  goes.show(at(7));
  await eventually("both see both", () => stays.names().length === 2 && goes.names().length === 2 && shows(stays, goes, 7));

  await cluster.gateways[1]!.process.kill();
  await eventually("the other is gone", () => stays.names().length === 1);
  void goes.stay();
  await eventually("the other is back with its cursor", () => stays.names().length === 2 && shows(stays, goes, 7));
  await cluster.gateways[1]!.process.restart();
});

test("[PRE3] when the room's owner is killed no participant disappears, and later presence is shown", async () => {
  const ROOM = "killed-owner";
  const [ann, bob] = [await enter(ROOM, "ann", 0), await enter(ROOM, "bob", 1)];
  ann.show(at(1));
  await eventually("bob sees ann's cursor", () => bob.names().length === 2 && shows(bob, ann, 1));

  const owner = await ownerOf(cluster, roomKey("default" as TenantId, ROOM as RoomId));
  const shownBy = new Map([ann, bob].map((viewer) => [viewer, new Set<string>()]));
  for (const [viewer, lists] of shownBy)
    viewer.onDelta = (seen) => {
      const names = [...seen.values()].map(({ participant: { name }, fields }) => (name === "ann" && !fields.has(CURSOR) ? "ann?" : name));
      lists.add(names.sort().join());
    };
  await owner.kill();
  await eventually("bob sees ann's cursor move under the next owner", () => (ann.show(at(2)), shows(bob, ann, 2)));
  await eventually("ann sees bob's cursor", () => (bob.show(at(3)), shows(ann, bob, 3)));
  expect([...shownBy.get(bob)!]).toEqual(["ann,bob"]);
  expect([...shownBy.get(ann)!].map((names) => names.replace("?", ""))).toEqual(["ann,bob"]); // Own fields are not sent back.
  await owner.restart();
});

test(
  `[PRE4] after random kills of gateways and room servers, all lists of participants are equal and correct (seed ${SEED})`,
  { timeout: soakLength(300_000, 900_000) },
  async () => {
    const ROOM = "killed-at-random";
    for (let index = 0; index < PEOPLE; index++) void (await enter(ROOM, `person-${index}`, index % 2)).stay();
    const prng = new Prng(SEED);
    const deadline = performance.now() + KILLING_MS;
    for (let x = 0; performance.now() < deadline; x++) {
      const victim = prng.chance(0.5) ? cluster.gateways[prng.below(2)]!.process : cluster.roomServers[prng.below(2)]!;
      await victim.kill();
      for (const person of people) person.show(at(x));
      await sleep(prng.below(800));
      await victim.restart();
      await sleep(prng.below(1_500));
    }

    people.pop()!.leave();
    const names = Array.from({ length: PEOPLE - 1 }, (_, index) => `person-${index}`);
    people.forEach((person, index) => person.show(at(1_000 + index)));
    await eventually("all lists are true", () => people.every((person) => person.isConnected && person.names().join() === names.join()));
    people.forEach((person, index) => person.show(at(2_000 + index)));
    await eventually("everybody sees everybody's cursor", () =>
      people.every((viewer) => people.every((shown, index) => viewer === shown || shows(viewer, shown, 2_000 + index))),
    );
  },
);
