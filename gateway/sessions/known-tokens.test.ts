import { expect, test } from "vitest";

import type { Millis, TenantId, UserId } from "../../shared/ids.ts";
import type { Identity } from "./identity.ts";
import { KnownTokens } from "./known-tokens.ts";

const at = (ms: number): Millis => ms as Millis;
const identityUntil = (expiresAt: number): Identity => ({
  tenant: "acme" as TenantId,
  user: "ann" as UserId,
  name: "Ann",
  rooms: ["*"],
  rights: { read: true, write: true, admin: false, award: false, boards: false },
  expiresAt: at(expiresAt),
});
const options = { knownTokensMax: 2, knownTokenMsMax: 1_000 };

test("[TOK1] a valid token is remembered for its time, then checked again", () => {
  const known = new KnownTokens(options);
  const ann = identityUntil(1e9);
  known.add("a", ann, at(0));
  expect(known.find("a", at(999))).toBe(ann);
  expect(known.find("a", at(1_000))).toBeUndefined();
  expect(known.size).toBe(0);
});

test("[TOK2] a token is not remembered beyond its own expiry", () => {
  const known = new KnownTokens(options);
  known.add("a", identityUntil(500), at(0));
  expect(known.find("a", at(499))).toBeDefined();
  expect(known.find("a", at(500))).toBeUndefined();
});

test("[TOK3] beyond the limit, the token checked longest ago is forgotten", () => {
  const known = new KnownTokens(options);
  known.add("a", identityUntil(1e9), at(0));
  known.add("b", identityUntil(1e9), at(1));
  known.add("a", identityUntil(1e9), at(2));
  known.add("c", identityUntil(1e9), at(3));
  expect(["a", "b", "c"].filter((digest) => known.find(digest, at(4)) !== undefined)).toEqual(["a", "c"]);
});

test("[TOK7] expired tokens are forgotten, even if they are not used again", () => {
  const known = new KnownTokens(options);
  known.add("a", identityUntil(1e9), at(0));
  known.add("b", identityUntil(1e9), at(500));
  expect(known.receiveTick(at(1_000))).toBe(1_500);
  expect([known.size, known.find("b", at(1_000)) !== undefined]).toEqual([1, true]);
  expect(known.receiveTick(at(1_500))).toBeUndefined();
});

test("[TOK4] without a time to remember tokens, each token is checked each time", () => {
  const known = new KnownTokens({ ...options, knownTokenMsMax: 0 });
  known.add("a", identityUntil(1e9), at(0));
  expect([known.size, known.find("a", at(0))]).toEqual([0, undefined]);
});
