/**
 * Tells the gateways every second what only a room server knows of what is limited: how many rooms of each tenant are
 * open here (a room has one owner, so that their sum is the tenant's), and which rooms take nobody new.
 */

import type { Count } from "../../shared/bus/counts-report.ts";
import type { Clock } from "../../shared/clock.ts";
import type { RoomKey, ServerId } from "../../shared/ids.ts";
import type { Counts } from "../ports.ts";

const SECOND_MS = 1_000;

export type CountedState = { tenantRooms(): ReadonlyMap<string, number>; fullRooms(): readonly RoomKey[] };

export function tellCounts(server: ServerId, state: CountedState, counts: Counts, clock: Clock): () => void {
  let cancel = (): void => {};
  const beat = (): void => {
    const full = state.fullRooms().map((key): Count => ({ kind: "full-room", key, count: 1 }));
    const largestFirst = [...state.tenantRooms()]
      .sort(([, a], [, b]) => b - a)
      .map(([key, count]): Count => ({ kind: "tenant-rooms", key, count }));
    counts.tell({ source: server, counts: [...full, ...largestFirst] });
    cancel = clock.after(SECOND_MS, beat);
  };
  beat();
  return () => cancel();
}
