/**
 * The way from an HTTP request to a WebSocket: refused with an HTTP status, let in, made to wait for its turn, or let
 * in only to be told when to come back (a browser shows its page no HTTP status, but close codes and frames).
 */

import type { HttpRequest, HttpResponse, us_socket_context_t } from "uws-node20";

import type { AdmissionHost, Guest } from "../admission-host.ts";
import { type ClientAddress, clientAddressOf } from "../client-address.ts";
import type { ConnectionId } from "../ports.ts";
import { isAllowedOrigin } from "./origins.ts";

export type UpgradeOptions = { readonly allowedOrigins: readonly string[]; readonly clientAddressHeader: string; readonly connectionsMax: number };

/** What is known of a socket. */
export type Connection = { readonly id: ConnectionId; readonly address: ClientAddress | undefined; readonly isAdmitted: boolean };

/** Why a gateway takes no connections. */
export type Unready = "degraded" | "draining";
export type TurnedAway = "full" | "origin" | "ip" | Unready;

/** Who decides about connections, before they are made. */
export type Door = {
  readonly unready: () => Unready | undefined;
  readonly mayConnect: (address: ClientAddress | undefined) => boolean;
  readonly onTurnedAway: (reason: TurnedAway) => void;
  readonly admission: AdmissionHost;
};

export type Upgrade = (res: HttpResponse, req: HttpRequest, context: us_socket_context_t) => void;

export function upgrades(options: UpgradeOptions, { unready, mayConnect, onTurnedAway, admission }: Door, connections: () => number): Upgrade {
  let lastId = 0;

  const reasonToRefuse = (origin: string, address: ClientAddress | undefined): TurnedAway | undefined => {
    if (!isAllowedOrigin(origin, options.allowedOrigins)) return "origin";
    return unready() ?? (connections() >= options.connectionsMax ? "full" : mayConnect(address) ? undefined : "ip");
  };

  return (res, req, context) => {
    const address = clientAddressOf(textOf(res.getRemoteAddressAsText()), options.clientAddressHeader === "" ? "" : req.getHeader(options.clientAddressHeader));
    const [origin, key, protocol, extensions] = [req.getHeader("origin"), req.getHeader("sec-websocket-key"), req.getHeader("sec-websocket-protocol"), req.getHeader("sec-websocket-extensions")];
    const refuse = (reason: TurnedAway): void => {
      onTurnedAway(reason);
      res.cork(() => res.writeStatus(REFUSALS[reason].status).writeHeader("retry-after", "5").end(REFUSALS[reason].message));
    };
    /** While it waited things may have changed. */
    const complete = (isAdmitted: boolean): void => {
      const refused = reasonToRefuse(origin, address);
      if (refused !== undefined) return refuse(refused);
      lastId += 1;
      const connection: Connection = { id: lastId as ConnectionId, address, isAdmitted };
      res.cork(() => res.upgrade(connection, key, protocol, extensions, context));
    };
    const refused = reasonToRefuse(origin, address);
    if (refused !== undefined) return refuse(refused);
    const guest: Guest = { enter: () => complete(true), turnAway: () => complete(false) };
    res.onAborted(() => admission.receiveGone(guest));
    admission.receiveKnock(guest);
  };
}

function textOf(bytes: ArrayBuffer): string {
  return new TextDecoder().decode(bytes);
}

const REFUSALS: Readonly<Record<TurnedAway, { status: string; message: string }>> = {
  full: { status: "503 Service Unavailable", message: "this gateway takes no more connections: try again, or another" },
  degraded: { status: "503 Service Unavailable", message: "this gateway cannot reach its backbone: try again, or another" },
  draining: { status: "503 Service Unavailable", message: "this gateway is going away: connect to another" },
  ip: { status: "429 Too Many Requests", message: "too many connections from this address: close others, or try again later; behind a balancer set COROOM_CLIENT_ADDRESS_HEADER" },
  origin: { status: "403 Forbidden", message: "pages of this origin may not connect: add it to COROOM_ALLOWED_ORIGINS" },
};
