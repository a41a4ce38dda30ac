/** Every HTTP route of a gateway. */

import type { Registry } from "prom-client";
import type { TemplatedApp } from "uWebSockets.js-glibc-2.36";

import type { Log } from "../../../shared/process/log.ts";
import type { Clock } from "../../../shared/time/clock.ts";
import type { GatewayConfig } from "../../config.ts";
import { type NotReadyReason, readinessText } from "../../gateway-status.ts";
import type { HttpAnswer } from "../../http/answers.ts";
import { type HttpRoute, SOCKET_PATH, UPGRADE_REQUIRED } from "../../http/route-table.ts";
import type { GatewayMetrics } from "../../metrics.ts";
import type { Activities } from "../../ports.ts";
import { activityRouteOptions, boardRouteOptions } from "../../settings/boards.ts";
import { documentReadOptions, documentWriteOptions, streamedAnswersOptions } from "../../settings/documents.ts";
import { operationsRouteOptions } from "../../settings/operations.ts";
import { usageRouteOptions } from "../../settings/usage.ts";
import type { ServiceDirectory } from "../nats/nats-services.ts";
import { type AdminPorts, adminRoutes } from "./admin-routes.ts";
import { forPrometheus, type HttpTokenPorts, httpTokens } from "./authenticate.ts";
import { boardRoutes, activityRoutes } from "./board-routes.ts";
import { documentDeleteRoutes, documentHistoryRoutes, documentReadRoutes, roomListRoutes } from "./document-routes.ts";
import { type DocumentWritePorts, documentWriteRoutes } from "./document-write-routes.ts";
import { type OperationsPorts, operationsRoutes } from "./operations-routes.ts";
import { serveRoutes } from "./serve-routes.ts";
import { staticRoutes } from "./static-files.ts";
import { StreamedAnswers } from "./streamed-answers.ts";
import { usageRoutes, type UsagePorts } from "./usage-routes.ts";

export type RoutePorts = Omit<AdminPorts & DocumentWritePorts, "tokens"> &
  HttpTokenPorts &
  OperationsPorts &
  Omit<UsagePorts, "tokens"> & {
    readonly documents: ServiceDirectory;
    readonly leaderboards: ServiceDirectory;
    readonly activities: Activities;
    readonly notReady: () => NotReadyReason | undefined;
  };
export type RouteDeps = { readonly clock: Clock; readonly log: Log; readonly metrics: GatewayMetrics; readonly registry: Registry };

/**
 * `more` are routes of the process that starts the gateway. Static files come last, because their path matches every
 * path.
 */
export function serveGatewayHttp(
  app: TemplatedApp,
  config: GatewayConfig & { readonly environment: string },
  ports: RoutePorts,
  more: readonly HttpRoute[],
  deps: RouteDeps,
): void {
  const { leaderboards, notReady } = ports;
  const tokens = httpTokens(ports);
  const streamed = new StreamedAnswers(streamedAnswersOptions(config), deps.metrics);
  const routes: HttpRoute[] = [
    { method: "get", path: SOCKET_PATH, answer: () => UPGRADE_REQUIRED },
    ...healthRoutes(deps.registry, notReady, config),
    ...documentReadRoutes({ ...ports, tokens, streamed }, documentReadOptions(config), deps),
    ...documentHistoryRoutes({ ...ports, tokens, streamed }, documentReadOptions(config), deps),
    ...documentWriteRoutes({ ...ports, tokens }, documentWriteOptions(config), deps),
    ...roomListRoutes({ ...ports, tokens }, { ...config, ...documentReadOptions(config) }, deps),
    ...documentDeleteRoutes({ ...ports, tokens }, documentWriteOptions(config), deps),
    ...boardRoutes(tokens, leaderboards, boardRouteOptions(config), deps),
    ...activityRoutes(tokens, ports.activities, activityRouteOptions(config), deps),
    ...adminRoutes({ ...ports, tokens }, config, deps),
    ...usageRoutes({ ...ports, tokens }, usageRouteOptions(config), deps),
    ...operationsRoutes(tokens, ports, operationsRouteOptions(config), deps),
    ...more,
    ...staticRoutes(config.staticDir),
  ];
  const reached = (limit: string) => (): void => deps.metrics.limitsReached.inc({ limit });
  serveRoutes(app, routes, {
    ...config,
    log: deps.log,
    onStalled: reached("answer-stall"),
    onBodiesFull: reached("bodies"),
    onBodyTooLarge: reached("body"),
  });
}

export function healthRoutes(
  registry: Registry,
  notReady: () => NotReadyReason | undefined,
  { production, metricsSecret }: { production: boolean; metricsSecret: string },
): HttpRoute[] {
  const metrics: HttpRoute["answer"] = async () => ({
    status: 200,
    headers: { "content-type": registry.contentType },
    body: await registry.metrics(),
  });
  return [
    { method: "get", path: "/healthz", answer: () => ({ status: 200, body: "ok\n" }) },
    { method: "get", path: "/readyz", answer: () => readiness(notReady()) },
    { method: "get", path: "/metrics", answer: production ? forPrometheus(metrics, { metricsSecret }) : metrics },
  ];
}

function readiness(reason: NotReadyReason | undefined): HttpAnswer {
  return reason === undefined ? { status: 200, body: "ready\n" } : { status: 503, body: `${readinessText(reason)}\n` };
}
