/**
 * What an orchestrator and Prometheus ask of a process, whatever its roles: on a port of its own, for the inside only.
 * A gateway has the same on its public port, where `/metrics` is guarded.
 */

import { createServer } from "node:http";

import type { Registry } from "prom-client";

import { port, type Settings, text, type Values } from "../shared/config.ts";
import type { Running } from "../shared/lifecycle.ts";
import { StartError } from "../shared/start-error.ts";

export const healthSettings = {
  healthHost: {
    parse: text,
    fallback: "127.0.0.1",
    meaning: "address that the health port listens on; whoever reaches it reads the metrics",
  },
  healthPort: { parse: port, fallback: 0, meaning: "port for /healthz, /readyz and /metrics of this process, whatever its roles; 0: none" },
} as const satisfies Settings;

export type Health = Running & {
  /** All roles run. */
  ready(): void;
  /** They are going to stop; it still answers until it is stopped itself. */
  stopping(): void;
};

/** `/healthz` answers from now on, `/readyz` with 200 between `ready` and `stopping`. */
export async function serveHealth({ healthHost, healthPort }: Values<typeof healthSettings>, registry: Registry): Promise<Health> {
  if (healthPort === 0) return { ready: () => {}, stopping: () => {}, stop: async () => {} };
  let isReady = false;
  const answers: Readonly<Record<string, () => Promise<{ status: number; body: string }>>> = {
    "/healthz": async () => ({ status: 200, body: "ok\n" }),
    "/readyz": async () => (isReady ? { status: 200, body: "ready\n" } : { status: 503, body: "starting or stopping\n" }),
    "/metrics": async () => ({ status: 200, body: await registry.metrics() }),
  };
  const server = createServer((request, response) => {
    const answer = answers[request.url ?? ""] ?? (async () => ({ status: 404, body: "there are /healthz, /readyz and /metrics\n" }));
    void answer().then(({ status, body }) => response.writeHead(status, { "content-type": registry.contentType }).end(body));
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause) =>
      reject(
        new StartError(
          `the health port cannot listen on ${healthHost}:${healthPort}: set COROOM_HEALTH_PORT to a free one, or to 0 for none`,
          { cause },
        ),
      ),
    );
    server.listen(healthPort, healthHost, resolve);
  });
  return {
    ready: () => {
      isReady = true;
    },
    stopping: () => {
      isReady = false;
    },
    stop: async () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
