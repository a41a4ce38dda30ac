/** The lock file has one holder, and is never held by dead processes. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { claimLock } from "./pid-lock.ts";

let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "coroom-lock-"));
  path = join(folder, "engine.lock");
});
afterEach(() => rmSync(folder, { recursive: true }));

test("a lock names its holder, and is free once released", () => {
  const first = claimLock(path);
  expect(claimLock(path)).toEqual({ kind: "held", by: process.pid });
  if (first.kind === "claimed") first.lock.release();
  expect(claimLock(path).kind).toBe("claimed");
});

test("a second release does not release a lock that another process has claimed since", () => {
  const first = claimLock(path);
  if (first.kind === "claimed") first.lock.release();
  claimLock(path);
  if (first.kind === "claimed") first.lock.release();
  expect(claimLock(path).kind).toBe("held");
});

test("a lock of a process that has ended, or whose id now belongs to another process, is taken over", async () => {
  const gone = spawn("true");
  await once(gone, "exit");
  for (const stale of [`[{"pid":${gone.pid},"started":"1"}]`, `[{"pid":${process.pid},"started":"1"}]`, "", "torn [{"]) {
    writeFileSync(path, stale);
    const claim = claimLock(path);
    expect(claim.kind).toBe("claimed");
    if (claim.kind === "claimed") claim.lock.release();
  }
  expect(readdirSync(folder)).toEqual([]);
});

test("a shared lock is held as long as either process runs", async () => {
  const other = spawn("sleep", ["60"]);
  await once(other, "spawn");
  const claim = claimLock(path);
  if (claim.kind === "claimed" && other.pid !== undefined) claim.lock.shareWith(other.pid);
  writeFileSync(path, readFileSync(path, "utf8").replace(/\{[^}]*\},/, "")); // as if we had died
  expect(claimLock(path)).toEqual({ kind: "held", by: other.pid });
  other.kill("SIGKILL");
  await once(other, "exit");
  expect(claimLock(path).kind).toBe("claimed");
});
