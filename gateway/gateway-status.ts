/**
 * The gateway's status: whether it accepts connections, whether it is ready for new clients, and its report about
 * itself.
 */

import type { GatewayReport } from "../shared/bus/fleet-messages.ts";
import type { ServerHeartbeat } from "../shared/bus/placement-messages.ts";
import type { GatewayId } from "../shared/ids.ts";
import type { GatewayParts } from "./gateway.ts";
import type { LoadShedder, OutboundHealth } from "./limits/pressure.ts";

type GatewayStatus = {
  /** The reason why the gateway accepts no connection. Undefined: it accepts connections. */
  readonly unready: () => UnreadyReason | undefined;
  /** The reason why new clients should use another gateway, although this one may still accept them. */
  readonly notReady: () => NotReadyReason | undefined;
  readonly account: () => GatewayReport;
};
type GatewayStatusParts = Pick<GatewayParts, "rooms" | "clients"> & {
  readonly shed: LoadShedder;
  readonly outbound: OutboundHealth;
  readonly isMisconfigured: () => boolean;
  readonly reachesRedis: () => boolean | undefined;
  /** Room servers that send heartbeats. */
  readonly servers: () => readonly Pick<ServerHeartbeat, "logObstacle">[];
};

export function gatewayStatus(gateway: GatewayId, parts: GatewayStatusParts): GatewayStatus {
  const { rooms, clients, shed, outbound } = parts;
  const unready = (): UnreadyReason | undefined => {
    if (clients.isDraining) return "draining";
    if (parts.isMisconfigured()) return "misconfigured";
    return rooms.backbone.isUp ? undefined : "degraded";
  };
  const notReady = (): NotReadyReason | undefined =>
    unready() ?? (isLogFull(parts.servers()) ? "log-full" : outbound.isDegraded ? "slow" : undefined);
  const account = (): GatewayReport => ({
    gateway,
    connections: clients.size,
    rooms: rooms.followed,
    shedLevel: shed.level,
    state: notReady() ?? "ready",
    reachesRedis: parts.reachesRedis(),
  });
  return { unready, notReady, account };
}

/** Whether no room server can store an edit. If at least one can, its rooms are served normally. */
export function isLogFull(servers: readonly Pick<ServerHeartbeat, "logObstacle">[]): boolean {
  return servers.length > 0 && servers.every(({ logObstacle }) => logObstacle !== undefined);
}

/**
 * The reasons why a gateway accepts no connections. Slow delivery and a full log are not among them: they may affect
 * all gateways at once, and a gateway can still serve readers. In these two states it only reports that it is not
 * ready.
 */
export type UnreadyReason = "degraded" | "draining" | "misconfigured";
/** The reason why a balancer should send new clients to another gateway. */
export type NotReadyReason = UnreadyReason | "slow" | "log-full";
export type UpgradeRefusal = "full" | "origin" | "ip" | UnreadyReason;

export type UpgradeFacts = {
  readonly isOriginAllowed: boolean;
  readonly unready: UnreadyReason | undefined;
  readonly hasRoom: boolean;
  /** Called after all other checks, because it may count the attempt. */
  readonly isAddressWithinLimit: () => boolean;
};
type UpgradeDecision = { readonly kind: "accept" } | { readonly kind: "refuse"; readonly reason: UpgradeRefusal };

export function decideUpgrade(facts: UpgradeFacts): UpgradeDecision {
  const reason = refusalReason(facts);
  return reason === undefined ? { kind: "accept" } : { kind: "refuse", reason };
}

function refusalReason({ isOriginAllowed, unready, hasRoom, isAddressWithinLimit }: UpgradeFacts): UpgradeRefusal | undefined {
  if (!isOriginAllowed) return "origin";
  if (unready !== undefined) return unready;
  if (!hasRoom) return "full";
  return isAddressWithinLimit() ? undefined : "ip";
}

export function upgradeRefusal(reason: UpgradeRefusal): { readonly status: string; readonly message: string } {
  return REFUSALS[reason];
}

const REFUSALS: Readonly<Record<UpgradeRefusal, { status: string; message: string }>> = {
  full: { status: "503 Service Unavailable", message: "this gateway is full: try again, or connect to another gateway" },
  degraded: { status: "503 Service Unavailable", message: "this gateway cannot reach NATS: try again, or connect to another gateway" },
  draining: { status: "503 Service Unavailable", message: "this gateway is shutting down: connect to another gateway" },
  misconfigured: {
    status: "503 Service Unavailable",
    message: "COROOM_LOG_PARTITIONS of this gateway differs from the deployment: connect to another gateway",
  },
  ip: {
    status: "429 Too Many Requests",
    message: "too many connections from this address: close some, or try again later. Behind a balancer, set COROOM_CLIENT_ADDRESS_HEADER.",
  },
  origin: { status: "403 Forbidden", message: "pages of this origin may not connect: add the origin to COROOM_ALLOWED_ORIGINS" },
};

export function readinessText(reason: NotReadyReason): string {
  return READINESS_TEXTS[reason];
}

const READINESS_TEXTS: Readonly<Record<NotReadyReason, string>> = {
  "degraded": "NATS cannot be reached",
  "draining": "shutting down",
  "misconfigured": "COROOM_LOG_PARTITIONS differs from the deployment: the gateway's log names the right value",
  "slow": "messages reach clients too late",
  "log-full":
    "the log stores no edits: the disk or the storage of the nats-servers is full. Free space, and restart a nats-server that could not write",
};
