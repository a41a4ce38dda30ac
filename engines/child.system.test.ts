/** An engine ends together with Coroom, in every way in which a process can end. */

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { startNatsServer } from "./nats-server.ts";
import { identify, isRunning } from "./pid-lock.ts";

/** Plays Coroom: starts an engine, prints its pid, and ignores Ctrl-C. */
const PARENT = `
  import { runnerImport } from "vite";
  const { module } = await runnerImport("./engines/nats-server.ts", { logLevel: "silent" });
  const engine = await module.startNatsServer({ dataDir: process.argv[1] });
  process.on("SIGINT", () => console.log("interrupted"));
  console.log(engine.pid);
  setInterval(() => {}, 1000);
`;
const GONE_MS_MAX = 30_000;
const root = join(import.meta.dirname, "..");
let dataDir: string;
let parent: ChildProcess;

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "coroom-child-"));
  parent = spawn(process.execPath, ["--input-type=module", "-e", PARENT, dataDir], {
    cwd: root,
    detached: true,
    stdio: ["ignore", "pipe", "inherit"],
  });
});
afterEach(async () => {
  parent.kill("SIGKILL");
  rmSync(dataDir, { recursive: true, force: true, maxRetries: 10 });
});

test("an engine ends after the SIGKILL of its Coroom, and its data folder is free again", async () => {
  const engine = identify(Number(await nextLine(parent)));
  expect(isRunning(engine)).toBe(true);
  parent.kill("SIGKILL");
  await vi.waitFor(() => expect(isRunning(engine)).toBe(false), { timeout: GONE_MS_MAX });
  const next = await startNatsServer({ dataDir });
  await next.stop();
});

test("a paused engine does not outlive its Coroom", async () => {
  const engine = identify(Number(await nextLine(parent)));
  process.kill(engine.pid, "SIGSTOP");
  parent.kill("SIGKILL");
  await vi.waitFor(() => expect(isRunning(engine)).toBe(false), { timeout: GONE_MS_MAX });
});

test("Ctrl-C for the whole foreground group does not stop the engine; Coroom does", async () => {
  const engine = identify(Number(await nextLine(parent)));
  if (parent.pid !== undefined) process.kill(-parent.pid, "SIGINT");
  expect(await nextLine(parent)).toBe("interrupted");
  expect(isRunning(engine)).toBe(true);
  parent.kill("SIGKILL");
  await vi.waitFor(() => expect(isRunning(engine)).toBe(false), { timeout: GONE_MS_MAX });
});

async function nextLine(child: ChildProcess): Promise<string> {
  if (child.stdout === null) throw new Error("the parent's output is not piped");
  const [chunk] = await once(child.stdout, "data");
  return String(chunk).trim();
}
