/** Looks once a second at what each room costs, and holds back those that make the server late. */

import type { Clock } from "../../shared/clock.ts";
import type { RoomKey } from "../../shared/ids.ts";
import type { Operations } from "../../shared/operations.ts";
import { BUDGET_LEVEL_MAX, type BudgetLevel, type FairShare } from "./fair-share.ts";
import type { RoomServerMetrics } from "../metrics.ts";

export type CostlyRooms = {
  /** Tells what each has cost since it is here: only ever more. */
  eachCost(tell: (room: RoomKey, cost: number) => void): void;
  /** Told once a second, as long as the level is not 0. */
  holdBack(room: RoomKey, level: BudgetLevel): void;
};

const LOOK_MS = 1_000;

/** `measureDelayMs`: since it was last asked. Returns what ends it. */
export function watchBudgets(
  share: FairShare,
  rooms: CostlyRooms,
  measureDelayMs: () => number,
  { clock, metrics, operations }: { clock: Clock; metrics: RoomServerMetrics; operations: Operations },
): () => void {
  /** What each had cost at the last look. Kept, for a map of all rooms each second would be most of what a quiet server has to collect. */
  const before = new Map<RoomKey, number>();
  const forgetGone = (): void => {
    const gone = new Set(before.keys());
    rooms.eachCost((room) => void gone.delete(room));
    for (const room of gone) {
      before.delete(room);
      share.forget(room);
    }
  };
  let cancel = (): void => {};
  const look = (): void => {
    const costs = new Map<RoomKey, number>();
    let here = 0;
    rooms.eachCost((room, total) => {
      here += 1;
      const last = before.get(room);
      if (total === last) return;
      costs.set(room, total - (last ?? 0));
      before.set(room, total);
    });
    if (before.size > here) forgetGone();
    const delayMs = measureDelayMs();
    metrics.loopDelaySeconds.set(delayMs / 1000);
    for (const { room, from, to } of share.receiveCosts(costs, delayMs, clock.now())) {
      if (to === 0) rooms.holdBack(room, to);
      operations.report({ kind: "room_budget", room, from, to, cost: costs.get(room) ?? 0, delayMs });
    }
    for (const [room, level] of share.held) rooms.holdBack(room, level); // Each time: it may have begun anew since the last, or may not be ready to hear it yet.
    for (let level = 1; level <= BUDGET_LEVEL_MAX; level++) metrics.roomsHeldBack.set({ level }, share.heldAt(level));
    cancel = clock.after(LOOK_MS, look);
  };
  look();
  return () => cancel();
}
