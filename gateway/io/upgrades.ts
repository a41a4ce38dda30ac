/**
 * The way from an HTTP request to a WebSocket: refused with an HTTP status, or upgraded at once, within the handler. A
 * later upgrade is what uWebSockets.js gets wrong now and then; see `lobby-host.ts`.
 */

import type { HttpRequest, HttpResponse, us_socket_context_t } from "uws-node20";

import type { ConnectionId } from "../ports.ts";
import type { ClientAddress } from "../../shared/client-address.ts";
import { addressOf } from "./address-of.ts";
import { isAllowedOrigin } from "../../shared/origins.ts";

export type UpgradeOptions = {
  readonly allowedOrigins: readonly string[];
  readonly clientAddressHeader: string;
  readonly connectionsMax: number;
  readonly retryAfterMs: number;
};

/** What is known of a socket. */
export type Connection = { readonly id: ConnectionId; readonly address: ClientAddress | undefined };

/** Why a gateway takes no connections. One that only reaches its clients late takes them, for all gateways may be so: it says that it is not ready. */
export type Unready = "degraded" | "draining" | "misconfigured";
export type TurnedAway = "full" | "origin" | "ip" | Unready;

/** Who decides about connections, before they are made. */
export type Door = {
  readonly unready: () => Unready | undefined;
  readonly mayConnect: (address: ClientAddress | undefined) => boolean;
  /** `origin`: as the request names it, a page's or anybody's. */
  readonly onTurnedAway: (reason: TurnedAway, origin: string) => void;
};

export type Upgrade = (res: HttpResponse, req: HttpRequest, context: us_socket_context_t) => void;

export function upgrades(options: UpgradeOptions, { unready, mayConnect, onTurnedAway }: Door, connections: () => number): Upgrade {
  let lastId = 0;

  const reasonToRefuse = (origin: string, address: ClientAddress | undefined): TurnedAway | undefined => {
    if (!isAllowedOrigin(origin, options.allowedOrigins)) return "origin";
    const reason = unready();
    if (reason !== undefined) return reason;
    if (connections() >= options.connectionsMax) return "full";
    return mayConnect(address) ? undefined : "ip";
  };

  return (res, req, context) => {
    const address = addressOf(res, req, options.clientAddressHeader);
    const origin = req.getHeader("origin");
    const refused = reasonToRefuse(origin, address);
    if (refused !== undefined) {
      onTurnedAway(refused, origin);
      const { status, message } = REFUSALS[refused];
      res
        .writeStatus(status)
        .writeHeader("retry-after", String(Math.ceil(options.retryAfterMs / 1000)))
        .end(message);
      return;
    }
    lastId += 1;
    const connection: Connection = { id: lastId as ConnectionId, address };
    res.upgrade(
      connection,
      req.getHeader("sec-websocket-key"),
      req.getHeader("sec-websocket-protocol"),
      req.getHeader("sec-websocket-extensions"),
      context,
    );
  };
}

const REFUSALS: Readonly<Record<TurnedAway, { status: string; message: string }>> = {
  full: { status: "503 Service Unavailable", message: "this gateway takes no more connections: try again, or another" },
  degraded: { status: "503 Service Unavailable", message: "this gateway cannot reach its backbone: try again, or another" },
  draining: { status: "503 Service Unavailable", message: "this gateway is going away: connect to another" },
  misconfigured: {
    status: "503 Service Unavailable",
    message: "this gateway was started with another COROOM_LOG_PARTITIONS than the deployment's: connect to another",
  },
  ip: {
    status: "429 Too Many Requests",
    message: "too many connections from this address: close others, or try again later; behind a balancer set COROOM_CLIENT_ADDRESS_HEADER",
  },
  origin: { status: "403 Forbidden", message: "pages of this origin may not connect: add it to COROOM_ALLOWED_ORIGINS" },
};
