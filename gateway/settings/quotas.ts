/** What addresses, tenants and rooms may have over all gateways together, and what follows on abuse. */

import { positiveInteger, type Settings, type Values } from "../../shared/config.ts";
import type { QuotasOptions } from "../limits/quotas.ts";

export const quotaSettings = {
  connectionsPerIpMax: {
    parse: positiveInteger,
    fallback: 100,
    meaning:
      "connections from one address (IPv6: one /64) to all gateways; more are turned away with HTTP 429, but for a tenth that is let in for as long as a lost line is counted. The machine's own addresses are not counted",
  },
  connectionsPerTenantMax: {
    parse: positiveInteger,
    fallback: 50_000,
    meaning:
      "connections of one tenant to all gateways; more are closed with a hint to come back later, but for a tenth that is let in for as long as a lost line is counted",
  },
  roomsPerTenantMax: {
    parse: positiveInteger,
    fallback: 10_000,
    meaning: "open rooms of one tenant; joins that would open another are refused with a hint to come back later",
  },
  participantsPerRoomMax: {
    parse: positiveInteger,
    fallback: 1_000,
    meaning: "members of one room over all gateways; more joins are refused with a hint to come back later",
  },
  tenantEditsPerSecondMax: {
    parse: positiveInteger,
    fallback: 5_000,
    meaning: "edits that one tenant may send over all gateways in a second; more are refused with a hint to send them later",
  },
  abusePointsMax: {
    parse: positiveInteger,
    fallback: 100,
    meaning: "points of a user or an address over all gateways, within a minute or so, that lead to a ban; half as many to being held off",
  },
  tenantAbusePointsMax: {
    parse: positiveInteger,
    fallback: 5_000,
    meaning: "points of all users of a tenant together; more than half as many, and its new connections are held off",
  },
  abuseBanMs: {
    parse: positiveInteger,
    fallback: 60_000,
    meaning: "the first ban for abuse; each further one within a day is twice as long",
  },
  abuseBanMsMax: { parse: positiveInteger, fallback: 3_600_000, meaning: "the longest ban for abuse" },
  suspectsMax: { parse: positiveInteger, fallback: 100_000, meaning: "users, addresses and tenants watched for abuse at once" },
  sanctionsMax: {
    parse: positiveInteger,
    fallback: 10_000,
    meaning: "bans and downgrades held at once; of the tenant that has most, the one that ends first makes room for another",
  },
} as const satisfies Settings;

type QuotaConfig = Values<typeof quotaSettings>;

/** Other gateways are told of a count from this part of its limit on: so much may each of them add unseen. */
const COUNT_TOLD_SHARE = 0.02;
/** Three reports may be lost before what they said lapses. */
const COUNT_SILENCE_MS_MAX = 3_500;
/** What a line that was lost is counted beyond its silence: others are told every second, and its end is looked for as often. */
const LOST_COUNTED_MS_MAX = 2_500;

/** What connections, rooms and tenants keep to across all gateways. */
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
    },
    toldShare: COUNT_TOLD_SHARE,
    reportSilenceMsMax: COUNT_SILENCE_MS_MAX,
    creditMs: config.silenceMsMax + LOST_COUNTED_MS_MAX,
  };
}
