import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";

import { StartError } from "../shared/process/lifecycle.ts";
import { writeOwnFile } from "../engines/data-dir.ts";
import { localSecrets, roleSecrets, startedSecrets } from "./secrets.ts";

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

test("[SEC7] only the owner may read generated secrets, even if the umask or an earlier file allows more", () => {
  const dataDir = join(folder, "data");
  const before = process.umask(0);
  try {
    localSecrets(dataDir);
    roleSecrets(dataDir);
    for (const config of ["nats-server.conf", "redis-server.conf"]) {
      writeFileSync(join(dataDir, config), "written for all by an earlier version");
      chmodSync(join(dataDir, config), 0o666);
      writeOwnFile(join(dataDir, config), "with passwords");
    }
  } finally {
    process.umask(before);
  }
  const modes = Object.fromEntries(readdirSync(dataDir).map((name) => [name, (statSync(join(dataDir, name)).mode & 0o777).toString(8)]));
  expect(readFileSync(join(dataDir, ".gitignore"), "utf8"), "git must not add them").toBe("*\n");
  expect(modes).toEqual({
    ".gitignore": "600",
    "secrets.json": "600",
    "role-secrets.json": "600",
    "nats-server.conf": "600",
    "redis-server.conf": "600",
  });
});

test("[SEC8] a command beside the system reads its secrets, and reports a missing and an unreadable file", () => {
  expect(() => startedSecrets(folder, "give another")).toThrow(/no system was started with the data folder .*, or give another$/);
  expect(readdirSync(folder)).toEqual([]);
  const secrets = localSecrets(folder);
  expect(startedSecrets(folder, "give another")).toEqual(secrets);
  rmSync(join(folder, "secrets.json"));
  mkdirSync(join(folder, "secrets.json"));
  expect(() => startedSecrets(folder, "give another")).toThrow(
    /cannot read .*secrets\.json \(EISDIR\)\. Run this command as the user who started/,
  );
});
