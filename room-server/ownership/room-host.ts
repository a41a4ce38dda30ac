/**
 * Holds the rooms of this process: decides on claims, hands rooms over and lets them go. What each of them does is
 * `hosted-room-host.ts`.
 */

import { assertNever } from "../../shared/assert.ts";
import type { ClaimReply, ClaimRequest, LogEnd, RoomEntry } from "../../shared/bus/placement-messages.ts";
import type { Clock } from "../../shared/clock.ts";
import { type Epoch, type RoomKey, type ServerId, type TenantId, tenantOf } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import type { BacklogBudget } from "../rooms/backlog.ts";
import { type BudgetLevel, budgetOf } from "../load/fair-share.ts";
import type { WarmCopy } from "./claim.ts";
import type { ClaimBeginning } from "./claim-messages.ts";
import { type ClaimOutcome, HostedRoom, type HostedRoomDeps, type HostedRoomPorts } from "./hosted-room-host.ts";
import type { LoadMeter } from "../load/load-meter.ts";
import { LogCatchUps, type LogCatchUpsOptions } from "../rooms/log-catch-ups-host.ts";
import type { RoomServerMetrics } from "../metrics.ts";
import type { Replicas } from "./replicas-host.ts";
import { Ownership, type OwnershipDeps, type OwnershipOptions } from "./ownership.ts";
import type { Epochs, Seal } from "../ports.ts";
import { RoomTicks } from "./room-ticks-host.ts";

export type RoomHostPorts = HostedRoomPorts & { readonly seal: Seal; readonly epochs: Epochs };
/** Those kept here of other servers' rooms. */
export type WarmCopies = Pick<Replicas, "has" | "ownerOf" | "take" | "follow" | "unfollow">;
export type RoomHostDeps = {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: RoomServerMetrics;
  readonly isLive: (server: ServerId) => boolean;
  readonly budget: BacklogBudget;
  readonly loads: Pick<LoadMeter, "count">;
  readonly copies: WarmCopies;
};
export type RoomHostOptions = OwnershipOptions &
  LogCatchUpsOptions & { readonly roomsMax: number; readonly releaseMsMax: number; readonly heldBackCommitMs: number };

/** How often it is looked whether all rooms are let go. */
const LOOK_MS = 50;
/** There are thousands of rooms to say it to. */
const LINE_BACK = { kind: "line-back" } as const;

export class RoomHost {
  readonly #server: ServerId;
  readonly #ports: RoomHostPorts;
  readonly #options: RoomHostOptions;
  readonly #deps: RoomHostDeps;
  readonly #rooms = new Map<RoomKey, HostedRoom>();
  readonly #ticks: RoomTicks;
  /** Rooms whose copy was kept here until their claim took it. */
  readonly #copiesUsed = new Set<RoomKey>();
  readonly #hosted: HostedRoomDeps;
  readonly #ownership: OwnershipDeps;
  /** Entries of rooms that the bucket was asked to remove, and has not yet. */
  #removals = 0;
  #recordsMade = 0;
  #stopping = false;

  constructor(server: ServerId, ports: RoomHostPorts, options: RoomHostOptions, deps: RoomHostDeps) {
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
      warmCopy: (room) => this.#takeWarmCopy(room),
    };
    const isInhabited = (room: RoomKey): boolean => ports.presence.isInhabited(room);
    const receiveRound = (): void => deps.metrics.backlogBytes.set(deps.budget.bytes);
    this.#ticks = new RoomTicks(this.#rooms, { clock: deps.clock, isInhabited, receiveRound });
  }

  get rooms(): number {
    return this.#rooms.size;
  }

  /** How many of each tenant. */
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

  /** Somebody has heard of a later owner of the room. */
  receiveDoubt(room: RoomKey): void {
    this.#rooms.get(room)?.receive({ kind: "doubted" });
  }

  /** The line to NATS is back: what the log had may be gone. */
  receiveLineBack(): void {
    for (const hosted of this.#rooms.values()) hosted.receive(LINE_BACK);
  }

  /** Its edits gather for longer before they share a record, or no longer so. */
  holdBack(room: RoomKey, level: BudgetLevel): void {
    this.#rooms.get(room)?.receive({ kind: "gather", everyMs: budgetOf(level).gathersEdits ? this.#options.heldBackCommitMs : 0 });
  }

  /** From now on it takes no new rooms. */
  drain(): void {
    this.#stopping = true;
  }

  /** One that is only expected is not here yet. */
  has(key: RoomKey): boolean {
    return this.#rooms.get(key)?.isExpecting === false;
  }

  /** No copy of the room is kept here any more, and none is kept again after a claim under way. */
  unfollow(room: RoomKey): void {
    this.#copiesUsed.delete(room);
    this.#deps.copies.unfollow(room);
  }

  /** Claims the room of an owner that is gone, with the warm copy of it. False: it is not taken. */
  async takeOver(room: RoomKey, suspect: ServerId): Promise<boolean> {
    if (this.#stopping || this.has(room) || this.#deps.copies.ownerOf(room) !== suspect || !this.#hasRoomFor(room)) return false;
    return (await this.#take({ room, suspect }, suspect)).kind === "owned";
  }

  /** Resolves once the room's edits are heard here, for its owner to hand it over; false when it cannot be taken. */
  expect(key: RoomKey): Promise<boolean> {
    const here = this.#rooms.get(key);
    if (here !== undefined) return here.isExpecting ? here.expect() : Promise.resolve(false);
    if (this.#stopping || !this.#hasRoomFor(key)) return Promise.resolve(false);
    return this.#host(key, { kind: "expectation" }).expect();
  }

  /** Those that can be handed over. */
  owned(): RoomKey[] {
    return [...this.#rooms.values()].filter(({ isOwned }) => isOwned).map(({ key }) => key);
  }

  /** Resolves once the room's log stands still, for another to claim it, to where; undefined if it is not this server's to hand over. `endHandOver` follows. */
  beginHandOver(key: RoomKey): Promise<LogEnd | undefined> {
    const hosted = this.#rooms.get(key);
    return hosted?.isOwned === true ? hosted.beginHandOver() : Promise.resolve(undefined);
  }

  /** `keep`: the other may not have claimed the room. */
  endHandOver(key: RoomKey, outcome: "handed-over" | "keep"): void {
    this.#rooms.get(key)?.endHandOver(outcome);
  }

  /** Finishes the appends in flight, lets all rooms go with their entries, and takes no new ones. */
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

    // Its owner itself hands it over, or its copy tells that nobody else has taken it over: the bucket need not be asked.
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

  /** Another claimed at the same time: claiming on would only take turns with it. */
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

  /** The earlier owner, unless it hands the room over itself: one that lets a room go takes its entry away. */
  #takenFrom(request: ClaimRequest, entry: RoomEntry | undefined): ServerId | undefined {
    const from = this.#isCopied(request) ? request.suspect : entry?.owner;
    return request.end !== undefined || from === this.#server ? undefined : from;
  }

  /** `from`: the earlier owner, which has not let the room go. */
  #take(request: ClaimRequest, from: ServerId | undefined): Promise<ClaimOutcome> {
    const here = this.#rooms.get(request.room);
    if (here === undefined)
      return this.#host(request.room, this.#isCopied(request) ? { kind: "takeover", from: request.suspect! } : { kind: "claim" }).claim(
        request.above,
        from,
      );
    return here.isExpecting ? here.claimExpected(request.end, from) : here.confirm(request.above); // The bucket may have answered only once another claim was through.
  }

  /** Whether the suspect was the room's owner by what is heard in the room until now. */
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

  #takeWarmCopy(key: RoomKey): WarmCopy | undefined {
    const { copies } = this.#deps;
    if (copies.has(key)) this.#copiesUsed.add(key);
    const warm = copies.take(key);
    this.#deps.metrics.warmClaims.inc({ copy: warm === undefined ? "cold" : "warm" });
    return warm;
  }

  /** Whoever keeps a copy was told to, and counts as one who does: it is kept again where its claim came to nothing. */
  #forget(hosted: HostedRoom, claimLost: boolean): void {
    this.#rooms.delete(hosted.key);
    this.#ticks.forget(hosted);
    this.#deps.metrics.rooms.set(this.#rooms.size);
    if (this.#copiesUsed.delete(hosted.key) && claimLost && !this.#stopping) void this.#deps.copies.follow(hosted.key);
  }

  #entryOf(room: RoomKey): Promise<RoomEntry | undefined> {
    return this.#ports.entries.find(room).catch((cause: unknown) => {
      this.#deps.log.warn({ room, cause }, "the rooms bucket did not answer; claiming without its hint");
      return undefined;
    });
  }
}
