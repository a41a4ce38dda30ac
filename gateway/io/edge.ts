/** What clients reach of a gateway: WebSockets and HTTP on one port, over TLS where a certificate is named. */

import type { SharedConfig } from "../../shared/settings.ts";
import type { GatewayConfig } from "../config.ts";
import { ForeignOrigins } from "../limits/foreign-origins-host.ts";
import { countBehind } from "../metrics.ts";
import type { HttpRoute } from "./http-routes.ts";
import { loadUws } from "./load-uws.ts";
import { type RouteDeps, type RoutePorts, serveHttp } from "./routes.ts";
import type { Door } from "./upgrades.ts";
import { uwsApp } from "./uws-app.ts";
import { listen, uwsSockets } from "./uws-server.ts";

export type EdgeDeps = RouteDeps & { readonly lastOfTurn: (run: () => void) => void };

/** Nobody reaches it before it listens. */
export function openEdge(
  config: SharedConfig & GatewayConfig,
  { unready, mayConnect }: Pick<Door, "unready" | "mayConnect">,
  deps: EdgeDeps,
) {
  const { clock, log, metrics, lastOfTurn } = deps;
  const uws = loadUws();
  const app = uwsApp(uws, config);
  const foreignOrigins = new ForeignOrigins(log);
  const onTurnedAway: Door["onTurnedAway"] = (reason, origin) => {
    metrics.turnedAway.inc({ reason });
    if (reason === "origin") foreignOrigins.receive(origin, clock.now());
  };
  const door = { unready, mayConnect, onTurnedAway };
  return {
    ...uwsSockets(app, config, door, lastOfTurn, (...looked) => countBehind(metrics, ...looked)),
    /** `more`: of whoever starts the gateway. */
    serveHttp: (ports: RoutePorts, more: readonly HttpRoute[]): void => serveHttp(app, config, ports, more, deps),
    /** Throws a StartError when the port cannot be had. `close` takes no more connections; those open stay. */
    listen: () => listen(uws, app, config),
  };
}
