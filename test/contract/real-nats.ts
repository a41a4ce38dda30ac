/** A nats-server of a test's own, with its data in a folder that goes with it, and a way to wait that never hopes. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startTestNats, type TestNatsOptions } from "./test-engines.ts";

export type RealNats = Awaited<ReturnType<typeof startRealNats>>;

export async function startRealNats(options: Pick<TestNatsOptions, "users" | "tls"> = {}) {
  const dataDir = mkdtempSync(join(tmpdir(), "coroom-nats-"));
  const engine = await startTestNats({ dataDir, ...options });
  return {
    url: engine.url,
    /** SIGKILL, SIGSTOP, SIGCONT. */
    signal: (signal: NodeJS.Signals) => engine.kill(signal),
    /** Kills it at once and starts it again on the same port and data, after what is to be seen while it is away. */
    crash: async (whileAway: () => Promise<unknown> = async () => {}) => {
      engine.kill("SIGKILL");
      await engine.exited;
      await whileAway();
      await engine.restart();
    },
    stop: async () => {
      await engine.stop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** Polls until there is something; throws when the deadline has passed. */
export async function until<Value>(
  look: () => Value | undefined | false | Promise<Value | undefined | false>,
  what: string,
  msMax = 30_000,
): Promise<Value> {
  const deadline = performance.now() + msMax;
  for (;;) {
    const seen = await look();
    if (seen !== undefined && seen !== false) return seen;
    if (performance.now() > deadline) throw new Error(`waited ${msMax} ms in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
