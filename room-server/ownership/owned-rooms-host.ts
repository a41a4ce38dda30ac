/**
 * Holds the rooms of this process: answers claims, hands rooms over and releases them. `hosted-room-host.ts` runs each
 * of them.
 */

import { assertNever } from "../../shared/assert.ts";
import type { ClaimReply, ClaimRequest, LogEnd, RoomEntry } from "../../shared/bus/placement-messages.ts";
import type { Clock } from "../../shared/time/clock.ts";
import { type Epoch, type RoomKey, type ServerId, type TenantId, tenantOf } from "../../shared/ids.ts";
import type { Log } from "../../shared/process/log.ts";
import type { BacklogBudget } from "../rooms/backlog.ts";
import { type BudgetLevel, budgetOf } from "../load/fair-share.ts";
import type { ReplicaContent } from "./claim.ts";
import { type ClaimOutcome, HostedRoom, type HostedRoomDeps, type HostedRoomPorts } from "./hosted-room-host.ts";
import type { LoadMeter } from "../load/load-meter.ts";
import { LogCatchUps, type LogCatchUpsOptions } from "../rooms/log-catch-ups-host.ts";
import type { RoomServerMetrics } from "../metrics.ts";
import type { Replicas } from "./replicas-host.ts";
import { Ownership, type OwnershipDeps, type OwnershipOptions } from "./ownership.ts";
import type { Epochs, Seal } from "../ports.ts";
import { RoomTicks } from "./room-ticks-host.ts";
import type { ClaimBeginning } from "./ownership-messages.ts";

export type OwnedRoomsPorts = HostedRoomPorts & { readonly seal: Seal; readonly epochs: Epochs };
/** The replicas kept here of other servers' rooms. */
export type ReplicaSource = Pick<Replicas, "has" | "ownerOf" | "take" | "follow" | "unfollow">;
export type OwnedRoomsDeps = {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: RoomServerMetrics;
  readonly isLive: (server: ServerId) => boolean;
  readonly budget: BacklogBudget;
  readonly loads: Pick<LoadMeter, "count">;
  readonly copies: ReplicaSource;
};
export type OwnedRoomsOptions = OwnershipOptions &
  LogCatchUpsOptions & { readonly roomsMax: number; readonly releaseMsMax: number; readonly heldBackCommitMs: number };

/** Interval of checks whether all rooms are released. */
const LOOK_MS = 50;
/** One object for thousands of rooms. */
const LINE_BACK = { kind: "reconnected" } as const;

export class OwnedRooms {
  readonly #server: ServerId;
  readonly #ports: OwnedRoomsPorts;
  readonly #options: OwnedRoomsOptions;
  readonly #deps: OwnedRoomsDeps;
  readonly #rooms = new Map<RoomKey, HostedRoom>();
  readonly #ticks: RoomTicks;
  /** Rooms whose replica was kept here until their claim took it. */
  readonly #replicasUsed = new Set<RoomKey>();
  readonly #hosted: HostedRoomDeps;
  readonly #ownership: OwnershipDeps;
  /** Entry removals that the bucket has not confirmed. */
  #removals = 0;
  #recordsMade = 0;
  #stopping = false;

  constructor(server: ServerId, ports: OwnedRoomsPorts, options: OwnedRoomsOptions, deps: OwnedRoomsDeps) {
    this.#server = server;
    this.#ports = ports;
    this.#options = options;
    this.#deps = deps;
    this.#hosted = {
      ...deps,
      logCatchUps: new LogCatchUps(ports, options, deps),
      receivePace: (room, pace) => this.#ticks.receivePace(room, pace),
      receiveEnd: (room, claimLost) => this.#forget(room, claimLost),
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
    const isInhabited = (room: RoomKey): boolean => ports.presence.isInhabited(room);
    const receiveRound = (): void => deps.metrics.backlogBytes.set(deps.budget.bytes);
    this.#ticks = new RoomTicks(this.#rooms, { clock: deps.clock, isInhabited, receiveRound });
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

  get stopping(): boolean {
    return this.#stopping;
  }

  async claim(request: ClaimRequest): Promise<ClaimReply> {
    const reply = await this.#decideClaim(request);
    this.#deps.metrics.claims.inc({ reply: reply.kind });
    return reply;
  }

  /** A gateway knows of a later owner of the room. */
  receiveDoubt(room: RoomKey): void {
    this.#rooms.get(room)?.receive({ kind: "ownership-questioned" });
  }

  /** The connection to NATS is back: the log may have lost its end. */
  receiveLineBack(): void {
    for (const hosted of this.#rooms.values()) hosted.receive(LINE_BACK);
  }

  /** Sets how long the room's edits gather before they share a record. */
  holdBack(room: RoomKey, level: BudgetLevel): void {
    this.#rooms.get(room)?.receive({ kind: "gather", everyMs: budgetOf(level).gathersEdits ? this.#options.heldBackCommitMs : 0 });
  }

  /** Refuses new rooms from now on. */
  drain(): void {
    this.#stopping = true;
  }

  /** A room that is only expected does not count. */
  has(key: RoomKey): boolean {
    return this.#rooms.get(key)?.isExpecting === false;
  }

  /** Stops keeping a replica of the room, also after a claim under way. */
  unfollow(room: RoomKey): void {
    this.#replicasUsed.delete(room);
    this.#deps.copies.unfollow(room);
  }

  /** Claims the room of a lost owner with its replica. False: the room was not taken. */
  async takeOver(room: RoomKey, suspect: ServerId): Promise<boolean> {
    if (this.#stopping || this.has(room) || this.#deps.copies.ownerOf(room) !== suspect || !this.#hasRoomFor(room)) return false;
    return (await this.#take({ room, suspect }, suspect)).kind === "owned";
  }

  /**
   * Resolves to true once this server is subscribed to the room's edits, before a handover; false if it cannot take the
   * room.
   */
  expect(key: RoomKey): Promise<boolean> {
    const here = this.#rooms.get(key);
    if (here !== undefined) return here.isExpecting ? here.expect() : Promise.resolve(false);
    if (this.#stopping || !this.#hasRoomFor(key)) return Promise.resolve(false);
    return this.#host(key, { kind: "expectation" }).expect();
  }

  /** The rooms that can be handed over. */
  owned(): RoomKey[] {
    return [...this.#rooms.values()].filter(({ isOwned }) => isOwned).map(({ key }) => key);
  }

  /**
   * Resolves with the log's end once appends have stopped for a handover; undefined if this server cannot hand the room
   * over. Call `endHandOver` afterwards.
   */
  beginHandOver(key: RoomKey): Promise<LogEnd | undefined> {
    const hosted = this.#rooms.get(key);
    return hosted?.isOwned === true ? hosted.beginHandOver() : Promise.resolve(undefined);
  }

  /** `keep`: the other server may not have claimed the room. */
  endHandOver(key: RoomKey, outcome: "handed-over" | "keep"): void {
    this.#rooms.get(key)?.endHandOver(outcome);
  }

  /** Finishes the appends in flight, releases all rooms with their entries, and refuses new ones. */
  async stop(): Promise<void> {
    const { clock, log } = this.#deps;
    this.#stopping = true;
    const deadline = clock.now() + this.#options.releaseMsMax;
    for (const hosted of this.#rooms.values()) hosted.receive({ kind: "release" });
    while (this.#rooms.size + this.#removals > 0 && clock.now() < deadline)
      await new Promise<void>((resolve) => clock.after(LOOK_MS, resolve));
    this.#ticks.stop();
    if (this.#rooms.size > 0)
      log.warn({ rooms: this.#rooms.size }, "rooms were let go before the log had answered; gateways send their edits again");
    for (const hosted of this.#rooms.values()) hosted.giveUpAppend("stopped");
  }

  #countRemoval(removed: Promise<void>): void {
    this.#removals += 1;
    void removed.then(() => (this.#removals -= 1));
  }

  async #decideClaim(request: ClaimRequest): Promise<ClaimReply> {
    if (this.#stopping) return { kind: "refused", reason: "the server is stopping" };
    const hosted = this.#rooms.get(request.room);
    const outcome = hosted === undefined || hosted.isExpecting ? undefined : await hosted.confirm(request.above);
    if (outcome?.kind === "owned") return this.#owned(outcome.epoch);
    if (outcome?.kind === "deleted") return outcome;
    if (outcome?.wasOwner === false) return this.#lost(request.room, outcome.reason);

    // Its owner hands it over, or the replica shows that no other server took it: the bucket need not be asked.
    const isKnown = request.end !== undefined || this.#isCopied(request);
    const entry = isKnown ? undefined : await this.#entryOf(request.room);
    if (entry !== undefined && entry.owner !== request.suspect && this.#isLivePeer(entry.owner))
      return { kind: "elsewhere", server: entry.owner, epoch: entry.epoch };
    if (this.#stopping) return { kind: "refused", reason: "the server is stopping" };
    if (!this.#hasRoomFor(request.room))
      return { kind: "refused", reason: "the server has as many rooms as it takes: start another one, or raise COROOM_ROOMS_MAX" };
    const claimed = await this.#take(request, this.#takenFrom(request, entry));
    switch (claimed.kind) {
      case "owned":
        return this.#owned(claimed.epoch);
      case "deleted":
        return claimed;
      case "lost":
        return this.#lost(request.room, claimed.reason);
      default:
        return assertNever(claimed);
    }
  }

  #owned(epoch: Epoch): ClaimReply {
    return { kind: "owned", server: this.#server, epoch };
  }

  /** Another server claimed at the same time: claiming again would alternate forever. */
  async #lost(room: RoomKey, reason: string): Promise<ClaimReply> {
    const entry = await this.#entryOf(room);
    return entry !== undefined && this.#isLivePeer(entry.owner)
      ? { kind: "elsewhere", server: entry.owner, epoch: entry.epoch }
      : { kind: "refused", reason };
  }

  #isLivePeer(server: ServerId): boolean {
    return server !== this.#server && this.#deps.isLive(server);
  }

  #hasRoomFor(key: RoomKey): boolean {
    if (this.#rooms.size < this.#options.roomsMax || this.#rooms.has(key)) return true;
    this.#deps.metrics.limitsReached.inc({ limit: "rooms" });
    return false;
  }

  /** The earlier owner, unless it hands the room over itself: an owner that releases a room removes its entry. */
  #takenFrom(request: ClaimRequest, entry: RoomEntry | undefined): ServerId | undefined {
    const from = this.#isCopied(request) ? request.suspect : entry?.owner;
    return request.end !== undefined || from === this.#server ? undefined : from;
  }

  /** `from`: the earlier owner, which has not released the room. */
  #take(request: ClaimRequest, from: ServerId | undefined): Promise<ClaimOutcome> {
    const here = this.#rooms.get(request.room);
    if (here === undefined)
      return this.#host(request.room, this.#isCopied(request) ? { kind: "takeover", from: request.suspect! } : { kind: "claim" }).claim(
        request.above,
        from,
      );
    return here.isExpecting ? here.claimExpected(request.end, from) : here.confirm(request.above); // The bucket may have answered after another claim was won.
  }

  /** Whether the suspect is the owner by the replica's newest record. */
  #isCopied({ room, suspect }: ClaimRequest): boolean {
    return suspect !== undefined && this.#deps.copies.ownerOf(room) === suspect;
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
    const { copies } = this.#deps;
    if (copies.has(key)) this.#replicasUsed.add(key);
    const warm = copies.take(key);
    this.#deps.metrics.warmClaims.inc({ copy: warm === undefined ? "cold" : "warm" });
    return warm;
  }

  /**
   * A server that was ordered to keep a replica still counts as one: after a failed claim it keeps the replica again.
   */
  #forget(hosted: HostedRoom, claimLost: boolean): void {
    this.#rooms.delete(hosted.key);
    this.#ticks.forget(hosted);
    this.#deps.metrics.rooms.set(this.#rooms.size);
    if (this.#replicasUsed.delete(hosted.key) && claimLost && !this.#stopping) void this.#deps.copies.follow(hosted.key);
  }

  #entryOf(room: RoomKey): Promise<RoomEntry | undefined> {
    return this.#ports.entries.find(room).catch((cause: unknown) => {
      this.#deps.log.warn({ room, cause }, "the rooms bucket did not answer; claiming without its hint");
      return undefined;
    });
  }
}
