/** What operations ask of a gateway. */

import type { Registry } from "prom-client";

import type { HttpRoute } from "./http-routes.ts";

export function healthRoutes(registry: Registry, isReady: () => boolean): HttpRoute[] {
  return [
    { method: "get", path: "/healthz", answer: () => ({ status: 200, body: "ok\n" }) },
    { method: "get", path: "/readyz", answer: () => (isReady() ? { status: 200, body: "ready\n" } : { status: 503, body: "NATS is out of reach\n" }) },
    { method: "get", path: "/metrics", answer: async () => ({ status: 200, headers: { "content-type": registry.contentType }, body: await registry.metrics() }) },
  ];
}
