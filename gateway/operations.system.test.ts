/**
 * Requests of an operations console to a gateway with fake room servers. `operations-openapi.json` is checked too: each
 * answer must match its schema, and each declared error must occur in a test.
 */

import { once } from "node:events";
import { jetstream } from "@nats-io/jetstream";
import { generateKeyPair, SignJWT } from "jose";
import type { Msg } from "nats";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { WebSocket } from "ws";

import { type ListedRoom, RoomListRequest, type RoomReport } from "../shared/bus/fleet-messages.ts";
import { decodeJson, encodeJson } from "../shared/bus/json-messages.ts";
import { type PlannedRoom, type RoomEntry, ServerCommand } from "../shared/bus/placement-messages.ts";
import type { Vitals } from "../shared/bus/vitals.ts";
import { type Epoch, type RoomId, roomKey, type ServerId, type TenantId, type UnixMillis } from "../shared/ids.ts";
import { kvBucket } from "../shared/io/jetstream-stores.ts";
import { kvLeases } from "../shared/io/kv-leases.ts";
import { natsOperations } from "../shared/io/nats-operations.ts";
import { makeOperatorPass } from "../shared/io/operator-pass.ts";
import { systemClock } from "../shared/io/system-clock.ts";
import { SILENT_LOG } from "../shared/testing/silent-log.ts";
import { Declared } from "../test/contract/declared.ts";
import { until } from "../test/contract/real-nats.ts";
import { SOCKET_PATH } from "./http/route-table.ts";
import { gatewayRig, metric, OPERATOR, ROOM, TENANT, tokenOf } from "./testing/gateway-rig.ts";

const rig = gatewayRig("operations", { adminReadBurst: "100000", adminReadsPerSecond: "100000" }); // Tests repeat their requests until they see what they wait for.
const declared = new Declared(new URL("./operations-openapi.json", import.meta.url));
const NOTES = roomKey(TENANT as TenantId, ROOM as RoomId);
let one: string;

beforeEach(async () => {
  one = await rig.start();
});

type Answer = { readonly status: number; readonly body: Record<string, unknown> };

async function ask(path: string, token: string, body?: object, address = one): Promise<Answer> {
  const method = body === undefined ? "GET" : "POST";
  const headers = token === "" ? {} : { authorization: `Bearer ${token}` };
  const response = await fetch(`http://${address}/v1/admin${path}`, {
    method,
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const answer = { status: response.status, body: (await response.json()) as Record<string, unknown> };
  declared.expect({ method, path: `/v1/admin${path.split("?")[0]}`, ...answer });
  return answer;
}

const admin = (claims: object = {}) => tokenOf("boss", { rights: ["read", "admin"], ...claims });

const listed = (room: string, participants: number, more: Partial<ListedRoom> = {}): ListedRoom => ({
  room: roomKey(TENANT as TenantId, room as RoomId),
  server: "rs-1",
  epoch: 3,
  mode: "flat",
  participants,
  gateways: 1,
  editsPerSecond: 0.5,
  heldBack: 0,
  ...more,
});

/** A fake room server with these rooms. It leaves a command unanswered if `obey` is or returns undefined. */
async function playServer(
  server: string,
  rooms: readonly ListedRoom[],
  obey: ((order: ServerCommand) => object) | undefined = () => ({ kind: "done" }),
): Promise<{ orders: ServerCommand[]; asked: RoomListRequest[] }> {
  const played = { orders: [] as ServerCommand[], asked: [] as RoomListRequest[] };
  const { connection: natsConnection, subjects } = rig;
  const answering = (receive: (msg: Msg) => void) => ({ callback: (_: Error | null, msg: Msg) => receive(msg) });
  natsConnection.subscribe(
    subjects.listRooms,
    answering((msg) => {
      const question = decodeJson(RoomListRequest, msg.data)!;
      played.asked.push(question);
      msg.respond(encodeJson({ rooms: rooms.slice(0, question.limit), matching: rooms.length }));
    }),
  );
  natsConnection.subscribe(
    subjects.order(server as ServerId),
    answering((msg) => {
      const order = decodeJson(ServerCommand, msg.data)!;
      if (order.kind !== "show-presence") played.orders.push(order);
      const reply = obey?.(order);
      if (reply !== undefined) msg.respond(encodeJson(reply));
    }),
  );
  const beat = () =>
    natsConnection.publish(
      subjects.servers,
      encodeJson({
        server,
        rooms: rooms.length,
        draining: false,
        time: Date.now(),
        labels: { host: "north", zone: "", pool: "" },
        load: { used: 0.42, hot: rooms.slice(0, 1).map(({ room }) => ({ room, share: 0.3 })) },
      }),
    );
  beat();
  const beating = setInterval(beat, 100);
  onTestFinished(() => clearInterval(beating));
  await until(
    async () => ((await ask("/fleet", OPERATOR)).body["servers"] as { server: string }[]).some((each) => each.server === server),
    `the heartbeat of ${server}`,
  );
  return played;
}

/** Answers lists of rooms as a room server whose heartbeats do not arrive. */
function playSilentServer(rooms: readonly ListedRoom[]): void {
  rig.connection.subscribe(rig.subjects.listRooms, {
    callback: (_, msg) => void msg.respond(encodeJson({ rooms, matching: rooms.length })),
  });
}

async function ownedBy(server: string): Promise<void> {
  const rooms = await kvBucket(jetstream(rig.connection), rig.subjects.roomsBucket, { replicas: 1 });
  await rooms.put(NOTES, encodeJson({ owner: server as ServerId, epoch: 3 as Epoch } satisfies RoomEntry));
}

/** Gateways and room servers report at intervals, and a list lacks those that do not answer in time. */
const EVENTUALLY = { timeout: 60_000 };

test("[OPR1] operators see the servers, the gateways and the placement leader, with the secret or a pass made from it", async () => {
  await playServer("rs-1", [listed(ROOM, 3)]);
  const two = await rig.start();
  await (await rig.greet(two, "ann")).next("welcome");
  const leases = await kvLeases(jetstream(rig.connection), rig.subjects.placementBucket, 1);
  await leases.write(0, { holder: "placement-1", floor: 1 }, 0);
  const fleet = async (token: string) => {
    const { gateways, ...rest } = (await ask("/fleet", token)).body as { gateways: { connections: number; state: string }[] };
    return { ...rest, gateways: gateways.map(({ connections, state }) => `${connections} ${state}`).sort() };
  };
  const shown = {
    environment: rig.environment,
    servers: [{ server: "rs-1", rooms: 1, draining: false, host: "north", used: 0.42, hot: [{ tenant: TENANT, room: ROOM, share: 0.3 }] }],
    gateways: ["0 ready", "1 ready"],
    placement: { leader: "placement-1" },
  };
  for (const token of [OPERATOR, makeOperatorPass(OPERATOR, (Date.now() + 600_000) as UnixMillis)])
    await expect.poll(() => fleet(token), EVENTUALLY).toMatchObject(shown);
});

test("[OPR2] the rooms of all servers are listed in pages, and an administrator gets only those of its tenant", async () => {
  const first = await playServer("rs-1", [listed("big", 90), listed("small", 1)]);
  await playServer("rs-2", [listed("middle", 40, { server: "rs-2", heldBack: 1 })]);
  const page = async () => (await ask("/rooms?limit=2&search=IDD", OPERATOR)).body;
  await expect.poll(page, EVENTUALLY).toMatchObject({
    matching: 3,
    servers: 2,
    serversKnown: 2,
    next: `40:${listed("middle", 0).room}`,
    rooms: [
      { tenant: TENANT, room: "big", participants: 90, server: "rs-1" },
      { room: "middle", heldBack: 1, server: "rs-2" },
    ],
  });
  expect(first.asked.at(-1)).toEqual({ search: "IDD", limit: 3 });
  await ask(`/rooms?limit=2&after=${encodeURIComponent(`40:${listed("middle", 0).room}`)}`, await admin());
  expect(first.asked.at(-1)).toEqual({ tenant: TENANT, search: "", after: { participants: 40, room: listed("middle", 0).room }, limit: 3 });
  for (const wrong of ["after=x", "limit=0", "limit=101", "tenant=a.b"]) expect((await ask(`/rooms?${wrong}`, OPERATOR)).status).toBe(400);
});

test("[OPR3] a room is described by its owner and by placement, and a room that is not open is not found", async () => {
  const account: RoomReport = {
    server: "rs-1",
    epoch: 3,
    mode: "hierarchical",
    shed: 1,
    participants: 61,
    presencePerSecond: 30,
    presenceBytes: 10,
    gateways: { "gw-1": 61 },
    statesReceived: 0,
    deltasPublished: 0,
    deltaBytesPublished: 0,
  };
  rig.connection.subscribe(rig.subjects.askRooms, {
    callback: (_, msg) => void (msg.json<{ room: string }>().room === NOTES && msg.respond(encodeJson(account))),
  });
  const plans = await kvBucket(jetstream(rig.connection), rig.subjects.planBucket, { replicas: 1 });
  await plans.put(
    NOTES,
    encodeJson({
      owner: "rs-1" as ServerId,
      replica: "rs-2" as ServerId,
      reason: "it was found there",
      generation: 1,
      at: 1_000 as UnixMillis,
    } satisfies PlannedRoom),
  );
  expect((await ask(`/rooms/${ROOM}?tenant=${TENANT}`, OPERATOR)).body).toMatchObject({
    tenant: TENANT,
    room: ROOM,
    server: "rs-1",
    mode: "hierarchical",
    heldBack: 1,
    gateways: [{ gateway: "gw-1", members: 61 }],
    placed: { reason: "it was found there", replica: "rs-2", at: "1970-01-01T00:00:01.000Z" },
  });
  expect((await ask(`/rooms/${ROOM}`, await admin({ rooms: [ROOM] }))).status).toBe(200);
  expect(await ask("/rooms/elsewhere", OPERATOR)).toMatchObject({ status: 404, body: { error: "not-open" } });
});

test("[OPR15] the vitals of all processes are kept over time for operators, and those of a room for its tenant", async () => {
  const server: Vitals = {
    instance: "rs-1",
    role: "room-server",
    values: { editsPerSecond: 12.34567, memoryBytes: 1_000 },
    rooms: [{ room: NOTES, participants: 7, editsPerSecond: 2, mode: "flat" }],
  };
  const send = setInterval(() => rig.connection.publish(rig.subjects.vitals, encodeJson(server)), 500);
  onTestFinished(() => clearInterval(send));
  type Lines = { vital: string; role: string; values: (number | null)[] }[];
  const newest = async (query = ""): Promise<Record<string, number | null | undefined>> => {
    const { series } = (await ask(`/vitals${query}`, OPERATOR)).body as { series: Lines };
    return Object.fromEntries(series.map(({ vital, role, values }) => [`${role} ${vital}`, values.at(-1)]));
  };
  await expect.poll(newest, EVENTUALLY).toMatchObject({
    "gateway connections": 0,
    "gateway natsLag": expect.any(Number),
    "gateway storedBytes": expect.any(Number),
    "room-server editsPerSecond": 12.35,
    "room-server memoryBytes": 1_000,
  });
  expect(Object.keys(await newest("?process=rs-1"))).toEqual(["room-server editsPerSecond", "room-server memoryBytes"]);
  const { body } = await ask("/vitals?after=9999999999", OPERATOR);
  expect((body["series"] as Lines).every(({ values }) => values.length === 0)).toBe(true);
  const ofRoom = (await ask(`/rooms/${ROOM}/vitals`, await admin())).body as Record<string, (number | null)[]>;
  expect([ofRoom["participants"]!.at(-1), ofRoom["editsPerSecond"]!.at(-1)]).toEqual([7, 2]);
  expect((await ask("/rooms/other/vitals", OPERATOR)).body).toMatchObject({ participants: [] });
  for (const wrong of ["/vitals?after=-1", "/vitals?process=a.b", `/rooms/${ROOM}/vitals?after=x`])
    expect((await ask(wrong, OPERATOR)).status).toBe(400);
  expect((await ask(`/rooms/${ROOM}/vitals`, await admin({ rooms: ["elsewhere"] }))).status).toBe(403);
  expect(await ask("/vitals", await admin())).toMatchObject({ status: 401, body: { error: "not-an-operator" } });
});

test("[OPR16] ended connections are counted by their cause: closed by the gateway, closed by the client, or lost", async () => {
  const ends = (cause: string) => metric(one, `coroom_gateway_connection_ends_total{cause="${cause}"}`);
  const opened = async (): Promise<WebSocket> => {
    const socket = new WebSocket(`ws://${one}${SOCKET_PATH}`);
    await once(socket, "open");
    return socket;
  };
  (await opened()).close();
  (await opened()).terminate();
  (await opened()).send(Uint8Array.of(255));
  await expect.poll(() => Promise.all(["client", "network", "gateway"].map(ends)), EVENTUALLY).toEqual([1, 1, 1]);
});

test("[OPR4] events are listed from the first one or after a number, and an administrator gets only those of its tenant", async () => {
  const { report } = natsOperations(rig.connection, rig.subjects, "rs-1", {
    clock: systemClock,
    log: SILENT_LOG,
    count: () => {},
  });
  expect((await ask("/events", OPERATOR)).body).toEqual({ events: [], takeovers: [], last: 0 });
  report({ kind: "mode_transition", room: NOTES, from: "flat", to: "hierarchical", participants: 51, cause: "grew", epoch: 3 });
  report({ kind: "placement_leads", generation: 4 });
  await until(async () => (await ask("/events", OPERATOR)).body["last"] === 2, "both events");
  expect((await ask("/events", OPERATOR)).body["events"]).toMatchObject([
    { seq: 1, kind: "mode_transition", tenant: TENANT, room: ROOM, cause: "grew", by: "rs-1" },
    { seq: 2, kind: "placement_leads" },
  ]);
  expect((await ask("/events?after=1", OPERATOR)).body["events"]).toMatchObject([{ seq: 2 }]);
  expect((await ask("/events", await admin())).body).toMatchObject({ last: 2, events: [{ seq: 1 }] });
  expect((await ask("/events", await admin({ tenant: "other" }))).body).toEqual({ events: [], takeovers: [], last: 2 });
  expect((await ask("/events?after=-1", OPERATOR)).status).toBe(400);
  const two = await rig.start(); // The gateway started after the events, and knows them because they are stored.
  expect((await ask("/events", OPERATOR, undefined, two)).body).toMatchObject({ last: 2 });
  report({ kind: "room_claimed", room: NOTES, epoch: 4, from: "rs-0" });
  await until(async () => (await ask("/events", OPERATOR)).body["last"] === 3, "the takeover");
  expect((await ask("/events?after=2", await admin())).body).toMatchObject({
    events: [],
    takeovers: [{ seq: 3, by: "rs-1", from: "rs-0", tenant: TENANT, count: 1, rooms: [ROOM] }],
  });
});

test("[OPR5] a room is moved by its owner, and the plan names the operator as the reason; a refusal gives its reason", async () => {
  let reply: object | undefined = { kind: "done" };
  const { orders } = await playServer("rs-1", [listed(ROOM, 1)], () => reply!);
  await playServer("rs-2", []);
  const plans = await kvBucket(jetstream(rig.connection), rig.subjects.planBucket, { replicas: 1 }); // As placement does.
  const move = (to: string) => ask("/move", OPERATOR, { tenant: TENANT, room: ROOM, to });
  expect(await move("rs-2")).toMatchObject({ status: 404, body: { error: "not-open" } });
  await ownedBy("rs-1");
  expect(await move("rs-2")).toEqual({ status: 200, body: { from: "rs-1", to: "rs-2" } });
  expect(orders).toEqual([{ kind: "hand-over", room: NOTES, to: "rs-2", generation: 0 }]);
  expect((await plans.get(NOTES))?.json()).toMatchObject({ owner: "rs-2", reason: "an operator moved it from rs-1" });
  expect(await move("rs-none")).toMatchObject({ status: 404, body: { error: "no-such-server" } });
  reply = { kind: "refused", reason: "rs-2 does not get ready for the room" };
  expect(await move("rs-2")).toMatchObject({ status: 409, body: { error: "refused", message: "rs-2 does not get ready for the room" } });
  expect((await ask("/move", OPERATOR, { room: ROOM })).status).toBe(400);
  expect((await ask("/move", OPERATOR, { room: "..", to: "rs-2" })).status).toBe(400);
});

test("[OPR6] an administrator above the rate of reads is refused and counted, and others are not affected", async () => {
  const slow = await rig.start({ adminReadBurst: "2", adminReadsPerSecond: "1" });
  const boss = await admin();
  const answers = await Promise.all(Array.from({ length: 20 }, () => ask("/rooms", boss, undefined, slow))); // The limit refills by one request per second.
  const refused = answers.filter(({ status }) => status !== 200);
  expect([...new Set(refused.map(({ status, body }) => `${status} ${String(body["error"])}`))]).toEqual(["429 rate-limited"]);
  expect(answers.length - refused.length).toBeGreaterThan(1);
  expect(await metric(slow, 'coroom_gateway_limits_reached_total{limit="admin-reads"}')).toBe(refused.length);
  expect((await ask("/rooms", OPERATOR, undefined, slow)).status).toBe(200);
  expect((await ask("/rooms", await tokenOf("other boss", { rights: ["admin"] }), undefined, slow)).status).toBe(200);
});

test("[OPR7] a server is drained, and a gateway is drained through another gateway", async () => {
  const { orders } = await playServer("rs-1", [listed(ROOM, 1)]);
  expect(await ask("/drain-server", OPERATOR, { server: "rs-1" })).toEqual({ status: 202, body: { server: "rs-1", rooms: 1 } });
  expect(orders).toEqual([{ kind: "drain" }]);
  expect(await ask("/drain-server", OPERATOR, { server: "rs-none" })).toMatchObject({ status: 404, body: { error: "no-such-server" } });
  expect((await ask("/drain-server", OPERATOR, {})).status).toBe(400);
  await rig.start({ drainMsMax: "60000" });
  type Gateways = { gateway: string; state: string }[];
  let both: Gateways = [];
  await until(async () => (both = (await ask("/fleet", OPERATOR)).body["gateways"] as Gateways).length === 2, "both gateways");
  const { gateway } = both[1]!;
  expect(await ask("/drain-gateway", OPERATOR, { server: gateway })).toEqual({ status: 202, body: { server: gateway, connections: 0 } });
  await until(
    async () =>
      ((await ask("/fleet", OPERATOR)).body["gateways"] as Gateways)
        .map(({ state }) => state)
        .sort()
        .join() === "draining,ready",
    "it to be draining, and not the other",
  );
  expect((await ask("/drain-gateway", OPERATOR, { server: "none" })).status).toBe(404);
});

test("[OPR8] only operators may use servers, moves and drains, only administrators rooms, and every declared error occurs", async () => {
  const cases: [string, string, object | undefined, number, string][] = [
    ["/fleet", await admin(), undefined, 401, "not-an-operator"],
    ["/move", await admin(), { room: ROOM, to: "rs-1" }, 401, "not-an-operator"],
    ["/drain-server", await admin(), { server: "rs-1" }, 401, "not-an-operator"],
    ["/drain-gateway", await admin(), { server: "gw-1" }, 401, "not-an-operator"],
    ["/move", OPERATOR, { room: "x".repeat(65_536), to: "rs-1" }, 413, "too-large"],
    ["/drain-server", OPERATOR, { server: "x".repeat(65_536) }, 413, "too-large"],
    ["/drain-gateway", OPERATOR, { server: "x".repeat(65_536) }, 413, "too-large"],
    ["/fleet", makeOperatorPass("another secret", (Date.now() + 60_000) as UnixMillis), undefined, 401, "token-refused"],
    ["/fleet", makeOperatorPass(OPERATOR, (Date.now() - 1_000) as UnixMillis), undefined, 401, "token-refused"],
    ["/fleet", await tokenOf("ann"), undefined, 403, "not-allowed"],
    ["/fleet", "", undefined, 401, "no-token"],
    ["/fleet", await tokenOf("boss", { rights: ["admin"] }, "1m ago"), undefined, 401, "token-expired"],
    ["/rooms", await tokenOf("ann"), undefined, 403, "not-allowed"],
    ["/rooms", await admin({ rooms: [ROOM] }), undefined, 403, "not-allowed"],
    ["/rooms?tenant=other", await admin(), undefined, 403, "not-allowed"],
    ["/rooms/other", await admin({ rooms: [ROOM] }), undefined, 403, "not-allowed"],
    ["/events", await admin({ rooms: [ROOM] }), undefined, 403, "not-allowed"],
    ["/rooms", "", undefined, 401, "no-token"],
    ["/rooms", "nonsense", undefined, 401, "token-refused"],
    ["/rooms", await tokenOf("boss", { rights: ["admin"] }, "1m ago"), undefined, 401, "token-expired"],
  ];
  for (const [path, token, body, status, error] of cases)
    expect([path, await ask(path, token, body)]).toMatchObject([path, { status, body: { error } }]);
  const keyless = await rig.start({ jwtSecret: "", jwksUrl: "http://127.0.0.1:9/keys" });
  const { privateKey } = await generateKeyPair("ES256");
  const signed = await new SignJWT({ rooms: ["*"], rights: ["admin"] })
    .setProtectedHeader({ alg: "ES256" })
    .setSubject("boss")
    .setExpirationTime("1h")
    .sign(privateKey);
  expect(await ask("/rooms", signed, undefined, keyless)).toMatchObject({ status: 503, body: { error: "unavailable" } });
  expect(declared.unmet).toEqual([]); // The earlier tests of this file cover the other errors.
});

test("[OPR18] a list of rooms waits for a room server even if none sends heartbeats, because NATS may be silent", async () => {
  playSilentServer([listed(ROOM, 3)]);
  await rig.connection.flush();
  expect((await ask("/rooms", OPERATOR)).body).toMatchObject({ matching: 1, servers: 1, serversKnown: 0, rooms: [{ room: ROOM }] });
});
