/** What operations consoles may ask. */

import { positiveInteger, type Settings, type Values } from "../../shared/config.ts";
import type { HttpConfig } from "./http.ts";

export const operationsSettings = {
  adminReadBurst: {
    parse: positiveInteger,
    fallback: 100,
    meaning:
      "questions of operations consoles that one administrator, or all operators together, may ask a gateway at once; a console asks about two a second",
  },
  adminReadsPerSecond: { parse: positiveInteger, fallback: 30, meaning: "those that they may ask in the long run" },
} as const satisfies Settings;

type OperationsConfig = Values<typeof operationsSettings>;

/** What the operations console's questions keep to. */
export function operationsRouteOptions(config: OperationsConfig & HttpConfig & { readonly environment: string }) {
  return {
    internalSecret: config.internalSecret,
    environment: config.environment,
    reads: { burst: config.adminReadBurst, perSecond: config.adminReadsPerSecond },
    readersMax: config.connectionsMax,
  };
}
