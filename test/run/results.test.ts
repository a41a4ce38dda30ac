import { expect, test } from "vitest";

import { filesToRepeat, type TestReport, totalOf } from "./results.ts";

const file = (name: string, tests: Readonly<Record<string, string>>, status = "passed") => ({
  name: `/coroom/${name}`,
  status: Object.values(tests).includes("failed") ? "failed" : status,
  assertionResults: Object.entries(tests).map(([fullName, result]) => ({ fullName, status: result })),
});
const report = (...testResults: TestReport["testResults"]): TestReport => ({ testResults });
const steady = file("a.test.ts", { one: "passed", two: "skipped" });
const failed = file("moves.system.test.ts", { "a move": "failed", "a restart": "passed" });

test("[TRUN1] failed files of system tests run again, unless a unit test failed too or many files failed", () => {
  expect(filesToRepeat(report(steady))).toEqual([]);
  expect(filesToRepeat(report(steady, failed))).toEqual(["/coroom/moves.system.test.ts"]);
  expect(filesToRepeat(report(file("a.test.ts", { one: "failed" }), failed))).toEqual([]);
  const many = (count: number) => report(...Array.from({ length: count }, (_, n) => file(`${n}.system.test.ts`, { one: "failed" })));
  expect([filesToRepeat(many(10)).length, filesToRepeat(many(11)).length]).toEqual([10, 0]);
});

test("[TRUN2] the second run of a file replaces its first, and tests that needed it are named", () => {
  expect(totalOf(report(steady, failed))).toEqual({ passed: 2, failed: 1, unsteady: [] });
  const well = file("moves.system.test.ts", { "a move": "passed", "a restart": "passed" });
  expect(totalOf(report(steady, failed), report(well))).toEqual({ passed: 3, failed: 0, unsteady: ["a move"] });
  const other = file("moves.system.test.ts", { "a move": "passed", "a restart": "failed" });
  expect(totalOf(report(steady, failed), report(other))).toMatchObject({ passed: 2, failed: 1 });
});

test("[TRUN3] a file that fails before its tests counts as a failure", () => {
  expect(totalOf(report(steady, file("moves.system.test.ts", {}, "failed")))).toMatchObject({ passed: 1, failed: 1 });
  expect(totalOf(report(file("moves.system.test.ts", { "a move": "skipped" }, "failed")))).toMatchObject({ failed: 1 });
});
