/**
 * Leads placement while this process holds the lease: decides when to plan, which steps may begin, and what to plan
 * again. Each input returns the effects to carry out, and `leader-host.ts` carries them out. The invariant: no step of
 * a plan begins before the plan's generation is in the lease, so a process that lost the lease unnoticed begins none.
 */

import type { OperationsReport } from "../shared/bus/operations-events.ts";
import type { ClaimReply, PlannedRoom, ServerCommandReply } from "../shared/bus/placement-messages.ts";
import type { Lease, LeaseWrite } from "../shared/cluster/lease.ts";
import { FIRST_HEARTBEATS_MS, type Membership } from "../shared/cluster/membership.ts";
import type { Millis, RoomKey, ServerId, UnixMillis } from "../shared/ids.ts";
import { assertNever } from "../shared/assert.ts";
import { CooledRooms, type CooledRoomsOptions } from "./cooled-rooms.ts";
import { Leadership, type LeadershipOptions } from "./leadership.ts";
import { type Placements, type PlacementPlan, type PlacementWorld, type PlanStep, replicaAfter } from "./plan.ts";
import { PlanSteps } from "./plan-steps.ts";
import type { PlacementView, PlannedReplica } from "./view.ts";

export type LeaderInput =
  | { kind: "start" }
  | { kind: "tick" }
  | { kind: "lease-read"; lease: Lease | undefined; revision: number }
  | { kind: "lease-written"; written: LeaseWrite }
  /** The bucket did not answer a read or a write of the lease. */
  | { kind: "lease-unavailable" }
  /** `refused`: the reason why the step was not carried out; undefined: it was carried out. */
  | { kind: "step-settled"; step: PlanStep; generation: number; refused: string | undefined; wallNow: UnixMillis }
  /** The bucket did not store a room's planned entry. */
  | { kind: "plan-entry-failed"; room: RoomKey; planned: PlannedRoom }
  | { kind: "plan-entry-removed"; planned: PlannedReplica };

export type LeaderEffect =
  | { kind: "tick-after"; delayMs: number }
  | { kind: "read-lease" }
  | { kind: "write-lease"; lease: Lease; revision: number }
  /** Answered by "step-settled". */
  | { kind: "carry-out-step"; step: PlanStep; generation: number }
  | { kind: "unfollow"; server: ServerId; room: RoomKey; generation: number }
  | { kind: "write-plan-entry"; room: RoomKey; planned: PlannedRoom }
  /** Removes the entry unless a later plan wrote it. Answered by "plan-entry-removed" if it is gone. */
  | { kind: "remove-plan-entry"; planned: PlannedReplica }
  | { kind: "report"; report: OperationsReport }
  | { kind: "servers-lost"; servers: readonly ServerId[] }
  | { kind: "leading-began"; generation: number }
  | { kind: "leading-ended" }
  | { kind: "plan-adopted"; generation: number; stepCount: number; promotionCount: number }
  | { kind: "step-counted"; step: PlanStep; refused: string | undefined; /** It is no longer needed. */ isSkipped: boolean };

export type LeaderCoreOptions = CooledRoomsOptions & LeadershipOptions & { readonly controlLoopMs: number };
/** `decide`: computes a plan from the world and the placements so far. */
type LeaderCoreDeps = {
  readonly view: PlacementView;
  readonly membership: Membership;
  readonly decide: (world: PlacementWorld, previous: Placements) => PlacementPlan;
};

/** The action that waits for a write of the lease. `roundAt`: the time at which the round began that wrote the lease. */
type LeaseWait =
  | { readonly kind: "none" }
  | { readonly kind: "renewing"; readonly lease: Lease; readonly roundAt: Millis }
  | { readonly kind: "confirming"; readonly lease: Lease; readonly plan: PlacementPlan; readonly roundAt: Millis };

type State =
  | { readonly kind: "not-started" }
  /** Another process leads, or no process leads yet. */
  | { readonly kind: "following"; readonly startedAt: Millis; readonly askAt: number }
  | { readonly kind: "reading-lease"; readonly startedAt: Millis; readonly askAt: number }
  | { readonly kind: "claiming-lease"; readonly startedAt: Millis; readonly askAt: number; readonly lease: Lease }
  | { readonly kind: "leading"; readonly startedAt: Millis; decideAt: number; wait: LeaseWait };
type Leading = Extract<State, { kind: "leading" }>;

const ROUND_MS = 50;
/** A new process waits for this many maximum silences before it decides. Else a live server would look lost until its first heartbeat. */
const SILENCES_LISTENED = 2;
/** Servers with replicas take over a lost server's rooms without a command. Placement assigns the remaining rooms after this time. */
const UNASKED_MS_MAX = 1_000;
const NO_STEPS: PlacementPlan = { generation: 0, steps: [] };
const NO_WAIT: LeaseWait = { kind: "none" };

export class Leader {
  readonly #options: LeaderCoreOptions;
  readonly #deps: LeaderCoreDeps;
  readonly #leadership: Leadership;
  readonly #cooled: CooledRooms;
  readonly #steps = new PlanSteps();
  readonly #lostAt = new Map<ServerId, Millis>();
  /** The last time at which no heartbeat was fresh. Then this process probably received nothing. */
  #deafAt = Number.NEGATIVE_INFINITY;
  #state: State = { kind: "not-started" };

  constructor(options: LeaderCoreOptions, deps: LeaderCoreDeps) {
    this.#options = options;
    this.#deps = deps;
    this.#leadership = new Leadership(options);
    this.#cooled = new CooledRooms(options);
  }

  receiveLeaderInput(input: LeaderInput, now: Millis): readonly LeaderEffect[] {
    const effects: LeaderEffect[] = [];
    switch (input.kind) {
      case "start":
        this.#state = { kind: "following", startedAt: now, askAt: 0 };
        endRound(effects);
        break;
      case "tick":
        this.#receiveTick(now, effects);
        break;
      case "lease-read":
        this.#receiveLeaseRead(input.lease, input.revision, now, effects);
        break;
      case "lease-written":
        this.#receiveLeaseWritten(input.written, now, effects);
        break;
      case "lease-unavailable":
        this.#receiveLeaseUnavailable(effects);
        break;
      case "step-settled":
        this.#receiveStepSettled(input, now, effects);
        break;
      case "plan-entry-failed":
        this.#deps.view.receiveUnstored(input.room, input.planned.generation); // Other processes cannot read it, so the room is planned again.
        break;
      case "plan-entry-removed":
        this.#receiveRemoved(input.planned, effects);
        break;
      default:
        assertNever(input);
    }
    return effects;
  }

  #receiveTick(now: Millis, effects: LeaderEffect[]): void {
    const state = this.#state;
    const lost = this.#deps.membership.takeLost(now);
    if (this.#deps.membership.size === 0) this.#deafAt = now;
    if (lost.length > 0) {
      effects.push({ kind: "servers-lost", servers: lost });
      for (const server of lost) this.#lostAt.set(server, now);
      if (state.kind === "leading") state.decideAt = Math.min(state.decideAt, now);
    }
    if (state.kind === "following") return this.#askForLease(state, now, effects);
    if (state.kind !== "leading") return;
    if (this.#leadership.renewalDue(now)) return this.#renew(state, this.#leadership.generation, now, effects);
    this.#decideIfDue(state, now, now, effects);
  }

  #askForLease({ startedAt, askAt }: Extract<State, { kind: "following" }>, now: Millis, effects: LeaderEffect[]): void {
    const listenMs = Math.max(FIRST_HEARTBEATS_MS, SILENCES_LISTENED * this.#deps.membership.silenceMsMost);
    if (now < Math.max(askAt, startedAt + listenMs)) return endRound(effects);
    this.#state = { kind: "reading-lease", startedAt, askAt: now + this.#options.leaseMs / 4 };
    effects.push({ kind: "read-lease" });
  }

  #receiveLeaseRead(lease: Lease | undefined, revision: number, now: Millis, effects: LeaderEffect[]): void {
    const state = this.#state;
    if (state.kind !== "reading-lease") return;
    const own = this.#leadership.receiveRead(lease, revision, this.#deps.view.generation, now);
    if (own === undefined) {
      this.#state = { ...state, kind: "following" };
      return endRound(effects);
    }
    this.#state = { ...state, kind: "claiming-lease", lease: own };
    effects.push({ kind: "write-lease", lease: own, revision });
  }

  #receiveLeaseWritten(written: LeaseWrite, now: Millis, effects: LeaderEffect[]): void {
    const state = this.#state;
    if (state.kind === "claiming-lease") {
      this.#leadership.receiveWritten(state.lease, written, now);
      if (this.#leadership.leads) this.#beginLeading(state, now, effects);
      else this.#state = { kind: "following", startedAt: state.startedAt, askAt: state.askAt };
      return endRound(effects);
    }
    if (state.kind !== "leading" || state.wait.kind === "none") return;
    const { wait } = state;
    state.wait = NO_WAIT;
    this.#leadership.receiveWritten(wait.lease, written, now);
    if (!this.#leadership.leads) {
      this.#state = { kind: "following", startedAt: state.startedAt, askAt: 0 };
      this.#steps.adopt(NO_STEPS);
      effects.push({ kind: "leading-ended" });
      return endRound(effects);
    }
    if (wait.kind === "renewing") return this.#decideIfDue(state, wait.roundAt, now, effects);
    this.#adoptPlan(this.#withoutUnaskedTakeovers(wait.plan, state, wait.roundAt), now, effects);
    endRound(effects);
  }

  #receiveLeaseUnavailable(effects: LeaderEffect[]): void {
    const state = this.#state;
    if (state.kind === "leading" && state.wait.kind === "confirming") state.decideAt = state.wait.roundAt; // The plan is lost.
    if (state.kind === "leading") state.wait = NO_WAIT;
    else if (state.kind !== "not-started") this.#state = { kind: "following", startedAt: state.startedAt, askAt: state.askAt };
    this.#leadership.receiveSilence();
    endRound(effects);
  }

  #beginLeading({ startedAt, lease }: Extract<State, { kind: "claiming-lease" }>, now: Millis, effects: LeaderEffect[]): void {
    this.#cooled.forget();
    this.#state = { kind: "leading", startedAt, decideAt: now, wait: NO_WAIT };
    effects.push(
      { kind: "leading-began", generation: lease.floor },
      { kind: "report", report: { kind: "placement_leads", generation: lease.floor } },
    );
  }

  #renew(state: Leading, generation: number, roundAt: Millis, effects: LeaderEffect[], plan?: PlacementPlan): void {
    const renewal = this.#leadership.renewal(generation);
    if (renewal === undefined) return endRound(effects);
    const { lease, revision } = renewal;
    state.wait = plan === undefined ? { kind: "renewing", lease, roundAt } : { kind: "confirming", lease, plan, roundAt };
    effects.push({ kind: "write-lease", lease, revision });
  }

  #decideIfDue(state: Leading, roundAt: Millis, now: Millis, effects: LeaderEffect[]): void {
    if (roundAt < state.decideAt || now < this.#deafAt + FIRST_HEARTBEATS_MS) return endRound(effects);
    const { view, membership, decide } = this.#deps;
    state.decideAt = roundAt + this.#options.controlLoopMs;
    this.#forgetReleasedRooms(effects);
    const observed = view.world(membership.live(now));
    const world = { ...observed, cooled: this.#cooled.receiveLook(observed, roundAt) };
    const plan = decide(world, view.placements(this.#leadership.generation));
    if (plan.steps.length > 0) return this.#renew(state, plan.generation, roundAt, effects, plan);
    this.#adoptSteps(NO_STEPS, effects);
    endRound(effects);
  }

  /**
   * The view keeps the room until its entry is removed, so a removal that fails is repeated. The replica stays as long:
   * if the room opens again before, its entry still names the replica.
   */
  #forgetReleasedRooms(effects: LeaderEffect[]): void {
    for (const planned of this.#deps.view.released()) {
      if (!this.#steps.isUnderWay(planned.room)) effects.push({ kind: "remove-plan-entry", planned });
    }
  }

  #receiveRemoved({ room, replica, generation }: PlannedReplica, effects: LeaderEffect[]): void {
    this.#deps.view.receiveUnstored(room, generation);
    if (replica !== undefined) this.#unfollowUnlessPlanned(room, replica, generation, effects);
  }

  #withoutUnaskedTakeovers(plan: PlacementPlan, state: Leading, roundAt: Millis): PlacementPlan {
    for (const [server, at] of this.#lostAt) if (roundAt - at >= UNASKED_MS_MAX) this.#lostAt.delete(server);
    const unasked = new Set(plan.steps.filter((step) => this.#isTakenUnasked(step)).map(({ room }) => room));
    if (unasked.size > 0) state.decideAt = roundAt + UNASKED_MS_MAX;
    return { ...plan, steps: plan.steps.filter(({ room }) => !unasked.has(room)) };
  }

  #isTakenUnasked({ room, action }: PlanStep): boolean {
    return action.kind === "promote" && this.#lostAt.has(action.from) && this.#deps.view.replicaOf(room) === action.to;
  }

  #adoptPlan(plan: PlacementPlan, now: Millis, effects: LeaderEffect[]): void {
    const stepCount = this.#adoptSteps(plan, effects);
    const promotionCount = this.#steps.waitingPromotionCount;
    effects.push({ kind: "plan-adopted", generation: plan.generation, stepCount, promotionCount });
    this.#beginSteps(now, effects);
  }

  #adoptSteps(plan: PlacementPlan, effects: LeaderEffect[]): number {
    const stepCount = this.#steps.adopt(plan);
    for (const [room, server] of this.#steps.takeUnchosenFollowers())
      this.#unfollowUnlessPlanned(room, server, this.#leadership.generation, effects);
    return stepCount;
  }

  /** The server ignores commands of older plans than the newest it received. A process that no longer leads has only `plan`. */
  #unfollowUnlessPlanned(room: RoomKey, server: ServerId, plan: number, effects: LeaderEffect[]): void {
    const generation = Math.max(plan, this.#leadership.generation);
    if (this.#deps.view.replicaOf(room) !== server) effects.push({ kind: "unfollow", server, room, generation });
  }

  #beginSteps(now: Millis, effects: LeaderEffect[]): void {
    for (let next = this.#steps.takeNext(); next !== undefined; next = this.#steps.takeNext()) {
      const { step, generation } = next;
      const refused = this.#reasonToSkip(step, now);
      if (refused !== undefined) {
        this.#steps.settle(step, true);
        effects.push({ kind: "step-counted", step, refused, isSkipped: true });
        continue;
      }
      effects.push({ kind: "carry-out-step", step, generation });
    }
  }

  /** A promotion may wait, and the claim names the suspect: the room server does not check whether the suspect is alive. */
  #reasonToSkip({ room, action }: PlanStep, now: Millis): string | undefined {
    if (action.kind !== "promote") return undefined;
    if (this.#deps.membership.isLive(action.from, now)) return `its owner ${action.from} sends heartbeats again`;
    return this.#deps.view.ownerOf(room) === action.from ? undefined : `${action.from} is no longer its owner`;
  }

  #receiveStepSettled(
    { step, generation, refused, wallNow }: Extract<LeaderInput, { kind: "step-settled" }>,
    now: Millis,
    effects: LeaderEffect[],
  ): void {
    this.#steps.settle(step, refused !== undefined);
    effects.push({ kind: "step-counted", step, refused, isSkipped: false });
    const isRecorded = refused === undefined && this.#recordStep(step, generation, wallNow, effects);
    const { room, action } = step;
    if (refused === undefined && action.kind === "follow") {
      const unneeded = isRecorded ? action.instead : action.by; // The former replica stays until the new one is complete.
      if (unneeded !== undefined) this.#unfollowUnlessPlanned(room, unneeded, generation, effects);
    }
    this.#beginSteps(now, effects);
  }

  /**
   * Returns whether the step is part of the plan now. A step may end after another leader planned the room: its entry
   * stays. If none did, a process that no longer leads writes the entry, so that the next leader knows the replica.
   */
  #recordStep({ room, action, reason }: PlanStep, generation: number, at: UnixMillis, effects: LeaderEffect[]): boolean {
    const { view } = this.#deps;
    const owner = "to" in action ? action.to : view.ownerOf(room);
    if (owner === undefined) return false;
    const replica = replicaAfter(action, view.replicaOf(room));
    const ownerReason = "to" in action ? reason : view.ownerReasonOf(room);
    const planned: PlannedRoom = {
      owner,
      ...(replica === undefined ? {} : { replica }),
      reason,
      ...(ownerReason === undefined ? {} : { ownerReason }),
      generation,
      at,
    };
    const isNewest = view.receivePlanned(room, planned);
    if (isNewest) effects.push({ kind: "write-plan-entry", room, planned });
    const server = "to" in action ? action.to : action.by;
    effects.push({ kind: "report", report: { kind: "room_placed", room, action: action.kind, server, reason } });
    return isNewest;
  }
}

/** The reason why a server did not claim a room; undefined: it did. A deleted room needs no owner. */
export function refusalOfClaim(reply: ClaimReply | undefined): string | undefined {
  if (reply === undefined) return "no answer";
  return reply.kind === "refused" ? reply.reason : undefined;
}

/** The reason why a server did not carry out a command; undefined: it did. */
export function refusalOfCommand(reply: ServerCommandReply | undefined): string | undefined {
  if (reply?.kind === "done") return undefined;
  return reply?.reason ?? "no answer";
}

function endRound(effects: LeaderEffect[]): void {
  effects.push({ kind: "tick-after", delayMs: ROUND_MS });
}
