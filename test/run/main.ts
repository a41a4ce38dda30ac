/**
 * `npm test`: runs all tests, and failed files of system tests once more. Passes its arguments to vitest. Ends with a
 * line `N passed, N failed`.
 */

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

import { TestReport, totalOf, filesToRepeat } from "./results.ts";

const VITEST = resolve("node_modules/vitest/vitest.mjs");

const folder = mkdtempSync(join(tmpdir(), "coroom-tests-"));
try {
  process.exitCode = main(process.argv.slice(2));
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** Returns the exit code. */
function main(args: readonly string[]): number {
  const first = runTests(args, "first.json");
  if (first.report === undefined) return print(0, 1);
  const repeated = filesToRepeat(first.report);
  if (repeated.length === 0) {
    const { passed, failed } = totalOf(first.report);
    return print(passed, failed === 0 && !first.isGreen ? 1 : failed); // An error outside of all tests.
  }
  console.log(`\n--- once more: ${repeated.length} failed files of system tests`);
  const second = runTests(repeated, "second.json");
  const { passed, failed, unsteady } = totalOf(first.report, second.report);
  for (const name of unsteady) console.log(`passed only when run once more (a name that returns is a defect): ${name}`);
  return print(passed, failed === 0 && !second.isGreen ? 1 : failed);
}

/** `report`: undefined if vitest ended without one. */
function runTests(args: readonly string[], file: string): { readonly isGreen: boolean; readonly report: TestReport | undefined } {
  const path = join(folder, file);
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${path}`];
  const { status } = spawnSync(process.execPath, [VITEST, "run", ...reporters, ...args], { stdio: "inherit" });
  return { isGreen: status === 0, report: readReport(path) };
}

function readReport(path: string): TestReport | undefined {
  try {
    return TestReport.parse(JSON.parse(readFileSync(path, "utf8")));
  } catch {
    return undefined;
  }
}

function print(passed: number, failed: number): number {
  console.log(`${passed} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}
