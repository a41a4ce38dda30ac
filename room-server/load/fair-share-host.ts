/** Looks once a second at what each room costs, and holds back those that make the server late. */

import type { Clock } from "../../shared/clock.ts";
import type { RoomKey } from "../../shared/ids.ts";
import type { Operations } from "../../shared/operations.ts";
import { BUDGET_LEVEL_MAX, type BudgetLevel, type FairShare } from "./fair-share.ts";
import type { RoomServerMetrics } from "../metrics.ts";

export type CostlyRooms = {
  /** What each has cost since it is here: only ever more. */
  costs(): Iterable<readonly [RoomKey, number]>;
  /** Told once a second, as long as the level is not 0. */
  holdBack(room: RoomKey, level: BudgetLevel): void;
};

const LOOK_MS = 1_000;

/** `measureDelayMs`: since it was last asked. Returns what ends it. */
export function watchBudgets(share: FairShare, rooms: CostlyRooms, measureDelayMs: () => number, { clock, metrics, operations }: { clock: Clock; metrics: RoomServerMetrics; operations: Operations }): () => void {
  let before = new Map<RoomKey, number>();
  let cancel = (): void => {};
  const look = (): void => {
    const totals = new Map(rooms.costs());
    const costs = new Map([...totals].map(([room, total]) => [room, total - (before.get(room) ?? 0)]));
    for (const room of before.keys()) if (!totals.has(room)) share.forget(room);
    before = totals;
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
