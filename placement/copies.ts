/**
 * Who keeps a warm copy of what: another server, as far from the owner as any stands, and of those the one with the
 * fewest copies of that owner's rooms, so that they spread when it is lost.
 */

import type { RoomKey, ServerId } from "../shared/ids.ts";
import type { Step } from "./plan.ts";
import type { Preferences } from "./preferences.ts";
import type { Tallies, Tally } from "./tallies.ts";

const APART = ["", "another server", "another host", "another zone"] as const;

export class Copies {
  readonly #tallies: Tallies;
  readonly #preferences: Preferences;

  constructor(tallies: Tallies, preferences: Preferences) {
    this.#tallies = tallies;
    this.#preferences = preferences;
  }

  /** Nobody could keep it further from the owner, were the room allowed everywhere. */
  isWellKept(owner: Tally, by: Tally): boolean {
    const apart = by.state.draining ? 0 : this.#tallies.apart(owner, by);
    return apart > 0 && apart >= this.#tallies.apartMax(owner);
  }

  /** What is to be done for the room of `owner`, whose copy `keeper` was told to keep. Undefined: nothing. */
  place(room: RoomKey, owner: Tally, keeper: ServerId | undefined): Step | undefined {
    const kept = keeper === undefined ? undefined : this.#tallies.of(keeper);
    if (kept !== undefined && this.isWellKept(owner, kept)) return undefined;
    const best = this.#best(room, owner);
    if (best === undefined || best === kept) return undefined;
    if (kept !== undefined && this.#mayKeep(room, kept) && this.#tallies.apart(owner, best) <= this.#tallies.apart(owner, kept)) {
      return undefined;
    }
    if (kept !== undefined) this.#tallies.countCopy(owner, kept, -1);
    this.#tallies.countCopy(owner, best, 1);
    const reason = `${best.state.server} keeps its warm copy: ${APART[this.#tallies.apart(owner, best)]} than its owner ${owner.state.server}`;
    return { room, action: { kind: "follow", by: best.state.server, instead: keeper }, reason };
  }

  #mayKeep(room: RoomKey, { state }: Tally): boolean {
    return !state.draining && this.#preferences.mayTake(room, state);
  }

  #best(room: RoomKey, owner: Tally): Tally | undefined {
    let best: Tally | undefined;
    for (const tally of this.#tallies.takers) {
      if (tally !== owner && this.#mayKeep(room, tally) && (best === undefined || this.#isBetter(tally, best, owner))) best = tally;
    }
    return best;
  }

  #isBetter(one: Tally, other: Tally, owner: Tally): boolean {
    const byApart = this.#tallies.apart(owner, one) - this.#tallies.apart(owner, other);
    const byCopies = this.#tallies.copies(owner, other) - this.#tallies.copies(owner, one);
    return byApart > 0 || (byApart === 0 && (byCopies > 0 || (byCopies === 0 && one.replicas < other.replicas)));
  }
}
