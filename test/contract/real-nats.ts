/** A nats-server for one test, in a temporary data folder, and a function that polls until a deadline. */

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
    /** Sends SIGKILL, SIGSTOP or SIGCONT. */
    signal: (signal: NodeJS.Signals) => engine.kill(signal),
    /** Kills nats-server, runs `whileAway`, and restarts the server on the same port and data. */
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

/** Polls until there is a value; throws after the deadline. */
export async function until<Value>(
  look: () => Value | undefined | false | Promise<Value | undefined | false>,
  what: string,
  msMax = 30_000,
): Promise<Value> {
  const deadline = performance.now() + msMax;
  for (;;) {
    const seen = await look();
    if (seen !== undefined && seen !== false) return seen;
    if (performance.now() > deadline) throw new Error(`${what} did not occur within ${msMax} ms`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
