/**
 * A room's presence while this server owns the room. Collects gateways' members and sends the changes to all gateways,
 * at a limited rate. Deterministic and independent of edits. Presence is not stored: it ends with the ownership, and
 * the next owner requests the members from every gateway. NATS may lose any message. A gateway's member list has a
 * version and is repeated until acknowledged. Deltas have numbers, and a gateway that misses one requests a snapshot.
 * Rules PRS1 to PRS9.
 */

import { assertNever } from "../../shared/assert.ts";
import type { RoomReport } from "../../shared/bus/fleet-messages.ts";
import type { PresenceMember, PresenceReply, PresenceFromOwner, PresenceToOwner } from "../../shared/bus/presence-messages.ts";
import { LazySet } from "../../shared/collections/lazy-map.ts";
import { SmallMap } from "../../shared/collections/small-map.ts";
import type { ClientId, Epoch, GatewayId, Millis } from "../../shared/ids.ts";
import { encodeSplitDelta } from "../../shared/presence/split-delta.ts";
import type { RoomMode } from "../../shared/wire/frames.ts";
import { encodeDelta } from "../../shared/wire/presence.ts";
import { type Budget, type BudgetLevel, budgetOf } from "../load/fair-share.ts";
import { AskedGateways, questionFor } from "./asked-gateways.ts";
import { decideMode, FLAT_FROM_THE_START, isSameRule, type ModeOptions, type ModeSince, presenceStatusOf } from "./mode.ts";
import type { DeltaMoments } from "./presence-ticks.ts";
import { Roster, type RosterLimit, type RosterOptions, MemberParts } from "./presence-roster.ts";

export type OwnerPresenceInput =
  | PresenceToOwner
  /** The gateway became silent, so its members are removed. */
  | { kind: "gateway-lost"; gateway: GatewayId }
  /** Messages of gateways may have been lost for some time, and some gateways may have left the room. */
  | { kind: "connection-lost" }
  /** Search for gateways that have been silent for a long time. */
  | { kind: "look" }
  /** Send less presence, or more again. */
  | { kind: "hold-back"; level: BudgetLevel }
  | { kind: "tick" };

export type OwnerPresenceEffect =
  | { kind: "broadcast"; to: readonly GatewayId[]; message: PresenceFromOwner }
  | { kind: "answer"; gateway: GatewayId; answer: PresenceReply }
  /** `peak`: the highest number of participants since the previous change, or since this owner has the room. */
  | { kind: "mode-changed"; from: RoomMode; to: RoomMode; participants: number; peak: number; cause: ModeCause; epoch: Epoch }
  /** A gateway knows a later owner. */
  | { kind: "deposed" }
  | { kind: "limit-reached"; limit: RosterLimit };

export type PresenceAccount = Omit<RoomReport, "server">;

type ModeCause = "grew" | "shrank" | "new-owner";

export type OwnerPresenceOptions = RosterOptions &
  ModeOptions & {
    /** Time for which a new owner receives members before it announces them, so that no present member seems to have left. */
    readonly presenceGatherMs: number;
    /** A gateway that does not repeat its members within this time has none in the room. */
    readonly gatewaySilenceMsMax: number;
    /** Silence after which a gateway is asked, because it may have left the room while this server could not receive. */
    readonly presenceSilenceMsMax: number;
    readonly beaconMs: number;
    readonly beaconsWhenQuiet: number;
  };

/** The state of a gateway, whose last message arrived at `lastReceivedAt`. `isFollowing`: it receives the room's deltas. */
type Known = { readonly gateway: GatewayId; version: number; statesNumber: number; lastReceivedAt: Millis; isFollowing: boolean };

const gatewayOf = ({ gateway }: Known): GatewayId => gateway;

const NEVER = Number.POSITIVE_INFINITY;

export class OwnerPresence {
  readonly #epoch: Epoch;
  readonly #options: OwnerPresenceOptions;
  readonly #roster: Roster;
  readonly #moments: DeltaMoments;
  readonly #gateways = new SmallMap(gatewayOf);
  /** Undefined: no gateway's list is incomplete. */
  #parts: MemberParts | undefined;
  readonly #asking = new LazySet<GatewayId>();
  /**
   * Gateways that became silent. They still receive the delta that removes their members, so that a gateway that was
   * only paused notices at once.
   */
  readonly #departed = new LazySet<GatewayId>();
  /** Gateways that must repeat their members. */
  readonly #unconfirmed = new AskedGateways();
  #number = 0;
  #announcements = 0; // Number of messages of one delta; more than one if it is very large.
  #budget: Budget = budgetOf(0);
  #mode: ModeSince = FLAT_FROM_THE_START;
  #peak = 0;
  #status = presenceStatusOf(FLAT_FROM_THE_START, 0, budgetOf(0));
  #deltaFrom: Millis;
  #headAt: Millis;
  #headsLeft: number;
  readonly #counts = { statesReceived: 0, deltaBytesPublished: 0 };

  /** The first tick is due at once, to announce the epoch. */
  constructor(epoch: Epoch, options: OwnerPresenceOptions, moments: DeltaMoments, now: Millis) {
    this.#epoch = epoch;
    this.#options = options;
    this.#roster = new Roster(options);
    this.#moments = moments;
    this.#deltaFrom = (now + options.presenceGatherMs) as Millis;
    this.#headAt = now;
    this.#headsLeft = options.beaconsWhenQuiet + 1;
  }

  get participants(): number {
    return this.#roster.size;
  }

  get bytes(): number {
    return this.#roster.bytes;
  }

  /** The cost so far: number of received states and sent messages. */
  get cost(): number {
    return this.#counts.statesReceived + this.#number;
  }

  /** Numbers about the room's presence, for operators. */
  get account(): PresenceAccount {
    const gateways = Object.fromEntries([...this.#gateways.values()].map(({ gateway }) => [gateway, this.#roster.heldBy(gateway).length]));
    return {
      ...this.#status,
      ...this.#counts,
      deltasPublished: this.#number,
      epoch: this.#epoch,
      participants: this.#roster.size,
      presenceBytes: this.#roster.bytes,
      gateways,
    };
  }

  /** Time at which the next tick has something to do. Undefined: not before the next input. */
  get dueAt(): Millis | undefined {
    let dueAt = this.#asking.size > 0 || this.#roster.hasDelta ? this.#deltaFrom : NEVER;
    if (this.#headsLeft > 0) dueAt = Math.min(dueAt, this.#headAt);
    dueAt = Math.min(dueAt, this.#unconfirmed.dueAt);
    if (this.#outgrowsMode) dueAt = Math.min(dueAt, this.#mode.since + this.#options.modeMsMin);
    return dueAt === NEVER ? undefined : (dueAt as Millis);
  }

  /** Whether a search would find a silent gateway. */
  hasSilent(now: Millis): boolean {
    for (const known of this.#gateways.values()) if (this.#isSilent(known, now)) return true;
    return false;
  }

  receivePresenceInput(input: OwnerPresenceInput, now: Millis): OwnerPresenceEffect[] {
    const effects: OwnerPresenceEffect[] = [];
    const hadDelta = this.#roster.hasDelta;
    switch (input.kind) {
      case "members":
        this.#receiveMembers(input, now, effects);
        break;
      case "states":
        this.#receiveStates(input, effects);
        break;
      case "sync":
        this.#follow(input.gateway, now);
        this.#asking.add(input.gateway);
        break;
      case "gateway-lost":
        this.#receiveGatewayLost(input.gateway);
        break;
      case "connection-lost":
        for (const { gateway } of this.#gateways.values()) this.#askAgain(gateway, now, effects);
        break;
      case "look":
        for (const known of this.#gateways.values()) if (this.#isSilent(known, now)) this.#askAgain(known.gateway, now, effects);
        break;
      case "hold-back":
        this.#budget = budgetOf(input.level);
        this.#decideStatus(now, effects);
        break;
      case "tick":
        this.#receiveTick(now, effects);
        break;
      default:
        assertNever(input);
    }
    if (!hadDelta && this.#roster.hasDelta && this.#deltaFrom < now) this.#deltaFrom = this.#moments.next(now);
    return effects;
  }

  #follow(gateway: GatewayId, now: Millis): void {
    const known = this.#gateways.get(gateway);
    if (known === undefined) this.#gateways.set({ gateway, version: 0, statesNumber: 0, lastReceivedAt: now, isFollowing: true });
    else known.isFollowing = true;
  }

  /** The gateways that receive the room's deltas. */
  get #followers(): GatewayId[] {
    const followers: GatewayId[] = [];
    for (const { gateway, isFollowing } of this.#gateways.values()) if (isFollowing) followers.push(gateway);
    return followers;
  }

  #receiveMembers(message: PresenceToOwner & { kind: "members" }, now: Millis, effects: OwnerPresenceEffect[]): void {
    const { epoch, version, snapshot } = message;
    if (epoch > this.#epoch) effects.push({ kind: "deposed" });
    const all = this.#snapshot(message);
    if (all === "incomplete") return;
    const existing = this.#gateways.get(message.gateway);
    const known = existing ?? { gateway: message.gateway, version: 0, statesNumber: 0, lastReceivedAt: now, isFollowing: true };
    const { gateway } = known; // All members of the gateway share this string. The string of each message must not be kept.
    const follows = all !== "broken" && (snapshot ? version >= known.version : version === known.version + 1 && existing !== undefined);
    if (all === "broken" || (!follows && (version > known.version || this.#unconfirmed.has(gateway))))
      return void effects.push(questionFor(gateway, this.#epoch));
    known.lastReceivedAt = now;
    if (follows) {
      this.#unconfirmed.forget(gateway);
      if (existing === undefined) this.#gateways.set(known);
      known.version = version;
      for (const client of snapshot ? this.#leftOut(gateway, all.entered) : all.exited) this.#roster.exit(gateway, client);
      for (const member of all.entered) this.#noteLimit(this.#roster.enter(gateway, member), effects);
      known.isFollowing = this.#roster.isAnyHeldBy(gateway);
    }
    effects.push({ kind: "answer", gateway, answer: { kind: "acked", epoch: this.#epoch, version: known.version, number: this.#number } });
  }

  #snapshot(message: PresenceToOwner & { kind: "members" }): ReturnType<MemberParts["receiveMembers"]> {
    if (message.partOf === undefined && this.#parts === undefined) return message;
    this.#parts ??= new MemberParts();
    const all = this.#parts.receiveMembers(message);
    if (this.#parts.isEmpty) this.#parts = undefined;
    return all;
  }

  /** Clients of the gateway that its new list no longer contains. */
  #leftOut(gateway: GatewayId, entered: readonly PresenceMember[]): ClientId[] {
    const here = new Set(entered.map(({ client }) => client));
    return this.#roster.heldBy(gateway).filter((client) => !here.has(client));
  }

  #receiveStates({ gateway, number, fresh, states }: PresenceToOwner & { kind: "states" }, effects: OwnerPresenceEffect[]): void {
    const known = this.#gateways.get(gateway);
    if (known === undefined || number <= known.statesNumber) return; // Late: missing states are repeated.
    known.statesNumber = number;
    this.#counts.statesReceived += states.length;
    for (const { client, fields } of states) this.#noteLimit(this.#roster.setFields(gateway, client, fields, fresh), effects);
  }

  /** A gateway that has left the room without a message does not answer. */
  #askAgain(gateway: GatewayId, now: Millis, effects: OwnerPresenceEffect[]): void {
    this.#unconfirmed.receiveQuestion(gateway, (now + this.#options.gatewaySilenceMsMax) as Millis, now);
    effects.push(questionFor(gateway, this.#epoch));
  }

  /** A gateway with members in the room repeats them every few seconds. A gateway without members need not. */
  #isSilent({ gateway, lastReceivedAt }: Known, now: Millis): boolean {
    return (
      now - lastReceivedAt >= this.#options.presenceSilenceMsMax && !this.#unconfirmed.has(gateway) && this.#roster.isAnyHeldBy(gateway)
    );
  }

  #receiveGatewayLost(gateway: GatewayId): void {
    this.#unconfirmed.forget(gateway);
    this.#parts?.forget(gateway);
    this.#asking.delete(gateway);
    if (!this.#gateways.delete(gateway)) return;
    if (this.#roster.isAnyHeldBy(gateway)) this.#departed.add(gateway);
    for (const client of this.#roster.heldBy(gateway)) this.#roster.exit(gateway, client);
  }

  #receiveTick(now: Millis, effects: OwnerPresenceEffect[]): void {
    const { lost, again } = this.#unconfirmed.takeDue(now);
    for (const gateway of lost) this.#receiveGatewayLost(gateway);
    for (const gateway of again) effects.push(questionFor(gateway, this.#epoch));
    if (now >= this.#deltaFrom) {
      if (this.#roster.hasDelta) this.#sendDelta(now, effects);
      this.#answerSyncs(effects);
    }
    if (this.#outgrowsMode) this.#decideStatus(now, effects);
    if (this.#headsLeft > 0 && now >= this.#headAt) this.#sendHead(now, effects);
  }

  #sendDelta(now: Millis, effects: OwnerPresenceEffect[]): void {
    this.#announcements += 1;
    const to = [...this.#followers, ...this.#departed];
    this.#departed.clear();
    for (const delta of encodeSplitDelta(this.#roster.takeDelta())) {
      this.#counts.deltaBytesPublished += delta.byteLength;
      effects.push({ kind: "broadcast", to, message: { kind: "delta", epoch: this.#epoch, number: (this.#number += 1), delta } });
    }
    this.#deltaFrom = this.#moments.after(now, this.#budget.tickFactor);
    // A delta does not delay an earlier head announcement: with constant deltas no gateway would ever receive the
    // status.
    const latest = now + this.#options.beaconMs;
    this.#headAt = (this.#headsLeft > 0 ? Math.min(this.#headAt, latest) : latest) as Millis;
    this.#headsLeft = this.#options.beaconsWhenQuiet;
    this.#decideStatus(now, effects);
  }

  /** The room's size requires another mode, which it may enter only after the minimum time. */
  get #outgrowsMode(): boolean {
    return decideMode(this.#mode, this.#roster.size, NEVER as Millis, this.#options) !== this.#mode;
  }

  #decideStatus(now: Millis, effects: OwnerPresenceEffect[]): void {
    const participants = this.#roster.size;
    const from = this.#status;
    this.#peak = Math.max(this.#peak, participants);
    this.#mode = decideMode(this.#mode, participants, now, this.#options);
    this.#status = presenceStatusOf(this.#mode, participants, this.#budget);
    if (isSameRule(from, this.#status)) return;
    const to = this.#mode.mode;
    if (to !== from.mode) {
      const { mode } = from;
      effects.push({ kind: "mode-changed", from: mode, to, participants, peak: this.#peak, cause: this.#causeOf(to), epoch: this.#epoch });
      this.#peak = participants;
    }
    this.#headAt = now;
    this.#headsLeft += 1;
  }

  #causeOf(mode: RoomMode): ModeCause {
    if (this.#announcements <= 1) return "new-owner";
    return mode === "hierarchical" ? "grew" : "shrank";
  }

  #sendHead(now: Millis, effects: OwnerPresenceEffect[]): void {
    effects.push({
      kind: "broadcast",
      to: this.#followers,
      message: { kind: "head", epoch: this.#epoch, number: this.#number, status: this.#status },
    });
    this.#headsLeft -= 1;
    this.#headAt = (now + this.#options.beaconMs) as Millis;
  }

  /** Encoded once for all requests of one turn and not kept, because a quiet room's members must not take twice the memory. */
  #answerSyncs(effects: OwnerPresenceEffect[]): void {
    if (this.#asking.size === 0) return;
    const answer: PresenceReply = {
      kind: "snapshot",
      epoch: this.#epoch,
      number: this.#number,
      status: this.#status,
      delta: encodeDelta(this.#roster.snapshot()),
    };
    for (const gateway of this.#asking) effects.push({ kind: "answer", gateway, answer });
    this.#asking.clear();
  }

  #noteLimit(limit: RosterLimit | undefined, effects: OwnerPresenceEffect[]): void {
    if (limit !== undefined) effects.push({ kind: "limit-reached", limit });
  }
}
