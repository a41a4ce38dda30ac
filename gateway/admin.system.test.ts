/**
 * Administration over the HTTP API of one gateway, and its effect on members at another gateway. `openapi.json` is
 * checked too: each answer must match its schema, and each declared error must occur in a test.
 */

import { generateKeyPair, SignJWT } from "jose";
import { beforeEach, expect, test } from "vitest";

import { RoomConnection } from "../client/index.ts";
import { CLOSE } from "../shared/wire/close-codes.ts";
import { Declared } from "../test/contract/declared.ts";
import { until } from "../test/contract/real-nats.ts";
import { gatewayRig, OPERATOR, ROOM, tokenOf } from "./testing/gateway-rig.ts";
import type { WireClient } from "./testing/wire-client.ts";

const rig = gatewayRig("admin");
const declared = new Declared(new URL("./openapi.json", import.meta.url));
let one: string;
let two: string;

beforeEach(async () => {
  rig.startOwner();
  [one, two] = [await rig.start(), await rig.start()];
});

async function enter(address: string, user: string): Promise<{ client: WireClient; channel: number }> {
  const client = await rig.greet(address, user);
  return { client, channel: (await client.join(ROOM, `${user}-${user}-key`)).channel };
}

type Answer = { readonly status: number; readonly body: Record<string, unknown> };

/** A `body` that is a string is sent unchanged. */
async function ask(address: string, path: string, token: string, body?: object | string): Promise<Answer> {
  const method = body === undefined ? "GET" : "POST";
  const headers = token === "" ? {} : { authorization: `Bearer ${token}` };
  const response = await fetch(`http://${address}/v1/admin${path}`, {
    method,
    headers,
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const answer = { status: response.status, body: (await response.json()) as Record<string, unknown> };
  declared.expect({ method, path: `/v1/admin${path}`, ...answer });
  return answer;
}

const admin = (claims: object = {}) => tokenOf("boss", { rights: ["read", "admin"], ...claims });

test("[ADN1] a room's members are listed from all gateways, with their rights", async () => {
  await enter(one, "ann");
  await enter(two, "bob");
  const listed = async () => {
    const { gateways, members } = (await ask(one, `/rooms/${ROOM}/members`, await admin())).body as {
      gateways: number;
      members: { user: string }[];
    };
    return { gateways, members: members.toSorted((a, b) => a.user.localeCompare(b.user)) };
  };
  await expect
    .poll(listed, { timeout: 60_000 }) // A gateway that does not answer in time is left out.
    .toMatchObject({
      gateways: 2,
      members: [
        { user: "ann", write: true },
        { user: "bob", write: true },
      ],
    });
});

test("[ADN2] a kick reaches a user of another gateway: it ends one room's membership, or the whole connection", async () => {
  const bob = await enter(two, "bob");
  expect((await ask(one, "/kick", await admin(), { user: "bob", room: ROOM })).body).toEqual({
    kicked: 1,
    gateways: 2,
    silentGateways: [],
  });
  expect(await bob.client.next("left")).toMatchObject({ channel: bob.channel, reason: "rights-revoked" });
  expect((await ask(one, "/kick", await admin(), { user: "bob" })).body).toMatchObject({ kicked: 1 });
  expect((await bob.client.end()).code).toBe(4106);
  const { connection } = await (await rig.greet(two, "cid")).next("welcome");
  expect((await ask(one, "/kick", await admin(), { connection })).body).toMatchObject({ kicked: 1 });
});

test("[ADN3] a user who is made read-only continues to read and may not write until the sanction is lifted", async () => {
  const bob = await enter(two, "bob");
  expect((await ask(one, "/downgrade", await admin(), { user: "bob", room: ROOM, seconds: 600 })).status).toBe(200);
  expect(await bob.client.next("left")).toMatchObject({ reason: "rights-changed" });
  const again = await bob.client.join(ROOM, "bob-bob-key");
  expect(again.rights).toEqual({ read: true, write: false });
  bob.client.edit(again.channel, 1, "no");
  expect(await bob.client.next("nack")).toMatchObject({ reason: "read-only" });
  expect((await ask(two, "/lift", await admin(), { user: "bob", room: ROOM, level: "read-only" })).status).toBe(200);
  expect(await bob.client.next("left")).toMatchObject({ reason: "rights-changed" });
  expect((await bob.client.join(ROOM, "bob-bob-key")).rights.write).toBe(true);
});

test("[ADN4] a banned user is disconnected, learns the duration, and cannot return before its end or a lift", async () => {
  const bob = await rig.greet(two, "bob");
  await bob.next("welcome");
  await ask(one, "/ban", await admin(), { user: "bob", seconds: 3_600, reason: "spam" });
  expect((await bob.next("retry-later")).retryAfterMs).toBeGreaterThan(3_000_000);
  expect([(await bob.next("error")).message, (await bob.end()).code]).toEqual(["banned for a time: spam", 4009]);
  expect((await (await rig.greet(one, "bob")).end()).code).toBe(4009);
  expect((await ask(two, "/bans", await admin())).body["sanctions"]).toMatchObject([
    { kind: "user", tenant: "acme", user: "bob", level: "banned", reason: "spam" },
  ]);
  await ask(two, "/lift", await admin(), { user: "bob" });
  await until(
    async () => ((await ask(one, "/bans", await admin())).body["sanctions"] as object[]).length === 0,
    "the lift at the other gateway",
  );
  await (await rig.greet(one, "bob")).next("welcome");
});

test("[ADN17] the SDK's room of a user banned from it waits with the reason, and has what was typed saved after the ban", async () => {
  const room = new RoomConnection({ url: `ws://${two}`, room: ROOM, token: await tokenOf("bob") });
  const refusals: unknown[] = [];
  room.on("refused", (refusal) => refusals.push(refusal));
  try {
    room.send(Uint8Array.of(1));
    await until(() => room.synced && room.saved, "the edit before the ban");
    await ask(one, "/ban", await admin(), { user: "bob", room: ROOM, seconds: 5, reason: "spam" });
    await until(() => room.status === "waiting" && room.outage?.reason === "not-allowed", "the wait");
    expect(room.outage?.why).toContain("banned from the room for a time: spam");
    room.send(Uint8Array.of(2));
    expect([room.unsavedEdits, room.saved]).toEqual([1, false]);
    await until(() => room.saved, "the edit typed during the ban", 150_000);
    expect([room.status, room.position?.seq, refusals]).toEqual(["connected", 2, []]);
  } finally {
    room.destroy();
  }
});

test("[ADN5] operators ban addresses: their connections are closed, and new ones are refused with the reason", async () => {
  const bob = await rig.greet(two, "bob", { from: "203.0.113.7" });
  await bob.next("welcome");
  expect((await ask(one, "/ban", await admin(), { address: "203.0.113.7", seconds: 60 })).status).toBe(403);
  expect((await ask(one, "/ban", OPERATOR, { address: "203.0.113.7", seconds: 3_600 })).status).toBe(200);
  expect((await bob.end()).code).toBe(4009);
  const next = await rig.greet(two, "cid", { from: "203.0.113.7" });
  expect((await next.next("retry-later")).retryAfterMs).toBeGreaterThan(3_000_000);
  expect((await next.end()).code).toBe(4009);
  await (await rig.greet(two, "cid", { from: "203.0.113.8" })).next("welcome");
});

test("[ADN10] a request with fields that do not apply to an address is refused, and never applied to more users", async () => {
  const message = expect.stringContaining("an address can only be banned from everywhere: name a user");
  for (const [path, more] of [
    ["/ban", { room: ROOM }],
    ["/downgrade", {}],
    ["/downgrade", { room: ROOM }],
  ] as const) {
    expect(await ask(one, path, OPERATOR, { tenant: "acme", address: "203.0.113.7", seconds: 600, ...more })).toMatchObject({
      status: 400,
      body: { error: "bad-request", message },
    });
  }
  expect((await ask(one, "/bans", OPERATOR)).body["sanctions"]).toEqual([]);
});

test("[ADN6] a gateway that starts later knows the bans in force", async () => {
  await ask(one, "/ban", await admin(), { user: "bob", seconds: 600 });
  const three = await rig.start();
  await until(
    async () => ((await ask(three, "/bans", await admin())).body["sanctions"] as object[]).length === 1,
    "the ban at the new gateway",
  );
  expect((await (await rig.greet(three, "bob")).end()).code).toBe(4009);
});

test("[ADN7] an admin acts only in its tenant and in the rooms of its token, and every other request is refused with its status", async () => {
  const inNotes = await admin({ rooms: [ROOM] });
  const cases: [string, string, object | undefined, number][] = [
    ["/kick", await tokenOf("ann"), { user: "bob" }, 403],
    ["/kick", "nonsense", { user: "bob" }, 401],
    ["/kick", await admin(), {}, 400],
    ["/kick", inNotes, { user: "bob" }, 403],
    ["/kick", inNotes, { user: "bob", room: "other" }, 403],
    ["/kick", inNotes, { user: "bob", room: ROOM }, 200],
    ["/kick", await admin(), { user: "bob", tenant: "other" }, 403],
    ["/kick", OPERATOR, { user: "bob", tenant: "other" }, 200],
    ["/ban", await admin(), { user: "bob" }, 400],
    ["/ban", await admin(), { user: "bob", seconds: -1 }, 400],
    ["/lift", await admin(), { user: "bob" }, 404],
    ["/rooms/other/members", inNotes, undefined, 403],
    ["/drain", await admin(), {}, 401],
  ];
  for (const [path, token, body, status] of cases)
    expect([path, body, (await ask(one, path, token, body)).status]).toEqual([path, body, status]);
  expect((await ask(one, "/kick", OPERATOR, "{")).status).toBe(400);
  expect((await ask(one, "/kick", OPERATOR, "x".repeat(100_000))).status).toBe(413);
});

test("[ADN8] a gateway that is drained over HTTP is unready immediately, and its clients move to other gateways", async () => {
  const three = await rig.start({ drainMsMax: "60000" });
  const ann = await rig.greet(three, "ann");
  await ann.next("welcome");
  expect(await ask(three, "/drain", OPERATOR, {})).toEqual({ status: 202, body: { connections: 1 } });
  expect((await fetch(`http://${three}/readyz`)).status).toBe(503);
  await ann.next("going-away");
  ann.close();
  await until(async () => (await ask(three, "/drain", OPERATOR, {})).body["connections"] === 0, "everybody to have moved");
});

test("[ADN13] a gateway whose drain time is 0 closes its clients immediately", async () => {
  const three = await rig.start({ drainMsMax: "0" });
  const ann = await rig.greet(three, "ann");
  await ann.next("welcome");
  expect((await ask(three, "/drain", OPERATOR, {})).status).toBe(202);
  expect((await ann.end()).code).toBe(CLOSE.goingAway.code);
  await until(async () => (await ask(three, "/drain", OPERATOR, {})).body["connections"] === 0, "it to be gone");
});

test("[ADN9] every error that openapi.json declares occurs in these tests", async () => {
  expect((await ask(one, "/bans", "")).body).toMatchObject({ error: "no-token" });
  expect((await ask(one, "/bans", await tokenOf("boss", { rights: ["admin"] }, "1m ago"))).body).toMatchObject({ error: "token-expired" });
  const keyless = await rig.start({ jwtSecret: "", jwksUrl: "http://127.0.0.1:9/keys" });
  const { privateKey } = await generateKeyPair("ES256");
  const signed = await new SignJWT({ rooms: ["*"], rights: ["admin"] })
    .setProtectedHeader({ alg: "ES256" })
    .setSubject("boss")
    .setExpirationTime("1h")
    .sign(privateKey);
  expect(await ask(keyless, "/bans", signed)).toMatchObject({ status: 503, body: { error: "unavailable" } });
  const small = await rig.start({ bodiesBytesMax: "1000", editBytesMax: "1000" });
  expect(await ask(small, "/kick", await admin(), "x".repeat(1_001))).toMatchObject({ status: 503, body: { error: "busy" } });
  expect(declared.unmet).toEqual([]); // The earlier tests of this file cover the other errors.
});
