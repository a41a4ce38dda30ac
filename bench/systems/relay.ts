/** The relay: two gateway processes and a sequencing one over a nats-server. */

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

import { spawnChild, type Child } from "../../engines/child.ts";
import { claimPort } from "../../engines/free-port.ts";
import { startNatsServer } from "../../engines/nats-server.ts";
import { eventually } from "../../test/system/eventually.ts";
import { GATEWAYS, type MeasuredSystem } from "./system.ts";

const STOP_PATIENCE_MS = 5_000;

export async function startRelay(): Promise<MeasuredSystem> {
  const folder = mkdtempSync(join(tmpdir(), "relay-"));
  const nats = await startNatsServer({ dataDir: join(folder, "nats") });
  const start = async (role: string, env: Record<string, string> = {}): Promise<Child> => {
    const logFile = join(folder, `${role}${env["RELAY_GATEWAY"] ?? ""}.log`);
    const child = await spawnChild({ path: process.execPath, args: [resolve("dist/bench/relay/main.js"), role], env: { ...env, RELAY_NATS_URL: nats.url }, cwd: resolve("."), logFile });
    await eventually(`the relay's ${role} is ready`, () => readFileSync(logFile, "utf8").includes("relay ready"));
    return child;
  };

  const sequencer = await start("sequencer");
  const ports = await Promise.all(Array.from({ length: GATEWAYS }, () => claimPort(0, "127.0.0.1", "a port")));
  const gateways = await Promise.all(ports.map((port, index) => start("gateway", { RELAY_GATEWAY: String(index + 1), RELAY_PORT: String(port) })));
  return {
    name: "relay",
    gateways: ports.map((port) => `ws://127.0.0.1:${port}`),
    processes: [{ role: "nats-server", pid: nats.pid }, { role: "sequencer", pid: sequencer.pid }, ...gateways.map(({ pid }) => ({ role: "gateway", pid }))],
    token: async () => "",
    stop: async () => {
      await Promise.all([...gateways, sequencer].map((child) => child.stop(STOP_PATIENCE_MS)));
      await nats.stop();
      rmSync(folder, { recursive: true });
    },
  };
}
