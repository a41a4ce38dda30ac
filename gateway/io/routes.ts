/** All that a gateway serves over HTTP. */

import type { Registry } from "prom-client";
import type { TemplatedApp } from "uws-node20";

import type { Clock } from "../../shared/clock.ts";
import type { Log } from "../../shared/log.ts";
import type { GatewayConfig } from "../config.ts";
import type { GatewayMetrics } from "../metrics.ts";
import type { Activities } from "../ports.ts";
import { activityRouteOptions, boardRouteOptions } from "../settings/boards.ts";
import { documentReadOptions, documentWriteOptions, streamedAnswersOptions } from "../settings/documents.ts";
import { operationsRouteOptions } from "../settings/operations.ts";
import { activityRoutes } from "./activity-routes.ts";
import { type AdminPorts, adminRoutes } from "./admin-routes.ts";
import { boardRoutes } from "./board-routes.ts";
import { documentDeleteRoutes } from "./document-delete-routes.ts";
import { documentHistoryRoutes } from "./document-history-routes.ts";
import { type DocumentReadPorts, documentReadRoutes } from "./document-read-routes.ts";
import { type DocumentWritePorts, documentWriteRoutes } from "./document-write-routes.ts";
import { healthRoutes, type NotReady } from "./health-routes.ts";
import { errorAnswer, type HttpRoute, serveRoutes } from "./http-routes.ts";
import { type HttpTokenPorts, httpTokens } from "./http-tokens.ts";
import type { Services } from "./nats-services.ts";
import type { OperationsPorts } from "./operations-questions.ts";
import { operationsRoutes } from "./operations-routes.ts";
import { staticRoutes } from "./static-files.ts";
import { SOCKET_PATH } from "./uws-server.ts";
import { StreamedAnswers } from "./streamed-answers.ts";

export type RoutePorts = Omit<AdminPorts & DocumentWritePorts, "tokens"> &
  HttpTokenPorts &
  OperationsPorts & {
    readonly documents: Services;
    readonly leaderboards: Services;
    readonly rooms: DocumentReadPorts["rooms"];
    readonly activities: Activities;
    readonly notReady: () => NotReady | undefined;
  };
export type RouteDeps = { readonly clock: Clock; readonly log: Log; readonly metrics: GatewayMetrics; readonly registry: Registry };

const WANTS_UPGRADE = errorAnswer(
  426,
  "upgrade-required",
  "this takes a WebSocket: a proxy on the way has to pass the headers Upgrade and Connection on",
  { upgrade: "websocket" },
);

/** `more`: of whoever starts the gateway. Files come last: their path is every path. */
export function serveHttp(
  app: TemplatedApp,
  config: GatewayConfig & { readonly environment: string },
  ports: RoutePorts,
  more: readonly HttpRoute[],
  deps: RouteDeps,
): void {
  const { leaderboards, notReady } = ports;
  const tokens = httpTokens(ports, deps);
  const streamed = new StreamedAnswers(streamedAnswersOptions(config), deps.metrics);
  const routes: HttpRoute[] = [
    { method: "get", path: SOCKET_PATH, answer: () => WANTS_UPGRADE },
    ...healthRoutes(deps.registry, notReady, config),
    ...documentReadRoutes({ ...ports, tokens, streamed }, documentReadOptions(config), deps),
    ...documentHistoryRoutes({ ...ports, tokens, streamed }, documentReadOptions(config), deps),
    ...documentWriteRoutes({ ...ports, tokens }, documentWriteOptions(config), deps),
    ...documentDeleteRoutes({ ...ports, tokens }, documentWriteOptions(config), deps),
    ...boardRoutes(tokens, leaderboards, boardRouteOptions(config), deps),
    ...activityRoutes(tokens, ports.activities, activityRouteOptions(config), deps),
    ...adminRoutes({ ...ports, tokens }, config, deps),
    ...operationsRoutes(tokens, ports, operationsRouteOptions(config), deps),
    ...more,
    ...staticRoutes(config.staticDir),
  ];
  const reached = (limit: string) => (): void => deps.metrics.limitsReached.inc({ limit });
  serveRoutes(app, routes, { ...config, log: deps.log, onStalled: reached("answer-stall"), onBodiesFull: reached("bodies") });
}
