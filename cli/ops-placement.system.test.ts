/** Placement commands on real processes: where rooms are, why, and how to move them. */

import { setTimeout as sleep } from "node:timers/promises";

import { afterAll, beforeAll, expect, test } from "vitest";

import { encodeJson } from "../shared/bus/json-messages.ts";
import { subjectsOf } from "../shared/bus/subjects.ts";
import { readSettings, type Settings, type Values } from "../shared/settings/settings.ts";
import { roomKey, type RoomId, type ServerId, type TenantId } from "../shared/ids.ts";
import { closeNats, connectNats } from "../shared/io/nats.ts";
import { SystemCluster } from "../test/system/cluster.ts";
import { eventually } from "../test/system/eventually.ts";
import { ownerOf } from "../test/system/owner.ts";
import { insertion, Person } from "../test/system/person.ts";
import { runAdmin } from "./admin.ts";
import {
  adminSettings,
  opsGatewaysSettings,
  opsProcessesSettings,
  opsRoomsSettings,
  opsDrainSettings,
  opsExplainSettings,
  opsMoveSettings,
  opsPinSettings,
  opsServersSettings,
} from "./command-settings.ts";
import { listGateways, listProcesses, listRooms } from "./ops-fleet.ts";
import { drainServer, explainRoom, moveRoom, pinRoom, showServers } from "./ops-placement.ts";

let cluster: SystemCluster;
beforeAll(async () => {
  cluster = await SystemCluster.start({
    gateways: 1,
    roomServers: 3,
    settings: { CONTROL_LOOP_MS: "500" },
    roomServerSettings: [
      { SERVER_HOST: "north", SERVER_ZONE: "z1" },
      { SERVER_HOST: "south", SERVER_ZONE: "z2" },
      { SERVER_HOST: "west", SERVER_ZONE: "z3", SERVER_POOL: "gold" },
    ],
  });
});
afterAll(() => cluster?.stop());

/** Returns the printed lines. */
async function asked<Of extends Settings>(
  run: (config: Values<Of>, print: (line: string) => void) => Promise<void>,
  settings: Of,
  flags: Record<string, string> = {},
): Promise<string[]> {
  const lines: string[] = [];
  await run(readSettings(settings, { flags: { natsUrl: cluster.natsUrl, environment: cluster.environment, ...flags }, env: {} }), (line) =>
    lines.push(line),
  );
  return lines;
}
const servers = () => asked(showServers, opsServersSettings);
const explained = async (room: string) => (await asked(explainRoom, opsExplainSettings, { room })).join("\n");
/** Returns the line of the server once its heartbeat arrives. */
async function serverLine(host: string): Promise<string> {
  let line: string | undefined;
  await eventually(
    `the server on ${host} has sent a heartbeat`,
    async () => (line = (await servers()).find((server) => server.includes(`host=${host}`))) !== undefined,
  );
  return line!;
}
const serverOn = async (host: string): Promise<string> => (await serverLine(host)).split(" ")[0]!;

async function writeIn(room: string): Promise<Person> {
  const person = await Person.enter(cluster, cluster.gateways[0]!, room, "ada", { merging: false });
  person.type(insertion("one."));
  await person.untilSaved();
  return person;
}
const hostOf = async (room: string): Promise<number> =>
  cluster.roomServers.indexOf(await ownerOf(cluster, roomKey("default" as TenantId, room as RoomId)));

test("[OPL1] the list of servers shows their labels and the used share of their budget", async () => {
  let lines: string[] = [];
  await eventually("all three have sent a heartbeat", async () => (lines = await servers()).length === 3);
  for (const labels of ["host=north zone=z1", "host=south zone=z2", "host=west zone=z3 pool=gold"])
    expect(lines.some((line) => /^rs-\w+ rooms=\d+ used=\d+%/.test(line) && line.includes(labels))).toBe(true);
});

test("[OPL2] a pinned room moves to its pool and back while its users type, and explain gives the reason", async () => {
  const person = await writeIn("pinned");
  expect(await asked(pinRoom, opsPinSettings, { room: "pinned", pool: "gold" })).toEqual([
    expect.stringContaining('default.pinned is pinned to {"pool":"gold"}'),
  ]);
  await eventually("the room is in the pool", async () => (await hostOf("pinned")) === 2);
  await eventually("the reason can be read", async () => (await explained("pinned")).includes("it is pinned to the pool gold"));
  person.type(insertion("two."));
  await asked(pinRoom, opsPinSettings, { room: "pinned" });
  await eventually("the room is out of the pool", async () => (await hostOf("pinned")) !== 2);
  person.type(insertion("three."));
  await person.untilSaved();
  expect([...person.disorders, ...person.errors]).toEqual([]);
  person.leave();
});

test("[OPL3] a drained server has no rooms left and takes none, and the operator is informed", async () => {
  const person = await writeIn("drained");
  const from = await hostOf("drained");
  const host = ["north", "south", "west"][from]!;
  const printed = await asked(drainServer, opsDrainSettings, { server: await serverOn(host) });
  expect(printed.at(-1)).toMatch(/^rs-\w+ has no rooms left and can be stopped$/);
  expect(await hostOf("drained")).not.toBe(from);
  expect(await serverLine(host)).toContain("draining");
  const another = await writeIn("opened-meanwhile");
  expect(await hostOf("opened-meanwhile")).not.toBe(from);
  await cluster.roomServers[from]!.restart();
  for (const one of [person, another]) one.leave();
});

test("[OPL4] the error of a command that cannot be carried out names the remedy", async () => {
  await expect(asked(moveRoom, opsMoveSettings, { room: "nowhere", to: "rs-none" })).rejects.toThrow(/is not open/);
  const person = await writeIn("stays");
  await eventually("it is on record who owns the room", async () => (await explained("stays")).includes("is owned by"));
  await expect(asked(moveRoom, opsMoveSettings, { room: "stays", to: "rs-none" })).rejects.toThrow(
    /rs-none has no complete replica of the room/,
  );
  await expect(asked(drainServer, opsDrainSettings, { server: "rs-none" })).rejects.toThrow(/Run coroom ops servers/);
  expect(await explained("nowhere")).toContain("is not open");
  person.leave();
});

test("[OPL5] a server without recent heartbeats is not reported as having no rooms", async () => {
  const nats = await connectNats({ servers: cluster.natsUrl, name: "late server" });
  const [subjects, server, lines] = [subjectsOf("late"), "rs-late" as ServerId, [] as string[]];
  nats.subscribe(subjects.order(server), { callback: (_, order) => void order.respond(encodeJson({ kind: "done" })) });
  await nats.flush();
  const config = readSettings(opsDrainSettings, { flags: { natsUrl: cluster.natsUrl, environment: "late", server }, env: {} });
  const drained = drainServer(config, (line) => lines.push(line));
  await sleep(2_000); // The command waits for this server but receives no heartbeat.
  const beating = setInterval(
    () => nats.publish(subjects.servers, encodeJson({ server, rooms: lines.length === 0 ? 1 : 0, draining: true, time: Date.now() })),
    100,
  );
  await drained.finally(() => clearInterval(beating));
  expect(lines).toEqual(["rs-late has 1 rooms", "rs-late has no rooms left and can be stopped"]);
  await closeNats(nats);
});

test("[OPL6] the command waits longer for servers with rare heartbeats", async () => {
  const nats = await connectNats({ servers: cluster.natsUrl, name: "seldom heard" });
  const subjects = subjectsOf("seldom");
  const beat = (server: string) =>
    nats.publish(subjects.servers, encodeJson({ server, rooms: 0, draining: false, everyMs: 3_000, time: Date.now() }));
  const beating = [setInterval(beat, 100, "rs-one"), setInterval(beat, 3_000, "rs-two")];
  const lines = await asked(showServers, opsServersSettings, { environment: "seldom" });
  for (const one of beating) clearInterval(one);
  expect(lines.map((line) => line.split(" ")[0])).toEqual(["rs-one", "rs-two"]);
  await closeNats(nats);
});

test("[OPL7] a move to the present owner changes nothing, and the plan of the room stays", async () => {
  const person = await writeIn("at-home");
  await eventually("the owner on record is the present one", async () => {
    const owner = /is owned by (\S+) /.exec(await explained("at-home"))?.[1];
    if (owner === undefined) return false;
    // A plan that is just carried out may move the room between the two commands.
    const answer = await asked(moveRoom, opsMoveSettings, { room: "at-home", to: owner }).catch((error: Error) => [error.message]);
    return answer.join() === `default.at-home is already on ${owner}`;
  });
  expect(await explained("at-home")).not.toContain("an operator moved it");
  person.leave();
});

test("[OPL8] --on-host pins a room to a host", async () => {
  expect(await asked(pinRoom, opsPinSettings, { room: "unopened", onHost: "north" })).toEqual([
    expect.stringContaining('default.unopened is pinned to {"host":"north"}'),
  ]);
  expect(await asked(pinRoom, opsPinSettings, { room: "unopened" })).toEqual(["default.unopened is no longer pinned"]);
});

test("[OPL11] a pin without a matching server is refused, and the error names the known pools and hosts", async () => {
  let refusal = "";
  await eventually("all three have sent a heartbeat", async () => {
    refusal = await asked(pinRoom, opsPinSettings, { room: "unopened", pool: "goldd" }).then(
      () => "",
      (error: Error) => error.message,
    );
    return refusal.includes("hosts: north, south, west");
  });
  expect(refusal).toBe("no heartbeat from a room server of the pool goldd. Start one first. Known pools: gold; hosts: north, south, west");
  await expect(asked(pinRoom, opsPinSettings, { room: "unopened", pool: "gold", onHost: "north" })).rejects.toThrow(
    /of the pool gold on the host north\. Start one first/,
  );
  expect(await explained("unopened")).not.toContain("pinned");
});

/** Runs a command that calls a gateway. */
async function printedBy<Of extends Settings>(
  run: (config: Values<Of>, print: (line: string) => void) => Promise<void>,
  settings: Of,
  flags: Record<string, string> = {},
): Promise<string[]> {
  const lines: string[] = [];
  const { httpUrl: url } = cluster.gateways[0]!;
  await run(readSettings(settings, { flags: { url, operatorSecret: cluster.operatorSecret, ...flags }, env: {} }), (line) =>
    lines.push(line),
  );
  return lines;
}

/** Servers that do not answer in time are missing from a list, and owners learn their members with a short delay. */
const LISTED = { timeout: 60_000 };

test("[OPL9] the lists show the status of open rooms and of gateways", async () => {
  const people = [await writeIn("listed-a"), await writeIn("listed-b")];
  const listed = (flags: Record<string, string>) => printedBy(listRooms, opsRoomsSettings, { search: "LISTED-", ...flags });
  const room = expect.stringMatching(
    /^default\.listed-[ab] participants=1 editsPerSecond=[\d.]+ mode=flat gateways=1 server=rs-\w+ epoch=\d+$/,
  );
  await expect.poll(() => listed({}), LISTED).toEqual([room, room, "2 of 2 open rooms"]);
  await expect.poll(() => listed({ limit: "1" }), LISTED).toEqual([room, "1 of 2 open rooms"]);
  expect(await listed({ tenant: "acme" })).toEqual(["no matching room is open. A room opens when a client joins it"]);
  const gateways = await printedBy(listGateways, opsGatewaysSettings);
  expect(gateways).toEqual([expect.stringMatching(/^\S+ ready connections=\d+ rooms=\d+(?: shedLevel=\d)?$/)]);
  for (const person of people) person.leave();
});

test("[OPL12] every process is listed with its role and version", async () => {
  const roles = ["document-service", "gateway", "placement", "room-server", "room-server", "room-server"];
  const lines = roles.map((role) => expect.stringMatching(new RegExp(`^\\S+ role=${role} version=\\d+\\.\\d+\\.\\d+ bus=\\d+$`)));
  await expect.poll(() => printedBy(listProcesses, opsProcessesSettings), LISTED).toEqual(lines);
});

test("[OPL10] explain reports a deleted room as deleted, and not as one that can be opened", async () => {
  (await writeIn("doomed")).leave();
  const settings = { url: cluster.gateways[0]!.httpUrl, operatorSecret: cluster.operatorSecret, room: "doomed" };
  await runAdmin("delete-room", readSettings(adminSettings["delete-room"], { flags: settings, env: {} }));
  await eventually("the deletion is reported", async () => (await explained("doomed")).startsWith("default.doomed is deleted"));
  expect(await explained("doomed")).toBe("default.doomed is deleted: joins are rejected, and the room id cannot be used again");
});
