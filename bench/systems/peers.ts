/**
 * The systems that Coroom is compared with. The relay: by default two gateway processes and one sequencing process over
 * a nats-server. The bare servers: one process in another role of `bench/relay/main.ts`.
 */

import { mkdtempSync, rmSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

import { type ChildProcessHandle, spawnChild } from "../../engines/child.ts";
import { claimPort } from "../../engines/free-port.ts";
import { startNatsServer } from "../../engines/nats-server.ts";
import { eventually } from "../../test/system/eventually.ts";
import { GATEWAYS, type MeasuredSystem } from "./system.ts";

export async function startRelay(gatewayCount = GATEWAYS): Promise<MeasuredSystem> {
  const folder = mkdtempSync(join(tmpdir(), "relay-"));
  const nats = await startNatsServer({ dataDir: join(folder, "nats") });
  const env = { RELAY_NATS_URL: nats.url };
  const sequencer = await startPeer("sequencer", folder, env);
  const ports = await Promise.all(Array.from({ length: gatewayCount }, () => claimPort(0, "127.0.0.1", "a port")));
  const gateways = await Promise.all(
    ports.map((port, index) =>
      startPeer("gateway", folder, { ...env, RELAY_GATEWAY: String(index + 1), RELAY_PORT: String(port) }, `gateway-${index + 1}`),
    ),
  );
  return {
    name: "relay",
    gateways: ports.map((port) => `ws://127.0.0.1:${port}`),
    processes: [
      { role: "nats-server", pid: nats.pid },
      { role: "sequencer", pid: sequencer.pid },
      ...gateways.map(({ pid }) => ({ role: "gateway", pid })),
    ],
    token: async () => "",
    stop: async () => {
      await Promise.all([...gateways, sequencer].map((child) => child.stop(PEER_STOP_PATIENCE_MS)));
      await nats.stop();
      rmSync(folder, { recursive: true });
    },
  };
}

export const PEER_STOP_PATIENCE_MS = 5_000;

/** Starts one process of `bench/relay`, configured by RELAY_… variables. Its log goes to `folder`, under `name`. */
async function startPeer(role: string, folder: string, env: Readonly<Record<string, string>>, name = role): Promise<ChildProcessHandle> {
  const logFile = join(folder, `${name}.log`);
  const child = await spawnChild({
    path: process.execPath,
    args: [resolve("dist/bench/relay/main.js"), role],
    env,
    cwd: resolve("."),
    logFile,
  });
  await eventually(`the peer ${name} is ready`, () => readFileSync(logFile, "utf8").includes("relay ready"));
  return child;
}

/** A peer of one process: uWebSockets.js alone, in one of the roles of `bench/relay/main.ts`. */
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
