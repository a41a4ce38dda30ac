/** How a gateway stands: whether it takes connections, whether a balancer is to send it new ones, and what it tells of itself. */

import type { GatewayAccount } from "../../shared/bus/fleet-messages.ts";
import type { GatewayId } from "../../shared/ids.ts";
import type { GatewayParts } from "../gateway.ts";
import type { OutboundHealth } from "../limits/outbound-health.ts";
import type { Shed } from "../limits/shed.ts";
import type { NotReady } from "./health-routes.ts";
import type { Unready } from "./upgrades.ts";

export type Standing = {
  /** Why it takes no connection. */
  readonly unready: () => Unready | undefined;
  /** Why new ones are to go elsewhere, though it may take them. */
  readonly notReady: () => NotReady | undefined;
  readonly account: () => GatewayAccount;
};
export type StandingParts = Pick<GatewayParts, "rooms" | "clients"> & {
  readonly shed: Shed;
  readonly outbound: OutboundHealth;
  readonly isMisconfigured: () => boolean;
  readonly reachesRedis: () => boolean | undefined;
};

export function standingOf(gateway: GatewayId, parts: StandingParts): Standing {
  const { rooms, clients, shed, outbound } = parts;
  const unready = (): Unready | undefined => {
    if (clients.isDraining) return "draining";
    if (parts.isMisconfigured()) return "misconfigured";
    return rooms.backbone.isUp ? undefined : "degraded";
  };
  const notReady = (): NotReady | undefined => unready() ?? (outbound.isDegraded ? "slow" : undefined);
  const account = (): GatewayAccount => ({
    gateway,
    connections: clients.size,
    rooms: rooms.followed,
    shedLevel: shed.level,
    state: notReady() ?? "ready",
    reachesRedis: parts.reachesRedis(),
  });
  return { unready, notReady, account };
}
