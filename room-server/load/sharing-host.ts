/** Throttles costly rooms while this server is late, and reports its counts to the gateways. */

import type { Count } from "../../shared/bus/counts-report.ts";
import type { Operations } from "../../shared/bus/operations-events.ts";
import type { ServerId, RoomKey } from "../../shared/ids.ts";
import type { Clock } from "../../shared/time/clock.ts";
import { every } from "../../shared/time/every.ts";
import type { RoomServerMetrics } from "../metrics.ts";
import type { Counts } from "../ports.ts";
import { FairShare, type FairShareOptions, BUDGET_LEVEL_MAX, type BudgetLevel } from "./fair-share.ts";

type SharedLoad = { readonly rooms: Pick<CountedState, "tenantRooms">; readonly costly: CostlyRooms };
type SharingPorts = { readonly counts: Counts; readonly operations: Operations; readonly measureDelayMs: () => number };

/** Returns a function that stops it. */
export function startSharing(
  server: ServerId,
  { rooms, costly }: SharedLoad,
  { counts, operations, measureDelayMs }: SharingPorts,
  options: FairShareOptions,
  { clock, metrics }: { clock: Clock; metrics: RoomServerMetrics },
): () => void {
  const share = new FairShare(options);
  const stopReporting = reportCounts(server, { tenantRooms: () => rooms.tenantRooms(), fullRooms: () => share.full }, counts, clock);
  const stopWatching = watchBudgets(share, costly, measureDelayMs, { clock, metrics, operations });
  return () => {
    stopReporting();
    stopWatching();
  };
}

const REPORT_MS = 1_000;

type CountedState = { tenantRooms(): ReadonlyMap<string, number>; fullRooms(): readonly RoomKey[] };

/**
 * Reports every second the counts that only a room server has: open rooms of each tenant (a room has one owner, so the
 * sum is the tenant's), and rooms that accept no new members.
 */
export function reportCounts(server: ServerId, state: CountedState, counts: Counts, clock: Clock): () => void {
  const beat = (): void => {
    const full = state.fullRooms().map((key): Count => ({ kind: "full-room", key, count: 1 }));
    const largestFirst = [...state.tenantRooms()]
      .sort(([, a], [, b]) => b - a)
      .map(([key, count]): Count => ({ kind: "tenant-rooms", key, count }));
    counts.publishReport({ source: server, counts: [...full, ...largestFirst] });
  };
  beat();
  return every(clock, REPORT_MS, beat);
}

export type CostlyRooms = {
  /** Calls `receive` with each room's total cost so far, which never decreases. */
  eachCost(receive: (room: RoomKey, cost: number) => void): void;
  /** Called once a second while the level is above 0. */
  holdBack(room: RoomKey, level: BudgetLevel): void;
};

const LOOK_MS = 1_000;

/**
 * Measures each room's cost once a second, and throttles the rooms that make the server late. `measureDelayMs`: the
 * delay since the last call. Returns a function that stops it.
 */
export function watchBudgets(
  share: FairShare,
  rooms: CostlyRooms,
  measureDelayMs: () => number,
  { clock, metrics, operations }: { clock: Clock; metrics: RoomServerMetrics; operations: Operations },
): () => void {
  /** Costs at the last measurement. The map is reused: a new map each second would be most of a quiet server's garbage. */
  const before = new Map<RoomKey, number>();
  const forgetGone = (): void => {
    const gone = new Set(before.keys());
    rooms.eachCost((room) => void gone.delete(room));
    for (const room of gone) {
      before.delete(room);
      share.forget(room);
    }
  };
  const look = (): void => {
    const costs = new Map<RoomKey, number>();
    let here = 0;
    rooms.eachCost((room, total) => {
      here += 1;
      const last = before.get(room);
      if (total === last) return;
      costs.set(room, last === undefined || total < last ? total : total - last); // A room that began again counts from 0.
      before.set(room, total);
    });
    if (before.size > here) forgetGone();
    const delayMs = measureDelayMs();
    metrics.loopDelaySeconds.set(delayMs / 1000);
    for (const { room, from, to } of share.receiveCosts(costs, delayMs, clock.now())) {
      if (to === 0) rooms.holdBack(room, to);
      operations.report({ kind: "room_budget", room, from, to, cost: costs.get(room) ?? 0, delayMs });
    }
    // Repeated each time, because the room may have begun again, or may not be ready yet.
    for (const [room, level] of share.held) rooms.holdBack(room, level);
    for (let level = 1; level <= BUDGET_LEVEL_MAX; level++) metrics.roomsHeldBack.set({ level }, share.heldAt(level));
  };
  look();
  return every(clock, LOOK_MS, look);
}
