/** A room and a tenant that store as much as they may: edits are refused clearly, and accepted again once there is space. */

import { setTimeout as sleep } from "node:timers/promises";

import { jetstream } from "@nats-io/jetstream";
import { afterAll, beforeAll, expect, test } from "vitest";

import type { StoredRecord } from "../../shared/bus/record.ts";
import { subjectsOf } from "../../shared/bus/subjects.ts";
import { type RoomId, type RoomKey, roomKey, type TenantId } from "../../shared/ids.ts";
import { connectNats, type NatsConnection } from "../../shared/io/nats.ts";
import { readSettings } from "../../shared/settings/settings.ts";
import { opsRoomSettings } from "../../cli/command-settings.ts";
import { describeRoom } from "../../cli/ops.ts";
import { RoomConnection } from "../../client/index.ts";
import { decodeSegment, loggedEditsOf } from "../../document-service/history/segments.ts";
import { kvHistories } from "../../document-service/io/kv-checkpoints.ts";
import { jetstreamObjects } from "../../document-service/io/object-stores.ts";
import { claimPort } from "../../engines/free-port.ts";
import { SystemCluster } from "./cluster.ts";
import { eventually } from "./eventually.ts";
import { readLog } from "./log-checks.ts";
import { insertion, Person } from "./person.ts";

const ROOM_BYTES_MAX = 1_000_000;
/** A full room is writable again below it. */
const RELEASED_BELOW_BYTES = 0.95 * ROOM_BYTES_MAX;
const TENANT_BYTES_MAX = 2_000_000;
const EDIT_BYTES = 20_000;

let cluster: SystemCluster;
let metricsUrl: string;
beforeAll(async () => {
  const port = await claimPort(0, "127.0.0.1", "port");
  metricsUrl = `http://127.0.0.1:${port}/metrics`;
  cluster = await SystemCluster.start({
    gateways: 2,
    roomServers: 1,
    documentServiceSettings: [{ HEALTH_PORT: String(port) }],
    settings: {
      ROOM_BYTES_MAX: String(ROOM_BYTES_MAX),
      TENANT_BYTES_MAX: `0, small=${TENANT_BYTES_MAX}`,
      HISTORY_BYTES_MAX: "400000",
      SNAPSHOT_AGE_MS_MAX: "1000",
      REPLAY_WINDOW_MS: "2000",
      HISTORY_SEGMENT_MS_MIN: "500",
      OPAQUE_LOG_MS_MAX: "3000",
      DOCUMENT_IDLE_MS_MAX: "10000",
      SNAPSHOT_BURST: "10000",
    },
  });
});
afterAll(() => cluster?.stop());

const ask = async (method: string, path: string, room: string, { body, tenant = "default", rights = ["read", "write"] }: Asked = {}) =>
  fetch(`${cluster.gateways[1]!.httpUrl}/v1/rooms/${room}${path}`, {
    method,
    headers: {
      "authorization": `Bearer ${await cluster.token(room, "backend", { rights, tenant })}`,
      "content-type": "application/octet-stream",
    },
    ...(body === undefined ? {} : { body: new Blob([new Uint8Array(body)]) }),
  });
type Asked = { readonly rights?: readonly string[]; readonly tenant?: string; readonly body?: Uint8Array };
const ADMIN = ["read", "write", "admin"];
const write = (room: string, tenant?: string) =>
  ask("POST", "/edits", room, { body: insertion("over HTTP "), ...(tenant === undefined ? {} : { tenant }) });

/** What `coroom ops room` prints of a room. */
async function storedBy(room: string): Promise<Readonly<Record<string, string>>> {
  const flags = { environment: cluster.environment, natsUrl: cluster.natsUrl, room };
  const lines: string[] = [];
  await describeRoom(readSettings(opsRoomSettings, { flags, env: {} }), (line) => lines.push(line));
  return Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf(" ")), line.slice(line.indexOf(" ") + 1)]));
}

/** Sends the edit again and again, ten times a second, until the client may only read. */
async function fill({ room }: Person, edit: () => Uint8Array): Promise<void> {
  await eventually("the client may write", () => room.rights.write);
  await eventually("the room may only be read", () => {
    if (room.unsavedEdits === 0 && room.rights.write) room.send(edit());
    return isReadOnly({ room });
  });
}

/** Fills the room "full" until it may still only be read after its log was trimmed and its history shortened. */
async function fillForGood(person: Person, edit: () => Uint8Array): Promise<void> {
  do {
    await fill(person, edit);
    let before: string | undefined;
    await eventually("what the room stores stays the same", async () => {
      const { storedBytes } = await storedBy("full");
      const isSame = storedBytes === before;
      before = storedBytes;
      if (!isSame) await sleep(2_000);
      return isSame;
    });
  } while (!isReadOnly(person));
}

/** The room is joined, without the right to write. */
function isReadOnly({ room: { rights } }: Pick<Person, "room">): boolean {
  return rights.read && !rights.write;
}

test("[STQ1] a room at its limit is read only, refuses writes with a reason, keeps what clients typed, and accepts it when there is space", async () => {
  const ada = await Person.enter(cluster, cluster.gateways[0]!, "full", "ada", { merging: true });
  const bob = await Person.enter(cluster, cluster.gateways[1]!, "full", "bob", { merging: true });
  await fillForGood(ada, () => insertion("x".repeat(EDIT_BYTES)));
  // How much the room stores by now depends on the speed of the machine. Nothing that is typed from here on is accepted.
  await eventually("both may only read, and have all edits", () => [ada, bob].every((person) => isReadOnly(person) && person.room.synced));
  for (const person of [ada, bob, ada]) person.type(insertion("kept "));
  await eventually("the SDK reports it", () => ada.errors.some((error) => (error as { kind: string }).kind === "read-only"));
  expect(ada.room.saved).toBe(false);

  const refused = await write("full");
  const answer = (await refused.json()) as { error: string; message: string };
  expect([refused.status, answer.error]).toEqual([507, "storage-full"]);
  const [, measured] = /room full stores (\d+) bytes, and 1000000 are allowed \(COROOM_ROOM_BYTES_MAX\)/.exec(answer.message) ?? [];
  expect(Number(measured), answer.message).toBeGreaterThan(RELEASED_BELOW_BYTES);
  expect((await ask("POST", "/versions", "full")).status, "a version would need space").toBe(507);
  expect((await ask("GET", "/snapshot", "full")).status).toBe(200);
  ada.room.presence.set({ mood: "calm" });
  await eventually("presence goes on", () => [...bob.room.participants.values()].some(({ user }) => user === "ada"));
  const { storedBytes } = await storedBy("full");
  expect(storedBytes).toMatch(/^\d+ of 1000000$/);
  expect(cluster.documentServices[0]!.printed()).toContain('"kind":"room_storage"');
  expect((await write("another")).status, "other rooms are not affected").toBe(200);
  const late = await Person.enter(cluster, cluster.gateways[1]!, "full", "late", { merging: true });
  await eventually("a later visitor has all edits", () => late.room.synced);
  expect(late.room.rights.write).toBe(false);
  expect(late.text.length).toBeGreaterThan(EDIT_BYTES);
  expect(late.text.replaceAll("x", ""), "nothing was accepted since the announcement").toBe("");
  expect([ada.room.saved, bob.room.saved]).toEqual([false, false]);

  const deleted = await ask("DELETE", "", "full", { rights: ADMIN });
  expect(deleted.status).toBeLessThan(300);
  await eventually("nothing is stored", async () => (await write("full")).status === 410);
  for (const person of [ada, bob, late]) person.leave();
});

test("[STQ2] a room that is at its limit only by its log has space again once the log is trimmed, without anybody's help", async () => {
  const cleo = await Person.enter(cluster, cluster.gateways[0]!, "bursty", "cleo", { merging: true });
  const same = insertion("y".repeat(EDIT_BYTES)); // The log grows by it each time, the document only once.
  await fill(cleo, () => same);
  await eventually("it may be written again", () => cleo.room.rights.write, 60_000);
  await cleo.untilSaved();
  expect((await write("bursty")).status).toBe(200);
  cleo.leave();
});

test("[STQ3] the rooms of a tenant at its limit are read only, and writable again after rooms are deleted", async () => {
  const tenant = "small";
  const ofTenant = { token: (room: string, user: string) => cluster.token(room, user, { tenant }) };
  const rooms = ["one", "two", "three", "four", "five"];
  const refusal = async () => ((await (await write("one", tenant)).json()) as { message?: string }).message ?? "";
  for (const room of rooms) {
    const person = await Person.enter(ofTenant, cluster.gateways[0]!, room, "dora", { merging: true });
    for (let edit = 0; edit < 28; edit++) person.type(insertion("z".repeat(EDIT_BYTES)));
    await eventually(`${room} is saved, or the tenant is full`, () => person.room.saved || isReadOnly(person));
    person.leave();
  }
  await eventually("the tenant is full", async () => (await refusal()).includes("the tenant small stores"), 60_000);
  expect(cluster.documentServices[0]!.printed()).toContain('"kind":"tenant_storage"');
  expect((await write("six")).status, "other tenants are not affected").toBe(200);
  await eventually("the rooms leave memory", async () => (await roomsInMemory()) === 0);
  for (const room of rooms.slice(0, 4)) expect((await ask("DELETE", "", room, { rights: ADMIN, tenant })).status).toBeLessThan(300);
  await eventually("rooms accept edits", async () => (await write("six", tenant)).status === 200);
});

/** Of the document service. */
async function roomsInMemory(): Promise<number> {
  const metrics = await (await fetch(metricsUrl)).text();
  const counts = [...metrics.matchAll(/^coroom_documents_rooms\{.*\} (\d+)$/gm)].map(([, count]) => Number(count));
  expect(counts).not.toEqual([]);
  return counts.reduce((sum, count) => sum + count, 0);
}

/**
 * The payloads of all edits in the log and in the segments of the history, by seq. The log is read first: an edit that leaves
 * it afterwards must be in a segment by then.
 */
async function keptEdits(nats: NatsConnection, room: RoomKey): Promise<{ all: string[]; inLog: number }> {
  const log = await readLog(cluster.natsUrl, cluster.environment, room);
  const streams = jetstream(nats);
  const subjects = subjectsOf(cluster.environment);
  const objects = await jetstreamObjects(streams, subjects.historyObjectsBucket, 1);
  const histories = await kvHistories(streams, subjects.historyBucket, 1);
  const segments = async () => Promise.all((await histories.read(room)).history.segments.map(({ object }) => objects.read(object)));
  let found = await segments();
  while (found.includes(undefined)) found = await segments(); // A larger segment replaced one of them.
  const archived = found.flatMap((bytes): StoredRecord[] => decodeSegment(bytes!) ?? []);
  const edits = new Map<number, string>();
  for (const record of [...loggedEditsOf(archived).map((logged) => logged.record), ...log])
    if (record.kind === "edits")
      record.edits.edits.forEach(({ payload }, index) => edits.set(record.edits.firstSeq + index, new TextDecoder().decode(payload)));
  return { all: [...edits].sort(([a], [b]) => a - b).map(([, payload]) => payload), inLog: log.length };
}

/** The number of edits in all pages of the room's writing sessions. */
async function editsInSessions(room: string): Promise<number> {
  let [edits, from] = [0, 1];
  for (;;) {
    const answer = await ask("GET", `/sessions?from=${from}`, room);
    expect(answer.status).toBe(200);
    const { sessions, through } = (await answer.json()) as { sessions: { edits: number }[]; through: number };
    if (sessions.length === 0) return edits;
    edits += sessions.reduce((sum, session) => sum + session.edits, 0);
    from = through + 1;
  }
}

test("[STQ4] with a retention, edits that are no Yjs updates move from the log to the history without a loss, and clients that have them go on", async () => {
  const token = await cluster.token("opaque", "eve");
  const eve = new RoomConnection({ url: cluster.gateways[0]!.url, room: "opaque", token });
  const nats = await connectNats({ servers: cluster.natsUrl, name: "stored-bytes" });
  const key = roomKey("default" as TenantId, "opaque" as RoomId);
  const sent: string[] = [];
  const send = async (payload: string): Promise<void> => {
    eve.send(new TextEncoder().encode(payload));
    await eventually("it is saved", () => eve.saved);
    sent.push(payload);
    expect((await keptEdits(nats, key)).all).toEqual(sent);
  };
  try {
    for (let edit = 1; edit <= 20; edit++) await send(`payload ${edit}`);
    await eventually("old edits leave the log", async () => {
      const { all, inLog } = await keptEdits(nats, key);
      expect(all).toEqual(sent);
      await ask("GET", "/sessions", "opaque"); // A room that left memory would be trimmed by an hourly sweep.
      return inLog < 3;
    });
    await send("one more");
    expect(await editsInSessions("opaque")).toBe(sent.length);
    expect((await ask("GET", "/snapshot", "opaque")).status, "nobody else can make a document of them").toBe(404);
  } finally {
    eve.destroy();
    await nats.close();
  }
});
