import { expect, test } from "vitest";

import type { Sanction } from "../../../shared/bus/admin-messages.ts";
import { type Millis, parseRoomId, type RoomKey, roomKey, type TenantId, type UnixMillis, type UserId } from "../../../shared/ids.ts";
import { FakeClock } from "../../../shared/testing/fake-clock.ts";
import type { RouteRequest } from "../../http/requests.ts";
import { Sanctions } from "../../limits/sanctions.ts";
import { adminRoutes } from "./admin-routes.ts";

const SECRET = "an operator's secret";
const ban = (until: number, by: Pick<Sanction, "by"> = {}): Sanction => ({
  target: { kind: "user", tenant: "acme" as TenantId, user: "eve" as UserId },
  level: "banned",
  ...by,
  madeAt: 0 as UnixMillis,
  until: until as UnixMillis,
  lifted: false,
  reason: "",
});
const question = (body: object): RouteRequest => ({
  path: "/v1/admin/lift",
  parameters: [],
  query: new URLSearchParams(),
  header: (name) => (name === "authorization" ? `Bearer ${SECRET}` : ""),
  address: undefined,
  body: new TextEncoder().encode(JSON.stringify(body)),
  signal: new AbortController().signal,
});

function routesWith(all: readonly Sanction[], imposed: Sanction[] = []): ReturnType<typeof adminRoutes> {
  const commands = { issueCommand: () => Promise.reject(new Error("no command is given")), onCommand: () => {} };
  return adminRoutes(
    {
      tokens: { verify: async () => ({ kind: "unchecked" }) },
      commands,
      sanctions: { all, impose: (sanction) => void imposed.push(sanction) },
      drain: () => 0,
    },
    { operatorSecret: SECRET },
    { clock: new FakeClock(1_000) },
  );
}

test("[ADN11] when both people and a gateway have banned a user, a lift lasts as long as the longer ban", async () => {
  for (const all of [
    [ban(90_000, { by: "gateway" }), ban(95_000)],
    [ban(95_000), ban(90_000, { by: "gateway" })],
  ]) {
    const imposed: Sanction[] = [];
    const answer = await routesWith(all, imposed)
      .find(({ path }) => path === "/v1/admin/lift")!
      .answer(question({ tenant: "acme", user: "eve" }));
    expect([answer.status, imposed]).toMatchObject([200, [{ lifted: true, until: 95_000 }]]);
  }
});

test("[ADN12] the end of a sanction is an ISO 8601 date in every answer", async () => {
  const routes = routesWith([ban(95_000)]);
  const ends: string[] = [];
  for (const path of ["/v1/admin/ban", "/v1/admin/downgrade", "/v1/admin/lift", "/v1/admin/bans"]) {
    const { body } = await routes
      .find((route) => route.path === path)!
      .answer(question({ tenant: "acme", user: "eve", ...(path === "/v1/admin/lift" ? {} : { seconds: 60 }) }));
    ends.push(/"until":("?[^",}]*"?)/.exec(typeof body === "string" ? body : new TextDecoder().decode(body as Uint8Array))![1]!);
  }
  expect(ends).toEqual([
    '"1970-01-01T00:01:01.000Z"',
    '"1970-01-01T00:01:01.000Z"',
    '"1970-01-01T00:01:35.000Z"',
    '"1970-01-01T00:01:35.000Z"',
  ]);
});

test("[ADN14] a body with an unknown field is refused, because the field may be meant to limit the request, and so is an invalid user; every refusal has an error code", async () => {
  const imposed: Sanction[] = [];
  const routes = routesWith([ban(95_000)], imposed);
  const eve = { tenant: "acme", user: "eve" };
  const messageOf = async (action: string, body: unknown): Promise<string> => {
    const answer = await routes.find(({ path }) => path === `/v1/admin/${action}`)!.answer(question(body as object));
    expect(answer.status).toBe(400);
    return (JSON.parse(String(answer.body)) as { message: string }).message;
  };
  expect(await messageOf("kick", { ...eve, rom: "notes" })).toBe("rom: unknown field; the fields are tenant, user, connection, room");
  expect(await messageOf("ban", { ...eve, seconds: 60, level: "read-only" })).toMatch(/^level: unknown field; the fields are /);
  expect(await messageOf("ban", { ...eve, address: "203.0.113.7", seconds: 60 })).toBe("name a user or an address, not both");
  expect(await messageOf("lift", { ...eve, seconds: 60 })).toMatch(/^seconds: unknown field; the fields are /);
  expect(await messageOf("ban", { ...eve, seconds: "an hour" })).toMatch(/^seconds: /);
  for (const user of ["", "eve\u0000"])
    expect(await messageOf("kick", { tenant: "acme", user, connection: "gateway-7" })).toMatch(/^user: /);
  for (const none of [null, [], "eve", 5])
    expect(await messageOf("kick", none)).toBe("the body must be a JSON object with tenant, user, connection, room");
  expect(imposed).toEqual([]);
});

test("[ADN18] a reason has no characters that end the line or change the direction of the text after it", async () => {
  const imposed: Sanction[] = [];
  const request = question({ tenant: "acme", user: "eve", seconds: 60, reason: "spam\r\n\u202egnp" });
  await routesWith([], imposed)
    .find(({ path }) => path === "/v1/admin/ban")!
    .answer(request);
  expect(imposed).toMatchObject([{ reason: "spam gnp" }]);
});

/**
 * Sends a request to `path` as an administrator of all rooms who has the given sanction. Returns the status and the
 * number of actions.
 */
async function askedByEve(held: Pick<Sanction, "room" | "level">, path: string, room: string | undefined): Promise<[number, number]> {
  const [acme, eve] = ["acme" as TenantId, "eve" as UserId];
  const known = new Sanctions({ sanctionsMax: 10 });
  known.receiveSanction({ ...ban(95_000), ...held }, 1_000 as UnixMillis);
  const rights = { read: true, write: true, admin: true, award: false, boards: false };
  const restrictionIn = (where: RoomKey | undefined) => known.restriction(acme, eve, where);
  const identity = { tenant: acme, user: eve, name: "", rooms: ["*"], rights, expiresAt: 1e9 as Millis, restrictionIn };
  let done = 0;
  const routes = adminRoutes(
    {
      tokens: { verify: async () => ({ kind: "valid", identity }) },
      commands: {
        issueCommand: async ({ kind }) => ((done += kind === "kick" ? 1 : 0), { kicked: 1, members: [], gateways: 1, silentGateways: [] }),
        onCommand: () => {},
      },
      sanctions: { all: known.all, impose: () => void (done += 1) },
      drain: () => 0,
    },
    { operatorSecret: SECRET },
    { clock: new FakeClock(1_000) },
  );
  const where = room === undefined ? {} : { room };
  const how = { lift: { level: held.level }, kick: {} }[path] ?? { seconds: 60 };
  const body = { user: path === "lift" ? eve : "ann", ...where, ...how };
  const asked = { ...question(body), header: (name: string) => (name === "authorization" ? "Bearer token" : ""), parameters: [room ?? ""] };
  const { status } = await routes.find((route) => route.path === `/v1/admin/${path}`)!.answer(asked);
  return [status, done];
}

const notes = roomKey("acme" as TenantId, parseRoomId("notes")!);

test.each(["lift", "kick", "ban", "downgrade"])(
  "[ADN15] a bearer who is restricted in a room, or everywhere, may not administer it: %s",
  async (path) => {
    expect(await askedByEve({ room: notes, level: "banned" }, path, "notes")).toEqual([403, 0]);
    expect(await askedByEve({ room: notes, level: "read-only" }, path, "notes")).toEqual([403, 0]);
    expect(await askedByEve({ level: "read-only" }, path, "notes")).toEqual([403, 0]);
    expect(await askedByEve({ level: "read-only" }, path, undefined)).toEqual([403, 0]);
    const elsewhere = await askedByEve({ room: notes, level: "banned" }, path, "other");
    expect(elsewhere, "in another room").toEqual(path === "lift" ? [404, 0] : [200, 1]);
  },
);

test("[ADN16] a read-only bearer still lists the members of a room; a banned bearer does not", async () => {
  expect(await askedByEve({ room: notes, level: "read-only" }, "rooms/:room/members", "notes")).toEqual([200, 0]);
  expect(await askedByEve({ room: notes, level: "banned" }, "rooms/:room/members", "notes")).toEqual([403, 0]);
});
