import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterAll, expect, test } from "vitest";

import { ROLES } from "./settings.ts";
import { localSecrets, missingSecrets, roleSecrets, type SecretsGiven } from "./secrets.ts";

const dataDir = mkdtempSync(join(tmpdir(), "coroom-secrets-"));
afterAll(() => rmSync(dataDir, { recursive: true }));

const configured = {
  jwtSecret: "j".repeat(32),
  roomSecret: "r".repeat(32),
  internalSecret: "i".repeat(32),
};
const nothing: SecretsGiven = {
  roles: ROLES,
  production: false,
  dataDir,
  jwtSecret: "",
  jwksUrl: "",
  jwksFile: "",
  roomSecret: "",
  internalSecret: "",
  operatorSecret: "",
  metricsSecret: "",
};
const missing = (given: Partial<SecretsGiven>) => missingSecrets({ ...nothing, ...given });

test("[SEC1] a complete local system generates the secrets that are not configured", () => {
  const made = missing({});
  const { operatorSecret, metricsSecret } = roleSecrets(dataDir);
  expect(made).toEqual({ ...localSecrets(dataDir), operatorSecret, metricsSecret });
  expect(missing({ jwksUrl: "https://id.example/jwks.json", roomSecret: "given", metricsSecret: "given" })).toEqual({
    internalSecret: made.internalSecret,
    operatorSecret: made.operatorSecret,
  });
});

test.each<[SecretsGiven["roles"], string[]]>([
  [["gateway"], ["COROOM_JWT_SECRET", "COROOM_INTERNAL_SECRET"]],
  [["room-server"], ["COROOM_ROOM_SECRET"]],
  [["document-service"], ["COROOM_INTERNAL_SECRET"]],
  [["leaderboard"], ["COROOM_INTERNAL_SECRET"]],
  [["placement"], []],
])("[SEC2] %s in a separate process needs configured secrets and never generates them: %s", (roles, names) => {
  if (names.length === 0) return void expect(missing({ roles })).toEqual({});
  for (const name of names) expect(() => missing({ roles })).toThrow(name);
  expect(missing({ roles, ...configured })).toEqual({});
});

test("[SEC3] in production no secret is generated, with or without engines", () => {
  const unused = join(dataDir, "unused");
  expect(() => missing({ production: true, dataDir: unused })).toThrow("COROOM_ROOM_SECRET");
  expect(missing({ production: true, dataDir: unused, ...configured })).toEqual({});
  expect(readdirSync(dataDir)).not.toContain("unused");
});
