/**
 * Holds the rooms of this process: decides on claims, ticks the rooms, hands them over and lets them go. What each of
 * them does is `hosted-room-host.ts`.
 */

import type { ClaimReply, ClaimRequest, LogEnd, RoomEntry } from "../shared/bus/placement-messages.ts";
import type { Clock } from "../shared/clock.ts";
import { type Epoch, type RoomKey, type ServerId, type TenantId, tenantOf } from "../shared/ids.ts";
import type { Log } from "../shared/log.ts";
import type { BacklogBudget } from "./backlog.ts";
import { type BudgetLevel, budgetOf } from "./fair-share.ts";
import type { WarmCopy } from "./claim.ts";
import { type ClaimOutcome, HostedRoom, type HostedRoomDeps, type HostedRoomPorts } from "./hosted-room-host.ts";
import type { LoadMeter } from "./load-meter.ts";
import { LogCatchUps, type LogCatchUpsOptions } from "./log-catch-ups-host.ts";
import type { RoomServerMetrics } from "./metrics.ts";
import { Ownership, type OwnershipOptions } from "./ownership.ts";
import type { Seal } from "./ports.ts";

export type RoomHostPorts = HostedRoomPorts & { readonly seal: Seal };
export type RoomHostDeps = { readonly clock: Clock; readonly log: Log; readonly metrics: RoomServerMetrics; readonly isLive: (server: ServerId) => boolean; readonly budget: BacklogBudget; readonly loads: Pick<LoadMeter, "count">; readonly warmCopy: (room: RoomKey) => WarmCopy | undefined };
export type RoomHostOptions = OwnershipOptions & LogCatchUpsOptions & { readonly roomsMax: number; readonly releaseMsMax: number; readonly heldBackCommitMs: number };

const TICK_MS = 50;
/** Rooms with nothing under way are looked at every so many ticks. */
const TICKS_PER_ROUND = 20;

export class RoomHost {
  readonly #server: ServerId;
  readonly #ports: RoomHostPorts;
  readonly #options: RoomHostOptions;
  readonly #deps: RoomHostDeps;
  readonly #rooms = new Map<RoomKey, HostedRoom>();
  readonly #restless = new Set<HostedRoom>();
  readonly #hosted: HostedRoomDeps;
  #recordsMade = 0;
  #ticks = 0;
  #stopping = false;
  #cancelTick: () => void;

  constructor(server: ServerId, ports: RoomHostPorts, options: RoomHostOptions, deps: RoomHostDeps) {
    this.#server = server;
    this.#ports = ports;
    this.#options = options;
    this.#deps = deps;
    this.#hosted = { ...deps, logCatchUps: new LogCatchUps(ports, options, deps), receiveRestless: (room) => void this.#restless.add(room), receiveEnd: (room) => this.#forget(room) };
    this.#cancelTick = deps.clock.after(TICK_MS, () => this.#tick());
  }

  get rooms(): number {
    return this.#rooms.size;
  }

  /** How many of each tenant. */
  tenantRooms(): ReadonlyMap<TenantId, number> {
    const counts = new Map<TenantId, number>();
    for (const room of this.#rooms.keys()) counts.set(tenantOf(room), (counts.get(tenantOf(room)) ?? 0) + 1);
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

  /** Resolves once the room's edits are heard here, for its owner to hand it over; false when it cannot be taken. */
  expect(key: RoomKey): Promise<boolean> {
    const here = this.#rooms.get(key);
    if (here !== undefined) return here.isExpecting ? here.expect() : Promise.resolve(false);
    if (this.#stopping || !this.#hasRoomFor(key)) return Promise.resolve(false);
    return this.#host(key, "expectation").expect();
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

  /** Finishes the appends in flight, lets all rooms go, and takes no new ones. */
  async stop(): Promise<void> {
    const { clock, log } = this.#deps;
    this.#stopping = true;
    const deadline = clock.now() + this.#options.releaseMsMax;
    for (const hosted of this.#rooms.values()) hosted.receive({ kind: "release" });
    while (this.#rooms.size > 0 && clock.now() < deadline) await new Promise<void>((resolve) => clock.after(TICK_MS, resolve));
    this.#cancelTick();
    if (this.#rooms.size > 0) log.warn({ rooms: this.#rooms.size }, "rooms were let go before the log had answered; gateways send their edits again");
    for (const hosted of this.#rooms.values()) hosted.giveUpAppend();
  }

  async #decideClaim(request: ClaimRequest): Promise<ClaimReply> {
    if (this.#stopping) return { kind: "refused", reason: "the server is stopping" };
    const hosted = this.#rooms.get(request.room);
    const outcome = hosted === undefined || hosted.isExpecting ? undefined : await hosted.confirm();
    if (outcome?.kind === "owned") return this.#owned(outcome.epoch);
    if (outcome?.wasOwner === false) return this.#lost(request.room, outcome.reason);

    // Its owner itself hands it over: nobody has to be asked who that is.
    const entry = request.end === undefined ? await this.#entryOf(request.room) : undefined;
    if (entry !== undefined && entry.owner !== request.suspect && this.#isLivePeer(entry.owner)) return { kind: "elsewhere", server: entry.owner, epoch: entry.epoch };
    if (this.#stopping) return { kind: "refused", reason: "the server is stopping" };
    if (!this.#hasRoomFor(request.room)) return { kind: "refused", reason: "the server has as many rooms as it takes: start another one, or raise COROOM_ROOMS_MAX" };
    const claimed = await this.#take(request);
    return claimed.kind === "owned" ? this.#owned(claimed.epoch) : this.#lost(request.room, claimed.reason);
  }

  #owned(epoch: Epoch): ClaimReply {
    return { kind: "owned", server: this.#server, epoch };
  }

  /** Another claimed at the same time: claiming on would only take turns with it. */
  async #lost(room: RoomKey, reason: string): Promise<ClaimReply> {
    const entry = await this.#entryOf(room);
    return entry !== undefined && this.#isLivePeer(entry.owner) ? { kind: "elsewhere", server: entry.owner, epoch: entry.epoch } : { kind: "refused", reason };
  }

  #isLivePeer(server: ServerId): boolean {
    return server !== this.#server && this.#deps.isLive(server);
  }

  #hasRoomFor(key: RoomKey): boolean {
    if (this.#rooms.size < this.#options.roomsMax || this.#rooms.has(key)) return true;
    this.#deps.metrics.limitsReached.inc({ limit: "rooms" });
    return false;
  }

  #take({ room, end }: ClaimRequest): Promise<ClaimOutcome> {
    const here = this.#rooms.get(room);
    if (here === undefined) return this.#host(room, "claim").claim();
    return here.isExpecting ? here.claimExpected(end) : here.untilClaimed();
  }

  #host(key: RoomKey, begin: "claim" | "expectation"): HostedRoom {
    const { clock, budget, metrics } = this.#deps;
    const nextStamp = () => ({ id: `${this.#server}.${++this.#recordsMade}`, time: clock.wallNow() });
    const deps = { seal: this.#ports.seal, budget, nextStamp, warmCopy: () => this.#takeWarmCopy(key) };
    const hosted = new HostedRoom(key, new Ownership(key, this.#options, deps, clock.now(), begin), this.#ports, this.#hosted);
    this.#rooms.set(key, hosted);
    metrics.rooms.set(this.#rooms.size);
    return hosted;
  }

  #takeWarmCopy(key: RoomKey): WarmCopy | undefined {
    const warm = this.#deps.warmCopy(key);
    this.#deps.metrics.warmClaims.inc({ copy: warm === undefined ? "cold" : "warm" });
    return warm;
  }

  #forget(hosted: HostedRoom): void {
    this.#rooms.delete(hosted.key);
    this.#restless.delete(hosted);
    this.#deps.metrics.rooms.set(this.#rooms.size);
  }

  #entryOf(room: RoomKey): Promise<RoomEntry | undefined> {
    return this.#ports.entries.find(room).catch((cause: unknown) => {
      this.#deps.log.warn({ room, cause }, "the rooms bucket did not answer; claiming without its hint");
      return undefined;
    });
  }

  #tick(): void {
    this.#cancelTick = this.#deps.clock.after(TICK_MS, () => this.#tick());
    this.#ticks += 1;
    const round = this.#ticks % TICKS_PER_ROUND === 0;
    for (const hosted of round ? this.#rooms.values() : this.#restless) {
      if (round && this.#ports.presence.isInhabited(hosted.key)) hosted.receive({ kind: "inhabited" });
      hosted.receive({ kind: "tick" });
      if (!hosted.restless) this.#restless.delete(hosted);
    }
    if (round) this.#deps.metrics.backlogBytes.set(this.#deps.budget.bytes);
  }
}
