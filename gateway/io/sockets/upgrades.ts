/**
 * Upgrades an HTTP request to a WebSocket, or refuses it with an HTTP status. The upgrade happens within the handler,
 * because uWebSockets.js sometimes fails at a later one.
 */

import type { HttpRequest, HttpResponse, us_socket_context_t } from "uWebSockets.js-glibc-2.36";

import type { ClientAddress } from "../../../shared/limits/client-address.ts";
import { isAllowedOrigin } from "../../../shared/settings/origins.ts";
import { decideUpgrade, type UpgradeRefusal, type UnreadyReason, upgradeRefusal } from "../../gateway-status.ts";
import type { ConnectionId } from "../../ports.ts";
import { addressOf } from "./address-of.ts";

export type UpgradeOptions = {
  readonly allowedOrigins: readonly string[];
  readonly clientAddressHeader: string;
  readonly connectionsMax: number;
  readonly retryAfterMs: number;
};

/** The data that uWebSockets.js keeps for a socket. */
export type AcceptedSocket = { readonly id: ConnectionId; readonly address: ClientAddress | undefined };

/** Decides about connections before they are accepted. */
export type UpgradePolicy = {
  readonly unready: () => UnreadyReason | undefined;
  readonly mayConnect: (address: ClientAddress | undefined) => boolean;
  /** `origin` is the text of the request, and any client can choose it. */
  readonly onTurnedAway: (reason: UpgradeRefusal, origin: string) => void;
};

type UpgradeHandler = (res: HttpResponse, req: HttpRequest, context: us_socket_context_t) => void;

export function upgrades(
  options: UpgradeOptions,
  { unready, mayConnect, onTurnedAway }: UpgradePolicy,
  connections: () => number,
): UpgradeHandler {
  let lastId = 0;

  return (res, req, context) => {
    const address = addressOf(res, req, options.clientAddressHeader);
    const origin = req.getHeader("origin");
    const decision = decideUpgrade({
      isOriginAllowed: isAllowedOrigin(origin, options.allowedOrigins),
      unready: unready(),
      hasRoom: connections() < options.connectionsMax,
      isAddressWithinLimit: () => mayConnect(address),
    });
    if (decision.kind === "refuse") {
      onTurnedAway(decision.reason, origin);
      const { status, message } = upgradeRefusal(decision.reason);
      res
        .writeStatus(status)
        .writeHeader("retry-after", String(Math.ceil(options.retryAfterMs / 1000)))
        .end(message, true); // Otherwise one read of the connection could hold thousands of requests that are refused.
      return;
    }
    lastId += 1;
    const connection: AcceptedSocket = { id: lastId as ConnectionId, address };
    res.upgrade(
      connection,
      req.getHeader("sec-websocket-key"),
      req.getHeader("sec-websocket-protocol"),
      req.getHeader("sec-websocket-extensions"),
      context,
    );
  };
}
