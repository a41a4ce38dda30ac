/**
 * Decides which rooms are throttled while the server is late: the costliest rooms, one level at a time, so that a hot
 * room does not slow the others. A room regains one level after some time in which the server was on time, or the room
 * cost next to nothing: a server that stays late because of other rooms keeps no quiet room closed for new members.
 */

import type { Millis, RoomKey } from "../../shared/ids.ts";

export type FairShareOptions = {
  /** Event loop delay above which the server is overloaded. At half of it the server is on time again. */
  readonly shareDelayMsMin: number;
  readonly shareCalmMs: number;
};

/** 0: the room is not held back. */
export type BudgetLevel = number;
type BudgetChange = { readonly room: RoomKey; readonly from: BudgetLevel; readonly to: BudgetLevel };

/**
 * The restrictions of a throttled room, by level. `shed` is the number that gateways and clients see. First, presence
 * is sent less often and reduced. Then edits are collected for longer before they share a record, and are acknowledged
 * later. At the last level new joins are refused temporarily. No edit is ever refused because of the level.
 */
const BUDGETS = [
  { tickFactor: 1, perSecondMax: 30, gathersEdits: false, shed: 0 },
  { tickFactor: 2, perSecondMax: 10, gathersEdits: false, shed: 4 },
  { tickFactor: 4, perSecondMax: 5, gathersEdits: false, shed: 5 },
  { tickFactor: 4, perSecondMax: 1, gathersEdits: false, shed: 6 },
  { tickFactor: 4, perSecondMax: 1, gathersEdits: true, shed: 7 },
  { tickFactor: 4, perSecondMax: 1, gathersEdits: true, shed: 8 },
] as const;

export type Budget = (typeof BUDGETS)[number];
export const BUDGET_LEVEL_MAX = BUDGETS.length - 1;

/** The costliest rooms are the fewest rooms that together cause this share of the cost. */
const SHARE_OF_THE_HOT = 0.5;

/**
 * Cost in a second below which a room, or all rooms together, did not make the server late: less than 1% of a core with
 * the figures of docs/CAPACITY.md, 54 µs for an edit and 6 µs for a cursor. Ten people who move their pointers cost about
 * 220. Something else takes the time, such as another process of the machine, and a throttled room would not change that.
 */
const COST_MIN = 250;

export function budgetOf(level: BudgetLevel): Budget {
  return BUDGETS[Math.min(level, BUDGET_LEVEL_MAX)]!;
}

export class FairShare {
  readonly #options: FairShareOptions;
  readonly #levels = new Map<RoomKey, BudgetLevel>();
  /** Of throttled rooms that have not made the server late since then. */
  readonly #calmSince = new Map<RoomKey, Millis>();

  constructor(options: FairShareOptions) {
    this.#options = options;
  }

  /** Number of rooms at that level. */
  heldAt(level: BudgetLevel): number {
    return this.#roomsAt(level).length;
  }

  /** The rooms that are held back. */
  get held(): ReadonlyMap<RoomKey, BudgetLevel> {
    return this.#levels;
  }

  /** The rooms that accept no new members. */
  get full(): readonly RoomKey[] {
    return this.#roomsAt(BUDGET_LEVEL_MAX);
  }

  forget(room: RoomKey): void {
    this.#levels.delete(room);
    this.#calmSince.delete(room);
  }

  /** Call at a steady interval. `costs`: each room's cost since the last call, in any one unit. A room that is not in it had no cost. */
  receiveCosts(costs: ReadonlyMap<RoomKey, number>, delayMs: number, now: Millis): BudgetChange[] {
    const { shareDelayMsMin, shareCalmMs } = this.#options;
    const hot = new Set(delayMs >= shareDelayMsMin ? hottest(costs) : []);
    const changes = [...hot].flatMap((room) => this.#step(room, 1));
    for (const room of this.#levels.keys()) {
      const isCalm = delayMs < shareDelayMsMin / 2 || (!hot.has(room) && (costs.get(room) ?? 0) < COST_MIN);
      const since = isCalm ? (this.#calmSince.get(room) ?? now) : undefined;
      if (since === undefined) this.#calmSince.delete(room);
      else if (now - since < shareCalmMs) this.#calmSince.set(room, since);
      else {
        this.#calmSince.set(room, now);
        changes.push(...this.#step(room, -1));
      }
    }
    return changes;
  }

  #roomsAt(level: BudgetLevel): RoomKey[] {
    return [...this.#levels].filter(([, held]) => held === level).map(([room]) => room);
  }

  #step(room: RoomKey, by: number): BudgetChange[] {
    const from = this.#levels.get(room) ?? 0;
    const to = Math.min(from + by, BUDGET_LEVEL_MAX);
    if (to === 0) this.forget(room);
    else this.#levels.set(room, to);
    return to === from ? [] : [{ room, from, to }];
  }
}

/** The fewest rooms that together cost half. None if all together cost next to nothing. */
function hottest(costs: ReadonlyMap<RoomKey, number>): RoomKey[] {
  const falling = [...costs].filter(([, cost]) => cost > 0).sort(([, a], [, b]) => b - a);
  const all = falling.reduce((sum, [, cost]) => sum + cost, 0);
  if (all < COST_MIN) return [];
  const hot: RoomKey[] = [];
  let sum = 0;
  for (const [room, cost] of falling) {
    if (sum >= all * SHARE_OF_THE_HOT) break;
    hot.push(room);
    sum += cost;
  }
  return hot;
}
