/**
 * Holds the rooms of this process: answers claims, hands rooms over and releases them. `room-claims.ts` decides about
 * claims, and `hosted-room-host.ts` runs each room.
 */

import { assertNever } from "../../shared/assert.ts";
import type { ClaimReply, ClaimRequest, LogEnd, RoomEntry } from "../../shared/bus/placement-messages.ts";
import { type RoomKey, type ServerId, type TenantId, tenantOf } from "../../shared/ids.ts";
import { limitedLog } from "../../shared/process/limited-log.ts";
import type { Log } from "../../shared/process/log.ts";
import type { Clock } from "../../shared/time/clock.ts";
import { pause } from "../../shared/time/pause.ts";
import { every } from "../../shared/time/every.ts";
import { type BudgetLevel, budgetOf } from "../load/fair-share.ts";
import type { LoadMeter } from "../load/load-meter.ts";
import type { RoomServerMetrics } from "../metrics.ts";
import type { Epochs, Seal } from "../ports.ts";
import type { BacklogBudget } from "../rooms/backlog.ts";
import { LogCatchUps, type LogCatchUpsOptions } from "../rooms/log-catch-ups-host.ts";
import type { ReplicaContent } from "./claim.ts";
import { HostedRoom, type HostedRoomDeps, type HostedRoomPorts } from "./hosted-room-host.ts";
import type { ClaimBeginning, ClaimOutcome } from "./ownership-messages.ts";
import { Ownership, type OwnershipDeps, type OwnershipOptions } from "./ownership.ts";
import type { Replicas } from "./replicas-host.ts";
import {
  ClaimHandling,
  type ClaimHandlingEffect,
  type ClaimHandlingInput,
  type ClaimPlan,
  decideExpectation,
  decideTakeover,
  type RoomsHere,
  TakenReplicas,
} from "./room-claims.ts";
import { ROOM_TICK_MS, RoomTicks, type RoomTicksOptions } from "./room-ticks.ts";

export type OwnedRoomsPorts = HostedRoomPorts & { readonly seal: Seal; readonly epochs: Epochs };
/** This server's replicas of other servers' rooms. */
export type ReplicaSource = Pick<Replicas, "has" | "ownerOf" | "take" | "follow" | "unfollow">;
export type OwnedRoomsDeps = {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: RoomServerMetrics;
  readonly isLive: (server: ServerId) => boolean;
  readonly budget: BacklogBudget;
  readonly loads: Pick<LoadMeter, "count">;
  readonly replicas: ReplicaSource;
};
export type OwnedRoomsOptions = OwnershipOptions &
  LogCatchUpsOptions & { readonly roomsMax: number; readonly releaseMsMax: number; readonly heldBackCommitMs: number } & RoomTicksOptions;

/** Interval at which a stopping server checks whether all rooms are released. */
const LOOK_MS = 50;
/** One object shared by thousands of rooms. */
const [RECONNECTED, TICK, INHABITED] = [{ kind: "reconnected" }, { kind: "tick" }, { kind: "inhabited" }] as const;
const RELEASE = { kind: "release" } as const;
const CHECK_OWNERSHIP = { kind: "check-ownership" } as const;

export class OwnedRooms {
  readonly #ports: OwnedRoomsPorts;
  readonly #options: OwnedRoomsOptions;
  readonly #deps: OwnedRoomsDeps;
  readonly #rooms = new Map<RoomKey, HostedRoom>();
  readonly #here: RoomsHere;
  readonly #ticks: RoomTicks<HostedRoom>;
  readonly #takenReplicas = new TakenReplicas();
  readonly #hosted: HostedRoomDeps;
  readonly #ownership: OwnershipDeps;
  /** Removals of entries that the bucket has not confirmed. */
  #removals = 0;
  #recordsMade = 0;
  #isStopping = false;
  #cancelTick: () => void;

  constructor(server: ServerId, ports: OwnedRoomsPorts, options: OwnedRoomsOptions, given: OwnedRoomsDeps) {
    const deps = { ...given, log: limitedLog(given.log, given.clock) };
    this.#ports = ports;
    this.#options = options;
    this.#deps = deps;
    this.#ticks = new RoomTicks(this.#rooms, options);
    this.#hosted = {
      ...deps,
      logCatchUps: new LogCatchUps(ports, options, deps),
      receiveUrgency: (room, urgency) => this.#ticks.receiveUrgency(room, urgency),
      receiveEnd: (room, isClaimLost) => this.#forget(room, isClaimLost),
      receiveRemoval: (removed) => this.#countRemoval(removed),
    };
    const nextStamp = () => ({ id: `${server}.${++this.#recordsMade}`, time: deps.clock.wallNow() });
    this.#ownership = {
      seal: ports.seal,
      epochs: ports.epochs,
      budget: deps.budget,
      nextStamp,
      takeReplica: (room) => this.#takeReplica(room),
    };
    this.#here = {
      own: server,
      isStopping: () => this.#isStopping,
      placeOf: (room) => this.#placeOf(room),
      isFull: () => this.#rooms.size >= options.roomsMax,
      isLive: deps.isLive,
      replicaOwnerOf: (room) => deps.replicas.ownerOf(room),
    };
    this.#cancelTick = every(deps.clock, ROOM_TICK_MS, () => this.#tick());
  }

  get rooms(): number {
    return this.#rooms.size;
  }

  /** Number of rooms per tenant. */
  tenantRooms(): ReadonlyMap<TenantId, number> {
    const counts = new Map<TenantId, number>();
    for (const room of this.#rooms.keys()) {
      const tenant = tenantOf(room);
      counts.set(tenant, (counts.get(tenant) ?? 0) + 1);
    }
    return counts;
  }

  get isStopping(): boolean {
    return this.#isStopping;
  }

  async claim(request: ClaimRequest): Promise<ClaimReply> {
    const { metrics } = this.#deps;
    const handling = new ClaimHandling(request, this.#here);
    let effect = handling.receiveClaimHandlingInput({ kind: "begun" });
    while (effect.kind !== "reply") effect = handling.receiveClaimHandlingInput(await this.#carryOut(request, effect));
    if (effect.isLimitReached) metrics.limitsReached.inc({ limit: "rooms" });
    metrics.claims.inc({ reply: effect.reply.kind });
    return effect.reply;
  }

  /** A gateway knows a later owner of the room. */
  receiveDoubt(room: RoomKey): void {
    this.#rooms.get(room)?.receiveOwnershipInput({ kind: "ownership-questioned" });
  }

  /** The connection to NATS is back: the log may have lost its end. */
  receiveReconnect(): void {
    for (const hosted of this.#rooms.values()) hosted.receiveOwnershipInput(RECONNECTED);
  }

  /** Sets the time for which the room's edits are collected before they share a record. */
  holdBack(room: RoomKey, level: BudgetLevel): void {
    this.#rooms
      .get(room)
      ?.receiveOwnershipInput({ kind: "gather", everyMs: budgetOf(level).gathersEdits ? this.#options.heldBackCommitMs : 0 });
  }

  /** Refuses new rooms from now on. */
  drain(): void {
    this.#isStopping = true;
  }

  /** A room that is only expected does not count. */
  has(key: RoomKey): boolean {
    return this.#placeOf(key) === "claimed";
  }

  /** Stops keeping a replica of the room, also after a claim in progress. */
  unfollow(room: RoomKey): void {
    this.#takenReplicas.receiveUnfollow(room);
    this.#deps.replicas.unfollow(room);
  }

  /** Claims the room of a lost owner with its replica. False: the room was not taken. */
  async takeOver(room: RoomKey, suspect: ServerId): Promise<boolean> {
    const plan = decideTakeover(room, suspect, this.#here);
    if (plan === "limit-reached") this.#deps.metrics.limitsReached.inc({ limit: "rooms" });
    return typeof plan === "object" && (await this.#claim({ room, suspect }, plan)).kind === "owned";
  }

  /**
   * Resolves to true once this server is subscribed to the room's edits, before a handover; false if it cannot take the
   * room.
   */
  expect(key: RoomKey): Promise<boolean> {
    const decision = decideExpectation(key, this.#here);
    switch (decision) {
      case "known":
        return this.#rooms.get(key)!.expect();
      case "new":
        return this.#host(key, { kind: "expectation" }).expect();
      case "limit-reached":
        this.#deps.metrics.limitsReached.inc({ limit: "rooms" });
        return Promise.resolve(false);
      case "refused":
        return Promise.resolve(false);
      default:
        return assertNever(decision);
    }
  }

  /** The rooms that can be handed over. */
  owned(): RoomKey[] {
    return [...this.#rooms.values()].filter(({ openEpoch }) => openEpoch !== undefined).map(({ key }) => key);
  }

  /**
   * Resolves with the log's end once appends have stopped for a handover. Undefined: this server cannot hand the room
   * over. Call `endHandOver` afterwards.
   */
  beginHandOver(key: RoomKey): Promise<LogEnd | undefined> {
    const hosted = this.#rooms.get(key);
    return hosted?.openEpoch !== undefined ? hosted.beginHandOver() : Promise.resolve(undefined);
  }

  /** `keep`: keep the room, because the other server may not have claimed it. */
  endHandOver(key: RoomKey, outcome: "handed-over" | "keep"): void {
    this.#rooms.get(key)?.endHandOver(outcome);
  }

  /** Finishes the appends in flight, releases all rooms with their entries, and refuses new ones. */
  async stop(): Promise<void> {
    const { clock, log } = this.#deps;
    this.#isStopping = true;
    const deadline = clock.now() + this.#options.releaseMsMax;
    while (clock.now() < deadline) {
      // Repeated, because a room that was being handed over may stay here.
      for (const hosted of this.#rooms.values()) hosted.receiveOwnershipInput(RELEASE);
      if (this.#rooms.size + this.#removals === 0) break;
      await pause(clock, LOOK_MS);
    }
    this.#cancelTick();
    if (this.#rooms.size > 0)
      log.warn({ rooms: this.#rooms.size }, "rooms were released before the log had answered; gateways send their edits again");
    for (const hosted of this.#rooms.values()) hosted.abandonAppend("stopped");
  }

  #countRemoval(removed: Promise<void>): void {
    this.#removals += 1;
    void removed.then(() => (this.#removals -= 1));
  }

  #placeOf(room: RoomKey): "none" | "expected" | "claimed" {
    const hosted = this.#rooms.get(room);
    if (hosted === undefined) return "none";
    return hosted.isExpecting ? "expected" : "claimed";
  }

  async #carryOut(request: ClaimRequest, effect: Exclude<ClaimHandlingEffect, { kind: "reply" }>): Promise<ClaimHandlingInput> {
    switch (effect.kind) {
      case "confirm":
        return { kind: "settled", outcome: await this.#rooms.get(request.room)!.confirm(request.above) };
      case "find-entry":
        return { kind: "entry-found", entry: await this.#entryOf(request.room) };
      case "claim":
        return { kind: "settled", outcome: await this.#claim(request, effect) };
      default:
        return assertNever(effect);
    }
  }

  #claim({ room, above, end }: ClaimRequest, { beginning, from }: ClaimPlan): Promise<ClaimOutcome> {
    if (beginning === undefined) return this.#rooms.get(room)!.claimExpected(above, end, from);
    return this.#host(room, beginning).claim(above, from);
  }

  #host(key: RoomKey, beginning: ClaimBeginning): HostedRoom {
    const { clock, metrics } = this.#deps;
    const hosted = new HostedRoom(
      key,
      new Ownership(key, this.#options, this.#ownership, clock.now(), beginning),
      this.#ports,
      this.#hosted,
    );
    this.#rooms.set(key, hosted);
    metrics.rooms.set(this.#rooms.size);
    return hosted;
  }

  #takeReplica(key: RoomKey): ReplicaContent | undefined {
    const { replicas } = this.#deps;
    if (replicas.has(key)) this.#takenReplicas.receiveTaken(key);
    const warm = replicas.take(key);
    this.#deps.metrics.warmClaims.inc({ copy: warm === undefined ? "cold" : "warm" });
    return warm;
  }

  #forget(hosted: HostedRoom, isClaimLost: boolean): void {
    this.#rooms.delete(hosted.key);
    this.#deps.metrics.rooms.set(this.#rooms.size);
    if (this.#takenReplicas.receiveEnd(hosted.key, isClaimLost, this.#isStopping)) void this.#deps.replicas.follow(hosted.key);
  }

  #tick(): void {
    const { metrics, budget, clock } = this.#deps;
    for (const hosted of this.#ticks.beginTick(clock.now())) {
      if (this.#ports.presence.isInhabited(hosted.key)) hosted.receiveOwnershipInput(INHABITED);
      hosted.receiveOwnershipInput(TICK);
    }
    for (const hosted of this.#ticks.takeDoubted()) hosted.receiveMessage(CHECK_OWNERSHIP, 0);
    for (const hosted of this.#ticks.dueRooms()) hosted.receiveOwnershipInput(TICK);
    metrics.backlogBytes.set(budget.bytes);
  }

  #entryOf(room: RoomKey): Promise<RoomEntry | undefined> {
    return this.#ports.entries.find(room).catch((cause: unknown) => {
      this.#deps.log.warn({ room, cause }, "the rooms bucket did not answer; claiming without its hint");
      return undefined;
    });
  }
}
