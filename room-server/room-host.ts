/**
 * Holds the rooms of this process, feeds each what happens and carries out what each decides. The only caller
 * of `Ownership.receive`. What comes back for a room whose ownership has ended is ignored by it.
 */

import { assertNever } from "../shared/assert.ts";
import type { Answer } from "../shared/bus/envelope.ts";
import type { ClaimReply, ClaimRequest, RoomEntry } from "../shared/bus/placement-messages.ts";
import type { Clock } from "../shared/clock.ts";
import { type Epoch, type RoomKey, type ServerId, type TenantId, tenantOf } from "../shared/ids.ts";
import type { Log } from "../shared/log.ts";
import type { Operations } from "../shared/operations.ts";
import type { BacklogBudget } from "./backlog.ts";
import type { LoadMeter } from "./load-meter.ts";
import { LogCatchUps, type LogCatchUpsOptions } from "./log-catch-ups-host.ts";
import type { RoomServerMetrics } from "./metrics.ts";
import { Ownership, type OwnershipEffect, type OwnershipInput, type OwnershipOptions, type WarmCopy } from "./ownership.ts";
import type { PresenceHost } from "./presence-host.ts";
import type { Checkpoints, Gateways, Inbox, RoomEntries, RoomLog, Seal, Subscription } from "./ports.ts";

export type RoomHostPorts = { readonly log: RoomLog; readonly inbox: Inbox; readonly gateways: Gateways; readonly checkpoints: Checkpoints; readonly entries: RoomEntries; readonly seal: Seal; readonly operations: Operations; readonly presence: OwnedPresence };

/** What begins and ends with a room's ownership, and goes its own way in between. */
export type OwnedPresence = Pick<PresenceHost, "begin" | "end" | "isInhabited">;

export type RoomHostDeps = { readonly clock: Clock; readonly log: Log; readonly metrics: RoomServerMetrics; readonly isLive: (server: ServerId) => boolean; readonly budget: BacklogBudget; readonly loads: Pick<LoadMeter, "count">; readonly warmCopy: (room: RoomKey) => WarmCopy | undefined };
export type RoomHostOptions = OwnershipOptions & LogCatchUpsOptions & { readonly roomsMax: number; readonly releaseMsMax: number };

const TICK_MS = 50;
/** Rooms with nothing under way are looked at every so many ticks. */
const TICKS_PER_ROUND = 20;

/** A room in this process, with what belongs to it in the world. */
type HostedRoom = {
  readonly key: RoomKey;
  readonly ownership: Ownership;
  subscription: Subscription | undefined;
  /** Takes the append in flight back. */
  giveUpAppend: () => void;
  /** Those who asked for the room and wait for the outcome. */
  claimers: ((outcome: ClaimOutcome) => void)[];
  /** Told whether the room may be claimed by another now; while it is handed over. */
  tellReady: ((isReady: boolean) => void) | undefined;
};

/** `wasOwner`: it was this server's until now, so it may be claimed anew. */
type ClaimOutcome = { kind: "owned"; epoch: Epoch } | { kind: "lost"; wasOwner: boolean; reason: string };

export class RoomHost {
  readonly #server: ServerId;
  readonly #ports: RoomHostPorts;
  readonly #options: RoomHostOptions;
  readonly #deps: RoomHostDeps;
  readonly #rooms = new Map<RoomKey, HostedRoom>();
  readonly #restless = new Set<HostedRoom>();
  readonly #logCatchUps: LogCatchUps;
  #recordsMade = 0;
  #ticks = 0;
  #stopping = false;
  #cancelTick: () => void;

  constructor(server: ServerId, ports: RoomHostPorts, options: RoomHostOptions, deps: RoomHostDeps) {
    this.#server = server;
    this.#ports = ports;
    this.#options = options;
    this.#deps = deps;
    this.#logCatchUps = new LogCatchUps(ports, options, deps);
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
    const hosted = this.#rooms.get(room);
    if (hosted !== undefined) this.#receive(hosted, { kind: "doubted" });
  }

  /** From now on it takes no new rooms. */
  drain(): void {
    this.#stopping = true;
  }

  has(key: RoomKey): boolean {
    return this.#rooms.has(key);
  }

  /** Those that can be handed over. */
  owned(): RoomKey[] {
    return [...this.#rooms.values()].filter(({ ownership }) => ownership.kind === "owning").map(({ key }) => key);
  }

  /** Resolves once the room's log stands still, for another to claim it; false if it is not this server's to hand over. `endHandOver` follows. */
  beginHandOver(key: RoomKey): Promise<boolean> {
    const hosted = this.#rooms.get(key);
    if (hosted?.ownership.kind !== "owning") return Promise.resolve(false);
    return new Promise((resolve) => {
      hosted.tellReady = resolve;
      this.#receive(hosted, { kind: "hand-over" });
    });
  }

  /** `keep`: the other may not have claimed the room. */
  endHandOver(key: RoomKey, outcome: "handed-over" | "keep"): void {
    const hosted = this.#rooms.get(key);
    if (hosted === undefined) return;
    this.#tellReady(hosted, false);
    this.#receive(hosted, { kind: outcome });
  }

  /** Finishes the appends in flight, lets all rooms go, and takes no new ones. */
  async stop(): Promise<void> {
    const { clock, log } = this.#deps;
    this.#stopping = true;
    const deadline = clock.now() + this.#options.releaseMsMax;
    for (const hosted of this.#rooms.values()) this.#receive(hosted, { kind: "release" });
    while (this.#rooms.size > 0 && clock.now() < deadline) await new Promise<void>((resolve) => clock.after(TICK_MS, resolve));
    this.#cancelTick();
    if (this.#rooms.size > 0) log.warn({ rooms: this.#rooms.size }, "rooms were let go before the log had answered; gateways send their edits again");
    for (const hosted of this.#rooms.values()) hosted.giveUpAppend();
  }

  async #decideClaim(request: ClaimRequest): Promise<ClaimReply> {
    if (this.#stopping) return { kind: "refused", reason: "the server is stopping" };
    const hosted = this.#rooms.get(request.room);
    const outcome = hosted === undefined ? undefined : await this.#confirm(hosted);
    if (outcome?.kind === "owned") return this.#owned(outcome.epoch);
    if (outcome?.wasOwner === false) return this.#lost(request.room, outcome.reason);

    const entry = await this.#entryOf(request.room);
    if (entry !== undefined && entry.owner !== request.suspect && this.#isLivePeer(entry.owner)) return { kind: "elsewhere", server: entry.owner, epoch: entry.epoch };
    if (this.#stopping) return { kind: "refused", reason: "the server is stopping" };
    if (this.#rooms.size >= this.#options.roomsMax && !this.#rooms.has(request.room)) {
      this.#deps.metrics.limitsReached.inc({ limit: "rooms" });
      return { kind: "refused", reason: "the server has as many rooms as it takes: start another one, or raise COROOM_ROOMS_MAX" };
    }
    const claimed = await this.#take(request.room);
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

  /** Somebody does not get through to the owner that this server takes itself for. Whether it is one, the log knows. */
  #confirm(hosted: HostedRoom): Promise<ClaimOutcome> {
    return new Promise((resolve) => {
      hosted.claimers.push(resolve);
      this.#receive(hosted, hosted.subscription?.isOpen() === false ? { kind: "unsubscribed" } : { kind: "doubted" });
    });
  }

  #take(key: RoomKey): Promise<ClaimOutcome> {
    return new Promise((resolve) => {
      const claiming = this.#rooms.get(key);
      if (claiming !== undefined) return void claiming.claimers.push(resolve);
      const deps = { seal: this.#ports.seal, nextStamp: () => ({ id: `${this.#server}.${++this.#recordsMade}`, time: this.#deps.clock.wallNow() }) };
      const warm = this.#deps.warmCopy(key);
      this.#deps.metrics.warmClaims.inc({ copy: warm === undefined ? "cold" : "warm" });
      const ownership = new Ownership(key, this.#options, this.#deps.budget, deps, this.#deps.clock.now(), warm);
      const hosted: HostedRoom = { key, ownership, subscription: undefined, giveUpAppend: () => {}, claimers: [resolve], tellReady: undefined };
      this.#rooms.set(key, hosted);
      this.#deps.metrics.rooms.set(this.#rooms.size);
      this.#carryOut(hosted, { kind: "subscribe" });
    });
  }

  #receive(hosted: HostedRoom, input: OwnershipInput): void {
    for (const effect of hosted.ownership.receive(input, this.#deps.clock.now())) this.#carryOut(hosted, effect);
    if (hosted.ownership.restless) this.#restless.add(hosted);
  }

  #carryOut(hosted: HostedRoom, effect: OwnershipEffect): void {
    const { metrics, log } = this.#deps;
    switch (effect.kind) {
      case "append":
        return this.#append(hosted, effect);
      case "answer":
        this.#count(effect.answer);
        return this.#ports.gateways.answer(effect.gateway, hosted.key, effect.answer);
      case "broadcast":
        if (effect.message.kind === "tentative") metrics.editsTentative.inc();
        return this.#ports.gateways.broadcast(hosted.key, effect.message);
      case "saving-changed":
        return metrics.savingChanges.inc({ state: effect.state });
      case "read-log":
        return this.#logCatchUps.answer(hosted.key, effect);
      case "limit-reached":
        return metrics.limitsReached.inc({ limit: effect.limit });
      case "subscribe":
        return this.#await(hosted, this.#subscribe(hosted));
      case "read-log-end":
        return this.#await(hosted, this.#readLogEnd(hosted.key));
      case "read-checkpoint":
        return this.#await(hosted, this.#readCheckpoint(hosted.key));
      case "load":
        return this.#await(hosted, this.#load(hosted, effect));
      case "fenced-others":
        this.#ports.operations.report({ kind: "room_claimed", room: hosted.key, epoch: effect.epoch });
        this.#announce(hosted.key, effect.epoch);
        this.#ports.presence.begin(hosted.key, effect.epoch);
        return this.#tellClaimers(hosted, { kind: "owned", epoch: effect.epoch });
      case "confirmed":
        return this.#tellClaimers(hosted, { kind: "owned", epoch: effect.epoch });
      case "unconfirmed":
        return this.#tellClaimers(hosted, { kind: "lost", wasOwner: false, reason: effect.reason });
      case "log-hole":
        metrics.holes.inc();
        return log.error({ room: hosted.key, ...effect.hole }, "the log lacks edits that no checkpoint covers: restore it from a backup if there is one");
      case "ready-to-hand-over":
        return this.#tellReady(hosted, true);
      case "unsubscribe":
        return this.#await(hosted, this.#unsubscribe(hosted));
      case "ended":
        return this.#end(hosted, effect);
      default:
        return assertNever(effect);
    }
  }

  #append(hosted: HostedRoom, { record, edits }: OwnershipEffect & { kind: "append" }): void {
    hosted.giveUpAppend = this.#ports.log.append(hosted.key, record, (outcome) => {
      hosted.giveUpAppend = () => {};
      if (outcome.kind === "appended" && edits > 0) {
        this.#deps.metrics.editsCommitted.inc(edits);
        this.#deps.loads.count(hosted.key, edits, record.bytes.byteLength);
      }
      this.#receive(hosted, { kind: "append-settled", outcome });
    });
  }

  /** What the world answers is the room's next input; that it fails is one too. */
  #await(hosted: HostedRoom, outcome: Promise<OwnershipInput>): void {
    outcome.then(
      (input) => this.#receive(hosted, input),
      (cause: unknown) => {
        this.#deps.log.warn({ room: hosted.key, state: hosted.ownership.kind, cause }, "NATS did not answer for a room");
        this.#receive(hosted, { kind: "failed", reason: "NATS did not answer" });
      },
    );
  }

  async #subscribe(hosted: HostedRoom): Promise<OwnershipInput> {
    const subscription = await this.#ports.inbox.subscribe(hosted.key, (message, bytes) => this.#receive(hosted, { kind: "message", message, bytes }));
    hosted.subscription = subscription;
    if (hosted.ownership.kind === "ended") await subscription.close();
    return { kind: "subscribed" };
  }

  async #unsubscribe(hosted: HostedRoom): Promise<OwnershipInput> {
    await hosted.subscription?.close();
    return { kind: "unsubscribed" };
  }

  async #readLogEnd(key: RoomKey): Promise<OwnershipInput> {
    const [last, checkpoint] = await Promise.all([this.#ports.log.readLast(key), this.#ports.checkpoints.newest(key)]);
    return { kind: "log-end-read", last, checkpoint };
  }

  async #readCheckpoint(key: RoomKey): Promise<OwnershipInput> {
    return { kind: "checkpoint-read", checkpoint: await this.#ports.checkpoints.newest(key) };
  }

  async #load(hosted: HostedRoom, { after, through }: OwnershipEffect & { kind: "load" }): Promise<OwnershipInput> {
    for await (const { record } of this.#ports.log.read(hosted.key, after, through)) this.#receive(hosted, { kind: "log-read", record });
    return { kind: "log-read-whole" };
  }

  #announce(room: RoomKey, epoch: Epoch): void {
    this.#ports.entries.announce(room, epoch).catch((cause: unknown) => this.#deps.log.warn({ room, cause }, "the rooms bucket did not take the owner's entry; gateways find the owner by asking"));
  }

  #entryOf(room: RoomKey): Promise<RoomEntry | undefined> {
    return this.#ports.entries.find(room).catch((cause: unknown) => {
      this.#deps.log.warn({ room, cause }, "the rooms bucket did not answer; claiming without its hint");
      return undefined;
    });
  }

  #tellReady(hosted: HostedRoom, isReady: boolean): void {
    const tell = hosted.tellReady;
    hosted.tellReady = undefined;
    tell?.(isReady);
  }

  #tellClaimers(hosted: HostedRoom, outcome: ClaimOutcome): void {
    const claimers = hosted.claimers;
    hosted.claimers = [];
    for (const tell of claimers) tell(outcome);
  }

  #end(hosted: HostedRoom, { why, reason, wasOwner }: OwnershipEffect & { kind: "ended" }): void {
    const { log, metrics } = this.#deps;
    hosted.giveUpAppend();
    this.#rooms.delete(hosted.key);
    this.#ports.presence.end(hosted.key);
    this.#restless.delete(hosted);
    metrics.rooms.set(this.#rooms.size);
    metrics.ends.inc({ why });
    this.#ports.operations.report({ kind: "room_ended", room: hosted.key, why, reason });
    hosted.subscription?.close().catch((cause: unknown) => log.debug({ room: hosted.key, cause }, "the line was lost while a room's subscription was closed"));
    if (why === "released") this.#ports.entries.withdraw(hosted.key).catch((cause: unknown) => log.warn({ room: hosted.key, cause }, "the rooms bucket kept a released room's entry; a claim corrects it"));
    this.#tellReady(hosted, false);
    this.#tellClaimers(hosted, { kind: "lost", wasOwner, reason });
  }

  #count(answer: Answer): void {
    const { metrics } = this.#deps;
    if (answer.kind === "acked") metrics.editsRepeated.inc();
    else if (answer.kind === "refused") metrics.editsRefused.inc({ reason: answer.reason });
    else if (answer.answer.kind === "resync") metrics.catchUps.inc({ source: "resync" });
    else if (answer.answer.last) metrics.catchUps.inc({ source: "backlog" });
  }

  #tick(): void {
    this.#cancelTick = this.#deps.clock.after(TICK_MS, () => this.#tick());
    this.#ticks += 1;
    const round = this.#ticks % TICKS_PER_ROUND === 0;
    for (const hosted of round ? this.#rooms.values() : this.#restless) {
      if (round && this.#ports.presence.isInhabited(hosted.key)) this.#receive(hosted, { kind: "inhabited" });
      this.#receive(hosted, { kind: "tick" });
      if (!hosted.ownership.restless) this.#restless.delete(hosted);
    }
    if (round) this.#deps.metrics.backlogBytes.set(this.#deps.budget.bytes);
  }
}
