/**
 * Settings for the limits of each IP address, user, tenant and room over all gateways (connections, rooms, edits per second),
 * and for bans because of abuse.
 */

import { constant, positiveInteger, type Settings, type Values } from "../../shared/settings/settings.ts";
import type { QuotasOptions } from "../limits/quotas.ts";

export const quotaSettings = {
  connectionsPerIpMax: {
    parse: positiveInteger,
    fallback: 100,
    meaning:
      "Maximum number of connections per IP address (IPv6: per /64) over all gateways that have not sent a valid token yet. Loopback is not counted.",
  },
  connectionsPerUserMax: {
    parse: positiveInteger,
    fallback: 100,
    meaning: "Maximum number of connections per user over all gateways. Reconnecting clients may exceed it by a tenth.",
    basic: true,
  },
  connectionsPerTenantMax: {
    parse: positiveInteger,
    fallback: 50_000,
    meaning: "Maximum number of connections per tenant over all gateways. Reconnecting clients may exceed it by a tenth.",
    basic: true,
  },
  roomsPerTenantMax: {
    parse: positiveInteger,
    fallback: 10_000,
    meaning: "Maximum number of open rooms per tenant. Joins that would open another room are refused with a retry hint.",
  },
  participantsPerRoomMax: {
    parse: positiveInteger,
    fallback: 1_000,
    meaning: "Maximum number of participants per room over all gateways. Further joins are refused with a retry hint.",
    basic: true,
  },
  tenantEditsPerSecondMax: {
    parse: positiveInteger,
    fallback: 5_000,
    meaning: "Maximum number of edits per second and tenant over all gateways. Further edits are refused with a retry hint.",
    basic: true,
  },
  userEditsPerSecondMax: {
    parse: positiveInteger,
    fallback: 500,
    meaning: "Maximum number of edits per second and user over all connections and gateways. Further edits are refused with a retry hint.",
  },
  /** Payload bytes of a room's edits times its members, at once: 512 KiB for 384 members. */
  roomDeliveryBytesBurst: constant(201_326_592),
  roomDeliveryBytesPerSecond: constant(100_663_296),
  /** The same for all rooms of a tenant, per gateway. */
  tenantDeliveryBytesBurst: constant(268_435_456),
  tenantDeliveryBytesPerSecond: constant(134_217_728),
  /** Bytes of board lists times their watchers, for each tenant. */
  tenantBoardBytesBurst: constant(67_108_864),
  tenantBoardBytesPerSecond: constant(33_554_432),
  abusePointsMax: {
    parse: positiveInteger,
    fallback: 100,
    meaning: "Abuse score that bans a user or address. A score decays within about a minute. Half of this score delays new connections.",
  },
  tenantAbusePointsMax: {
    parse: positiveInteger,
    fallback: 5_000,
    meaning: "Abuse score of all users of a tenant. Beyond half of it the tenant's new connections are delayed.",
  },
  abuseBanMs: {
    parse: positiveInteger,
    fallback: 60_000,
    meaning: "Milliseconds of the first ban for abuse. Each further ban within a day is twice as long.",
  },
  abuseBanMsMax: { parse: positiveInteger, fallback: 3_600_000, meaning: "Maximum milliseconds of a ban for abuse." },
  suspectsMax: {
    parse: positiveInteger,
    fallback: 100_000,
    meaning: "Maximum number of users, addresses and tenants with an abuse score.",
  },
  sanctionsMax: {
    parse: positiveInteger,
    fallback: 10_000,
    meaning: "Maximum number of active bans and downgrades. Beyond it, the tenant with the most sanctions loses the one that ends first.",
  },
} as const satisfies Settings;

type QuotaConfig = Values<typeof quotaSettings>;

/**
 * Fraction of its limit from which a count is reported to other gateways. A gateway below this fraction reports
 * nothing, so each may add this number unnoticed.
 */
const COUNT_REPORT_SHARE = 0.02;
/** Three reports may be lost before the reported counts expire. */
const COUNT_SILENCE_MS_MAX = 3_500;
/**
 * Time for which a lost connection is still counted after it became silent. Counts are reported, and ends of
 * connections are detected, every second.
 */
const LOST_COUNTED_MS_MAX = 2_500;

/** Limits of connections, rooms and tenants across all gateways. */
export function quotaOptions(config: QuotaConfig & { readonly silenceMsMax: number }): QuotasOptions {
  return {
    limits: {
      "ip": config.connectionsPerIpMax,
      "tenant": config.connectionsPerTenantMax,
      "tenant-rooms": config.roomsPerTenantMax,
      "room": config.participantsPerRoomMax,
      "tenant-edits": config.tenantEditsPerSecondMax,
      "user-faults": config.abusePointsMax,
      "address-faults": config.abusePointsMax,
      "tenant-faults": config.tenantAbusePointsMax,
      "full-room": 1,
      "user": config.connectionsPerUserMax,
      "user-edits": config.userEditsPerSecondMax,
    },
    reportShare: COUNT_REPORT_SHARE,
    reportSilenceMsMax: COUNT_SILENCE_MS_MAX,
    creditMs: config.silenceMsMax + LOST_COUNTED_MS_MAX,
    deliveries: {
      room: { burst: config.roomDeliveryBytesBurst, perSecond: config.roomDeliveryBytesPerSecond },
      tenant: { burst: config.tenantDeliveryBytesBurst, perSecond: config.tenantDeliveryBytesPerSecond },
    },
  };
}
