import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterEach, beforeEach, expect, test } from "vitest";

import { StartError } from "../shared/start-error.ts";
import { localSecrets } from "./secrets.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "coroom-secrets-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

test("[SEC4] secrets are made once, and found again", () => {
  const dataDir = join(folder, "data");
  expect(localSecrets(dataDir)).toEqual(localSecrets(dataDir));
});

test.each(['{"jwtSecret":"HUSH', '{"jwtSecret":"HUSH"}'])("[SEC5] a damaged file is named, and nothing of what is in it: %s", (text) => {
  writeFileSync(join(folder, "secrets.json"), text);
  expect(() => localSecrets(folder)).toThrow(StartError);
  expect(() => localSecrets(folder)).toThrow(/secrets\.json is damaged/);
  expect(() => localSecrets(folder)).not.toThrow(/HUSH/);
});

test("[SEC6] a data folder that cannot be one is told by its setting", () => {
  writeFileSync(join(folder, "file"), "");
  expect(() => localSecrets(join(folder, "file", "data"))).toThrow(StartError);
  expect(() => localSecrets(join(folder, "file", "data"))).toThrow(/cannot be used \(ENOTDIR\): set COROOM_DATA_DIR/);
});
