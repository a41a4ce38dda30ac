/**
 * One room in this process: feeds its ownership what happens and carries out what it decides. The only caller of
 * `Ownership.receive`. What comes back for an ownership that has ended is ignored by it.
 */

import { assertNever } from "../../shared/assert.ts";
import type { Answer, ToOwner } from "../../shared/bus/envelope.ts";
import type { LogEnd } from "../../shared/bus/placement-messages.ts";
import type { PresenceToOwner } from "../../shared/bus/presence-messages.ts";
import type { Clock } from "../../shared/clock.ts";
import type { Epoch, RoomKey, ServerId } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import type { Operations } from "../../shared/operations.ts";
import { NO_ITEMS } from "../../shared/seldom.ts";
import type { LoadMeter } from "../load/load-meter.ts";
import type { LogCatchUps } from "../rooms/log-catch-ups-host.ts";
import type { RoomServerMetrics } from "../metrics.ts";
import type { OwnershipEffect, OwnershipInput } from "./ownership-messages.ts";
import { askStores } from "./ask-stores-host.ts";
import type { Ownership } from "./ownership.ts";
import type { Checkpoints, Gateways, GivenUp, Inbox, Receiver, RoomEntries, RoomLog, Subscription } from "../ports.ts";
import type { PresenceHost } from "../presence/presence-host.ts";
import type { Pace } from "../rooms/room.ts";

/** What begins and ends with a room's ownership, and goes its own way in between. */
export type OwnedPresence = Pick<PresenceHost, "begin" | "receive" | "end" | "isInhabited">;

export type HostedRoomPorts = {
  readonly log: RoomLog;
  readonly inbox: Inbox;
  readonly gateways: Gateways;
  readonly checkpoints: Checkpoints;
  readonly entries: RoomEntries;
  readonly operations: Operations;
  readonly presence: OwnedPresence;
};

/** `receivePace`: when it wants its next tick. `receiveEnd`: it is to be forgotten. `claimLost`: another has the room, or may have it, and this server never had. `receiveRemoval`: its entry goes. */
export type HostedRoomDeps = {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: RoomServerMetrics;
  readonly loads: Pick<LoadMeter, "count">;
  readonly logCatchUps: LogCatchUps;
  readonly receivePace: (room: HostedRoom, pace: Exclude<Pace, "never">) => void;
  readonly receiveEnd: (room: HostedRoom, claimLost: boolean) => void;
  readonly receiveRemoval: (removed: Promise<void>) => void;
};

/** `wasOwner`: it was this server's until now, so it may be claimed anew. */
export type ClaimOutcome = { kind: "owned"; epoch: Epoch } | { kind: "deleted" } | { kind: "lost"; wasOwner: boolean; reason: string };

/** One for all rooms: each of its own would keep what was at hand where it was made, such as the last record. */
const NOTHING = (): void => {};

export class HostedRoom implements Receiver {
  readonly key: RoomKey;
  readonly #ownership: Ownership;
  readonly #ports: HostedRoomPorts;
  readonly #deps: HostedRoomDeps;
  #subscription: Subscription | undefined;
  /** Whom the room is taken over from. */
  #from: ServerId | undefined;
  /** Takes the append in flight back. */
  #giveUpAppend: (why: GivenUp) => void = NOTHING;
  /** Those who asked for the room and wait for the outcome. */
  #claimers: readonly ((outcome: ClaimOutcome) => void)[] = NO_ITEMS;
  /** The owner that is about to hand the room over waits for it to be heard here. */
  #tellExpecting: (isExpecting: boolean) => void = NOTHING;
  #expected: Promise<boolean> | undefined;
  /** Told where the log stands still for another to claim the room, or that it does not; while it is handed over. */
  #tellReady: (end: LogEnd | undefined) => void = NOTHING;

  constructor(key: RoomKey, ownership: Ownership, ports: HostedRoomPorts, deps: HostedRoomDeps) {
    this.key = key;
    this.#ownership = ownership;
    this.#ports = ports;
    this.#deps = deps;
  }

  get isExpecting(): boolean {
    return this.#ownership.isExpecting;
  }

  get isOwned(): boolean {
    return this.#ownership.kind === "owning";
  }

  get pace(): Pace {
    return this.#ownership.pace;
  }

  /** Begins the claim, of an epoch above that. `from`: the earlier owner, which has not let the room go. */
  claim(above: Epoch | undefined, from: ServerId | undefined): Promise<ClaimOutcome> {
    this.#from = from;
    const outcome = this.#untilClaimed();
    this.receive({ kind: "doubted", above });
    this.#carryOut({ kind: "subscribe" });
    return outcome;
  }

  /** Resolves once the room's edits are heard, in order to be handed it; false if they cannot be. */
  expect(): Promise<boolean> {
    return (this.#expected ??= new Promise((resolve) => {
      this.#tellExpecting = resolve;
      this.#carryOut({ kind: "subscribe" });
    }));
  }

  /** Claims the room that was expected. `end`: as its owner told it; `from`: it did not, and has not let the room go. */
  claimExpected(end: LogEnd | undefined, from: ServerId | undefined): Promise<ClaimOutcome> {
    this.#from = from;
    const outcome = this.#untilClaimed();
    this.receive(end === undefined ? { kind: "claimed" } : { kind: "end-told", end });
    return outcome;
  }

  /** Somebody asks for a room that is here: of a claim under way the outcome; whether this server still owns one that it takes for its own, the log knows. */
  confirm(above: Epoch | undefined): Promise<ClaimOutcome> {
    const outcome = this.#untilClaimed();
    this.receive(this.#subscription?.isOpen() === false ? { kind: "unsubscribed" } : { kind: "doubted", above });
    return outcome;
  }

  /** Resolves once the log stands still, to where; undefined if the room is not this server's. */
  beginHandOver(): Promise<LogEnd | undefined> {
    return new Promise((resolve) => {
      this.#tellReady = resolve;
      this.receive({ kind: "hand-over" });
    });
  }

  endHandOver(outcome: "handed-over" | "keep"): void {
    this.#tellReady(undefined);
    this.receive({ kind: outcome });
  }

  giveUpAppend(why: GivenUp): void {
    this.#giveUpAppend(why);
  }

  receiveMessage(message: ToOwner, bytes: number): void {
    this.receive({ kind: "message", message, bytes });
  }

  /** What comes before the room is owned is said again to whoever owns it then. */
  receivePresence(message: PresenceToOwner): void {
    if (this.#ownership.kind !== "ended") this.#ports.presence.receive(this.key, message);
  }

  receive(input: OwnershipInput): void {
    for (const effect of this.#ownership.receive(input, this.#deps.clock.now())) this.#carryOut(effect);
    const { pace } = this.#ownership;
    if (pace !== "never") this.#deps.receivePace(this, pace);
  }

  /** What the claim under way comes to, or the doubt about the ownership. */
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
      case "look-behind":
      case "read-checkpoint":
      case "load":
        return this.#await(askStores(this.key, effect, this.#ports, (read) => this.receive(read)));
      case "fenced-others":
        this.#reportClaim(effect.epoch);
        this.#announce(effect.epoch);
        this.#ports.presence.begin(this.key, effect.epoch);
        return this.#tellClaimers({ kind: "owned", epoch: effect.epoch });
      case "confirmed":
        if (this.#claimers.length > 0) this.#announce(effect.epoch); // Whoever asks did not find it: the bucket may not have taken the entry.
        return this.#tellClaimers({ kind: "owned", epoch: effect.epoch });
      case "unconfirmed":
        return this.#tellClaimers({ kind: "lost", wasOwner: false, reason: effect.reason });
      case "log-hole":
        metrics.holes.inc();
        return log.error(
          { room: this.key, ...effect.hole },
          "the log lacks edits that no checkpoint covers: restore it from a backup if there is one",
        );
      case "ready-to-hand-over":
        return this.#tellReady(effect.end);
      case "expecting":
        return this.#tellExpecting(true);
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
    this.#giveUpAppend = this.#ports.log.append(this.key, record, (outcome) => {
      this.#giveUpAppend = NOTHING;
      if (outcome.kind === "appended" && edits > 0) {
        this.#deps.metrics.editsCommitted.inc(edits);
        this.#deps.loads.count(this.key, edits, record.bytes.byteLength);
      }
      this.receive({ kind: "append-settled", outcome });
    });
  }

  /** What the world answers is the room's next input; that it fails is one too. */
  #await(outcome: Promise<OwnershipInput>): void {
    outcome.then(
      (input) => this.receive(input),
      (cause: unknown) => {
        this.#deps.log.warn({ room: this.key, state: this.#ownership.kind, cause }, "NATS did not answer for a room");
        this.receive({ kind: "failed", reason: "NATS did not answer" });
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
          "the rooms bucket did not take the owner's entry; gateways find the owner by asking",
        ),
      );
  }

  #removeEntry(why: "released" | "deleted"): void {
    const { entries } = this.#ports;
    const removed = why === "released" ? entries.withdraw(this.key) : entries.forget(this.key);
    this.#deps.receiveRemoval(
      removed.catch((cause: unknown) =>
        this.#deps.log.warn({ room: this.key, cause }, "the rooms bucket kept the entry of a room that nobody owns; a claim corrects it"),
      ),
    );
  }

  #tellClaimers(outcome: ClaimOutcome): void {
    const claimers = this.#claimers;
    this.#claimers = NO_ITEMS;
    for (const tell of claimers) tell(outcome);
  }

  #end({ why, reason, wasOwner, wasClaim }: OwnershipEffect & { kind: "ended" }): void {
    const { log, metrics } = this.#deps;
    this.#giveUpAppend(why);
    this.#deps.receiveEnd(this, wasClaim && why !== "deleted");
    this.#ports.presence.end(this.key);
    metrics.ends.inc({ why });
    this.#ports.operations.report({ kind: "room_ended", room: this.key, why, reason });
    this.#subscription
      ?.close()
      .catch((cause: unknown) => log.debug({ room: this.key, cause }, "the line was lost while a room's subscription was closed"));
    if (why === "released" || why === "deleted") this.#removeEntry(why);
    this.#tellReady(undefined);
    this.#tellExpecting(false);
    this.#tellClaimers(why === "deleted" ? { kind: "deleted" } : { kind: "lost", wasOwner, reason });
  }

  #count(answer: Answer): void {
    const { metrics } = this.#deps;
    if (answer.kind === "acked") metrics.editsRepeated.inc();
    else if (answer.kind === "refused") metrics.editsRefused.inc({ reason: answer.reason });
    else if (answer.kind === "not-first") metrics.editsRefused.inc({ reason: answer.kind });
    else metrics.catchUps.inc({ source: answer.answer.kind === "resync" ? "resync" : "backlog" });
  }
}
