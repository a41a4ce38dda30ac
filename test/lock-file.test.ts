/** The lock file pins what npm installs by content. */

import { readFileSync } from "node:fs";

import { expect, test } from "vitest";

import { runProgram } from "../engines/run-program.ts";
import { type LockEntries, pathOf } from "../release/production-tree.ts";

const { packages } = JSON.parse(readFileSync(new URL("../package-lock.json", import.meta.url), "utf8")) as { packages: LockEntries };

/**
 * Builds of uWebSockets.js for other platforms. The registry where the lock file was made answers 404 for them, so npm
 * locked them without a hash. They cannot be left out: npm refuses a lock file without the optional dependencies of a
 * package. Remove the pattern once `npm install --package-lock-only` in a registry that has them has added the hashes.
 * `npm run verify-uws` compares an installed build with upstream's release on any platform.
 */
const NOT_PINNED = [/(^|\/)node_modules\/@uwsjs\/(darwin|win32|linux-arm|linux-arm64)-/];

function unpinned(among: LockEntries): string[] {
  return Object.entries(among)
    .filter(([path, { integrity, link }]) => path.includes("node_modules/") && link !== true && !/^sha512-.{88}$/.test(integrity ?? ""))
    .map(([path]) => path);
}

test("[LOCK1] every package has an integrity hash, except optional builds for platforms other than Linux on x64", () => {
  const left = unpinned(packages);
  expect(left.filter((path) => !NOT_PINNED.some((pattern) => pattern.test(path)))).toEqual([]);
  for (const path of left) expect(packages[path], path).toMatchObject({ optional: true, os: [expect.any(String)] });
});

test("[LOCK2] each exception is still needed", () => {
  for (const pattern of NOT_PINNED)
    expect(
      unpinned(packages).some((path) => pattern.test(path)),
      String(pattern),
    ).toBe(true);
});

test("[LOCK3] a package without a hash, or with a weak one, is found", () => {
  const sha512 = `sha512-${"A".repeat(86)}==`;
  const planted = { "node_modules/a": {}, "node_modules/b": { integrity: "sha1-AAAA" }, "node_modules/c": { integrity: sha512 } };
  expect(unpinned(planted)).toEqual(["node_modules/a", "node_modules/b"]);
});

test("[LOCK4] the lock file holds every optional package, those of other platforms too", () => {
  // npm leaves out the ones it could not look up when it wrote the file, and `npm ci` then refuses it.
  const missing = Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies).filter((name) => pathOf(packages, path, name) === undefined),
  );
  expect(missing).toEqual([]);
});

test("[LOCK5] npm finds no conflict in the lock file", async () => {
  // npm 10, which Node 20 and 22 bring, refuses a lock file with a conflict, also one of optional peers. npm 11 installs it.
  expect(await runProgram("npm", ["ls", "--all", "--package-lock-only"], { msMax: 170_000 })).toContain("typescript@");
});
