import { expect, test } from "vitest";
import { ROLES } from "./settings.ts";
import { missingSecrets, type SecretsGiven } from "./secrets.ts";

const made = {
  jwtSecret: "j".repeat(32),
  roomSecret: "r".repeat(32),
  internalSecret: "i".repeat(32),
  operatorSecret: "o".repeat(32),
  metricsSecret: "m".repeat(32),
};
const nothing: SecretsGiven = {
  roles: ROLES,
  production: false,
  dataDir: "",
  jwtSecret: "",
  jwksUrl: "",
  jwksFile: "",
  roomSecret: "",
  internalSecret: "",
  operatorSecret: "",
  metricsSecret: "",
};
const missing = (given: Partial<SecretsGiven>) => missingSecrets({ ...nothing, ...given }, () => made);

test("[SEC1] a complete local system generates the secrets that are not configured", () => {
  expect(missing({})).toEqual(made);
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
  expect(missing({ roles, ...made })).toEqual({});
});

test("[SEC3] in production no secret is generated, with or without engines", () => {
  expect(() => missing({ production: true })).toThrow("COROOM_ROOM_SECRET");
});
