/**
 * One room on this gateway: who is in it, what they have been given, what they have sent that the log may not
 * have yet. Takes what happened, answers with what should happen next. Deterministic.
 *
 * Two promises: a member sees every edit in seq order without a hole from where it joined (edit-feed.ts), and
 * an edit taken from a member is sent on until it is in the log or refused, whatever becomes of the room's
 * owner (edit-relay.ts). Members come and go at entrance.ts. This file knows the owner, and when to look for another.
 */

import { assertNever } from "../../shared/assert.ts";
import type { Answer } from "../../shared/bus/envelope.ts";
import type { ClientId, Epoch, GatewayId, Millis, Position, ServerId } from "../../shared/ids.ts";
import type { Channel } from "../../shared/wire/frames.ts";
import { CatchUps } from "./catch-ups.ts";
import { EditFeed, type FeedOptions } from "./edit-feed.ts";
import { EditRelay } from "./edit-relay.ts";
import { Entrance, type EntranceOptions } from "./entrance.ts";
import { epochOfHeard, type FromLivingRoom, ownerOf } from "./from-owner.ts";
import { Members } from "./members.ts";
import { OwnerSearch, type SearchCause, type SearchOutcome, type SearchStep } from "./owner-search.ts";
import type { ConnectionId } from "../ports.ts";
import type { RoomEffect, RoomInput } from "./room-messages.ts";
import { Unacked, type UnackedBudget, type UnackedOptions } from "./unacked.ts";

/** One for all rooms. */
export type RoomOptions = EntranceOptions &
  FeedOptions &
  UnackedOptions & {
    readonly gateway: GatewayId;
    readonly ownerSilenceMsMax: number;
  };

/** An owner whose log is slow says so every second: so many silences of a second tell that it no longer does. */
const SLOW_OWNER_SILENCES = 2.5;
/** An owner not known by name that was silent for so many silences may be the server that was lost. */
const UNKNOWN_OWNER_SILENCES = 0.25;

export class Room {
  readonly #options: RoomOptions;
  readonly #members = new Members();
  readonly #unacked: Unacked;
  readonly #catchUps: CatchUps;
  readonly #entrance: Entrance;
  readonly #feed: EditFeed;
  readonly #relay: EditRelay;
  readonly #search = new OwnerSearch();
  #attached = false;
  /** For good: what comes from now on is turned away. */
  #isDeleted = false;
  #ownerHeardAt = 0;
  #usedAt: Millis;

  constructor(options: RoomOptions, channel: Channel, budget: UnackedBudget, now: Millis) {
    const { gateway } = options;
    this.#options = options;
    this.#usedAt = now;
    this.#unacked = new Unacked(options, budget);
    this.#catchUps = new CatchUps(gateway);
    this.#entrance = new Entrance(options, channel, this.#members, this.#unacked, this.#catchUps);
    this.#feed = new EditFeed(options, channel, this.#entrance, this.#members, this.#unacked, this.#catchUps);
    this.#relay = new EditRelay(gateway, channel, this.#members, this.#unacked);
  }

  get position(): Position | undefined {
    return this.#isDeleted ? undefined : this.#feed.position;
  }

  /** Of the last owner heard. 0: none was. */
  get epoch(): Epoch {
    return this.#entrance.epoch;
  }

  /** Nobody is here and nothing is owed to anybody, since then. Undefined: in use. */
  get idleSince(): Millis | undefined {
    return this.#members.size === 0 && this.#unacked.size === 0 ? this.#usedAt : undefined;
  }

  get members(): number {
    return this.#members.size;
  }

  has(connection: ConnectionId): boolean {
    return this.#members.get(connection) !== undefined;
  }

  /** Over how many connections the client has come: one, but for lines of its that were lost and are not given up yet. */
  linesOf(client: ClientId): number {
    return this.#members.of(client).length;
  }

  /** When it wants its next tick: soon, while it waits for somebody; at leisure, where it only has something to forget. */
  get pace(): "soon" | "at-leisure" | "never" {
    if (this.#isDeleted) return "never";
    if (this.#unacked.size > 0 || this.#catchUps.open > 0 || this.#search.active || this.#entrance.anybodyWaits || this.#feed.restless)
      return "soon";
    return this.#feed.lingers ? "at-leisure" : "never";
  }

  receive(input: RoomInput, now: Millis): RoomEffect[] {
    if (this.#isDeleted) return onceDeleted(input);
    const effects: RoomEffect[] = [];
    switch (input.kind) {
      case "join":
        this.#feed.join(input, now, effects);
        break;
      case "leave":
        this.#entrance.leave(input.connection, now, effects);
        this.#usedAt = now;
        break;
      case "edit":
        this.#relay.receiveEdit(input.connection, input.edit, now, effects);
        break;
      case "write":
        this.#relay.receiveWrite(input.edit, now, effects);
        break;
      case "turn-ended":
        this.#relay.endTurn(effects);
        break;
      case "resubmit":
        effects.push({ kind: "tell", message: { kind: "resubmit", gateway: this.#options.gateway, edit: input.edit } });
        break;
      case "replay":
        this.#feed.replay(input.connection, input.after, input.through, now, effects);
        break;
      case "from-owner":
        if (input.message.kind === "deleted") return this.#receiveDeleted(now); // Whatever its owner believes.
        this.#receiveFromOwner(input.message, now, effects);
        break;
      case "answer":
        this.#receiveAnswer(input.answer, now, effects);
        break;
      case "no-responders":
        this.#beginSearch({ kind: "unheard" }, now, effects);
        break;
      case "not-opened":
        this.#entrance.turnAway("tenant-rooms", 0, now, effects);
        this.#relay.giveUp(); // Else it would be overdue, an owner looked for, and the room opened.
        break;
      case "search": {
        if (isDeletion(input.outcome)) return this.#receiveDeleted(now);
        const { found, steps } = this.#search.receive(input.outcome, now);
        pushSteps(steps, effects);
        if (found) this.#askAndSendAgain(now, effects);
        break;
      }
      case "server-lost":
        this.#receiveServerLost(input.server, now, effects);
        break;
      case "attached":
        this.#attached = true;
        this.#search.abandon();
        this.#askAndSendAgain(now, effects);
        this.#entrance.receiveSaving("saved", effects); // That it does may have been said meanwhile: an owner that is slow still says so again.
        this.#feed.attached(now, effects);
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
    // Nobody would hear it. Once the owner is there, everything open is asked and sent again.
    return this.#ownerIsThere ? effects : effects.filter(({ kind }) => kind !== "tell");
  }

  /** Gives its share of the gateway's budget back. */
  close(): void {
    this.#unacked.clear();
  }

  /** Everybody goes, and nothing is owed to anybody. */
  #receiveDeleted(now: Millis): RoomEffect[] {
    const effects: RoomEffect[] = [];
    const connections = this.#members.all().map(({ connection }) => connection);
    for (const connection of connections) this.#entrance.leave(connection, now, effects);
    this.#isDeleted = true;
    this.#usedAt = now;
    this.#search.abandon();
    this.#unacked.clear();
    return [
      ...effects,
      ...connections.map((connection): RoomEffect => ({ kind: "expel", connection })),
      { kind: "refuse-writes", reason: "deleted" },
    ];
  }

  get #ownerIsThere(): boolean {
    return this.#attached && !this.#search.active;
  }

  #receiveFromOwner(message: FromLivingRoom, now: Millis, effects: RoomEffect[]): void {
    const epoch = epochOfHeard(message);
    if (epoch < this.#entrance.epoch) return this.#receiveFromBefore(now, effects);
    this.#ownerHeard(now);
    if (epoch > this.#entrance.epoch) {
      const isNext = message.kind === "epoch" && message.before === this.#entrance.epoch;
      this.#feed.receiveNewEpoch(epoch, isNext ? message.head : undefined, effects);
      this.#receiveNewOwner(ownerOf(message), now, effects);
    }
    this.#receiveSaid(message, epoch, now, effects);
    this.#feed.settleDoubt(now, effects); // Unless that has settled it.
  }

  #receiveSaid(message: FromLivingRoom, epoch: Epoch, now: Millis, effects: RoomEffect[]): void {
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

  #receiveAnswer(answer: Answer, now: Millis, effects: RoomEffect[]): void {
    if (answer.epoch < this.#entrance.epoch) return this.#receiveFromBefore(now, effects);
    this.#ownerHeard(now);
    const isNew = answer.epoch > this.#entrance.epoch;
    if (isNew) this.#feed.receiveNewEpoch(answer.epoch, undefined, effects);
    switch (answer.kind) {
      case "catch-up":
        this.#feed.receiveCatchUp(answer, now, effects);
        break;
      case "acked":
        this.#relay.receiveAcked(answer, this.#feed.position, now, effects);
        break;
      case "refused":
        this.#relay.receiveRefused(answer, now, effects);
        break;
      case "not-first":
        this.#relay.receiveNotFirst(answer, effects);
        break;
      default:
        assertNever(answer);
    }
    if (isNew) this.#receiveNewOwner(undefined, now, effects); // What this answered is not asked again.
    this.#feed.settleDoubt(now, effects);
  }

  /**
   * A deposed owner's: whatever of it is true comes again. Unless its successor is gone, and the log has lost that there
   * was one: whoever is then asked to take the room is told which epochs are no more believed here.
   */
  #receiveFromBefore(now: Millis, effects: RoomEffect[]): void {
    if (now - this.#ownerHeardAt >= this.#options.ownerSilenceMsMax) this.#beginSearch({ kind: "silent" }, now, effects);
  }

  /** A new owner knows nothing of what the old one was sent and had not committed. */
  #receiveNewOwner(owner: ServerId | undefined, now: Millis, effects: RoomEffect[]): void {
    this.#search.ownerChanged(owner);
    this.#askAndSendAgain(now, effects);
  }

  #askAndSendAgain(now: Millis, effects: RoomEffect[]): void {
    for (const message of this.#catchUps.askAllAgain(now)) effects.push({ kind: "tell", message });
    this.#relay.sendAllAgain(now, effects);
  }

  #ownerHeard(now: Millis): void {
    this.#ownerHeardAt = now;
    this.#search.ownerHeard();
  }

  /** Where something waits for an answer it will not get there. Else the next question finds out, or placement. */
  #receiveServerLost(server: ServerId, now: Millis, effects: RoomEffect[]): void {
    if (this.#unacked.size === 0 && this.#catchUps.open === 0) return;
    const { owner } = this.#search;
    const mayBeOwner = owner === undefined && now - this.#ownerHeardAt >= this.#options.ownerSilenceMsMax * UNKNOWN_OWNER_SILENCES;
    if (owner === server || mayBeOwner) this.#beginSearch({ kind: "lost", server }, now, effects);
  }

  #beginSearch(cause: SearchCause, now: Millis, effects: RoomEffect[]): void {
    if (!this.#ownerIsThere) return;
    effects.push({ kind: "noted", what: `search-${cause.kind}`, count: 1 });
    pushSteps(this.#search.begin(cause, now), effects);
  }

  #receiveTick(now: Millis, effects: RoomEffect[]): void {
    this.#unacked.expire(now);
    this.#entrance.receiveTick(now, effects);
    this.#feed.receiveTick(now, effects);
    if (!this.#attached) return;
    pushSteps(this.#search.receiveTick(now), effects);
    if (this.#search.active) return;

    const silenceMsMax = this.#options.ownerSilenceMsMax;
    for (const message of this.#catchUps.receiveTick(silenceMsMax, now)) effects.push({ kind: "tell", message });
    const overdue = this.#unacked.takeOverdue(silenceMsMax, now);
    const unanswered = this.#catchUps.overdue(silenceMsMax, now);
    if (overdue.edits.length === 0 && unanswered === "nothing") return;
    // An owner that was heard just now may have missed what was sent, or reads the log for an answer. One that stays
    // silent, or keeps missing it, is looked for; but not one that goes on saying that its log is slow, for nothing is
    // sent to it during a search.
    const silentMs = now - this.#ownerHeardAt;
    const isWaiting = this.#entrance.isSlow && silentMs < SLOW_OWNER_SILENCES * silenceMsMax;
    const isLost = !isWaiting && (silentMs >= silenceMsMax || overdue.inVain);
    if (isLost || unanswered === "in-vain") return this.#beginSearch({ kind: "silent" }, now, effects);
    for (const message of this.#catchUps.askOverdueAgain(silenceMsMax, now)) effects.push({ kind: "tell", message });
    this.#relay.sendAgain(overdue.edits, effects);
  }
}

function isDeletion(outcome: SearchOutcome): boolean {
  return outcome.kind === "claimed" && outcome.reply?.kind === "deleted";
}

function onceDeleted(input: RoomInput): RoomEffect[] {
  if (input.kind === "join") return [{ kind: "turn-away", connection: input.connection, request: input.request, reason: "deleted" }];
  return input.kind === "write" ? [{ kind: "write-refused", client: input.edit.author.client, reason: "deleted" }] : [];
}

function pushSteps(steps: readonly SearchStep[], effects: RoomEffect[]): void {
  for (const step of steps) effects.push({ kind: "search", step });
}
