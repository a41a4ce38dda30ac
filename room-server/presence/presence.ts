/**
 * A room's presence while this server owns the room: takes what gateways say of their members, tells all of them what
 * has changed, at most every so often. Deterministic, apart from edits, and of no memory: it dies with the ownership,
 * and the next owner asks every gateway who is with it.
 *
 * NATS may lose any message. What a gateway says of its members has a version, and it says it again until it is heard;
 * what the room is told has a number, and whoever misses one asks for the whole. Rules PRS1 to PRS9.
 */

import { assertNever } from "../../shared/assert.ts";
import type { Member, PresenceAnswer, PresenceFromOwner, PresenceToOwner } from "../../shared/bus/presence-messages.ts";
import type { RoomAccount } from "../../shared/bus/room-account.ts";
import { Few } from "../../shared/few.ts";
import type { ClientId, Epoch, GatewayId, Millis } from "../../shared/ids.ts";
import { encodeInParts } from "../../shared/news-in-parts.ts";
import { SeldomMap, SeldomSet } from "../../shared/seldom.ts";
import type { RoomMode } from "../../shared/wire/frames.ts";
import { encodeNews } from "../../shared/wire/presence.ts";
import { type Budget, type BudgetLevel, budgetOf } from "../load/fair-share.ts";
import { MemberParts } from "./member-parts.ts";
import { decideMode, FLAT_FROM_THE_START, isSameRule, type ModeOptions, type ModeSince, standingOf } from "./mode.ts";
import { Roster, type RosterLimit, type RosterOptions } from "./presence-roster.ts";

export type PresenceInput =
  | PresenceToOwner
  /** It has fallen silent, and its members with it. */
  | { kind: "gateway-lost"; gateway: GatewayId }
  /** What gateways said for a while may have been lost, and some of them may have left the room since. */
  | { kind: "line-lost" }
  /** Time to look who of the gateways has said nothing for long. */
  | { kind: "look" }
  /** It is to tell less, or more again. */
  | { kind: "hold-back"; level: BudgetLevel }
  | { kind: "tick" };

export type PresenceEffect =
  | { kind: "broadcast"; message: PresenceFromOwner }
  | { kind: "answer"; gateway: GatewayId; answer: PresenceAnswer }
  | { kind: "mode-changed"; from: RoomMode; to: RoomMode; participants: number; cause: ModeCause; epoch: Epoch }
  /** A gateway has heard of a later owner. */
  | { kind: "deposed" }
  | { kind: "limit-reached"; limit: RosterLimit };

export type PresenceAccount = Omit<RoomAccount, "server">;

export type ModeCause = "grew" | "shrank" | "new-owner";

export type PresenceOptions = RosterOptions &
  ModeOptions & {
    /** The shortest time between two of the room's news. */
    readonly presenceTickMs: number;
    /** How long a new owner listens before it says who is there, so that nobody who is there seems to have gone. */
    readonly presenceGatherMs: number;
    /** A gateway that does not say again by then who is with it has nobody in the room any more. */
    readonly gatewaySilenceMsMax: number;
    /** One that has said nothing of the room for so long is asked: it may have left it when nobody here could hear that. */
    readonly presenceSilenceMsMax: number;
    readonly beaconMs: number;
    readonly beaconsWhenQuiet: number;
  };

/** A gateway as far as it was heard, last at `heardAt`. */
type Known = { readonly gateway: GatewayId; version: number; statesNumber: number; heardAt: Millis };

const gatewayOf = ({ gateway }: Known): GatewayId => gateway;

const NEVER = Number.POSITIVE_INFINITY;

export class Presence {
  readonly #epoch: Epoch;
  readonly #options: PresenceOptions;
  readonly #roster: Roster;
  readonly #gateways = new Few(gatewayOf);
  /** Undefined: of no gateway some but not all has come. */
  #parts: MemberParts | undefined;
  readonly #asking = new SeldomSet<GatewayId>();
  /** Gateways that are to say again who is with them, and until when. */
  readonly #unconfirmed = new SeldomMap<GatewayId, Millis>();
  #number = 0;
  #tellings = 0; // Each of one news, or of several when very much has changed.
  #budget: Budget = budgetOf(0);
  #mode: ModeSince = FLAT_FROM_THE_START;
  #standing = standingOf(FLAT_FROM_THE_START, 0, budgetOf(0));
  #newsFrom: Millis;
  #headAt: Millis;
  #headsLeft: number;
  readonly #counts = { statesReceived: 0, newsBytesTold: 0 };

  /** The first tick is due at once: it tells the epoch. */
  constructor(epoch: Epoch, options: PresenceOptions, now: Millis) {
    this.#epoch = epoch;
    this.#options = options;
    this.#roster = new Roster(options);
    this.#newsFrom = (now + options.presenceGatherMs) as Millis;
    this.#headAt = now;
    this.#headsLeft = options.beaconsWhenQuiet + 1;
  }

  get participants(): number {
    return this.#roster.size;
  }

  get bytes(): number {
    return this.#roster.bytes;
  }

  /** What it has cost so far: states taken, and messages told. */
  get cost(): number {
    return this.#counts.statesReceived + this.#number;
  }

  /** For whoever asks how the room is. */
  get account(): PresenceAccount {
    const gateways = Object.fromEntries([...this.#gateways.values()].map(({ gateway }) => [gateway, this.#roster.heldBy(gateway).length]));
    return {
      ...this.#standing,
      ...this.#counts,
      newsTold: this.#number,
      epoch: this.#epoch,
      participants: this.#roster.size,
      presenceBytes: this.#roster.bytes,
      gateways,
    };
  }

  /** When the next tick has something to do. Undefined: not before something comes in. */
  get dueAt(): Millis | undefined {
    let dueAt = this.#asking.size > 0 || this.#roster.hasNews ? this.#newsFrom : NEVER;
    if (this.#headsLeft > 0) dueAt = Math.min(dueAt, this.#headAt);
    if (this.#unconfirmed.size > 0) dueAt = Math.min(dueAt, ...this.#unconfirmed.values());
    if (this.#outgrowsMode) dueAt = Math.min(dueAt, this.#mode.since + this.#options.modeMsMin);
    return dueAt === NEVER ? undefined : (dueAt as Millis);
  }

  /** Whether a look would find something. */
  hasSilent(now: Millis): boolean {
    for (const known of this.#gateways.values()) if (this.#isSilent(known, now)) return true;
    return false;
  }

  receive(input: PresenceInput, now: Millis): PresenceEffect[] {
    const effects: PresenceEffect[] = [];
    switch (input.kind) {
      case "members":
        this.#receiveMembers(input, now, effects);
        break;
      case "states":
        this.#receiveStates(input, effects);
        break;
      case "sync":
        this.#asking.add(input.gateway);
        break;
      case "gateway-lost":
        this.#receiveGatewayLost(input.gateway);
        break;
      case "line-lost":
        for (const { gateway } of this.#gateways.values()) this.#askAgain(gateway, now, effects);
        break;
      case "look":
        for (const known of this.#gateways.values()) if (this.#isSilent(known, now)) this.#askAgain(known.gateway, now, effects);
        break;
      case "hold-back":
        this.#budget = budgetOf(input.level);
        this.#decideStanding(now, effects);
        break;
      case "tick":
        this.#receiveTick(now, effects);
        break;
      default:
        assertNever(input);
    }
    return effects;
  }

  #receiveMembers(message: PresenceToOwner & { kind: "members" }, now: Millis, effects: PresenceEffect[]): void {
    const { epoch, version, whole } = message;
    if (epoch > this.#epoch) effects.push({ kind: "deposed" });
    const all = this.#whole(message);
    if (all === "incomplete") return;
    const heard = this.#gateways.get(message.gateway);
    const known = heard ?? { gateway: message.gateway, version: 0, statesNumber: 0, heardAt: now };
    const { gateway } = known; // Its members keep this one string, not their message's.
    const follows = all !== "broken" && (whole ? version >= known.version : version === known.version + 1 && heard !== undefined);
    if (all === "broken" || (!follows && version > known.version)) {
      effects.push({ kind: "answer", gateway, answer: { kind: "missed", epoch: this.#epoch } });
      return;
    }
    if (version === known.version || follows) known.heardAt = now;
    if (follows) {
      this.#unconfirmed.delete(gateway);
      if (heard === undefined) this.#gateways.set(known);
      known.version = version;
      for (const client of whole ? this.#leftOut(gateway, all.entered) : all.exited) this.#roster.exit(gateway, client);
      for (const member of all.entered) this.#noteLimit(this.#roster.enter(gateway, member), effects);
    }
    effects.push({ kind: "answer", gateway, answer: { kind: "heard", epoch: this.#epoch, version: known.version, number: this.#number } });
  }

  #whole(message: PresenceToOwner & { kind: "members" }): ReturnType<MemberParts["receive"]> {
    if (message.partOf === undefined && this.#parts === undefined) return message;
    this.#parts ??= new MemberParts();
    const all = this.#parts.receive(message);
    if (this.#parts.isEmpty) this.#parts = undefined;
    return all;
  }

  /** Those that it had here, and names no more. */
  #leftOut(gateway: GatewayId, entered: readonly Member[]): ClientId[] {
    const here = new Set(entered.map(({ client }) => client));
    return this.#roster.heldBy(gateway).filter((client) => !here.has(client));
  }

  #receiveStates({ gateway, number, fresh, states }: PresenceToOwner & { kind: "states" }, effects: PresenceEffect[]): void {
    const known = this.#gateways.get(gateway);
    if (known === undefined || number <= known.statesNumber) return; // Late: what is missing of it is told again.
    known.statesNumber = number;
    this.#counts.statesReceived += states.length;
    for (const { client, fields } of states) this.#noteLimit(this.#roster.setFields(gateway, client, fields, fresh), effects);
  }

  /** One that has left the room meanwhile, unheard, does not answer. */
  #askAgain(gateway: GatewayId, now: Millis, effects: PresenceEffect[]): void {
    this.#unconfirmed.set(gateway, (now + this.#options.gatewaySilenceMsMax) as Millis);
    effects.push({ kind: "answer", gateway, answer: { kind: "missed", epoch: this.#epoch } });
  }

  /** Whoever has members here says so every few seconds; who has none need not. */
  #isSilent({ gateway, heardAt }: Known, now: Millis): boolean {
    return now - heardAt >= this.#options.presenceSilenceMsMax && !this.#unconfirmed.has(gateway) && this.#roster.isAnyHeldBy(gateway);
  }

  #receiveGatewayLost(gateway: GatewayId): void {
    this.#unconfirmed.delete(gateway);
    this.#parts?.forget(gateway);
    this.#asking.delete(gateway);
    if (!this.#gateways.delete(gateway)) return;
    for (const client of this.#roster.heldBy(gateway)) this.#roster.exit(gateway, client);
  }

  #receiveTick(now: Millis, effects: PresenceEffect[]): void {
    for (const [gateway, until] of this.#unconfirmed) if (now >= until) this.#receiveGatewayLost(gateway);
    if (now >= this.#newsFrom) {
      if (this.#roster.hasNews) this.#tellNews(now, effects);
      this.#answerSyncs(effects);
    }
    if (this.#outgrowsMode) this.#decideStanding(now, effects);
    if (this.#headsLeft > 0 && now >= this.#headAt) this.#tellHead(now, effects);
  }

  #tellNews(now: Millis, effects: PresenceEffect[]): void {
    this.#tellings += 1;
    for (const news of encodeInParts(this.#roster.takeNews())) {
      this.#counts.newsBytesTold += news.byteLength;
      effects.push({ kind: "broadcast", message: { kind: "news", epoch: this.#epoch, number: (this.#number += 1), news } });
    }
    this.#newsFrom = (now + this.#options.presenceTickMs * this.#budget.tickFactor) as Millis;
    // News put off no head that is to come sooner: where they never pause, nobody would ever hear how the room stands.
    const latest = now + this.#options.beaconMs;
    this.#headAt = (this.#headsLeft > 0 ? Math.min(this.#headAt, latest) : latest) as Millis;
    this.#headsLeft = this.#options.beaconsWhenQuiet;
    this.#decideStanding(now, effects);
  }

  /** Its size asks for another mode, which it may have to wait for. */
  get #outgrowsMode(): boolean {
    return decideMode(this.#mode, this.#roster.size, NEVER as Millis, this.#options) !== this.#mode;
  }

  #decideStanding(now: Millis, effects: PresenceEffect[]): void {
    const participants = this.#roster.size;
    const from = this.#standing;
    this.#mode = decideMode(this.#mode, participants, now, this.#options);
    this.#standing = standingOf(this.#mode, participants, this.#budget);
    if (isSameRule(from, this.#standing)) return;
    const to = this.#mode.mode;
    if (to !== from.mode)
      effects.push({ kind: "mode-changed", from: from.mode, to, participants, cause: this.#causeOf(to), epoch: this.#epoch });
    this.#headAt = now;
    this.#headsLeft += 1;
  }

  #causeOf(mode: RoomMode): ModeCause {
    if (this.#tellings <= 1) return "new-owner";
    return mode === "hierarchical" ? "grew" : "shrank";
  }

  #tellHead(now: Millis, effects: PresenceEffect[]): void {
    effects.push({ kind: "broadcast", message: { kind: "head", epoch: this.#epoch, number: this.#number, standing: this.#standing } });
    this.#headsLeft -= 1;
    this.#headAt = (now + this.#options.beaconMs) as Millis;
  }

  /** Written once for all who ask in one turn, and not kept: who is in a quiet room is not to weigh twice. */
  #answerSyncs(effects: PresenceEffect[]): void {
    if (this.#asking.size === 0) return;
    const answer: PresenceAnswer = {
      kind: "whole",
      epoch: this.#epoch,
      number: this.#number,
      standing: this.#standing,
      news: encodeNews(this.#roster.whole()),
    };
    for (const gateway of this.#asking) effects.push({ kind: "answer", gateway, answer });
    this.#asking.clear();
  }

  #noteLimit(limit: RosterLimit | undefined, effects: PresenceEffect[]): void {
    if (limit !== undefined) effects.push({ kind: "limit-reached", limit });
  }
}
