/** The relay: two gateway processes, where not told otherwise, and a sequencing one over a nats-server. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { claimPort } from "../../engines/free-port.ts";
import { startNatsServer } from "../../engines/nats-server.ts";
import { PEER_STOP_PATIENCE_MS, startPeer } from "./peer-process.ts";
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
