import { afterAll, beforeAll, expect, test } from "vitest";
import * as Y from "yjs";

import { SystemCluster } from "./cluster.ts";
import { eventually } from "./eventually.ts";
import { Person } from "./person.ts";

let cluster: SystemCluster;
beforeAll(async () => {
  cluster = await SystemCluster.start({ gateways: 1, roomServers: 1 });
});
afterAll(() => cluster?.stop());

test("[LRG1] edits larger than a WebSocket message reach the room in parts, in their order, beside small ones", async () => {
  const [ada, bob] = [
    await Person.enter(cluster, cluster.gateways[0]!, "large", "ada", { merging: true }),
    await Person.enter(cluster, cluster.gateways[0]!, "large", "bob", { merging: true }),
  ];
  const doc = new Y.Doc();
  const typed: Uint8Array[] = [];
  doc.on("update", (update: Uint8Array) => typed.push(update));
  for (const letters of [10, 400_000, 20, 100_000]) doc.getText("text").insert(0, "x".repeat(letters));
  for (const update of typed) ada.type(update);
  await ada.untilSaved();
  await eventually("bob has all", () => bob.text.length >= 500_030);
  expect([...ada.disorders, ...ada.errors, ...bob.disorders, ...bob.errors]).toEqual([]);
  ada.leave();
  bob.leave();
});
