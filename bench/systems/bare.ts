/** A peer that is one process beside no other: uWebSockets.js with nothing behind it, in one of the roles of `bench/relay/main.ts`. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { claimPort } from "../../engines/free-port.ts";
import { PEER_STOP_PATIENCE_MS, startPeer } from "./peer-process.ts";
import type { MeasuredSystem } from "./system.ts";

export async function startBare(role = "bare", env: Readonly<Record<string, string>> = {}): Promise<MeasuredSystem> {
  const folder = mkdtempSync(join(tmpdir(), "bare-"));
  const port = await claimPort(0, "127.0.0.1", "a port");
  const child = await startPeer(role, folder, { ...env, RELAY_PORT: String(port) });
  return {
    name: role,
    gateways: [`ws://127.0.0.1:${port}`],
    processes: [{ role: "server", pid: child.pid }],
    token: async () => "",
    stop: async () => {
      await child.stop(PEER_STOP_PATIENCE_MS);
      rmSync(folder, { recursive: true });
    },
  };
}
