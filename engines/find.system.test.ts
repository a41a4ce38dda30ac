/** Programs in unpacked packages: shell scripts in their place. */

import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { BINARIES } from "./binaries.ts";
import { binaryIn, findBinary } from "./find.ts";

test("of programs in folders with their version, the highest one is used", async () => {
  const root = mkdtempSync(join(tmpdir(), "coroom-find-"));
  expect(await binaryIn(BINARIES.postgres, root)).toBeUndefined();
  for (const version of [9, 17, 15]) {
    const folder = join(root, `usr/lib/postgresql/${version}/bin`);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "postgres"), `#!/bin/sh\necho "postgres (PostgreSQL) ${version}.4"\n`);
    chmodSync(join(folder, "postgres"), 0o755);
  }
  expect(await binaryIn(BINARIES.postgres, root)).toMatchObject({ version: [17, 4, 0], unpackedIn: root });
  rmSync(root, { recursive: true });
});

test("the machine's program of another name is used if the machine has none of the first name", async () => {
  const folder = mkdtempSync(join(tmpdir(), "coroom-find-"));
  const installs = (name: string): void => writeFileSync(join(folder, name), `#!/bin/sh\necho "1.2.3"\n`, { mode: 0o755 });
  const spec = { ...BINARIES.chromium, name: "coroom-test-first", otherNames: ["coroom-test-other"] };
  vi.stubEnv("PATH", `${folder}:${process.env["PATH"]}`);
  onTestFinished(() => {
    vi.unstubAllEnvs();
    rmSync(folder, { recursive: true });
  });
  installs("coroom-test-other");
  expect((await findBinary(spec)).path).toBe(join(folder, "coroom-test-other"));
  installs("coroom-test-first");
  expect((await findBinary(spec)).path).toBe(join(folder, "coroom-test-first"));
});
