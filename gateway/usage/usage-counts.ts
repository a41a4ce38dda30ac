/** The quantities that a gateway counts for each tenant. */

import type { TenantId } from "../../shared/ids.ts";

/**
 * `connectionMs`: milliseconds of all connections together. `edits` and `editBytes`: stored edits and their payloads.
 * `receivedBytes`: frames of clients. `deliveredBytes`: frames with edits and presence, once for each recipient.
 * `refusals`: refused connections, joins, edits and presence.
 */
export const USAGE_QUANTITIES = [
  "connections",
  "connectionMs",
  "edits",
  "editBytes",
  "presenceMessages",
  "receivedBytes",
  "deliveredBytes",
  "refusals",
] as const;
export type UsageQuantity = (typeof USAGE_QUANTITIES)[number];
export type UsageCounts = Record<UsageQuantity, number>;
/**
 * Usage of one day. `storedBytes`: the highest that document services measured; gateways do not count it. `peakConnections`:
 * the highest number of connections that were open at one time, over all gateways.
 */
export type StoredUsage = Readonly<UsageCounts> & { readonly storedBytes: number; readonly peakConnections: number };

/** Tenants beyond a limit count together under this name. No tenant can have it: a tenant id contains no brackets. */
export const OTHER_TENANTS = "(other)" as TenantId;

export function noUsage(): UsageCounts {
  return {
    connections: 0,
    connectionMs: 0,
    edits: 0,
    editBytes: 0,
    presenceMessages: 0,
    receivedBytes: 0,
    deliveredBytes: 0,
    refusals: 0,
  };
}

export function addUsage(to: UsageCounts, more: Readonly<UsageCounts>): void {
  for (const quantity of USAGE_QUANTITIES) to[quantity] += more[quantity];
}
