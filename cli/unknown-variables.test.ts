import { readFileSync } from "node:fs";

import { expect, test } from "vitest";

import { SettingError } from "../shared/config.ts";
import { commands } from "./commands.ts";
import { distanceBetween, knownVariables, refuseMisspelt } from "./unknown-variables.ts";

const warnings = (env: Readonly<Record<string, string>>): readonly string[] => {
  const said: string[] = [];
  refuseMisspelt(env, commands, (line) => said.push(line));
  return said;
};

test.each([
  ["COROOM_PRODUCTON", "COROOM_PRODUCTION"],
  ["COROOM_PRODUTCION", "COROOM_PRODUCTION"],
  ["COROOM_ALLOWED_ORIGIN", "COROOM_ALLOWED_ORIGINS"],
  ["COROOM_JWT_SECRETT", "COROOM_JWT_SECRET"],
  ["COROOM_NATS_URI", "COROOM_NATS_URL"],
  ["coroom_production", "COROOM_PRODUCTION"],
])("[VAR1] %s is refused, and %s suggested", (name, meant) => {
  expect(() => warnings({ [name]: "HUSH" })).toThrow(SettingError);
  expect(() => warnings({ [name]: "HUSH" })).toThrow(`there is no setting ${name}: ${meant} is meant`);
  expect(() => warnings({ [name]: "HUSH" })).not.toThrow(/HUSH/);
  expect(warnings({ [name]: "" })).toEqual([]);
});

test("[VAR2] what may be of another version is warned of, with what may be meant, and without its value", () => {
  expect(warnings({ COROOM_ALOWED_ORIGIN: "HUSH", COROOM_PROD: "HUSH", COROOM_QUANTUM_FLUX_CAPACITY: "HUSH", HOME: "/root" })).toEqual([
    "COROOM_ALOWED_ORIGIN is no setting of this version and does nothing: is COROOM_ALLOWED_ORIGINS meant?",
    "COROOM_PROD is no setting of this version and does nothing: is COROOM_PRODUCTION meant?",
    "COROOM_QUANTUM_FLUX_CAPACITY is no setting of this version and does nothing, see coroom start --help",
  ]);
});

test("[VAR3] no two settings are so near each other that one could be the other misspelt", () => {
  const known = knownVariables(commands);
  const near = known.flatMap((one, index) =>
    known
      .slice(index + 1)
      .filter((other) => distanceBetween(one, other) <= 1)
      .map((other) => `${one} ${other}`),
  );
  expect(near).toEqual(["COROOM_BOARD_WATCH_MS COROOM_BOARD_BATCH_MS"]); // Both are known to every version.
});

test("[VAR4] nothing is said of what the image and the compose file set, nor of what an orchestrator tells of services", () => {
  const names = ["deploy/Dockerfile", "deploy/compose.yaml"].flatMap((file) =>
    [...readFileSync(file, "utf8").matchAll(/\b(COROOM_[A-Z0-9_]+)(?:=|: )/g)].map(([, name]) => name!),
  );
  expect(names).toContain("COROOM_DOCUMENTS_URL");
  const ofServices = ["COROOM_SERVICE_HOST", "COROOM_GATEWAY_SERVICE_PORT_WS", "COROOM_PORT_8080_TCP", "COROOM_PORT_8080_TCP_ADDR"];
  expect(warnings(Object.fromEntries([...names, ...ofServices].map((name) => [name, "given"])))).toEqual([]);
});

test("[VAR5] letters put in, taken out, replaced and exchanged are counted", () => {
  expect(["room", "rooms", "rom", "roam", "romo", "", "door"].map((other) => distanceBetween("room", other))).toEqual([
    0, 1, 1, 1, 1, 4, 2,
  ]);
});
