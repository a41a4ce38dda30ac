/** What operators see of processes that were killed, and of those that stopped in order. */

import { afterAll, beforeAll, expect, test } from "vitest";

import { SystemCluster } from "./cluster.ts";
import { eventually } from "./eventually.ts";
import { operationsEvents } from "./operations-events.ts";

let cluster: SystemCluster;
beforeAll(async () => (cluster = await SystemCluster.start({ gateways: 2, roomServers: 1 })));
afterAll(() => cluster.stop());

test("[PRL6] killed processes of each role leave one event for the loss and one for the replacement, and a restart none", async () => {
  const { gateways, placement, documentService, roomServers, operatorSecret, natsUrl, environment } = cluster;
  const [watching, killed] = gateways as [(typeof gateways)[0], (typeof gateways)[0]];
  const isKnown = async (count: number): Promise<boolean> => {
    const answer = await fetch(`${watching.httpUrl}/v1/admin/fleet`, { headers: { authorization: `Bearer ${operatorSecret}` } });
    return ((await answer.json()) as { processes: unknown[] }).processes.length >= count;
  };
  await eventually("the gateway knows all processes", () => isKnown(5));
  await roomServers[0]!.restart();
  expect(placement.printed(), "an orderly stop is no loss").not.toContain("stopped sending heartbeats");
  const dead = [placement, documentService, killed.process];
  for (const process of dead) await process.kill();
  for (const process of dead) await process.startAgain();

  const events = await operationsEvents(natsUrl, environment, "process_lost", 6);
  expect(events.map(({ role, state, running }) => `${role} ${state} ${running}`).toSorted()).toEqual([
    "document-service back 0",
    "document-service lost 0",
    "gateway back 1",
    "gateway lost 1",
    "placement back 0",
    "placement lost 0",
  ]);
  for (const { state, role, instance, forMs } of events)
    expect(events.filter((other) => other.instance === instance).length, `${role} ${state} after ${forMs}`).toBe(2);
});

test("[PRL9] the loss of all gateways leaves events too", async () => {
  const { gateways, natsUrl, environment } = cluster;
  const before = await operationsEvents(natsUrl, environment, "process_lost", 6);
  for (const { process } of gateways) await process.kill();
  const events = await operationsEvents(natsUrl, environment, "process_lost", before.length + gateways.length);
  const added = events.slice(before.length).map(({ role, state, by }) => `${role} ${state} by ${by.split("-")[0]}`);
  expect(added).toEqual(["gateway lost by placement", "gateway lost by placement"]);
});
