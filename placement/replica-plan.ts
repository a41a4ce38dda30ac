/**
 * Chooses the server for each replica: as far from the owner as possible, and among equal servers the one with the
 * fewest replicas of this owner's rooms. So the rooms of a lost server are spread over many others.
 */

import type { RoomKey, ServerId } from "../shared/ids.ts";
import type { PlanStep } from "./plan.ts";
import type { ServerUsages, ServerUsage, ServerPreferences } from "./server-loads.ts";

const APART = ["", "another server", "another host", "another zone"] as const;

export class ReplicaPlan {
  readonly #usages: ServerUsages;
  readonly #preferences: ServerPreferences;

  constructor(usages: ServerUsages, preferences: ServerPreferences) {
    this.#usages = usages;
    this.#preferences = preferences;
  }

  /** Whether no other server is further from the owner, without regard to pins. */
  isWellKept(owner: ServerUsage, by: ServerUsage): boolean {
    const apart = by.state.draining ? 0 : this.#usages.apart(owner, by);
    return apart > 0 && apart >= this.#usages.apartMax(owner);
  }

  /** The step for the room of `owner` whose replica `keeper` should keep. Undefined: nothing to do. */
  place(room: RoomKey, owner: ServerUsage, keeper: ServerId | undefined): PlanStep | undefined {
    const kept = keeper === undefined ? undefined : this.#usages.of(keeper);
    if (kept !== undefined && this.isWellKept(owner, kept)) return undefined;
    const best = this.#best(room, owner);
    if (best === undefined || best === kept) return undefined;
    if (kept !== undefined && this.#mayKeep(room, kept) && this.#usages.apart(owner, best) <= this.#usages.apart(owner, kept)) {
      return undefined;
    }
    if (kept !== undefined) this.#usages.countCopy(owner, kept, -1);
    this.#usages.countCopy(owner, best, 1);
    const reason = `${best.state.server} keeps its replica, on ${APART[this.#usages.apart(owner, best)]} than its owner ${owner.state.server}`;
    return { room, action: { kind: "follow", by: best.state.server, instead: keeper }, reason };
  }

  #mayKeep(room: RoomKey, { state }: ServerUsage): boolean {
    return !state.draining && this.#preferences.mayTake(room, state);
  }

  #best(room: RoomKey, owner: ServerUsage): ServerUsage | undefined {
    let best: ServerUsage | undefined;
    for (const usage of this.#usages.takers) {
      if (usage !== owner && this.#mayKeep(room, usage) && (best === undefined || this.#isBetter(usage, best, owner))) best = usage;
    }
    return best;
  }

  #isBetter(one: ServerUsage, other: ServerUsage, owner: ServerUsage): boolean {
    const byApart = this.#usages.apart(owner, one) - this.#usages.apart(owner, other);
    const byReplicas = this.#usages.replicas(owner, other) - this.#usages.replicas(owner, one);
    return byApart > 0 || (byApart === 0 && (byReplicas > 0 || (byReplicas === 0 && one.replicas < other.replicas)));
  }
}
