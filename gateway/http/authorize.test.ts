import { expect, test } from "vitest";

import { type Millis, parseRoomId, type TenantId, type UserId } from "../../shared/ids.ts";
import type { Identity, Restriction } from "../sessions/identity.ts";
import { adminFrom, admittedRoom, identityFrom, scopeOf } from "./authorize.ts";
import { rankedRoomPath } from "./board-requests.ts";

const ACME = "acme" as TenantId;
const RIGHTS = { read: true, write: true, admin: true, award: false, boards: false };
const identity = (given: Partial<Identity> = {}): Identity => ({
  tenant: ACME,
  user: "ann" as UserId,
  name: "Ann",
  rooms: ["notes", "plans-*"],
  rights: RIGHTS,
  expiresAt: 1e9 as Millis,
  ...given,
});
const refusal = (outcome: object): unknown => ("status" in outcome ? outcome.status : undefined);

test("[AUZ1] an invalid token is answered with 401, and a token that cannot be checked with 503", () => {
  expect(refusal(identityFrom({ kind: "expired" }))).toBe(401);
  expect(refusal(identityFrom({ kind: "refused", why: "bad signature" }))).toBe(401);
  expect(identityFrom({ kind: "unchecked" })).toMatchObject({ status: 503, headers: { "retry-after": "1" } });
  expect(identityFrom({ kind: "valid", identity: identity() })).toMatchObject({ user: "ann" });
});

test("[AUZ2] a bearer needs the right admin, and the refusal of its token is returned unchanged", () => {
  expect(adminFrom(identity())).toMatchObject({ of: { user: "ann" } });
  expect(refusal(adminFrom(identity({ rights: { ...RIGHTS, admin: false } })))).toBe(403);
  expect(adminFrom({ status: 401 })).toEqual({ status: 401 });
});

test("[AUZ3] a token is valid in its tenant and in the rooms that it opens, and an operator may act everywhere", () => {
  expect(scopeOf({ room: "notes" }, identity(), "act")).toEqual({ tenant: "acme", room: "acme.notes" });
  expect(refusal(scopeOf({ room: "other" }, identity(), "act"))).toBe(403);
  expect(scopeOf({ tenant: "globex", room: "notes" }, identity(), "act")).toMatchObject({
    status: 403,
    body: expect.stringContaining("another tenant: leave out `tenant`"),
  });
  expect(refusal(scopeOf({}, identity(), "act")), "the whole tenant").toBe(403);
  expect(scopeOf({}, identity({ rooms: ["*"] }), "act")).toEqual({ tenant: "acme", room: undefined });
  expect(scopeOf({ tenant: "globex", room: "other" }, undefined, "act")).toEqual({ tenant: "globex", room: "globex.other" });
  expect(refusal(scopeOf({ tenant: "no tenant" }, undefined, "act"))).toBe(400);
});

test("[AUZ4] a read-only bearer may read and may not act, and a banned bearer may do neither", () => {
  const restricted = (level: Restriction["level"]) => identity({ restrictionIn: () => ({ level, reason: "" }) });
  expect(refusal(scopeOf({ room: "notes" }, restricted("read-only"), "look"))).toBeUndefined();
  expect(refusal(scopeOf({ room: "notes" }, restricted("read-only"), "act"))).toBe(403);
  expect(refusal(scopeOf({ room: "notes" }, restricted("banned"), "look"))).toBe(403);
});

test("[AUZ5] a token opens the room of a path by the same rule as a join", () => {
  expect(admittedRoom({ parameters: ["plans-2026"] }, identity())).toBe(parseRoomId("plans-2026"));
  expect(admittedRoom({ parameters: ["%ZZ"] }, identity())).toMatchObject({ status: 404 });
  expect(admittedRoom({ parameters: ["other"] }, identity())).toMatchObject({ status: 403 });
});

test("[AUZ6] the error for a room `.` or `..` names the rule that it breaks", () => {
  const admin = identity({ rooms: ["*"] });
  for (const room of [".", "..", "%2E%2e"]) {
    const refused = admittedRoom({ parameters: [room] }, admin);
    expect(refused, room).toMatchObject({ status: 404, body: expect.stringContaining("is not `.` or `..`") });
    expect(rankedRoomPath({ parameters: [room], query: new URLSearchParams() }, admin), room).toMatchObject({
      status: 400,
      body: expect.stringContaining("is not `.` or `..`"),
    });
  }
  expect(scopeOf({ room: ".." }, admin, "look")).toMatchObject({ status: 400, body: expect.stringContaining("is not `.` or `..`") });
});

test("[AUZ7] the boards of a tenant need the right `boards`, or `admin` for all rooms, because they name every room", () => {
  const opens = (given: Partial<Identity>): boolean =>
    "path" in rankedRoomPath({ parameters: ["other"], query: new URLSearchParams() }, identity(given));
  expect(opens({ rooms: ["*"] })).toBe(true);
  expect(opens({ rooms: [], rights: { ...RIGHTS, admin: false, boards: true } })).toBe(true);
  expect(opens({ rooms: ["notes", "plans-*"] })).toBe(false);
  expect(opens({ rooms: ["*"], rights: { ...RIGHTS, admin: false } })).toBe(false);
});
