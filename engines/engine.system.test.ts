/** The process of an engine, with the shell in place of a server. */

import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { eventually } from "../test/system/eventually.ts";
import { spawnChild } from "./child.ts";
import { runEngine } from "./engine.ts";
import { ENGINE_LOG_BYTES_MAX } from "./engine-log.ts";
import { identify, isRunning } from "./pid-lock.ts";

test("a process whose lock cannot be written, for example on a full disk, does not go on with the data folder", async () => {
  const folder = mkdtempSync(join(tmpdir(), "coroom-engine-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const full = new Error("ENOSPC");
  const pids: number[] = [];
  const lock = {
    shareWith: (pid: number): void => {
      pids.push(pid);
      if (pids.length === 2) throw full;
    },
    release: () => {},
  };
  const command = { path: "/bin/sleep", args: ["600"], env: {}, cwd: folder, logFile: join(folder, "log") };
  const engine = await runEngine({ name: "engine", url: "engine:", port: 1, command, lock, isReady: () => Promise.resolve(true) });
  onTestFinished(() => engine.stop());
  await expect(engine.restart()).rejects.toBe(full);
  expect(pids.map((pid) => isRunning(identify(pid)))).toEqual([false, false]);
  await engine.restart();
  expect([engine.pid, isRunning(identify(engine.pid))]).toEqual([pids[2], true]);
});

test("[ENL1] the log of a running engine is cut at its limit, and its end stays in a second file", async () => {
  const folder = mkdtempSync(join(tmpdir(), "coroom-engine-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const logFile = join(folder, "log");
  const sizeOf = (file: string): number => statSync(file).size;
  appendFileSync(logFile, Buffer.alloc(3 * ENGINE_LOG_BYTES_MAX, "old "));
  const lock = { shareWith: () => {}, release: () => {} };
  // Writes 10 MiB and a last line whenever it is asked, and always appends with the descriptor that it began with.
  const script = `while read -r line < asked; do head -c ${10 * 1024 ** 2} /dev/zero; echo "$line"; done`;
  const command = { path: "/bin/sh", args: ["-c", `mkfifo asked; ${script}`], env: {}, cwd: folder, logFile };
  const engine = await runEngine({ name: "engine", url: "engine:", port: 1, command, lock, isReady: () => Promise.resolve(true) });
  onTestFinished(() => engine.stop());
  expect([sizeOf(logFile), sizeOf(`${logFile}.1`)], "what earlier starts left").toEqual([0, ENGINE_LOG_BYTES_MAX]);
  await eventually("the engine listens", () => statSync(join(folder, "asked"), { throwIfNoEntry: false })?.isFIFO() === true);
  for (const line of ["first", "second"]) {
    appendFileSync(join(folder, "asked"), `${line}\n`);
    await eventually(`the log is cut, and still has the ${line} line`, () => {
      const [kept, log] = [readFileSync(`${logFile}.1`, "latin1"), readFileSync(logFile, "latin1")];
      return kept.length === ENGINE_LOG_BYTES_MAX && log.length <= ENGINE_LOG_BYTES_MAX && `${kept}${log}`.endsWith(`\0${line}\n`);
    });
  }
});

test("[CENV1] an engine gets the environment without the settings of Coroom, some of which are secrets", async () => {
  const folder = mkdtempSync(join(tmpdir(), "coroom-engine-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  vi.stubEnv("COROOM_JWT_SECRET", "a signing secret");
  vi.stubEnv("OTHER", "kept");
  onTestFinished(() => void vi.unstubAllEnvs());
  const logFile = join(folder, "log");
  const command = { path: "/bin/sh", args: ["-c", "env"], env: { OWN: "given" }, cwd: folder, logFile };
  await (
    await spawnChild(command)
  ).exited;
  const lines = readFileSync(logFile, "utf8").split("\n");
  expect(lines).toEqual(expect.arrayContaining(["OTHER=kept", "OWN=given"]));
  expect(lines.filter((line) => line.startsWith("COROOM_"))).toEqual([]);
});
