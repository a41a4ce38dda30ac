/** Where a tier tells of what the people who run Coroom want to see. `shared/io/nats-operations.ts` is the real one. */

import type { OperationsReport } from "./bus/operations-events.ts";

export interface Operations {
  /** Logged, counted, kept and streamed. Never waited for. */
  report(report: OperationsReport): void;
}
