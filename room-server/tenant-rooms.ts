/** Tells the gateways every second how many rooms of each tenant are open here: a room has one owner, so that their sum is the tenant's. */

import type { Clock } from "../shared/clock.ts";
import type { ServerId } from "../shared/ids.ts";
import type { Counts } from "./ports.ts";

const SECOND_MS = 1_000;

export function tellTenantRooms(server: ServerId, state: { tenantRooms(): ReadonlyMap<string, number> }, counts: Counts, clock: Clock): () => void {
  let cancel = (): void => {};
  const beat = (): void => {
    const largestFirst = [...state.tenantRooms()].sort(([, a], [, b]) => b - a);
    counts.tell({ source: server, counts: largestFirst.map(([key, count]) => ({ kind: "tenant-rooms", key, count })) });
    cancel = clock.after(SECOND_MS, beat);
  };
  beat();
  return () => cancel();
}
