import { jwtVerify } from "jose";
import { existsSync, mkdtempSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";

import { readSettings, SettingError } from "../shared/settings/settings.ts";
import { localSecrets } from "./secrets.ts";
import { localToken, makeToken } from "./token.ts";
import { tokenSettings } from "./command-settings.ts";

const given = (flags: Record<string, string>) => readSettings(tokenSettings, { flags, env: {} });

test("[TKN1] a token contains the values of the flags, and the name defaults to the user", async () => {
  const secret = "0123456789abcdef0123456789abcdef";
  const token = await makeToken(given({ room: "notes,drafts/*", user: "ada", rights: "read", tenant: "acme", ttl: "15m" }), secret);
  const { payload } = await jwtVerify(token, new TextEncoder().encode(secret));
  expect(payload).toMatchObject({ sub: "ada", name: "ada", tenant: "acme", rooms: ["notes", "drafts/*"], rights: ["read"] });
  expect(payload.exp! - payload.iat!).toBe(900);
});

test("[TKN2] invalid flags are reported together, each with its expected value", () => {
  expect(() => given({ rights: "fly", ttl: "soon" })).toThrow(
    /--room is not set[\s\S]*--user is not set[\s\S]*must be out of read, write, admin, award[\s\S]*90s, 15m/,
  );
});

test("[TKN3] local secrets are generated once and readable only by their owner", () => {
  const dataDir = mkdtempSync(join(tmpdir(), "coroom-"));
  const first = localSecrets(dataDir);
  expect(localSecrets(dataDir)).toEqual(first);
  expect(new Set(Object.values(first)).size).toBe(3);
  expect(statSync(join(dataDir, "secrets.json")).mode & 0o077).toBe(0);
});

test("[TKN4] a token that every gateway would refuse is not made", async () => {
  const jwtSecret = "0123456789abcdef0123456789abcdef";
  await expect(localToken(given({ room: "notes", user: "ada", tenant: "a b", jwtSecret }))).rejects.toThrow(/--tenant=a b is no tenant/);
  for (const user of ["a\tb", "a".repeat(129)])
    await expect(localToken(given({ room: "notes", user, jwtSecret }))).rejects.toThrow(/is no user id: a user is 1 to 128 characters/);
  await expect(localToken(given({ room: "notes", user: "ada", name: "a".repeat(129), jwtSecret }))).rejects.toThrow(/--name is too long/);
  await expect(localToken(given({ room: ",", user: "ada", jwtSecret }))).rejects.toThrow(/--room names no room/);
  await expect(localToken(given({ room: "notes", user: "ada", jwtSecret: jwtSecret.slice(1) }))).rejects.toThrow(
    /COROOM_JWT_SECRET is too short/,
  );
});

test("[TKN5] without a started system nothing is signed and no folder is made, unless the secret is given", async () => {
  const dataDir = join(mkdtempSync(join(tmpdir(), "coroom-")), "data");
  const flags = { room: "notes", user: "ada", dataDir };
  await expect(localToken(given(flags))).rejects.toThrow(SettingError);
  await expect(localToken(given(flags))).rejects.toThrow(
    `no system was started with the data folder ${dataDir}, so it has no secret. Start one with "coroom start", set COROOM_DATA_DIR (--data-dir) to the folder of a started system, or set COROOM_JWT_SECRET`,
  );
  await localToken(given({ ...flags, jwtSecret: "0123456789abcdef0123456789abcdef" }));
  expect(existsSync(dataDir)).toBe(false);
  const { jwtSecret } = localSecrets(dataDir);
  await jwtVerify(await localToken(given(flags)), new TextEncoder().encode(jwtSecret));
});
