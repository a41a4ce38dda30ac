/** The engines of a local system die together. */

import { existsSync, readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";

import { expect, onTestFinished, test } from "vitest";

import { DemoSystem, FIRST_START_MS_MAX } from "../test/system/browser.ts";
import { eventually } from "../test/system/eventually.ts";
import { roleSecrets } from "./secrets.ts";

/** In one round nats-server may be back before redis-server, and then nothing has to wait for it. */
const ROUNDS = 5;

/** The processes of engines that run in this data folder. */
function enginesIn(dataDir: string): number[] {
  const linkOf = (pid: string, name: "cwd" | "exe"): string => {
    try {
      return readlinkSync(`/proc/${pid}/${name}`);
    } catch {
      return ""; // It has ended, or belongs to another user.
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
