import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterEach, beforeEach, expect, test } from "vitest";
import { localSecrets } from "./secrets.ts";
import { StartError } from "../shared/process/lifecycle.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "coroom-secrets-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

test("[SEC4] secrets are generated once and found again", () => {
  const dataDir = join(folder, "data");
  expect(localSecrets(dataDir)).toEqual(localSecrets(dataDir));
});

test.each(['{"jwtSecret":"HUSH', '{"jwtSecret":"HUSH"}'])(
  "[SEC5] the error names a damaged file and shows none of its content: %s",
  (text) => {
    writeFileSync(join(folder, "secrets.json"), text);
    expect(() => localSecrets(folder)).toThrow(StartError);
    expect(() => localSecrets(folder)).toThrow(/secrets\.json is damaged/);
    expect(() => localSecrets(folder)).not.toThrow(/HUSH/);
  },
);

test("[SEC6] the error for an unusable data folder names its setting", () => {
  writeFileSync(join(folder, "file"), "");
  expect(() => localSecrets(join(folder, "file", "data"))).toThrow(StartError);
  expect(() => localSecrets(join(folder, "file", "data"))).toThrow(/cannot be used \(ENOTDIR\)\. Make it writable .* COROOM_DATA_DIR/);
});
