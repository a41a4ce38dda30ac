/** Programs in unpacked packages: shell scripts in their place. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { BINARIES } from "./binaries.ts";
import { binaryIn } from "./find.ts";

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
