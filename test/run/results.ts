/** Which test files run a second time, and the result of two runs. */

import { z } from "zod";

/** vitest's JSON report, as far as it is read here. `name`: the file's absolute path. */
export const TestReport = z.object({
  testResults: z.array(
    z.object({ name: z.string(), status: z.string(), assertionResults: z.array(z.object({ fullName: z.string(), status: z.string() })) }),
  ),
});
export type TestReport = z.output<typeof TestReport>;
type FileResult = TestReport["testResults"][number];

/** With more failed files the code or the machine is broken, and a second run would only take time. */
const REPEATED_FILES_MAX = 10;

/**
 * Returns the paths of the failed files to run again: all of them, or none. System tests play real timeouts, and a
 * machine that stalls for seconds fails one of hundreds. Each file starts its own processes, so its second run meets
 * nothing of the first. A unit test has no such reason to fail.
 */
export function filesToRepeat({ testResults }: TestReport): string[] {
  const failed = testResults.filter(({ status }) => status === "failed").map(({ name }) => name);
  return failed.length <= REPEATED_FILES_MAX && failed.every((name) => name.endsWith(".system.test.ts")) ? failed : [];
}

/** `repeated`: the report of the second run; its files replace those of the first. `unsteady`: tests that passed only there. */
export function totalOf(
  first: TestReport,
  repeated: TestReport = { testResults: [] },
): { readonly passed: number; readonly failed: number; readonly unsteady: readonly string[] } {
  const again = new Map(repeated.testResults.map((file) => [file.name, file]));
  const files = first.testResults.map((file) => again.get(file.name) ?? file);
  const passed = files.flatMap((file) => namesOf(file, "passed"));
  const failed = files.reduce((sum, file) => sum + failuresOf(file), 0);
  const failedAtFirst = first.testResults.flatMap((file) => namesOf(file, "failed"));
  return { passed: passed.length, failed, unsteady: failedAtFirst.filter((name) => passed.includes(name)) };
}

function namesOf({ assertionResults }: FileResult, status: "passed" | "failed"): string[] {
  return assertionResults.filter((test) => test.status === status).map(({ fullName }) => fullName);
}

/** A file that fails before its tests counts as one failure. */
function failuresOf(file: FileResult): number {
  return Math.max(namesOf(file, "failed").length, Number(file.status === "failed"));
}
