/**
 * A batch in the making: what its users get, all within one hour. Every room in use has one while it waits to be
 * written, so a map is made only once there is something in it.
 */

import type { UserId } from "../../shared/ids.ts";
import type { Applied, Award, Batch, Mark } from "../boards/board.ts";
import type { Cap, Role } from "../boards/keys.ts";
import type { PeriodCap } from "./scoring.ts";
import type { Window } from "../boards/windows.ts";

/** A batch is one call of a script, whose arguments are bounded. */
export const BATCH_USERS_MAX = 500;

export type Caps = Readonly<Record<Cap, PeriodCap>>;

type Gain = { points: number; reachedAt: number };
type Use = { period: number; hasBegun: boolean; points: Map<UserId, number> | undefined };

const NO_POINTS: ReadonlyMap<UserId, number> = new Map();

export class Draft {
  readonly windows: readonly Window[];
  readonly #after: Mark;
  readonly #gains = new Map<Role, Map<UserId, Gain>>();
  readonly #uses: Readonly<Record<Cap, Use>>;
  /** No fewer than there are: whoever gets points under two caps, or in two stretches of time, counts twice. */
  #users = 0;
  #applied: Applied;
  #entries = 0;

  /** `applied`, and the stretches that `caps` are in: what it begins from. */
  constructor(applied: Applied, caps: Caps, windows: readonly Window[]) {
    this.windows = windows;
    this.#after = { seq: applied.seq, activity: applied.activity };
    this.#applied = applied;
    this.#uses = { edits: unused(caps.edits), deeds: unused(caps.deeds), present: unused(caps.present) };
  }

  /** Edits, and messages of activities. */
  get entries(): number {
    return this.#entries;
  }

  hasPlaceFor(users: number): boolean {
    return this.#users + users <= BATCH_USERS_MAX;
  }

  beginPeriod(cap: Cap, period: number): void {
    const use = this.#uses[cap];
    use.period = period;
    use.hasBegun = true;
    use.points = undefined;
  }

  /** `points`: all that the user has got under the cap in the stretch it is in. */
  setUse(cap: Cap, user: UserId, points: number): void {
    const use = this.#uses[cap];
    use.points ??= new Map();
    if (!use.points.has(user)) this.#users += 1;
    use.points.set(user, points);
  }

  award(role: Role, user: UserId, points: number, reachedAt: number): void {
    let gains = this.#gains.get(role);
    if (gains === undefined) this.#gains.set(role, (gains = new Map()));
    const gain = gains.get(user);
    if (gain === undefined) gains.set(user, { points, reachedAt });
    else {
      gain.points += points;
      gain.reachedAt = Math.max(gain.reachedAt, reachedAt);
    }
  }

  /** One more entry is in it, and the room is counted up to there with it. */
  advance(applied: Applied): void {
    this.#applied = applied;
    this.#entries += 1;
  }

  batch(): Batch {
    const awards = new Map<Role, Award[]>();
    for (const [role, gains] of this.#gains) {
      awards.set(
        role,
        Array.from(gains, ([member, { points, reachedAt }]) => ({ member, points, reachedAt })),
      );
    }
    const { edits, deeds, present } = this.#uses;
    return {
      after: this.#after,
      applied: this.#applied,
      uses: { edits: used(edits), deeds: used(deeds), present: used(present) },
      windows: this.windows,
      awards,
    };
  }
}

function unused({ period }: PeriodCap): Use {
  return { period, hasBegun: false, points: undefined };
}

function used({ period, hasBegun, points }: Use): Batch["uses"][Cap] {
  return { period, hasBegun, points: points ?? NO_POINTS };
}
