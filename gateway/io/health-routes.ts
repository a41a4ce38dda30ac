/** What operations ask of a gateway. */

import type { Registry } from "prom-client";

import type { HttpAnswer, HttpRoute } from "./http-routes.ts";
import { forOperators } from "./operators.ts";
import type { Unready } from "./upgrades.ts";

/** Why a balancer is to send nobody here. */
export type NotReady = Unready | "slow";

export function healthRoutes(
  registry: Registry,
  notReady: () => NotReady | undefined,
  { production, internalSecret }: { production: boolean; internalSecret: string },
): HttpRoute[] {
  const metrics: HttpRoute["answer"] = async () => ({
    status: 200,
    headers: { "content-type": registry.contentType },
    body: await registry.metrics(),
  });
  return [
    { method: "get", path: "/healthz", answer: () => ({ status: 200, body: "ok\n" }) },
    { method: "get", path: "/readyz", answer: () => readiness(notReady()) },
    { method: "get", path: "/metrics", answer: production ? forOperators(metrics, { internalSecret }) : metrics },
  ];
}

function readiness(reason: NotReady | undefined): HttpAnswer {
  return reason === undefined ? { status: 200, body: "ready\n" } : { status: 503, body: `${REASONS[reason]}\n` };
}

const REASONS: Readonly<Record<NotReady, string>> = {
  degraded: "NATS is out of reach",
  draining: "going away",
  misconfigured: "its COROOM_LOG_PARTITIONS is not the deployment's: its log says which to set",
  slow: "what it sends reaches its clients late",
};
