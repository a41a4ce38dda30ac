import { readFileSync } from "node:fs";

import { expect, test } from "vitest";

import { SettingError } from "../shared/settings/settings.ts";
import { commands } from "./commands.ts";
import { distanceBetween, knownVariables, refuseMisspelt } from "./unknown-variables.ts";

const warnings = (env: Readonly<Record<string, string>>): readonly string[] => {
  const printedLines: string[] = [];
  refuseMisspelt(env, commands, (line) => printedLines.push(line));
  return printedLines;
};

test.each([
  ["COROOM_PRODUCTON", "COROOM_PRODUCTION"],
  ["COROOM_PRODUTCION", "COROOM_PRODUCTION"],
  ["COROOM_ALLOWED_ORIGIN", "COROOM_ALLOWED_ORIGINS"],
  ["COROOM_JWT_SECRETT", "COROOM_JWT_SECRET"],
  ["COROOM_NATS_URI", "COROOM_NATS_URL"],
  ["coroom_production", "COROOM_PRODUCTION"],
])("[VAR1] %s is refused, and %s is suggested", (name, meant) => {
  expect(() => warnings({ [name]: "HUSH" })).toThrow(SettingError);
  expect(() => warnings({ [name]: "HUSH" })).toThrow(`unknown setting ${name}. Did you mean ${meant}?`);
  expect(() => warnings({ [name]: "HUSH" })).not.toThrow(/HUSH/);
  expect(warnings({ [name]: "" })).toEqual([]);
});

test("[VAR2] a variable that may belong to another version causes a warning with a suggestion, without its value", () => {
  expect(warnings({ COROOM_ALOWED_ORIGIN: "HUSH", COROOM_PROD: "HUSH", COROOM_CLAIM_MS_MAX: "HUSH", HOME: "/root" })).toEqual([
    "unknown setting COROOM_ALOWED_ORIGIN is ignored. Did you mean COROOM_ALLOWED_ORIGINS?",
    "unknown setting COROOM_PROD is ignored. Did you mean COROOM_PRODUCTION?",
    "unknown setting COROOM_CLAIM_MS_MAX is ignored. Run coroom start --help for the list.",
  ]);
});

test("[VAR3] no two settings differ by one letter", () => {
  const known = knownVariables(commands);
  const near = known.flatMap((one, index) =>
    known
      .slice(index + 1)
      .filter((other) => distanceBetween(one, other) <= 1)
      .map((other) => `${one} ${other}`),
  );
  expect(near).toEqual(["COROOM_BOARD_WATCH_MS COROOM_BOARD_BATCH_MS"]); // Both exist in every version.
});

test("[VAR4] variables of the image, the compose file and an orchestrator's services cause no warning", () => {
  const names = ["deploy/Dockerfile", "deploy/compose.yaml"].flatMap((file) =>
    [...readFileSync(file, "utf8").matchAll(/\b(COROOM_[A-Z0-9_]+)(?:=|: )/g)].map(([, name]) => name!),
  );
  expect(names).toContain("COROOM_DOCUMENTS_URL");
  const ofServices = ["COROOM_SERVICE_HOST", "COROOM_GATEWAY_SERVICE_PORT_WS", "COROOM_PORT_8080_TCP", "COROOM_PORT_8080_TCP_ADDR"];
  expect(warnings(Object.fromEntries([...names, ...ofServices].map((name) => [name, "given"])))).toEqual([]);
});

test("[VAR5] inserted, deleted, replaced and swapped letters are counted", () => {
  expect(["room", "rooms", "rom", "roam", "romo", "", "door"].map((other) => distanceBetween("room", other))).toEqual([
    0, 1, 1, 1, 1, 4, 2,
  ]);
});
