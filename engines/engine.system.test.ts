/** The process of an engine, with the shell in place of a server. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { runEngine } from "./engine.ts";
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
