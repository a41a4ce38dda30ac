/** The production dependencies of Coroom, and their licences. */

import { readFileSync } from "node:fs";

import { expect, test } from "vitest";

import { datedChangelog } from "./main.ts";
import { type LockEntries, productionTree } from "./production-tree.ts";

const { packages } = JSON.parse(readFileSync("package-lock.json", "utf8")) as { packages: LockEntries };

/** Licences without obligations for people who run or embed Coroom, beyond their notice. */
const LICENCES = ["0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "Unlicense"];
/** Builds of uWebSockets.js for other platforms: the lock file has no licence of them, for the reason in lock-file.test.ts. */
const LICENCE_OF_CORE = /(?:^|\/)node_modules\/@uwsjs\/(?:darwin|win32|linux)-/;

test("[SHIP1] every production dependency has a licence of the list", () => {
  const paths = [...new Set(["", "client", "react"].flatMap((folder) => productionTree(packages, folder)))];
  expect(paths.length).toBeGreaterThan(100);
  const licenceOf = (path: string): string => packages[path]!.license ?? (LICENCE_OF_CORE.test(path) ? "Apache-2.0" : "none");
  expect(paths.map((path) => `${path}: ${licenceOf(path)}`).filter((line) => !LICENCES.includes(line.split(": ")[1]!))).toEqual([]);
});

test("[SHIP2] the production tree follows nested and optional packages, and neither peers nor development dependencies", () => {
  const entries = {
    "": { dependencies: { a: "1" }, devDependencies: { d: "1" } },
    "node_modules/a": { dependencies: { b: "2" }, optionalDependencies: { c: "1" }, peerDependencies: { p: "1" } },
    "node_modules/a/node_modules/b": { dependencies: { c: "1" } },
    "node_modules/b": {},
    "node_modules/c": {},
    "node_modules/d": {},
    "node_modules/p": {},
  };
  expect(productionTree(entries, "")).toEqual(["node_modules/a", "node_modules/a/node_modules/b", "node_modules/c"]);
  expect(() => productionTree({ "": { dependencies: { x: "1" } } }, "")).toThrow("the lock file has no x");
});

test("[SHIP4] a changelog without an entry is refused, and entries get version and date", () => {
  const today = new Date("2026-12-24T08:00:00Z");
  const text = "# Changelog\n\n## Unreleased\n\n- New.\n\n## 0.1.0\n\n- Old.\n";
  expect(datedChangelog("C.md", text, "0.2.0", today)).toBe(
    "# Changelog\n\n## Unreleased\n\n## 0.2.0 - 2026-12-24\n\n- New.\n\n## 0.1.0\n\n- Old.\n",
  );
  expect(() => datedChangelog("C.md", text, "0.1.0", today), "its entries would stay without a date").toThrow(
    'C.md has a section "## 0.1.0" and entries under "## Unreleased"',
  );
  const written = text.replace("- New.\n\n", "");
  expect(datedChangelog("C.md", written, "0.1.0", today)).toBe(written);
  for (const empty of ["# Changelog\n\n## 0.1.0\n\n- Old.\n", "# Changelog\n\n## Unreleased\n\n## 0.1.0\n\n- Old.\n"])
    expect(() => datedChangelog("C.md", empty, "0.2.0", today)).toThrow('C.md has no entry under "## Unreleased"');
});
