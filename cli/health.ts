/**
 * The health port of a process: health, readiness and metrics for an orchestrator and Prometheus. It is for the
 * internal network only. A gateway also serves these on its public port, where `/metrics` is protected.
 */

import { createServer } from "node:http";

import type { Registry } from "prom-client";

import { answerLast, lastRequestServer } from "../shared/io/last-request.ts";
import { type Running, StartError } from "../shared/process/lifecycle.ts";
import type { StartConfig } from "./settings.ts";

type Health = Running & {
  /** Call when all roles run. `obstacle`: returns the reason why the process cannot work now; undefined if it can. */
  ready(obstacle?: () => string | undefined): void;
  /** Call before the roles stop. The port answers until `stop`. */
  stopping(): void;
};

/** `/healthz` answers immediately; `/readyz` answers 200 between `ready` and `stopping` while no obstacle is reported. */
export async function serveHealth(
  { healthHost, healthPort }: Pick<StartConfig, "healthHost" | "healthPort">,
  registry: Registry,
): Promise<Health> {
  if (healthPort === 0) return { ready: () => {}, stopping: () => {}, stop: async () => {} };
  let obstacle = (): string | undefined => "starting or stopping";
  const answers: Readonly<Record<string, () => Promise<{ status: number; body: string }>>> = {
    "/healthz": async () => ({ status: 200, body: "ok\n" }),
    "/readyz": async () => {
      const why = obstacle();
      return why === undefined ? { status: 200, body: "ready\n" } : { status: 503, body: `${why}\n` };
    },
    "/metrics": async () => ({ status: 200, body: await registry.metrics() }),
  };
  const server = createServer(lastRequestServer(() => true));
  server.on("upgrade", (request, connection) => {
    connection.on("error", () => connection.destroy()); // It broke while the metrics were read.
    const answer =
      answers[request.url ?? ""] ?? (async () => ({ status: 404, body: "not found; available: /healthz, /readyz and /metrics\n" }));
    // A metric reads the disk. Without an answer here, its error would end the process.
    const unread = (cause: unknown) => ({ status: 500, body: `the metrics cannot be read: ${String((cause as Error).message)}\n` });
    void answer()
      .catch(unread)
      .then(({ status, body }) => answerLast(request, connection, { status, headers: { "content-type": registry.contentType }, body }));
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause) =>
      reject(
        new StartError(
          `cannot listen on ${healthHost}:${healthPort} for health checks. Set COROOM_HEALTH_PORT to a free port, or to 0 to disable it`,
          { cause },
        ),
      ),
    );
    server.listen(healthPort, healthHost, resolve);
  });
  return {
    ready: (obstacleOfParts = () => undefined) => {
      obstacle = obstacleOfParts;
    },
    stopping: () => {
      obstacle = () => "starting or stopping";
    },
    stop: async () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
