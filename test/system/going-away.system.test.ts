/** A gateway stops while people type, as during a deployment. They move to another gateway and notice nothing. */

import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";

import { roomKey, type RoomId, type TenantId } from "../../shared/ids.ts";
import { Balancer } from "./balancer.ts";
import { SystemCluster } from "./cluster.ts";
import { eventually } from "./eventually.ts";
import { checkLog, readLog } from "./log-checks.ts";
import { insertion, Person } from "./person.ts";

const ROOM = "deploy";
/** As many people, and as fast, as one process can simulate on a slow machine. */
const PEOPLE = 12;
/** The drain ends when all people have moved. On a slow machine, the last person has a quarter of this time for the move. */
const DRAIN_MS = 16_000;
const PAUSE_MS = 300;
/** Characters of the gateway's output that a failure shows. */
const OUTPUT_SHOWN = 2_000;

let cluster: SystemCluster;
let balancer: Balancer;
beforeAll(async () => {
  cluster = await SystemCluster.start({ gateways: 2, roomServers: 1, settings: { DRAIN_MS_MAX: String(DRAIN_MS) } });
  balancer = await Balancer.before(cluster.gateways);
});
afterAll(async () => {
  await balancer.stop();
  await cluster.stop();
});

async function connectionsTo(httpUrl: string): Promise<number> {
  const metrics = await (await fetch(`${httpUrl}/metrics`)).text();
  return Number(/^coroom_gateway_connections (\d+)$/m.exec(metrics)?.[1]);
}

test("[AWAY1] people who type while their gateway stops move to another one: no edit is lost or repeated, and no error is reported", async () => {
  const [leaving, staying] = cluster.gateways as [(typeof cluster.gateways)[0], (typeof cluster.gateways)[0]];
  const people = await Promise.all(
    Array.from({ length: PEOPLE }, (_, index) =>
      Person.enter(cluster, { ...leaving, url: balancer.url }, ROOM, `author-${index}`, { merging: false }),
    ),
  );
  await Promise.all(people.map((person) => person.untilText("")));
  expect([await connectionsTo(leaving.httpUrl), await connectionsTo(staying.httpUrl)]).toEqual([PEOPLE, 0]);
  const statuses = people.map((person) => {
    const seen = new Set<string>();
    person.room.on("status", ({ status }) => seen.add(status));
    return seen;
  });

  let typing = true;
  const typed: string[] = [];
  const typists = people.map(async (person) => {
    for (let word = 0; typing; word++) {
      const words = `<${person.name}.${word}>`;
      typed.push(words);
      person.type(insertion(words));
      await sleep(PAUSE_MS);
    }
  });
  await sleep(500);
  const { exited } = leaving.process;
  leaving.process.signal("SIGTERM");
  expect(await exited, leaving.process.printed().slice(-OUTPUT_SHOWN)).toEqual({ code: 0, signal: null });
  await eventually("all have moved", async () => (await connectionsTo(staying.httpUrl)) === PEOPLE);
  await sleep(500);
  typing = false;
  await Promise.all(typists);

  for (const person of people) await person.untilSaved();
  const [first] = people as [Person];
  await eventually("the first has every word", () => typed.every((words) => first.text.includes(words)));
  const { text } = first;
  for (const person of people) await person.untilText(text);
  expect(
    typed.filter((words) => text.split(words).length !== 2),
    "each word is there once",
  ).toEqual([]);
  expect(checkLog(await readLog(cluster.natsUrl, cluster.environment, roomKey("default" as TenantId, ROOM as RoomId)))).toHaveLength(
    typed.length,
  );
  expect(people.flatMap(({ disorders, errors }) => [...disorders, ...errors])).toEqual([]);
  for (const seen of statuses) {
    expect(seen, "each has moved").toContain("connecting");
    const others = [...seen].filter((status) => !["connecting", "connected", "degraded"].includes(status));
    expect(others, "no client waited between two attempts").toEqual([]);
  }
  for (const person of people) person.leave();
});
