/**
 * Rooms that move while people write in them: by an operator, by restarts, and by the loss of a server, with and
 * without placement.
 */

import { afterAll, beforeAll, expect, test } from "vitest";

import { epochOf } from "../../shared/bus/record.ts";
import { roomKey, type RoomId, type TenantId } from "../../shared/ids.ts";
import { readSettings } from "../../shared/settings/settings.ts";
import { opsExplainSettings, opsMoveSettings } from "../../cli/command-settings.ts";
import { explainRoom, moveRoom } from "../../cli/ops-placement.ts";
import { SystemCluster, type Process } from "./cluster.ts";
import { eventually } from "./eventually.ts";
import { checkLog, readLog } from "./log-checks.ts";
import { ownerOf } from "./owner.ts";
import { insertion, Person } from "./person.ts";

/** Long limits: on a slow machine no server counts as dead, and no owner as silent. */
const UNHURRIED = { HEARTBEAT_MS: "1000", SERVER_SILENCE_MS_MAX: "5000", OWNER_SILENCE_MS_MAX: "5000" };

let cluster: SystemCluster;
beforeAll(async () => {
  cluster = await SystemCluster.start({ gateways: 2, roomServers: 3, settings: { CONTROL_LOOP_MS: "500", ...UNHURRIED } });
});
afterAll(() => cluster?.stop());

const keyOf = (room: string) => roomKey("default" as TenantId, room as RoomId);
const flagsOf = (room: string) => ({ room, natsUrl: cluster.natsUrl, environment: cluster.environment });

async function enter(room: string): Promise<Person[]> {
  return Promise.all(
    cluster.gateways.map((gateway, index) => Person.enter(cluster, gateway, room, ["ada", "bob"][index]!, { merging: false })),
  );
}

/** The name of the room server in a process. */
function nameOf(process: Process): string {
  return /"server":"(rs-[^"]+)","msg":"room server is ready"(?![\s\S]*room server is ready)/.exec(process.printed())![1]!;
}

async function explained(room: string): Promise<string> {
  const lines: string[] = [];
  await explainRoom(readSettings(opsExplainSettings, { flags: flagsOf(room), env: {} }), (line) => lines.push(line));
  return lines.join("\n");
}

/** Count of times that gateways found a room without an owner. */
async function roomsUnowned(): Promise<number> {
  const texts = await Promise.all(cluster.gateways.map(async ({ httpUrl }) => (await fetch(`${httpUrl}/metrics`)).text()));
  return texts.reduce((sum, text) => sum + Number(/owner_searches_total\{cause="no-responders"\} (\d+)/.exec(text)?.[1] ?? 0), 0);
}

async function agree(room: string, people: readonly Person[], words: readonly string[]) {
  for (const person of people) await person.untilSaved();
  const [ada, bob] = people;
  await bob!.untilText(ada!.text);
  for (const word of words) expect(ada!.text).toContain(word);
  for (const person of people) expect([...person.disorders, ...person.errors]).toEqual([]);
  const records = await readLog(cluster.natsUrl, cluster.environment, keyOf(room));
  expect(checkLog(records).length).toBe(words.length);
  return records;
}

test("[MOV1] a room moves from server to server while people write, and always has an owner", async () => {
  const [ada, bob] = await enter("moving");
  const words: string[] = [];
  const write = (person: Person): void => {
    words.push(`w${words.length}.`);
    person.type(insertion(words.at(-1)!));
  };
  write(ada!);
  await ada!.untilSaved();
  const first = await ownerOf(cluster, keyOf("moving"));
  const servers = [...cluster.roomServers.filter((process) => process !== first), first];
  const unownedBefore = await roomsUnowned();
  const typing = setInterval(() => (write(ada!), write(bob!)), 120);
  const reasons: string[] = [];
  for (const process of [...servers, ...servers]) {
    await moveRoom(readSettings(opsMoveSettings, { flags: { ...flagsOf("moving"), to: nameOf(process) }, env: {} }), () => {});
    expect(await ownerOf(cluster, keyOf("moving"))).toBe(process);
    reasons.push(await explained("moving"));
  }
  clearInterval(typing);
  expect(await roomsUnowned()).toBe(unownedBefore);
  const records = await agree("moving", [ada!, bob!], words);
  expect(new Set(records.map(epochOf)).size).toBe(7);
  // On a busy machine a server may seem dead after a move, which is then the newest reason.
  expect(reasons.join("\n")).toContain("an operator moved it");
  for (const person of [ada!, bob!]) person.leave();
});

test("[MOV2] a rolling restart of all room servers hands every room over", async () => {
  const people = await enter("rolling");
  const words: string[] = [];
  for (const process of cluster.roomServers) {
    words.push(`w${words.length}.`);
    people[0]!.type(insertion(words.at(-1)!));
    await people[0]!.untilSaved();
    await process.restart();
  }
  await agree("rolling", people, words);
  const released = cluster.roomServers.flatMap((process) =>
    process
      .printed()
      .split("\n")
      .filter((line) => line.includes("rolling") && line.includes('"why":"released"')),
  );
  expect(released).toEqual([]);
  for (const person of people) person.leave();
});

test("[MOV3] a lost owner's room goes to the server with its replica, and an operator can read the reason", async () => {
  const people = await enter("lost");
  people[0]!.type(insertion("before."));
  await people[0]!.untilSaved();
  let replica: string | undefined;
  await eventually("a replica is kept", async () => (replica = /^replica: ([^\s,]+)/m.exec(await explained("lost"))?.[1]) !== undefined);
  const owner = await ownerOf(cluster, keyOf("lost"));
  await owner.kill();
  people[0]!.type(insertion("after."));
  await people[0]!.untilSaved();
  expect(nameOf(await ownerOf(cluster, keyOf("lost")))).toBe(replica);
  await agree("lost", people, ["before.", "after."]);
  await owner.startAgain();
  for (const person of people) person.leave();
});

test("[MOV4] without placement, rooms are found, taken over and handed over, and placement includes them when it returns", async () => {
  await cluster.placement.kill();
  const people = await enter("unplaced");
  people[0]!.type(insertion("one."));
  await people[0]!.untilSaved();
  const owner = await ownerOf(cluster, keyOf("unplaced"));
  owner.signal("SIGSTOP");
  people[0]!.type(insertion("two."));
  await people[0]!.untilSaved();
  owner.signal("SIGCONT");
  await (await ownerOf(cluster, keyOf("unplaced"))).restart();
  people[0]!.type(insertion("three."));
  await people[0]!.untilSaved();
  const found = await ownerOf(cluster, keyOf("unplaced"));
  await cluster.placement.startAgain();
  await eventually("the room is planned for", async () => (await explained("unplaced")).includes("replica: "));
  expect(await ownerOf(cluster, keyOf("unplaced"))).toBe(found);
  await agree("unplaced", people, ["one.", "two.", "three."]);
  for (const person of people) person.leave();
});

test("[MOV5] an owner that aborts is detected by its closed connection while people write", async () => {
  const people = await enter("aborted");
  const words: string[] = [];
  const write = (): void => {
    words.push(`w${words.length}.`);
    people[words.length % 2]!.type(insertion(words.at(-1)!));
  };
  write();
  await people[1]!.untilSaved();
  const owner = await ownerOf(cluster, keyOf("aborted"));
  const unownedBefore = await roomsUnowned();
  const typing = setInterval(write, 20);
  owner.signal("SIGABRT"); // V8 ends a process whose heap is full with this signal.
  await owner.exited;
  await eventually("another owns the room", async () => (await ownerOf(cluster, keyOf("aborted"))) !== owner);
  clearInterval(typing);
  expect(await roomsUnowned()).toBeGreaterThan(unownedBefore);
  await agree("aborted", people, words);
  await owner.startAgain();
  for (const person of people) person.leave();
});
