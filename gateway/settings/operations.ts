/** Limits of requests from operations consoles. */

import { positiveInteger, type Settings, type Values } from "../../shared/settings/settings.ts";
import type { HttpConfig } from "./http.ts";

export const operationsSettings = {
  adminReadBurst: {
    parse: positiveInteger,
    fallback: 100,
    meaning:
      "Number of console requests that one administrator, or all operators together, may send at once. A console sends about two per second.",
  },
  adminReadsPerSecond: {
    parse: positiveInteger,
    fallback: 30,
    meaning: "Maximum sustained console requests per second of one administrator, or of all operators together.",
  },
} as const satisfies Settings;

export type OperationsConfig = Values<typeof operationsSettings>;

/** Limits of the operations console's requests. */
export function operationsRouteOptions(config: OperationsConfig & HttpConfig & { readonly environment: string }) {
  return {
    operatorSecret: config.operatorSecret,
    environment: config.environment,
    reads: { burst: config.adminReadBurst, perSecond: config.adminReadsPerSecond },
    readersMax: config.connectionsMax,
  };
}
