/**
 * One room on this gateway: its members, the edits delivered to them, and their edits that the log may not have yet.
 * Deterministic. Two promises hold. A member receives every edit after its position, in seq order and without a gap
 * (edit-feed.ts and member-catch-ups.ts). An accepted edit is sent again until the log has it or the owner refuses it,
 * even if the owner is lost (edit-relay.ts). entrance.ts handles joins and leaves. This file knows the owner, and
 * decides when to search for another.
 */

import { assertNever } from "../../shared/assert.ts";
import type { OwnerReply } from "../../shared/bus/envelope.ts";
import type { ClientId, Epoch, GatewayId, Millis, Position, Seq, ServerId } from "../../shared/ids.ts";
import type { CatchUpQuestions } from "./catch-up-questions.ts";
import { MemberEditFeed, type MemberEditFeedOptions } from "./edit-feed.ts";
import { EditRelay, Unacked, type UnackedOptions } from "./edit-relay.ts";
import { Entrance, type EntranceOptions } from "./entrance.ts";
import { MemberCatchUps } from "./member-catch-ups.ts";
import { MemberConnections } from "./members.ts";
import { OwnerSearch, type SearchCause, type SearchStep } from "./owner-search.ts";
import type { ConnectionId } from "../ports.ts";
import type { FollowedRoomEffect, FollowedRoomInput, FollowedRoomParts } from "./room-messages.ts";
import { epochOfMessage, type LiveOwnerMessage, onceDeleted, ownerOf } from "./room-messages.ts";

/** Shared by all rooms. */
export type FollowedRoomOptions = EntranceOptions &
  MemberEditFeedOptions &
  UnackedOptions & {
    readonly gateway: GatewayId;
    readonly ownerSilenceMsMax: number;
  };

/** An owner with a slow log announces this every second. After this number of silent intervals its log no longer counts as slow. */
const SLOW_OWNER_SILENCES = 2.5;
/** A search that lasts for this number of intervals found no owner that could announce that edits wait, so the gateway does. */
const SEARCH_SILENCES = 4;
/** An owner without a known name may be the lost server if it has been silent for this part of the interval. */
const UNKNOWN_OWNER_SILENCES = 0.25;

export class FollowedRoom {
  readonly #options: FollowedRoomOptions;
  readonly #members = new MemberConnections();
  readonly #unacked: Unacked;
  readonly #questions: CatchUpQuestions;
  readonly #entrance: Entrance;
  readonly #feed: MemberEditFeed;
  readonly #catchUps: MemberCatchUps;
  readonly #relay: EditRelay;
  readonly #search = new OwnerSearch();
  /** Edits are sent again once the room has caught up. Else an owner that forgot their writers would order some a second time. */
  #isResendDue = false;
  #attached = false;
  #isDeleted = false; // Permanently: later inputs are rejected.
  #ownerAliveAt = 0;
  #usedAt: Millis;

  /** `isGated`: the application is asked for the room's first content. */
  constructor(options: FollowedRoomOptions, { channel, budget, questions, isGated = false }: FollowedRoomParts, now: Millis) {
    this.#options = options;
    this.#usedAt = now;
    this.#unacked = new Unacked(options, budget);
    this.#questions = questions;
    this.#entrance = new Entrance(options, channel, this.#members, this.#unacked, this.#questions);
    this.#feed = new MemberEditFeed(options, channel, this.#entrance, this.#members, this.#unacked, this.#questions);
    this.#catchUps = new MemberCatchUps(this.#feed, this.#entrance, this.#members, this.#questions, isGated);
    this.#relay = new EditRelay(options.gateway, channel, this.#members, this.#unacked);
  }

  get position(): Position | undefined {
    return this.#isDeleted ? undefined : this.#feed.position;
  }

  /** Epoch of the last known owner; 0: no owner is known. */
  get epoch(): Epoch {
    return this.#entrance.epoch;
  }

  /** Time since which the room has had no members and no unacknowledged edits. Undefined: in use. */
  get idleSince(): Millis | undefined {
    return this.#members.size === 0 && this.#unacked.size === 0 ? this.#usedAt : undefined;
  }

  get members(): number {
    return this.#members.size;
  }

  get unackedBytes(): number {
    return this.#unacked.payloadBytes;
  }

  has(connection: ConnectionId): boolean {
    return this.#members.get(connection) !== undefined;
  }

  /** A client has one connection, and perhaps former ones that have not timed out yet. */
  connectionCountOf(client: ClientId): number {
    return this.#members.of(client).length;
  }

  /** `fast` while the room waits for something, `slow` while it only has something to expire. */
  get tickRate(): "fast" | "slow" | "none" {
    if (this.#isDeleted) return "none";
    if (this.#unacked.size > 0 || this.#questions.open > 0 || this.#search.active || this.#entrance.hasWaiting || this.#feed.awaitsEdits)
      return "fast";
    return this.#feed.recent.empty ? "none" : "slow";
  }

  receiveInput(input: FollowedRoomInput, now: Millis): FollowedRoomEffect[] {
    if (this.#isDeleted) return onceDeleted(input);
    const effects: FollowedRoomEffect[] = [];
    switch (input.kind) {
      case "join":
        this.#catchUps.receiveJoin(input, now, effects);
        break;
      case "leave":
        this.#entrance.receiveLeave(input.connection, now, effects);
        this.#usedAt = now;
        break;
      case "edit":
        this.#relay.receiveEdit(input.connection, input.edit, now, effects);
        break;
      case "turn-ended":
        if (!this.#isResendDue) this.#relay.endTurn(effects); // Otherwise the edits follow the waiting edits.
        break;
      case "resubmit":
        effects.push({ kind: "send-to-owner", message: { kind: "resubmit", gateway: this.#options.gateway, edit: input.edit } });
        break;
      case "replay":
        this.#catchUps.receiveReplay(input.connection, input.after, input.through, now, effects);
        break;
      case "read":
        this.#catchUps.receiveRead(input.connection, now, effects);
        break;
      case "from-owner":
        if (input.message.kind === "deleted") return this.#receiveDeleted(now); // A deletion counts in every epoch.
        this.#receiveFromOwner(input.message, now, effects);
        break;
      case "answer":
        this.#receiveAnswer(input.answer, now, effects);
        break;
      case "no-responders":
        this.#beginSearch({ kind: "no-responders" }, now, effects);
        break;
      case "not-opened":
        this.#entrance.reject("tenant-rooms", 0, now, effects);
        this.#relay.abandon(); // Otherwise the edits would be overdue, and the search for an owner would open the room.
        break;
      case "search": {
        if (input.outcome.kind === "claimed" && input.outcome.reply?.kind === "deleted") return this.#receiveDeleted(now);
        const { found, steps } = this.#search.receiveOutcome(input.outcome, now);
        pushSteps(steps, effects);
        if (found) this.#entrance.receiveSaving("saved", effects);
        if (found) this.#askAndSendAgain(now, effects);
        break;
      }
      case "server-lost":
        this.#receiveServerLost(input.server, now, effects);
        break;
      case "content":
        this.#catchUps.receiveContent(input.outcome, now, effects);
        break;
      case "attached":
        this.#attached = true;
        this.#search.abandon();
        this.#askAndSendAgain(now, effects);
        this.#entrance.receiveSaving("saved", effects); // The owner may have recovered meanwhile. An owner that is still slow announces it again.
        this.#feed.catchUp(now, effects); // Messages sent while NATS was out of reach are lost.
        break;
      case "detached":
        this.#attached = false;
        break;
      case "tick":
        this.#receiveTick(now, effects);
        break;
      default:
        assertNever(input);
    }
    this.#catchUps.recallKeptOut(now, effects);
    this.#sendAgainIfCaughtUp(now, effects);
    // The messages would have no recipient. All open messages are sent again when there is an owner.
    return this.#ownerIsThere ? effects : effects.filter(({ kind }) => kind !== "send-to-owner");
  }

  /** Returns the room's share of the gateway's budget. */
  close(): void {
    this.#unacked.clear();
  }

  /** All members leave, and the gateway keeps nothing for them. */
  #receiveDeleted(now: Millis): FollowedRoomEffect[] {
    const effects: FollowedRoomEffect[] = [];
    const connections = this.#members.all().map(({ connection }) => connection);
    for (const connection of connections) this.#entrance.receiveLeave(connection, now, effects);
    this.#isDeleted = true;
    this.#usedAt = now;
    this.#search.abandon();
    this.#unacked.clear();
    return [
      ...effects,
      ...connections.map((connection): FollowedRoomEffect => ({ kind: "expel", connection })),
      { kind: "refuse-writes", reason: "deleted" },
    ];
  }

  get #ownerIsThere(): boolean {
    return this.#attached && !this.#search.active;
  }

  #receiveFromOwner(message: LiveOwnerMessage, now: Millis, effects: FollowedRoomEffect[]): void {
    const epoch = epochOfMessage(message);
    if (epoch < this.#entrance.epoch) return this.#receiveFormerOwner(now, effects);
    this.#receiveSignOfLife(now);
    if (epoch > this.#entrance.epoch) {
      const isNext = message.kind === "epoch" && message.before === this.#entrance.epoch;
      this.#receiveNewEpoch(epoch, isNext ? message.head : undefined, now, effects);
      this.#receiveNewOwner(ownerOf(message), now, effects);
    }
    this.#receiveCurrentMessage(message, epoch, now, effects);
    this.#feed.settleDoubt(now, effects); // The message may have settled the doubt.
  }

  #receiveCurrentMessage(message: LiveOwnerMessage, epoch: Epoch, now: Millis, effects: FollowedRoomEffect[]): void {
    switch (message.kind) {
      case "committed":
        return this.#feed.receiveBatch(message.batch, now, effects);
      case "epoch":
      case "beacon":
        return this.#feed.receiveHead({ epoch, seq: message.head }, now, effects);
      case "tentative":
        return this.#feed.receiveTentative(message.edit, effects);
      case "saving":
        return this.#entrance.receiveSaving(message.state, effects);
      default:
        assertNever(message);
    }
  }

  #receiveAnswer(answer: OwnerReply, now: Millis, effects: FollowedRoomEffect[]): void {
    if (answer.epoch < this.#entrance.epoch) return this.#receiveFormerOwner(now, effects);
    this.#receiveSignOfLife(now);
    const isNew = answer.epoch > this.#entrance.epoch;
    if (isNew) this.#receiveNewEpoch(answer.epoch, undefined, now, effects);
    switch (answer.kind) {
      case "catch-up":
        this.#catchUps.receiveCatchUp(answer, now, effects);
        break;
      case "acked":
        this.#relay.receiveAck(answer, this.#feed.position, now, effects);
        this.#feed.receiveStored(answer.seq, now);
        break;
      case "refused":
        this.#relay.receiveRefusal(answer, now, effects);
        break;
      case "not-first":
      case "key-reused":
        this.#relay.receiveWriteRefusal(answer, effects);
        break;
      default:
        assertNever(answer);
    }
    if (isNew) this.#receiveNewOwner(undefined, now, effects); // A question that this message answered is not repeated.
    this.#feed.settleDoubt(now, effects);
  }

  /** `begin`: the seq after which the epoch begins, if it directly follows the last known one. Undefined: not known. */
  #receiveNewEpoch(epoch: Epoch, begin: Seq | undefined, now: Millis, effects: FollowedRoomEffect[]): void {
    this.#feed.receiveNewEpoch(epoch, begin, effects);
    this.#catchUps.receiveNewEpoch(now, effects);
  }

  /**
   * A message of a former owner is ignored: if it is still valid, the current owner sends it again. If the current
   * owner is silent, it may be lost, and its epoch may be missing in the log. In that case a search informs the next
   * server which epochs no longer count at this gateway.
   */
  #receiveFormerOwner(now: Millis, effects: FollowedRoomEffect[]): void {
    if (now - this.#ownerAliveAt >= this.#options.ownerSilenceMsMax) this.#beginSearch({ kind: "silent" }, now, effects);
  }

  /**
   * A new owner does not know the uncommitted edits that the former owner received. If its epoch begins at the room's
   * position, the room has all edits of the owner's log.
   */
  #receiveNewOwner(owner: ServerId | undefined, now: Millis, effects: FollowedRoomEffect[]): void {
    effects.push({ kind: "owner-known", owner, epoch: this.#entrance.epoch });
    this.#search.receiveNewOwner(owner);
    const isCaughtUp = this.#feed.position?.epoch === this.#entrance.epoch;
    if (isCaughtUp) this.#questions.forgetOrder();
    this.#askAndSendAgain(now, effects, isCaughtUp);
  }

  #askAndSendAgain(now: Millis, effects: FollowedRoomEffect[], isCaughtUp = false): void {
    for (const message of this.#questions.askAllAgain(now)) effects.push({ kind: "send-to-owner", message });
    this.#isResendDue = true;
    if (!isCaughtUp && this.#unacked.size > 0) this.#feed.catchUp(now, effects);
  }

  #sendAgainIfCaughtUp(now: Millis, effects: FollowedRoomEffect[]): void {
    if (!this.#isResendDue || !this.#ownerIsThere || this.#feed.isCatchingUp) return;
    this.#isResendDue = false;
    this.#relay.sendAllAgain(now, effects);
  }

  #receiveSignOfLife(now: Millis): void {
    this.#ownerAliveAt = now;
    this.#search.receiveSignOfLife();
  }

  /** Begins a search only if an answer is open. Otherwise the next question, or placement, shows that the owner is lost. */
  #receiveServerLost(server: ServerId, now: Millis, effects: FollowedRoomEffect[]): void {
    if (this.#unacked.size === 0 && this.#questions.open === 0) return;
    const { owner } = this.#search;
    const mayBeOwner = owner === undefined && now - this.#ownerAliveAt >= this.#options.ownerSilenceMsMax * UNKNOWN_OWNER_SILENCES;
    if (owner === server || mayBeOwner) this.#beginSearch({ kind: "lost", server }, now, effects);
  }

  #beginSearch(cause: SearchCause, now: Millis, effects: FollowedRoomEffect[]): void {
    if (!this.#ownerIsThere) return;
    effects.push({ kind: "search-begun", cause: cause.kind });
    pushSteps(this.#search.begin(cause, now), effects);
  }

  #receiveTick(now: Millis, effects: FollowedRoomEffect[]): void {
    this.#unacked.expire(now);
    this.#entrance.receiveTick(this.#catchUps.missing, now, effects);
    this.#feed.receiveTick(now, effects);
    if (!this.#attached) return;
    pushSteps(this.#search.receiveTick(now), effects);
    const silenceMsMax = this.#options.ownerSilenceMsMax;
    const awaitsOwner = this.#unacked.size > 0 && this.#search.hasLasted(SEARCH_SILENCES * silenceMsMax, now);
    if (awaitsOwner) this.#entrance.receiveSaving("saving", effects);
    if (this.#search.active) return;
    for (const message of this.#questions.receiveTick(silenceMsMax, now)) effects.push({ kind: "send-to-owner", message });
    const overdue = this.#isResendDue ? undefined : this.#unacked.takeOverdue(silenceMsMax, now);
    const unanswered = this.#questions.overdue(silenceMsMax, now);
    if ((overdue?.edits.length ?? 0) === 0 && unanswered === "nothing") return;
    // An owner that was alive a moment ago may have missed a message, or reads its log for an answer. The gateway
    // searches for another owner if this one stays silent or keeps missing messages. It does not search while the owner
    // announces that its log is slow, because messages to an owner stop during a search.
    const silentMs = now - this.#ownerAliveAt;
    const isWaiting = this.#entrance.isSlow && silentMs < SLOW_OWNER_SILENCES * silenceMsMax;
    const isLost = !isWaiting && (silentMs >= silenceMsMax || overdue?.fruitless === true);
    if (isLost || unanswered === "fruitless") return this.#beginSearch({ kind: "silent" }, now, effects);
    for (const message of this.#questions.askOverdueAgain(silenceMsMax, now)) effects.push({ kind: "send-to-owner", message });
    this.#relay.sendAgain(overdue?.edits ?? [], effects);
  }
}

function pushSteps(steps: readonly SearchStep[], effects: FollowedRoomEffect[]): void {
  for (const step of steps) effects.push({ kind: "search", step });
}
