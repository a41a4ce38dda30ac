/** The engines of a local system die: together, and while they restart. */

import { existsSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

import { SILENT_LOG } from "../shared/testing/silent-log.ts";
import { runEngine } from "../engines/engine.ts";
import { DemoSystem, FIRST_START_MS_MAX } from "../test/system/browser.ts";
import { eventually } from "../test/system/eventually.ts";
import { keepRunning } from "./local-engines.ts";
import { roleSecrets } from "./secrets.ts";

/** In one round nats-server may be back before redis-server, and then nothing has to wait for it. */
const ROUNDS = 5;

/** The processes of engines that run in this data folder. */
function enginesIn(dataDir: string): number[] {
  const linkOf = (pid: string, name: "cwd" | "exe"): string => {
    try {
      return readlinkSync(`/proc/${pid}/${name}`);
    } catch {
      return ""; // The process has ended, or belongs to another user.
    }
  };
  const isEngine = (pid: string): boolean => linkOf(pid, "cwd").startsWith(`${dataDir}/`) && /(?:nats|redis)-/.test(linkOf(pid, "exe"));
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && isEngine(name))
    .map(Number);
}

test.skipIf(!existsSync("/proc/self/exe"))(
  "[LEN1] restarts of engines that die together are all among the operations events",
  async () => {
    const system = await DemoSystem.start();
    onTestFinished(() => system.stop());
    const dataDir = join(system.folder, "data");
    const headers = { authorization: `Bearer ${roleSecrets(dataDir).operatorSecret}` };
    const restarted = async (): Promise<string[]> => {
      const response = await fetch(`${system.url}/v1/admin/events`, { headers });
      const { events = [] } = (await response.json()) as { events?: readonly { kind: string; engine?: string }[] }; // None without NATS.
      return events.flatMap(({ kind, engine = "" }) => (kind === "engine_restarted" ? [engine] : []));
    };
    for (let round = 1; round <= ROUNDS; round++) {
      const engines = enginesIn(dataDir);
      expect(engines).toHaveLength(2);
      for (const pid of engines.toReversed()) process.kill(pid, "SIGKILL"); // redis-server is often back first.
      await eventually(`both restarts of round ${round} are reported`, async () => (await restarted()).length === 2 * round);
    }
    expect((await restarted()).filter((engine) => engine === "redis-server")).toHaveLength(ROUNDS);
  },
  FIRST_START_MS_MAX,
);

test("[LEN2] an engine that does not start again is tried until it runs, and its outage is reported once", async () => {
  const folder = mkdtempSync(join(tmpdir(), "coroom-engine-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const [broken, starts, ready] = [join(folder, "broken"), join(folder, "starts"), join(folder, "ready")];
  const script = `echo >> ${starts}; if test -e ${broken}; then exit 3; fi; touch ${ready}; exec sleep 600`;
  const startCount = (): number => readFileSync(starts, "utf8").length;
  const command = { path: "/bin/sh", args: ["-c", script], env: {}, cwd: folder, logFile: join(folder, "log") };
  const lock = { shareWith: () => {}, release: () => {} };
  const isReady = (): Promise<boolean> => Promise.resolve(existsSync(ready));
  const engine = await runEngine({ name: "engine", url: "engine:", port: 1, command, lock, isReady });
  const stopping = new AbortController();
  const reports: object[] = [];
  const watch = keepRunning(engine, { log: SILENT_LOG, report: (restart) => reports.push(restart) }, stopping.signal);

  writeFileSync(broken, "");
  rmSync(ready);
  process.kill(engine.pid, "SIGKILL");
  await eventually("a restart failed", () => Promise.resolve(startCount() >= 3));
  expect(reports).toEqual([]);
  rmSync(broken);
  await eventually("the engine runs again", () => Promise.resolve(reports.length > 0));
  expect(reports).toEqual([{ engine: "engine", exit: "SIGKILL", downMs: expect.any(Number) as number }]);
  process.kill(engine.pid, 0);

  stopping.abort();
  await engine.stop();
  await watch;
  expect(reports).toHaveLength(1);
});
