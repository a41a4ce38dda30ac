/** The gateway's edge for clients: WebSockets and HTTP on one port, with TLS where a certificate is configured. Logs the origins of pages that may not connect. */

import type { Millis } from "../../shared/ids.ts";
import type { Log } from "../../shared/process/log.ts";
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

const LOG_MS_MIN = 60_000;
/** Browsers send no longer origins: a host name has at most 253 characters. */
const ORIGIN_LENGTH_MAX = 300;

/**
 * Logs the origins of pages that may not connect, because a browser does not show the text of the refusal. Logs at most
 * once a minute, because any client can send any origin.
 */
export class ForeignOrigins {
  readonly #log: Log;
  #loggedAt: Millis | undefined;
  /** Refusals since the last log message. */
  #unlogged = 0;

  constructor(log: Log) {
    this.#log = log;
  }

  receive(origin: string, now: Millis): void {
    this.#unlogged += 1;
    if (this.#loggedAt !== undefined && now - this.#loggedAt < LOG_MS_MIN) return;
    this.#log.warn(
      { origin: origin.slice(0, ORIGIN_LENGTH_MAX), times: this.#unlogged },
      "a page of an origin that is not allowed was turned away: if it is yours, add the origin to COROOM_ALLOWED_ORIGINS",
    );
    this.#loggedAt = now;
    this.#unlogged = 0;
  }
}
