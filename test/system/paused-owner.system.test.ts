/** An owner that is paused but not dead. Its heartbeats and lease are misleading, so only fencing by the log decides. */

import { afterAll, beforeAll, expect, test } from "vitest";

import { epochOf } from "../../shared/bus/record.ts";
import { roomKey, type RoomId, type TenantId } from "../../shared/ids.ts";
import { SystemCluster } from "./cluster.ts";
import { eventually } from "./eventually.ts";
import { checkLog, readLog } from "./log-checks.ts";
import { ownerOf } from "./owner.ts";
import { insertion, Person } from "./person.ts";

const ROOM = "paused";
const KEY = roomKey("default" as TenantId, ROOM as RoomId);

let cluster: SystemCluster;
beforeAll(async () => {
  cluster = await SystemCluster.start({
    gateways: 2,
    roomServers: 2,
    settings: { HEARTBEAT_MS: "500", SERVER_SILENCE_MS_MAX: "3000", OWNER_SILENCE_MS_MAX: "3000" },
  }); // Only the paused process counts as dead.
});
afterAll(() => cluster?.stop());

test("[PAU1] a paused owner is replaced, and cannot append when it continues", async () => {
  const [ada, bob] = await Promise.all(
    cluster.gateways.map((gateway, index) => Person.enter(cluster, gateway, ROOM, ["ada", "bob"][index]!, { merging: true })),
  );
  ada!.type(insertion("before "));
  await ada!.untilSaved();
  await bob!.untilText("before ");
  const log = () => readLog(cluster.natsUrl, cluster.environment, KEY);
  const epochBefore = epochOf((await log()).at(-1)!);

  const paused = await ownerOf(cluster, KEY);
  paused.signal("SIGSTOP");
  ada!.type(insertion("while "));
  await ada!.untilSaved();
  const successor = await ownerOf(cluster, KEY);
  expect(successor).not.toBe(paused);

  const printedBefore = paused.printed().length;
  paused.signal("SIGCONT");
  await eventually("the owner of before has found out that it was fenced", () =>
    paused.printed().slice(printedBefore).includes('"why":"fenced"'),
  );
  bob!.type(insertion("after "));
  await bob!.untilSaved();
  expect(await ownerOf(cluster, KEY)).toBe(successor);

  const records = await log();
  expect(checkLog(records).length).toBe(3);
  expect([...new Set(records.map(epochOf).filter((epoch) => epoch > epochBefore))]).toEqual([epochOf(records.at(-1)!)]);
  for (const person of [ada!, bob!]) {
    await person.untilText(bob!.text);
    expect(["before ", "while ", "after "].every((words) => person.text.includes(words))).toBe(true);
    expect([...person.disorders, ...person.errors]).toEqual([]);
    person.leave();
  }
});
