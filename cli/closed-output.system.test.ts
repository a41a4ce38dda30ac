/** A command whose output is a pipe that its reader has closed, as with `coroom rooms | head -1`. */

import { execFile } from "node:child_process";
import { resolve } from "node:path";
import { promisify } from "node:util";

import { expect, test } from "vitest";

const MAIN = resolve("dist/cli/main.js");

test("[RUN11] a command whose reader closed its output ends without an error message", async () => {
  const line = `"${process.execPath}" "${MAIN}" start --help | true; echo "ended with \${PIPESTATUS[0]}"`;
  const { stdout, stderr } = await promisify(execFile)("bash", ["-c", line]);
  expect([stdout, stderr]).toEqual(["ended with 143\n", ""]);
});
