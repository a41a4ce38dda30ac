/** Runs `leader.ts`: ticks it, carries out its effects through the ports, and logs and counts its decisions. */

import { assertNever } from "../shared/assert.ts";
import type { Operations } from "../shared/bus/operations-events.ts";
import type { PlannedRoom } from "../shared/bus/placement-messages.ts";
import type { Leases } from "../shared/cluster/lease.ts";
import type { Membership } from "../shared/cluster/membership.ts";
import type { RoomKey } from "../shared/ids.ts";
import type { Log } from "../shared/process/log.ts";
import type { Clock } from "../shared/time/clock.ts";
import { rethrowMistake } from "../shared/time/pause.ts";
import { decide, type DecideOptions } from "./decide.ts";
import { Leader, type LeaderCoreOptions, type LeaderEffect, type LeaderInput, refusalOfClaim, refusalOfCommand } from "./leader.ts";
import type { PlacementMetrics } from "./metrics.ts";
import type { PlanStep } from "./plan.ts";
import type { PlanEntries, RoomServers } from "./ports.ts";
import type { PlacementView, PlannedReplica } from "./view.ts";

export type LeaderPorts = {
  readonly leases: Leases;
  readonly plans: PlanEntries;
  readonly servers: RoomServers;
  readonly operations: Operations;
};
export type LeaderOptions = DecideOptions & LeaderCoreOptions;
export type LeaderDeps = { readonly clock: Clock; readonly log: Log; readonly metrics: PlacementMetrics };

/** Placement has a single lease. */
const LEASE = 0;
/** Equal refusals within this time are one line: a server that stops refuses a step for each of its rooms. */
const REFUSALS_MS = 1_000;

export class LeaderHost {
  readonly #ports: LeaderPorts;
  readonly #deps: LeaderDeps;
  readonly #core: Leader;
  /** By action and reason: the lines that are not written yet. */
  readonly #refusals = new Map<string, { readonly facts: { steps: number }; readonly write: () => void }>();
  #cancelTick: () => void = () => {};
  #isStopped = false;

  constructor(view: PlacementView, membership: Membership, ports: LeaderPorts, options: LeaderOptions, deps: LeaderDeps) {
    this.#ports = ports;
    this.#deps = deps;
    this.#core = new Leader(options, {
      view,
      membership,
      decide: (world, previous) => {
        const plan = decide(world, previous, options);
        deps.metrics.roomsWithoutReplica.set(view.roomsWithoutReplica);
        return plan;
      },
    });
  }

  start(): void {
    if (!this.#isStopped) this.#feed({ kind: "start" });
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelTick();
    for (const { write } of this.#refusals.values()) write();
  }

  #feed(input: LeaderInput): void {
    for (const effect of this.#core.receiveLeaderInput(input, this.#deps.clock.now())) this.#carryOut(effect);
  }

  #carryOut(effect: LeaderEffect): void {
    const { log, metrics, clock } = this.#deps;
    const { leases, servers, operations } = this.#ports;
    switch (effect.kind) {
      case "tick-after":
        if (!this.#isStopped) this.#cancelTick = clock.after(effect.delayMs, () => this.#feed({ kind: "tick" }));
        return;
      case "read-lease":
        return this.#awaitLease(leases.read(LEASE).then((read) => ({ kind: "lease-read", ...read })));
      case "write-lease":
        return this.#awaitLease(leases.write(LEASE, effect.lease, effect.revision).then((written) => ({ kind: "lease-written", written })));
      case "carry-out-step":
        return this.#carryOutStep(effect.step, effect.generation);
      case "unfollow":
        return void servers.order(effect.server, { kind: "unfollow", room: effect.room, generation: effect.generation });
      case "write-plan-entry":
        return this.#writePlanEntry(effect.room, effect.planned);
      case "remove-plan-entry":
        return this.#removePlanEntry(effect.planned);
      case "report":
        return operations.report(effect.report);
      case "servers-lost":
        return log.warn({ servers: effect.servers }, "room servers stopped sending heartbeats");
      case "leading-began":
        metrics.leads.set(1);
        return log.info({ generation: effect.generation }, "this process leads placement");
      case "leading-ended":
        metrics.leads.set(0);
        metrics.roomsWithoutReplica.set(0);
        return log.warn({}, "another process leads placement");
      case "plan-adopted": {
        const { generation, stepCount: steps, promotionCount: promotions } = effect;
        return log.info({ generation, steps, promotions }, "a new plan");
      }
      case "step-counted": {
        const { step, refused, isSkipped } = effect;
        metrics.steps.inc({ action: step.action.kind, outcome: refused === undefined ? "done" : "refused" });
        return refused === undefined ? undefined : this.#logRefusal(step, refused, isSkipped ? "info" : "warn");
      }
      default:
        assertNever(effect);
    }
  }

  #awaitLease(answer: Promise<LeaderInput>): void {
    answer.then(
      (input) => this.#feed(input),
      (cause: unknown) => {
        rethrowMistake(cause);
        this.#deps.log.warn({ cause }, "the placement bucket did not answer; trying again");
        this.#feed({ kind: "lease-unavailable" });
      },
    );
  }

  #carryOutStep(step: PlanStep, generation: number): void {
    this.#order(step, generation)
      .catch((cause: unknown) => (cause instanceof Error ? cause.message : String(cause)))
      .then((refused) => this.#feed({ kind: "step-settled", step, generation, refused, wallNow: this.#deps.clock.wallNow() }));
  }

  #logRefusal({ room, action }: PlanStep, refused: string, level: "info" | "warn"): void {
    const key = `${level} ${JSON.stringify(action)} ${refused}`;
    const known = this.#refusals.get(key);
    if (known !== undefined) return void (known.facts.steps += 1);
    const { clock, log } = this.#deps;
    const facts = { ...action, refused, steps: 1, firstRoom: room };
    const write = (): void => {
      cancel();
      this.#refusals.delete(key);
      log[level](facts, "steps of the plan were not carried out; they are planned anew if they are still needed");
    };
    const cancel = clock.after(REFUSALS_MS, write);
    this.#refusals.set(key, { facts, write });
  }

  /** Resolves to the reason if the step was refused. */
  async #order({ room, action }: PlanStep, generation: number): Promise<string | undefined> {
    const { servers } = this.#ports;
    switch (action.kind) {
      case "promote":
        return refusalOfClaim(await servers.claim(action.to, { room, suspect: action.from }));
      case "move":
        return refusalOfCommand(await servers.order(action.from, { kind: "hand-over", room, to: action.to, generation }));
      case "follow":
      case "unfollow":
        return refusalOfCommand(await servers.order(action.by, { kind: action.kind, room, generation }));
      default:
        return assertNever(action);
    }
  }

  #writePlanEntry(room: RoomKey, planned: PlannedRoom): void {
    this.#ports.plans.write(room, planned).catch((cause: unknown) => {
      this.#deps.log.warn({ room, cause }, "the plan bucket did not store a room's entry; it is planned anew");
      this.#feed({ kind: "plan-entry-failed", room, planned });
    });
  }

  #removePlanEntry(planned: PlannedReplica): void {
    const { room, generation } = planned;
    this.#ports.plans.remove(room, generation).then(
      (isGone) => isGone && this.#feed({ kind: "plan-entry-removed", planned }),
      (cause: unknown) => this.#deps.log.warn({ room, cause }, "the plan bucket did not remove the entry of a released room; trying again"),
    );
  }
}
