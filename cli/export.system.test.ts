/** An export that cannot write a complete file: the command runs with a limit for the size of files. */

import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";

import { expect, onTestFinished, test } from "vitest";

const MAIN = resolve("dist/cli/main.js");

test("[EXP9] an export that fails while it writes leaves the file of an earlier export, and no part of the new one", async () => {
  const server = createServer((_, response) => void response.end("x".repeat(100_000))).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const folder = mkdtempSync(join(tmpdir(), "coroom-export-"));
  writeFileSync(join(folder, "notes.md"), "of an earlier export");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const command = `"${process.execPath}" "${MAIN}" export --room notes --format markdown --token t --url ${url} --to "${folder}"`;
  const bash = (line: string) => promisify(execFile)("bash", ["-c", line]);

  await expect(bash(`ulimit -f 50; exec ${command}`)).rejects.toMatchObject({
    stderr: expect.stringContaining(`the folder ${folder} (EFBIG)`),
  });
  expect(readdirSync(folder)).toEqual(["notes.md"]);
  expect(readFileSync(join(folder, "notes.md"), "utf8")).toBe("of an earlier export");
  await bash(command);
  expect(readdirSync(folder)).toEqual(["notes.md"]);
  expect(readFileSync(join(folder, "notes.md"))).toHaveLength(100_000);
});
