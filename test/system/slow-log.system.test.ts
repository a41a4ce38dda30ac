/** Appends that do not reach the log of an otherwise healthy system, from the users' view. */

import { afterAll, beforeAll, expect, test } from "vitest";

import { roomKey, type RoomId, type TenantId } from "../../shared/ids.ts";
import { SystemCluster } from "./cluster.ts";
import { eventually } from "./eventually.ts";
import { checkLog, readLog } from "./log-checks.ts";
import { insertion, Person } from "./person.ts";
import { SlowLogProxy } from "./slow-log-proxy.ts";

const ROOM = "slow";
const KEY = roomKey("default" as TenantId, ROOM as RoomId);

let cluster: SystemCluster;
let proxied: ReturnType<typeof SlowLogProxy.start> | undefined;
let proxy: SlowLogProxy;
beforeAll(async () => {
  cluster = await SystemCluster.start({
    gateways: 2,
    roomServers: 1,
    natsUrlOf: async (_, [server]) => {
      proxied ??= SlowLogProxy.start(server!);
      return (await proxied).url;
    },
  });
  proxy = (await proxied!).proxy;
});
afterAll(async () => {
  await cluster.stop();
  await proxy.stop();
});

test("[SLO1] while appends hang, edits are shown as tentative, acks wait, new edits are refused after 10 s, and then the room recovers", async () => {
  const [ada, bob] = await Promise.all(
    cluster.gateways.map((gateway, index) => Person.enter(cluster, gateway, ROOM, ["ada", "bob"][index]!, { merging: true })),
  );
  ada!.type(insertion("before "));
  await ada!.untilSaved();
  await bob!.untilText("before ");

  const tentativeBefore = bob!.tentativeSeen; // The log may have been slow without the proxy.
  proxy.hold();
  ada!.type(insertion("tentative "));
  await eventually("bob sees an edit that the log does not hold yet", () => bob!.text.includes("tentative "));
  expect(bob!.tentativeSeen).toBe(tentativeBefore + 1);
  await eventually("both rooms report that saving takes long", () => ada!.room.saving === "saving" && bob!.room.saving === "saving");
  expect([ada!.room.saved, bob!.room.seq]).toEqual([false, 1]);
  expect(checkLog(await readLog(cluster.natsUrl, cluster.environment, KEY)).length).toBe(1);

  await eventually("after 10 s the room refuses new edits", () => ada!.room.saving === "refusing");
  bob!.type(insertion("refused at first "));
  await eventually("bob's edit stays unsaved, and nobody sees it", () => !bob!.room.saved && !ada!.text.includes("refused at first "));

  proxy.release();
  for (const person of [ada!, bob!]) await person.untilSaved();
  await eventually("both rooms report that edits are saved again", () => ada!.room.saving === "saved" && bob!.room.saving === "saved");
  await ada!.untilText(bob!.text);
  for (const words of ["before ", "tentative ", "refused at first "]) expect(ada!.text).toContain(words);
  expect(checkLog(await readLog(cluster.natsUrl, cluster.environment, KEY)).length).toBe(3);
  for (const person of [ada!, bob!]) {
    expect([...person.disorders, ...person.errors]).toEqual([]);
    person.leave();
  }
});
