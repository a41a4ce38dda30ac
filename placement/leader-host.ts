/**
 * Leads, if no other placement process does: decides when servers come and go and every few seconds, and has the plan
 * carried out. Whatever fails is planned anew. Without any leader rooms run on, and gateways find owners themselves.
 */

import type { Clock } from "../shared/clock.ts";
import type { Millis, RoomKey, ServerId } from "../shared/ids.ts";
import type { Leases } from "../shared/lease.ts";
import type { Log } from "../shared/log.ts";
import { HEARD_ALL_MS, type Membership } from "../shared/membership.ts";
import type { Operations } from "../shared/operations.ts";
import { unlessMistake } from "../shared/pause.ts";
import { Cooled, type CooledOptions } from "./cooled.ts";
import { decide, type DecideOptions } from "./decide.ts";
import { Leadership, type LeadershipOptions } from "./leadership.ts";
import type { PlacementMetrics } from "./metrics.ts";
import { type Plan, type Step, replicaAfter } from "./plan.ts";
import type { Plans, RoomServers } from "./ports.ts";
import type { View } from "./view.ts";

export type LeaderPorts = {
  readonly leases: Leases;
  readonly plans: Plans;
  readonly servers: RoomServers;
  readonly operations: Operations;
};
export type LeaderOptions = DecideOptions & CooledOptions & LeadershipOptions & { readonly controlLoopMs: number };
export type LeaderDeps = { readonly clock: Clock; readonly log: Log; readonly metrics: PlacementMetrics };

const ROUND_MS = 50;
/** It listens for as many of the silences that are allowed before it decides anything, and until it has heard each server. */
const SILENCES_LISTENED = 2;
/** The one lease there is. */
const LEASE = 0;
/** Whoever has warm copies of a lost server's rooms takes them unasked. What it has not by then, it is told to. */
const UNASKED_MS_MAX = 1_000;
/** Takeovers from lost servers that are under way at a time: nothing else is as urgent. */
const PROMOTIONS_AT_ONCE = 32;
/** Moves under way at a time: they must not be felt. */
const MOVES_AT_ONCE = 4;
/** Warm copies under way at a time: until they are there a room has none, and its owner does not notice them. */
const COPIES_AT_ONCE = 16;

/** Steps that wait for their turn, all of one plan. */
type Queue = { readonly atOnce: number; waiting: Step[]; generation: number; underWay: number };

const NO_STEPS: Plan = { generation: 0, steps: [] };

export class Leader {
  readonly #view: View;
  readonly #membership: Membership;
  readonly #ports: LeaderPorts;
  readonly #options: LeaderOptions;
  readonly #deps: LeaderDeps;
  readonly #leadership: Leadership;
  readonly #cooled: Cooled;
  /** With a step under way: what is known of them is about to change. */
  readonly #busy = new Set<RoomKey>();
  readonly #promotions: Queue = { atOnce: PROMOTIONS_AT_ONCE, waiting: [], generation: 0, underWay: 0 };
  readonly #moves: Queue = { atOnce: MOVES_AT_ONCE, waiting: [], generation: 0, underWay: 0 };
  readonly #copies: Queue = { atOnce: COPIES_AT_ONCE, waiting: [], generation: 0, underWay: 0 };
  readonly #lostAt = new Map<ServerId, Millis>();
  #decideAt: number | undefined;
  #askAt = 0;
  #startedAt = 0;
  #cancelRound: () => void = () => {};
  #stopped = false;

  constructor(view: View, membership: Membership, ports: LeaderPorts, options: LeaderOptions, deps: LeaderDeps) {
    this.#view = view;
    this.#membership = membership;
    this.#ports = ports;
    this.#options = options;
    this.#deps = deps;
    this.#leadership = new Leadership(options);
    this.#cooled = new Cooled(options);
  }

  /** Before it decides anything it listens: whoever it has not heard yet would look lost. */
  start(): void {
    if (this.#stopped) return;
    this.#startedAt = this.#deps.clock.now();
    this.#schedule();
  }

  stop(): void {
    this.#stopped = true;
    this.#cancelRound();
  }

  #schedule(): void {
    this.#cancelRound = this.#deps.clock.after(ROUND_MS, () => {
      this.#round().then(
        () => this.#scheduleUnlessStopped(),
        (cause: unknown) => {
          unlessMistake(cause);
          this.#deps.log.warn({ cause }, "the placement bucket did not answer; trying again");
          this.#leadership.receiveSilence();
          this.#scheduleUnlessStopped();
        },
      );
    });
  }

  #scheduleUnlessStopped(): void {
    if (!this.#stopped) this.#schedule();
  }

  async #round(): Promise<void> {
    const { clock, log } = this.#deps;
    const now = clock.now();
    const lost = this.#membership.takeLost(now);
    if (lost.length > 0) {
      log.warn({ servers: lost }, "room servers are no longer heard");
      for (const server of lost) this.#lostAt.set(server, now);
      this.#decideAt = Math.min(this.#decideAt ?? now, now);
    }
    if (!this.#leadership.leads) return this.#tryToLead(now);
    if (this.#leadership.renewalDue(now)) await this.#renew(this.#leadership.generation);
    if (this.#leadership.leads && now >= (this.#decideAt ?? 0)) await this.#decide(now);
  }

  async #tryToLead(now: number): Promise<void> {
    const listenMs = Math.max(HEARD_ALL_MS, SILENCES_LISTENED * this.#membership.silenceMsMost);
    if (now < Math.max(this.#askAt, this.#startedAt + listenMs)) return;
    this.#askAt = now + this.#options.leaseMs / 4;
    const { clock, log, metrics } = this.#deps;
    const { lease, revision } = await this.#ports.leases.read(LEASE);
    const own = this.#leadership.receiveRead(lease, revision, clock.now());
    if (own === undefined) return;
    this.#leadership.receiveWritten(own, await this.#ports.leases.write(LEASE, own, revision), clock.now());
    if (!this.#leadership.leads) return;
    this.#cooled.forget();
    metrics.leads.set(1);
    log.info({ generation: own.floor }, "leading placement");
    this.#ports.operations.report({ kind: "placement_leads", generation: own.floor });
    this.#decideAt = clock.now();
  }

  async #renew(generation: number): Promise<void> {
    const renewal = this.#leadership.renewal(generation);
    if (renewal === undefined) return;
    this.#leadership.receiveWritten(
      renewal.lease,
      await this.#ports.leases.write(LEASE, renewal.lease, renewal.revision),
      this.#deps.clock.now(),
    );
    if (this.#leadership.leads) return;
    this.#queue(NO_STEPS);
    this.#deps.metrics.leads.set(0);
    this.#deps.log.warn({}, "another process leads placement");
  }

  async #decide(now: Millis): Promise<void> {
    this.#decideAt = now + this.#options.controlLoopMs;
    this.#forgetReleased();
    const observed = this.#view.world(this.#membership.live(this.#deps.clock.now()));
    const world = { ...observed, cooled: this.#cooled.receiveLook(observed, now) };
    const begun = this.#deps.clock.now();
    const plan = decide(world, this.#view.placements(this.#leadership.generation), this.#options);
    this.#deps.metrics.decideSeconds.observe((this.#deps.clock.now() - begun) / 1_000);
    if (plan.steps.length === 0) return this.#queue(NO_STEPS);
    await this.#renew(plan.generation);
    if (this.#leadership.leads) this.#carryOut(this.#withoutUnasked(plan, now));
  }

  #forgetReleased(): void {
    for (const { room, replica } of this.#view.released()) {
      if (this.#busy.has(room)) continue;
      this.#write(room, undefined);
      if (replica !== undefined) {
        void this.#ports.servers.order(replica, { kind: "unfollow", room, generation: this.#leadership.generation });
      }
    }
  }

  #withoutUnasked(plan: Plan, now: Millis): Plan {
    for (const [server, at] of this.#lostAt) if (now - at >= UNASKED_MS_MAX) this.#lostAt.delete(server);
    const unasked = new Set(plan.steps.filter((step) => this.#isTakenUnasked(step)).map(({ room }) => room));
    if (unasked.size > 0) this.#decideAt = now + UNASKED_MS_MAX;
    return { ...plan, steps: plan.steps.filter(({ room }) => !unasked.has(room)) };
  }

  #isTakenUnasked({ room, action }: Step): boolean {
    return action.kind === "promote" && this.#lostAt.has(action.from) && this.#view.replicaOf(room) === action.to;
  }

  #carryOut({ generation, steps: planned }: Plan): void {
    const steps = planned.filter(({ room }) => !this.#busy.has(room));
    this.#queue({ generation, steps });
    this.#deps.log.info({ generation, steps: steps.length, promotions: this.#promotions.waiting.length }, "a new plan");
    for (const queue of this.#queues()) this.#goOn(queue);
  }

  #queues(): readonly Queue[] {
    return [this.#promotions, this.#moves, this.#copies];
  }

  /** Steps not begun of the plan before are dropped: this one knows better. */
  #queue({ generation, steps }: Plan): void {
    for (const queue of this.#queues()) queue.generation = generation;
    this.#promotions.waiting = steps.filter(({ action }) => action.kind === "promote");
    this.#moves.waiting = steps.filter(({ action }) => action.kind === "move");
    this.#copies.waiting = steps.filter(({ action }) => action.kind === "follow" || action.kind === "unfollow");
  }

  /** Its next step may be of a newer plan than the one that made way for it. */
  #goOn(queue: Queue): void {
    while (queue.underWay < queue.atOnce) {
      const step = queue.waiting.shift();
      if (step === undefined) return;
      if (this.#busy.has(step.room)) continue;
      queue.underWay += 1;
      void this.#do(step, queue.generation).then(() => {
        queue.underWay -= 1;
        this.#goOn(queue);
      });
    }
  }

  async #do(step: Step, generation: number): Promise<void> {
    const { metrics, log } = this.#deps;
    const { room, action, reason } = step;
    this.#busy.add(room);
    const refused = await this.#order(step, generation).catch((cause: unknown) => (cause instanceof Error ? cause.message : String(cause)));
    this.#busy.delete(room);
    metrics.steps.inc({ action: action.kind, outcome: refused === undefined ? "done" : "refused" });
    if (refused !== undefined) return log.warn({ room, ...action, refused }, "a step of the plan was not taken; it is planned anew");
    const owner = "to" in action ? action.to : this.#view.ownerOf(room);
    if (owner === undefined) return;
    const replica = replicaAfter(action, this.#view.replicaOf(room));
    const ownerReason = "to" in action ? reason : this.#view.ownerReasonOf(room);
    this.#write(room, {
      owner,
      ...(replica === undefined ? {} : { replica }),
      reason,
      ...(ownerReason === undefined ? {} : { ownerReason }),
      generation,
      at: this.#deps.clock.wallNow(),
    });
    this.#ports.operations.report({
      kind: "room_placed",
      room,
      action: action.kind,
      server: "to" in action ? action.to : action.by,
      reason,
    });
  }

  /** Undefined: done. Else why not. */
  async #order({ room, action }: Step, generation: number): Promise<string | undefined> {
    const { servers } = this.#ports;
    switch (action.kind) {
      case "promote": {
        // Whoever claims takes a room from the suspect without asking whether it lives.
        if (this.#membership.isLive(action.from, this.#deps.clock.now())) return `its owner ${action.from} is heard again`;
        const reply = await servers.claim(action.to, { room, suspect: action.from });
        if (reply === undefined) return "no answer";
        return reply.kind === "refused" ? reply.reason : undefined; // A deleted room needs nobody.
      }
      case "move":
        return refusal(await servers.order(action.from, { kind: "hand-over", room, to: action.to, generation }));
      case "follow":
        if (action.instead !== undefined) void servers.order(action.instead, { kind: "unfollow", room, generation });
        return refusal(await servers.order(action.by, { kind: "follow", room, generation }));
      case "unfollow":
        return refusal(await servers.order(action.by, { kind: "unfollow", room, generation }));
    }
  }

  #write(room: RoomKey, planned: Parameters<Plans["write"]>[1]): void {
    this.#view.receivePlanned(room, planned);
    this.#ports.plans.write(room, planned).catch((cause: unknown) => {
      this.#view.receivePlanned(room, undefined); // What others cannot read is as good as not done.
      this.#deps.log.warn({ room, cause }, "the plan bucket did not take a room's entry; it is planned anew");
    });
  }
}

function refusal(reply: Awaited<ReturnType<RoomServers["order"]>>): string | undefined {
  if (reply?.kind === "done") return undefined;
  return reply?.reason ?? "no answer";
}
