/** Limits of the usage that is counted by tenant. */

import { constant, type Settings, type Values } from "../../shared/settings/settings.ts";
import type { HttpConfig } from "./http.ts";
import type { OperationsConfig } from "./operations.ts";

export const usageSettings = {
  /** Tenants that a gateway counts in one second, or holds for Redis, each once for every day. About 300 bytes each. */
  usageTenantsMax: constant(10_000),
  /** Tenants that the metrics of a gateway name. Each adds six series. */
  usageNamedTenantsMax: constant(50),
  /** Tenants in one call of Redis, so that no call blocks Redis for longer than a few milliseconds. */
  usageTenantsPerBatchMax: constant(500),
  /** A killed gateway loses the usage of this time. */
  usageFlushMs: constant(10_000),
  /** Interval of the samples of open connections, of which the highest of a day is kept. All gateways use the same one. */
  usageSampleMs: constant(60_000),
  /** Days that the answer to one request may cover. */
  usageDaysMax: constant(100),
  /** Rows of one answer, about 200 bytes each. */
  usageRowsMax: constant(50_000),
} as const satisfies Settings;

type UsageConfig = Values<typeof usageSettings>;

/** Requests for usage are limited as the operations console's, in their own buckets. */
export function usageRouteOptions(config: UsageConfig & OperationsConfig & HttpConfig & { readonly connectionsMax: number }) {
  return {
    operatorSecret: config.operatorSecret,
    daysMax: config.usageDaysMax,
    rowsMax: config.usageRowsMax,
    reads: { burst: config.adminReadBurst, perSecond: config.adminReadsPerSecond },
    readersMax: config.connectionsMax,
  };
}
