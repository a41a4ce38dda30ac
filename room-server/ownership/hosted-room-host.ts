/** Hosts one room: passes inputs to its ownership and carries out the effects. Late results for an ended ownership are ignored. */

import { assertNever } from "../../shared/assert.ts";
import type { OwnerReply, ToOwner } from "../../shared/bus/envelope.ts";
import type { LogEnd } from "../../shared/bus/placement-messages.ts";
import type { PresenceToOwner } from "../../shared/bus/presence-messages.ts";
import type { Clock } from "../../shared/time/clock.ts";
import type { Epoch, GatewayId, RoomKey, ServerId } from "../../shared/ids.ts";
import type { Log } from "../../shared/process/log.ts";
import { LazyMap, NO_ITEMS } from "../../shared/collections/lazy-map.ts";
import type { LoadMeter } from "../load/load-meter.ts";
import type { LogCatchUps } from "../rooms/log-catch-ups-host.ts";
import type { RoomServerMetrics } from "../metrics.ts";
import type { ClaimOutcome, OwnershipEffect, OwnershipInput } from "./ownership-messages.ts";
import type { Ownership } from "./ownership.ts";
import { StoreQuestions } from "./store-questions-host.ts";
import type { CheckpointReader, Gateways, ReleaseReason, RoomInbox, Receiver, RoomEntries, RoomLog, Subscription } from "../ports.ts";
import type { OwnerPresenceHost } from "../presence/presence-host.ts";
import type { TickUrgency } from "../rooms/owned-room.ts";
import type { Operations } from "../../shared/bus/operations-events.ts";

/** Presence begins and ends with a room's ownership, and works independently between the two. */
type OwnedPresence = Pick<OwnerPresenceHost, "begin" | "receivePresence" | "end" | "isInhabited">;

export type HostedRoomPorts = {
  readonly log: RoomLog;
  readonly inbox: RoomInbox;
  readonly gateways: Gateways;
  readonly checkpoints: CheckpointReader;
  readonly entries: RoomEntries;
  readonly operations: Operations;
  readonly presence: OwnedPresence;
};

/**
 * `receiveUrgency`: the time at which the room needs its next tick. `receiveEnd`: the room can be forgotten.
 * `isClaimLost`: another server has or may have the room, and this one never owned it. `receiveRemoval`: the room's
 * entry is removed.
 */
export type HostedRoomDeps = {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: RoomServerMetrics;
  readonly loads: Pick<LoadMeter, "count">;
  readonly logCatchUps: LogCatchUps;
  readonly receiveUrgency: (room: HostedRoom, urgency: TickUrgency) => void;
  readonly receiveEnd: (room: HostedRoom, isClaimLost: boolean) => void;
  readonly receiveRemoval: (removed: Promise<void>) => void;
};

/** Shared by all rooms. A closure per room would keep its scope alive, for example the last record. */
const NOTHING = (): void => {};

export class HostedRoom implements Receiver {
  readonly key: RoomKey;
  readonly #ownership: Ownership;
  readonly #ports: HostedRoomPorts;
  readonly #deps: HostedRoomDeps;
  #subscription: Subscription | undefined;
  /** The server from which the room is taken over. */
  #from: ServerId | undefined;
  readonly #questions: StoreQuestions;
  /** Withdraws the append in flight. */
  #abandonAppend: (why: ReleaseReason) => void = NOTHING;
  /** Requests for the room that wait for the outcome. */
  #claimers: readonly ((outcome: ClaimOutcome) => void)[] = NO_ITEMS;
  /** Resolves the request of the owner, which waits until this server is subscribed. */
  #resolveExpecting: (isExpecting: boolean) => void = NOTHING;
  #expected: Promise<boolean> | undefined;
  /** Gateways that asked for the room's presence before it was owned. */
  readonly #presenceQuestions = new LazyMap<GatewayId, PresenceToOwner>();
  /** During a handover: resolves with the log's end once appends have stopped, or with undefined. */
  #resolveReady: (end: LogEnd | undefined) => void = NOTHING;

  constructor(key: RoomKey, ownership: Ownership, ports: HostedRoomPorts, deps: HostedRoomDeps) {
    this.key = key;
    this.#ownership = ownership;
    this.#ports = ports;
    this.#deps = deps;
    this.#questions = new StoreQuestions(key, ports, (read) => this.receiveOwnershipInput(read));
  }

  get isExpecting(): boolean {
    return this.#ownership.isExpecting;
  }

  get openEpoch(): Epoch | undefined {
    return this.#ownership.kind === "owning" ? this.#ownership.epoch : undefined;
  }

  get tickUrgency(): TickUrgency {
    return this.#ownership.tickUrgency;
  }

  /** Begins a claim of an epoch above `above`. `from`: the earlier owner, if it has not released the room. */
  claim(above: Epoch | undefined, from: ServerId | undefined): Promise<ClaimOutcome> {
    this.#from = from;
    const outcome = this.#untilClaimed();
    this.receiveOwnershipInput({ kind: "ownership-questioned", above });
    this.#carryOut({ kind: "subscribe" });
    return outcome;
  }

  /**
   * Resolves to true once this server is subscribed to the room's edits, so that the room can be handed over. False:
   * this is not possible.
   */
  expect(): Promise<boolean> {
    return (this.#expected ??= new Promise((resolve) => {
      this.#resolveExpecting = resolve;
      this.#carryOut({ kind: "subscribe" });
    }));
  }

  /** As `claim`, for the expected room. `end`: the log's end, if the owner has sent it. Then `from` is undefined. */
  claimExpected(above: Epoch | undefined, end: LogEnd | undefined, from: ServerId | undefined): Promise<ClaimOutcome> {
    this.#from = from;
    const outcome = this.#untilClaimed();
    this.receiveOwnershipInput({ kind: "ownership-questioned", above });
    this.receiveOwnershipInput(end === undefined ? { kind: "claimed" } : { kind: "end-received", end });
    return outcome;
  }

  /**
   * Answers a claim of a room that this server already has: with the outcome of a claim in progress, or after asking
   * the log whether this server is still the owner.
   */
  confirm(above: Epoch | undefined): Promise<ClaimOutcome> {
    const outcome = this.#untilClaimed();
    this.receiveOwnershipInput(this.#subscription?.isOpen() === false ? { kind: "unsubscribed" } : { kind: "ownership-questioned", above });
    return outcome;
  }

  /** Resolves with the log's end once appends have stopped; undefined if this server does not own the room. */
  beginHandOver(): Promise<LogEnd | undefined> {
    return new Promise((resolve) => {
      this.#resolveReady = resolve;
      this.receiveOwnershipInput({ kind: "hand-over" });
    });
  }

  endHandOver(outcome: "handed-over" | "keep"): void {
    this.#resolveReady(undefined);
    this.receiveOwnershipInput({ kind: outcome });
  }

  abandonAppend(why: ReleaseReason): void {
    this.#abandonAppend(why);
  }

  receiveMessage(message: ToOwner, bytes: number): void {
    this.receiveOwnershipInput({ kind: "message", message, bytes });
  }

  /** A gateway that asks before the room is owned receives the answer once it is. */
  receivePresence(message: PresenceToOwner): void {
    if (this.#ownership.epoch !== undefined) this.#ports.presence.receivePresence(this.key, message);
    else this.#presenceQuestions.set(message.gateway, message);
  }

  receiveOwnershipInput(input: OwnershipInput): void {
    for (const effect of this.#ownership.receiveOwnershipInput(input, this.#deps.clock.now())) this.#carryOut(effect);
    const { tickUrgency } = this.#ownership;
    if (tickUrgency !== "never") this.#deps.receiveUrgency(this, tickUrgency);
  }

  /** The outcome of the claim or of the ownership check in progress. */
  #untilClaimed(): Promise<ClaimOutcome> {
    return new Promise((resolve) => void (this.#claimers = [...this.#claimers, resolve]));
  }

  #carryOut(effect: OwnershipEffect): void {
    const { metrics, log } = this.#deps;
    switch (effect.kind) {
      case "append":
        return this.#append(effect);
      case "answer":
        this.#count(effect.answer);
        return this.#ports.gateways.answer(effect.gateway, this.key, effect.answer);
      case "broadcast":
        if (effect.message.kind === "tentative") metrics.editsTentative.inc();
        return this.#ports.gateways.broadcast(this.key, effect.message);
      case "saving-changed":
        return metrics.savingChanges.inc({ state: effect.state });
      case "read-log":
        return this.#deps.logCatchUps.answer(this.key, effect);
      case "limit-reached":
        return metrics.limitsReached.inc({ limit: effect.limit });
      case "subscribe":
        return this.#await(this.#subscribe());
      case "read-log-end":
      case "check-log-end":
      case "advance-log":
      case "read-checkpoint":
      case "load":
        return this.#await(this.#questions.ask(effect));
      case "fenced-others":
        this.#reportClaim(effect.epoch);
        this.#announce(effect.epoch);
        this.#ports.presence.begin(this.key, effect.epoch);
        for (const question of this.#presenceQuestions.values()) this.#ports.presence.receivePresence(this.key, question);
        this.#presenceQuestions.clear();
        return this.#resolveClaimers({ kind: "owned", epoch: effect.epoch });
      case "confirmed":
        if (this.#claimers.length > 0) this.#announce(effect.epoch); // The requester did not find the entry: the bucket may not have stored it.
        return this.#resolveClaimers({ kind: "owned", epoch: effect.epoch });
      case "unconfirmed":
        return this.#resolveClaimers({ kind: "lost", wasOwner: false, reason: effect.reason });
      case "log-hole":
        metrics.holes.inc();
        return log.error(
          { room: this.key, ...effect.hole },
          "the log lacks edits that no checkpoint covers: no server orders edits of the room until a document service has saved it, or coroom restore has",
        );
      case "edits-lost":
        return log.warn(
          { room: this.key, after: effect.after, through: effect.through },
          "the log lost its end, and an earlier owner appended edits below the room's checkpoint: readers skip them, so those that the checkpoint lacks are lost",
        );
      case "ready-to-hand-over":
        return this.#resolveReady(effect.end);
      case "expecting":
        return this.#resolveExpecting(true);
      case "unsubscribe":
        return this.#await(this.#unsubscribe());
      case "ended":
        return this.#end(effect);
      default:
        return assertNever(effect);
    }
  }

  #reportClaim(epoch: Epoch): void {
    const from = this.#from === undefined ? {} : { from: this.#from };
    this.#ports.operations.report({ kind: "room_claimed", room: this.key, epoch, ...from });
  }

  #append({ record, edits }: OwnershipEffect & { kind: "append" }): void {
    this.#abandonAppend = this.#ports.log.append(
      this.key,
      record,
      (outcome) => {
        this.#abandonAppend = NOTHING;
        if (outcome.kind === "appended" && edits > 0) {
          this.#deps.metrics.editsCommitted.inc(edits);
          this.#deps.loads.count(this.key, edits, record.bytes.byteLength);
        }
        this.receiveOwnershipInput({ kind: "append-settled", outcome });
      },
      () => this.receiveOwnershipInput({ kind: "log-full" }),
    );
  }

  /** The result, or the failure, becomes the room's next input. */
  #await(outcome: Promise<OwnershipInput | undefined>): void {
    outcome.then(
      (input) => input !== undefined && this.receiveOwnershipInput(input),
      (cause: unknown) => {
        this.#deps.log.warn({ room: this.key, state: this.#ownership.kind, cause }, "NATS did not answer for a room");
        this.receiveOwnershipInput({ kind: "failed", reason: "NATS did not answer" });
      },
    );
  }

  async #subscribe(): Promise<OwnershipInput> {
    const subscription = await this.#ports.inbox.subscribe(this.key, this);
    this.#subscription = subscription;
    if (this.#ownership.kind === "ended") await subscription.close();
    return { kind: "subscribed" };
  }

  async #unsubscribe(): Promise<OwnershipInput> {
    await this.#subscription?.close();
    return { kind: "unsubscribed" };
  }

  #announce(epoch: Epoch): void {
    this.#ports.entries
      .announce(this.key, epoch)
      .catch((cause: unknown) =>
        this.#deps.log.warn(
          { room: this.key, cause },
          "the rooms bucket did not store the owner's entry; gateways find the owner by asking",
        ),
      );
  }

  /** Undefined: the room is deleted. */
  #removeEntry(releasedEpoch: Epoch | undefined): void {
    const { entries } = this.#ports;
    const removed = releasedEpoch === undefined ? entries.forget(this.key) : entries.withdraw(this.key, releasedEpoch);
    this.#deps.receiveRemoval(
      removed.catch((cause: unknown) =>
        this.#deps.log.warn({ room: this.key, cause }, "the rooms bucket kept the entry of a room without an owner; a claim corrects it"),
      ),
    );
  }

  #resolveClaimers(outcome: ClaimOutcome): void {
    const claimers = this.#claimers;
    this.#claimers = NO_ITEMS;
    for (const resolve of claimers) resolve(outcome);
  }

  #end({ why, reason, epoch, wasClaim }: OwnershipEffect & { kind: "ended" }): void {
    const { log, metrics } = this.#deps;
    this.#abandonAppend(why);
    this.#deps.receiveEnd(this, wasClaim && why !== "deleted");
    this.#ports.presence.end(this.key);
    metrics.ends.inc({ why });
    this.#ports.operations.report({ kind: "room_ended", room: this.key, why, reason });
    this.#subscription
      ?.close()
      .catch((cause: unknown) => log.debug({ room: this.key, cause }, "the NATS connection was lost while a room's subscription closed"));
    if (why === "deleted" || (why === "released" && epoch !== undefined)) this.#removeEntry(why === "deleted" ? undefined : epoch);
    this.#resolveReady(undefined);
    this.#resolveExpecting(false);
    this.#resolveClaimers(why === "deleted" ? { kind: "deleted" } : { kind: "lost", wasOwner: epoch !== undefined, reason });
  }

  #count(answer: OwnerReply): void {
    const { metrics } = this.#deps;
    if (answer.kind === "acked") metrics.editsRepeated.inc();
    else if (answer.kind === "refused") metrics.editsRefused.inc({ reason: answer.reason });
    else if (answer.kind !== "catch-up") metrics.editsRefused.inc({ reason: answer.kind });
    else metrics.catchUps.inc({ source: answer.answer.kind === "resync" ? "resync" : "backlog" });
  }
}
