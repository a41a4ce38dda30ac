/** Keeps each room within its share of a server that is late, and tells the gateways what is full here. */

import type { Clock } from "../../shared/clock.ts";
import type { ServerId } from "../../shared/ids.ts";
import type { Operations } from "../../shared/operations.ts";
import type { RoomServerMetrics } from "../metrics.ts";
import type { Counts } from "../ports.ts";
import { type CountedState, tellCounts } from "./counts-host.ts";
import { FairShare, type FairShareOptions } from "./fair-share.ts";
import { type CostlyRooms, watchBudgets } from "./fair-share-host.ts";

export type Shared = { readonly rooms: Pick<CountedState, "tenantRooms">; readonly costly: CostlyRooms };
export type SharingPorts = { readonly counts: Counts; readonly operations: Operations; readonly measureDelayMs: () => number };

/** Returns what ends it. */
export function startSharing(
  server: ServerId,
  { rooms, costly }: Shared,
  { counts, operations, measureDelayMs }: SharingPorts,
  options: FairShareOptions,
  { clock, metrics }: { clock: Clock; metrics: RoomServerMetrics },
): () => void {
  const share = new FairShare(options);
  const stopTelling = tellCounts(server, { tenantRooms: () => rooms.tenantRooms(), fullRooms: () => share.full }, counts, clock);
  const stopWatching = watchBudgets(share, costly, measureDelayMs, { clock, metrics, operations });
  return () => {
    stopTelling();
    stopWatching();
  };
}
