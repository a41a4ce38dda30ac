/** The gateway's edge for clients: WebSockets and HTTP on one port, with TLS where a certificate is configured. */

import { ForeignOrigins } from "../../shared/process/foreign-origins.ts";
import type { SharedConfig } from "../../shared/settings/common-settings.ts";
import type { GatewayConfig } from "../config.ts";
import type { HttpRoute } from "../http/route-table.ts";
import { countBehind } from "../metrics.ts";
import { type RouteDeps, type RoutePorts, serveGatewayHttp } from "./http/routes.ts";
import { loadUws, uwsApp } from "./sockets/load-uws.ts";
import type { UpgradePolicy } from "./sockets/upgrades.ts";
import { listen, uwsSockets } from "./sockets/uws-server.ts";

type EdgeDeps = RouteDeps & { readonly lastOfTurn: (run: () => void) => void };

/** Creates the edge. Clients can connect only after `listen`. */
export function openEdge(
  config: SharedConfig & GatewayConfig,
  { unready, mayConnect }: Pick<UpgradePolicy, "unready" | "mayConnect">,
  deps: EdgeDeps,
) {
  const { clock, log, metrics, lastOfTurn } = deps;
  const uws = loadUws();
  const app = uwsApp(uws, config);
  const foreignOrigins = new ForeignOrigins(log);
  const onTurnedAway: UpgradePolicy["onTurnedAway"] = (reason, origin) => {
    metrics.turnedAway.inc({ reason });
    if (reason === "origin") foreignOrigins.receive(origin, clock.now());
  };
  const policy = { unready, mayConnect, onTurnedAway };
  return {
    ...uwsSockets(app, config, policy, lastOfTurn, {
      onLooked: (...looked) => countBehind(metrics, ...looked),
      onEnded: (cause) => metrics.ends.inc({ cause }),
    }),
    /** `more` are routes of the process that starts the gateway. */
    serveHttp: (ports: RoutePorts, more: readonly HttpRoute[]): void => serveGatewayHttp(app, config, ports, more, deps),
    /**
     * Throws a StartError when the port cannot be bound. `close` stops accepting connections and keeps the open ones.
     */
    listen: () => listen(uws, app, config),
  };
}
