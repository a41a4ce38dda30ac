/** What operations ask of a gateway. */

import type { Registry } from "prom-client";

import type { HttpAnswer, HttpRoute } from "./http-routes.ts";
import { forOperators } from "./operators.ts";
import type { Unready } from "./upgrades.ts";

export function healthRoutes(registry: Registry, unready: () => Unready | undefined, { production, internalSecret }: { production: boolean; internalSecret: string }): HttpRoute[] {
  const metrics: HttpRoute["answer"] = async () => ({ status: 200, headers: { "content-type": registry.contentType }, body: await registry.metrics() });
  return [
    { method: "get", path: "/healthz", answer: () => ({ status: 200, body: "ok\n" }) },
    { method: "get", path: "/readyz", answer: () => readiness(unready()) },
    { method: "get", path: "/metrics", answer: production ? forOperators(metrics, { internalSecret }) : metrics },
  ];
}

function readiness(unready: Unready | undefined): HttpAnswer {
  return unready === undefined ? { status: 200, body: "ready\n" } : { status: 503, body: `${REASONS[unready]}\n` };
}

const REASONS: Readonly<Record<Unready, string>> = { degraded: "NATS is out of reach", draining: "going away", misconfigured: "its COROOM_LOG_PARTITIONS is not the deployment's: its log says which to set" };
