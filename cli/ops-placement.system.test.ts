/** What operators ask of rooms and room servers, on real processes: where they are and why, and to have it otherwise. */

import { setTimeout as sleep } from "node:timers/promises";

import { afterAll, beforeAll, expect, test } from "vitest";

import { encodeJson } from "../shared/bus/json-messages.ts";
import { subjectsOf } from "../shared/bus/subjects.ts";
import { readSettings, type Settings, type Values } from "../shared/config.ts";
import { roomKey, type RoomId, type ServerId, type TenantId } from "../shared/ids.ts";
import { closeNats, connectNats } from "../shared/io/nats.ts";
import { Cluster } from "../test/system/cluster.ts";
import { eventually } from "../test/system/eventually.ts";
import { ownerOf } from "../test/system/owner.ts";
import { insertion, Person } from "../test/system/person.ts";
import { runAdmin } from "./admin.ts";
import { adminSettings, opsGatewaysSettings, opsRoomsSettings } from "./admin-settings.ts";
import { listGateways, listRooms } from "./ops-fleet.ts";
import { drainServer, explainRoom, moveRoom, pinRoom, showServers } from "./ops-placement.ts";
import { opsDrainSettings, opsExplainSettings, opsMoveSettings, opsPinSettings, opsServersSettings } from "./ops-settings.ts";

let cluster: Cluster;
beforeAll(async () => {
  cluster = await Cluster.start({
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
afterAll(() => cluster.stop());

/** What the command prints. */
async function asked<Of extends Settings>(
  run: (config: Values<Of>, say: (line: string) => void) => Promise<void>,
  settings: Of,
  flags: Record<string, string> = {},
): Promise<string[]> {
  const lines: string[] = [];
  await run(readSettings(settings, { flags: { natsUrl: cluster.nats.url, environment: cluster.environment, ...flags }, env: {} }), (line) =>
    lines.push(line),
  );
  return lines;
}
const servers = () => asked(showServers, opsServersSettings);
const explained = async (room: string) => (await asked(explainRoom, opsExplainSettings, { room })).join("\n");
/** Its line, once it is heard. */
async function serverLine(host: string): Promise<string> {
  let line: string | undefined;
  await eventually(
    `the server on ${host} is heard`,
    async () => (line = (await servers()).find((said) => said.includes(`host=${host}`))) !== undefined,
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

test("[OPL1] the servers are listed with what they are for and how much of their budget is in use", async () => {
  let lines: string[] = [];
  await eventually("all three are heard", async () => (lines = await servers()).length === 3);
  for (const labels of ["host=north zone=z1", "host=south zone=z2", "host=west zone=z3 pool=gold"])
    expect(lines.some((line) => /^rs-\w+ rooms=\d+ used=\d+%/.test(line) && line.includes(labels))).toBe(true);
});

test("[OPL2] a pinned room moves to the pool it is pinned to and back, its people writing on, and says why", async () => {
  const person = await writeIn("pinned");
  expect(await asked(pinRoom, opsPinSettings, { room: "pinned", pool: "gold" })).toEqual([
    expect.stringContaining('default.pinned is pinned: {"pool":"gold"}'),
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

test("[OPL3] a server that is drained has no rooms any more, takes none, and is told so", async () => {
  const person = await writeIn("drained");
  const from = await hostOf("drained");
  const host = ["north", "south", "west"][from]!;
  const said = await asked(drainServer, opsDrainSettings, { server: await serverOn(host) });
  expect(said.at(-1)).toMatch(/^rs-\w+ has no rooms any more: it can be stopped$/);
  expect(await hostOf("drained")).not.toBe(from);
  expect(await serverLine(host)).toContain("draining");
  const another = await writeIn("opened-meanwhile");
  expect(await hostOf("opened-meanwhile")).not.toBe(from);
  await cluster.roomServers[from]!.restart();
  for (const one of [person, another]) one.leave();
});

test("[OPL4] what cannot be done says what to do instead", async () => {
  await expect(asked(moveRoom, opsMoveSettings, { room: "nowhere", to: "rs-none" })).rejects.toThrow(/open nowhere/);
  const person = await writeIn("stays");
  await eventually("it is on record who owns the room", async () => (await explained("stays")).includes("is owned by"));
  await expect(asked(moveRoom, opsMoveSettings, { room: "stays", to: "rs-none" })).rejects.toThrow(
    /rs-none does not get ready for the room/,
  );
  await expect(asked(drainServer, opsDrainSettings, { server: "rs-none" })).rejects.toThrow(/coroom ops servers names those that live/);
  expect(await explained("nowhere")).toContain("is open nowhere");
  person.leave();
});

test("[OPL5] a server that is not heard for a while is not said to have no rooms", async () => {
  const nats = await connectNats({ servers: cluster.natsUrl, name: "late server" });
  const [subjects, server, lines] = [subjectsOf("late"), "rs-late" as ServerId, [] as string[]];
  nats.subscribe(subjects.order(server), { callback: (_, order) => void order.respond(encodeJson({ kind: "done" })) });
  await nats.flush();
  const config = readSettings(opsDrainSettings, { flags: { natsUrl: cluster.natsUrl, environment: "late", server }, env: {} });
  const drained = drainServer(config, (line) => lines.push(line));
  await sleep(2_000); // It is listened for, and not heard.
  const beating = setInterval(
    () => nats.publish(subjects.servers, encodeJson({ server, rooms: lines.length === 0 ? 1 : 0, draining: true, time: Date.now() })),
    100,
  );
  await drained.finally(() => clearInterval(beating));
  expect(lines).toEqual(["rs-late has 1 rooms", "rs-late has no rooms any more: it can be stopped"]);
  await closeNats(nats);
});

test("[OPL6] servers that say that they are heard seldom are listened to for longer", async () => {
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

test("[OPL7] a room that is where it is to go has not moved, and what is planned for it stays", async () => {
  const person = await writeIn("at-home");
  let owner: string | undefined;
  await eventually(
    "it is on record who owns the room",
    async () => (owner = /is owned by (\S+) /.exec(await explained("at-home"))?.[1]) !== undefined,
  );
  expect(await asked(moveRoom, opsMoveSettings, { room: "at-home", to: owner! })).toEqual([`default.at-home is on ${owner} already`]);
  expect(await explained("at-home")).not.toContain("an operator moved it");
  person.leave();
});

test("[OPL8] a room is pinned to a host by --on-host", async () => {
  expect(await asked(pinRoom, opsPinSettings, { room: "unopened", onHost: "north" })).toEqual([
    expect.stringContaining('default.unopened is pinned: {"host":"north"}'),
  ]);
  expect(await asked(pinRoom, opsPinSettings, { room: "unopened" })).toEqual(["default.unopened is not pinned any more"]);
});

test("[OPL11] a room is not pinned to where no server is, and those that there are are named", async () => {
  let refusal = "";
  await eventually("all three are heard", async () => {
    refusal = await asked(pinRoom, opsPinSettings, { room: "unopened", pool: "goldd" }).then(
      () => "",
      (error: Error) => error.message,
    );
    return refusal.includes("hosts: north, south, west");
  });
  expect(refusal).toBe("no room server of the pool goldd is heard: start one first. Pools that are heard: gold; hosts: north, south, west");
  await expect(asked(pinRoom, opsPinSettings, { room: "unopened", pool: "gold", onHost: "north" })).rejects.toThrow(
    /of the pool gold on the host north is heard/,
  );
  expect(await explained("unopened")).not.toContain("pinned");
});

/** Of the commands that ask a gateway. */
async function told<Of extends Settings>(
  run: (config: Values<Of>, say: (line: string) => void) => Promise<void>,
  settings: Of,
  flags: Record<string, string> = {},
): Promise<string[]> {
  const lines: string[] = [];
  const { httpUrl: url } = cluster.gateways[0]!;
  await run(readSettings(settings, { flags: { url, internalSecret: cluster.internalSecret, ...flags }, env: {} }), (line) =>
    lines.push(line),
  );
  return lines;
}

/** Servers that do not answer in time are left out of a list, and who is in a room is told to its owner a moment later. */
const LISTED = { timeout: 60_000 };

test("[OPL9] open rooms and gateways are listed with how they are", async () => {
  const people = [await writeIn("listed-a"), await writeIn("listed-b")];
  const listed = (flags: Record<string, string>) => told(listRooms, opsRoomsSettings, { search: "LISTED-", ...flags });
  const room = expect.stringMatching(
    /^default\.listed-[ab] participants=1 editsPerSecond=[\d.]+ mode=flat gateways=1 server=rs-\w+ epoch=\d+$/,
  );
  await expect.poll(() => listed({}), LISTED).toEqual([room, room, "2 of 2 open rooms"]);
  await expect.poll(() => listed({ limit: "1" }), LISTED).toEqual([room, "1 of 2 open rooms"]);
  expect(await listed({ tenant: "acme" })).toEqual(["no such room is open: one opens when somebody joins it"]);
  const gateways = await told(listGateways, opsGatewaysSettings);
  expect(gateways).toEqual([expect.stringMatching(/^\S+ ready connections=\d+ rooms=\d+(?: shedLevel=\d)?$/)]);
  for (const person of people) person.leave();
});

test("[OPL10] a room that is deleted is said to be so, and not that somebody could open it", async () => {
  (await writeIn("doomed")).leave();
  const settings = { url: cluster.gateways[0]!.httpUrl, internalSecret: cluster.internalSecret, room: "doomed" };
  await runAdmin("delete-room", readSettings(adminSettings["delete-room"], { flags: settings, env: {} }));
  await eventually("it is said", async () => (await explained("doomed")).startsWith("default.doomed is deleted"));
  expect(await explained("doomed")).toBe("default.doomed is deleted: whoever joins it is refused, and its name is not given again");
});
