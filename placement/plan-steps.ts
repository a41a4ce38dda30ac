/**
 * The steps of the newest plan that have not begun, and those in progress. A room has one step in progress at a time,
 * and its replica is placed after its owner. A step that cannot begin yet waits: if the replica of a room is being
 * placed while its owner is lost, the promotion begins as soon as the replica is placed or refused.
 */

import type { RoomKey, ServerId } from "../shared/ids.ts";
import type { PlanAction, PlacementPlan, PlanStep } from "./plan.ts";

type Queue = { readonly underWayMax: number; waiting: PlanStep[]; underWay: number };

/** Maximum number of concurrent takeovers from lost servers. High, because nothing else is as urgent. */
const PROMOTIONS_MAX = 32;
/** Maximum number of concurrent moves. Low, because users must not notice them. */
const MOVES_MAX = 4;
/** Maximum number of replicas that are made concurrently. Each reads its room's log. */
const REPLICAS_MAX = 16;

export class PlanSteps {
  readonly #promotions: Queue = { underWayMax: PROMOTIONS_MAX, waiting: [], underWay: 0 };
  readonly #moves: Queue = { underWayMax: MOVES_MAX, waiting: [], underWay: 0 };
  readonly #replicas: Queue = { underWayMax: REPLICAS_MAX, waiting: [], underWay: 0 };
  readonly #underWay = new Map<RoomKey, PlanStep>();
  /** Rooms whose promotion or move waits. */
  readonly #ownersWaiting = new Set<RoomKey>();
  /** The last server that refused to follow each room. It may complete its replica later, for example if the log was slow. */
  readonly #refusedFollowers = new Map<RoomKey, ServerId>();
  #generation = 0;

  get waitingPromotionCount(): number {
    return this.#promotions.waiting.length;
  }

  /** Whether a step of the room is in progress. The facts about the room are about to change. */
  isUnderWay(room: RoomKey): boolean {
    return this.#underWay.has(room);
  }

  /**
   * Drops the steps that have not begun, because the new plan is made from newer facts. Returns the number of steps that
   * wait now: while a step of a room is in progress, only a promotion is added for it.
   */
  adopt({ generation, steps: planned }: PlacementPlan): number {
    const steps = planned.filter((step) => this.#mayWait(step));
    this.#generation = generation;
    this.#ownersWaiting.clear();
    for (const queue of [this.#promotions, this.#moves, this.#replicas]) {
      queue.waiting = steps.filter(({ action }) => this.#queueOf(action) === queue);
      if (queue !== this.#replicas) for (const { room } of queue.waiting) this.#ownersWaiting.add(room);
    }
    return steps.length;
  }

  /**
   * Removes and returns the refused followers that the adopted plan does not choose again. They must keep no replica.
   * Otherwise every server could end with one, each chosen once while the log was slow.
   */
  takeUnchosenFollowers(): (readonly [room: RoomKey, server: ServerId])[] {
    const chosen = new Map(this.#replicas.waiting.map(({ room, action }) => [room, "by" in action ? action.by : undefined]));
    const unchosen = [...this.#refusedFollowers].filter(([room, server]) => chosen.get(room) !== server && !this.isUnderWay(room));
    for (const [room] of unchosen) this.#refusedFollowers.delete(room);
    return unchosen;
  }

  /** The next step to begin, which is in progress from now on, and its plan's generation. Undefined: none may begin. */
  takeNext(): { readonly step: PlanStep; readonly generation: number } | undefined {
    for (const queue of [this.#promotions, this.#moves, this.#replicas]) {
      if (queue.underWay >= queue.underWayMax) continue;
      const isReplica = queue === this.#replicas;
      const index = queue.waiting.findIndex(({ room }) => !this.#underWay.has(room) && !(isReplica && this.#ownersWaiting.has(room)));
      const [step] = index < 0 ? [] : queue.waiting.splice(index, 1);
      if (step === undefined) continue;
      queue.underWay += 1;
      this.#underWay.set(step.room, step);
      if (!isReplica) this.#ownersWaiting.delete(step.room);
      return { step, generation: this.#generation };
    }
    return undefined;
  }

  /**
   * The step has ended. If the owner did not change, the room's replica stays where it is: its next place was chosen
   * for the other owner.
   */
  settle({ room, action }: PlanStep, isRefused: boolean): void {
    this.#underWay.delete(room);
    this.#queueOf(action).underWay -= 1;
    if (action.kind === "follow" && isRefused) this.#refusedFollowers.set(room, action.by);
    else if (action.kind === "follow") this.#refusedFollowers.delete(room);
    if (isRefused) this.#replicas.waiting = this.#replicas.waiting.filter((step) => step.room !== room);
  }

  #mayWait({ room, action }: PlanStep): boolean {
    const current = this.#underWay.get(room)?.action.kind;
    return current === undefined || (action.kind === "promote" && current !== "promote");
  }

  #queueOf({ kind }: PlanAction): Queue {
    if (kind === "promote") return this.#promotions;
    return kind === "move" ? this.#moves : this.#replicas;
  }
}
