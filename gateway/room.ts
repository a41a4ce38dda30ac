/**
 * One room on this gateway: who is in it, what they have been given, what they have sent that the log may not
 * have yet. Takes what happened, answers with what should happen next. Deterministic.
 *
 * Two promises: a member sees every edit in seq order without a hole from where it joined (edit-feed.ts), and
 * an edit taken from a member is sent on until it is in the log or refused, whatever becomes of the room's
 * owner (edit-relay.ts). This file knows who the owner is and when to look for another.
 */

import { assertNever } from "../shared/assert.ts";
import type { Answer, SubmittedEdit, ToOwner } from "../shared/bus/envelope.ts";
import type { ClientId, Epoch, GatewayId, Millis, Position, Seq, ServerId } from "../shared/ids.ts";
import type { Channel, JoinRefusal, NackReason, Rights, ServerFrame, TentativeEdit } from "../shared/wire/frames.ts";
import { CatchUps } from "./catch-ups.ts";
import { EditFeed } from "./edit-feed.ts";
import { EditRelay } from "./edit-relay.ts";
import type { Heard } from "./from-owner.ts";
import type { CommittedBatch } from "./in-order.ts";
import { Members } from "./members.ts";
import { OwnerSearch, type SearchOutcome, type SearchStep } from "./owner-search.ts";
import type { ConnectionId } from "./ports.ts";
import { Unacked, type UnackedBudget } from "./unacked.ts";

export type RoomInput =
  | JoinInput
  | { kind: "leave"; connection: ConnectionId }
  | { kind: "edit"; connection: ConnectionId; edit: SubmittedEdit }
  /** An edit of nobody who is in the room. */
  | { kind: "write"; edit: SubmittedEdit }
  | { kind: "resubmit"; edit: TentativeEdit }
  | { kind: "replay"; connection: ConnectionId; after: Seq; through: Seq }
  /** All edits of this turn of the event loop are in. */
  | { kind: "turn-ended" }
  | { kind: "from-owner"; message: Heard }
  | { kind: "answer"; answer: Answer }
  | { kind: "no-responders" }
  /** Nobody has it, and its tenant may open no further room. */
  | { kind: "not-opened" }
  | { kind: "search"; outcome: SearchOutcome }
  /** This room server is no longer heard, by anybody. */
  | { kind: "server-lost"; server: ServerId }
  /** From now on nothing said in the room is missed; what was said before may have been. */
  | { kind: "attached" }
  | { kind: "detached" }
  | { kind: "tick" };

export type JoinInput = { kind: "join"; connection: ConnectionId; request: number; client: ClientId; position: Position; rights: Rights };

export type RoomEffect =
  | { kind: "tell"; message: ToOwner }
  | { kind: "search"; step: SearchStep }
  | { kind: "let-in"; connection: ConnectionId; client: ClientId; rights: Rights; request: number; epoch: Epoch; head: Seq; waitedMs: number }
  | { kind: "turn-away"; connection: ConnectionId; request: number; reason: JoinRefusal }
  | { kind: "send"; to: readonly ConnectionId[]; frame: ServerFrame }
  | { kind: "publish"; frame: ServerFrame; except: ConnectionId | undefined }
  /** What catches connections up, as they asked. */
  | { kind: "send-edits"; to: readonly ConnectionId[]; edits: Uint8Array }
  /** What the owner sent for a connection that did not wait for it. */
  | { kind: "asked-in-vain"; connection: ConnectionId; bytes: number }
  | { kind: "publish-edits"; batch: CommittedBatch; except: ConnectionId | undefined }
  | { kind: "listen"; connection: ConnectionId }
  | { kind: "unlisten"; connection: ConnectionId }
  | { kind: "write-refused"; client: ClientId; reason: NackReason }
  | { kind: "noted"; what: Noted; count: number };

/** What only the counters want to know. */
export type Noted = "gap" | "edits-sent-again" | "search-no-responders" | "search-lost" | "search-silent";

export type RoomOptions = {
  readonly gateway: GatewayId;
  readonly channel: Channel;
  readonly joinMsMax: number;
  readonly ownerSilenceMsMax: number;
  readonly gapBytesMax: number;
  readonly recentBytesMax: number;
  readonly recentMsMax: number;
  readonly forwardedEditsPerRoomMax: number;
  readonly forwardedBytesPerRoomMax: number;
  readonly forwardedKeptMs: number;
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
  readonly #feed: EditFeed;
  readonly #relay: EditRelay;
  readonly #search = new OwnerSearch();
  #attached = false;
  #ownerHeardAt = 0;
  #usedAt: Millis;

  constructor(options: RoomOptions, budget: UnackedBudget, now: Millis) {
    const { gateway, channel } = options;
    this.#options = options;
    this.#usedAt = now;
    this.#unacked = new Unacked({ editsMax: options.forwardedEditsPerRoomMax, bytesMax: options.forwardedBytesPerRoomMax, keptMs: options.forwardedKeptMs }, budget);
    this.#catchUps = new CatchUps(gateway);
    this.#feed = new EditFeed(options, this.#members, this.#unacked, this.#catchUps);
    this.#relay = new EditRelay({ gateway, channel }, this.#members, this.#unacked);
  }

  get position(): Position | undefined {
    return this.#feed.position;
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

  /** Whether the next tick may find something to do. */
  get restless(): boolean {
    return this.#unacked.size > 0 || this.#catchUps.open > 0 || this.#search.active || this.#feed.restless;
  }

  receive(input: RoomInput, now: Millis): RoomEffect[] {
    const effects: RoomEffect[] = [];
    switch (input.kind) {
      case "join":
        this.#feed.join(input, now, effects);
        break;
      case "leave":
        this.#feed.leave(input.connection, now, effects);
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
        this.#receiveFromOwner(input.message, now, effects);
        break;
      case "answer":
        this.#receiveAnswer(input.answer, now, effects);
        break;
      case "no-responders":
        this.#beginSearch("search-no-responders", [], now, effects);
        break;
      case "not-opened":
        this.#feed.turnAway("tenant-rooms", 0, now, effects);
        break;
      case "search": {
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

  get #ownerIsThere(): boolean {
    return this.#attached && !this.#search.active;
  }

  #receiveFromOwner(message: Heard, now: Millis, effects: RoomEffect[]): void {
    const epoch = epochOfMessage(message);
    if (epoch < this.#feed.epoch) return; // A deposed owner's: whatever of it is true comes again.
    this.#ownerHeard(now);
    if (epoch > this.#feed.epoch) {
      this.#feed.receiveNewEpoch(epoch, effects);
      this.#receiveNewOwner(ownerOf(message), now, effects);
    }
    switch (message.kind) {
      case "committed":
        return this.#feed.receiveBatch(message.batch, now, effects);
      case "epoch":
      case "beacon":
        return this.#feed.receiveHead(message.head, now);
      case "tentative":
        return this.#feed.receiveTentative(message.edit, effects);
      case "saving":
        return this.#feed.receiveSaving(message.state, effects);
      default:
        assertNever(message);
    }
  }

  #receiveAnswer(answer: Answer, now: Millis, effects: RoomEffect[]): void {
    if (answer.epoch < this.#feed.epoch) return;
    this.#ownerHeard(now);
    const isNew = answer.epoch > this.#feed.epoch;
    if (isNew) this.#feed.receiveNewEpoch(answer.epoch, effects);
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
        this.#relay.receiveNotFirst(answer);
        break;
      default:
        assertNever(answer);
    }
    if (isNew) this.#receiveNewOwner(undefined, now, effects); // What this answered is not asked again.
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
    if (owner === server || mayBeOwner) this.#beginSearch("search-lost", [server], now, effects);
  }

  #beginSearch(cause: Noted, suspects: readonly ServerId[], now: Millis, effects: RoomEffect[]): void {
    if (!this.#ownerIsThere) return;
    effects.push({ kind: "noted", what: cause, count: 1 });
    pushSteps(this.#search.begin(now, suspects), effects);
  }

  #receiveTick(now: Millis, effects: RoomEffect[]): void {
    this.#unacked.expire(now);
    this.#feed.receiveTick(now, effects);
    if (!this.#attached) return;
    pushSteps(this.#search.receiveTick(now), effects);
    if (this.#search.active) return;

    const silenceMsMax = this.#options.ownerSilenceMsMax;
    for (const message of this.#catchUps.receiveTick(silenceMsMax, now)) effects.push({ kind: "tell", message });
    const overdue = this.#unacked.takeOverdue(silenceMsMax, now);
    const unanswered = this.#catchUps.overdue(silenceMsMax, now);
    if (overdue.edits.length === 0 && !unanswered) return;
    // An owner that was heard just now may have missed what was sent. One that stays silent, or keeps missing it, is
    // looked for; but not one that goes on saying that its log is slow, for nothing is sent to it during a search.
    const silentMs = now - this.#ownerHeardAt;
    const isWaiting = this.#feed.isSlow && silentMs < SLOW_OWNER_SILENCES * silenceMsMax;
    const isLost = !isWaiting && (silentMs >= silenceMsMax || overdue.again);
    if (isLost || unanswered) return this.#beginSearch("search-silent", [], now, effects);
    this.#relay.sendAgain(overdue.edits, effects);
  }
}

function epochOfMessage(message: Heard): Epoch {
  if (message.kind === "committed") return message.batch.epoch;
  return message.kind === "tentative" ? message.edit.epoch : message.epoch;
}

/** An epoch record's id begins with the server that wrote it. */
function ownerOf(message: Heard): ServerId | undefined {
  return message.kind === "epoch" ? (message.id.slice(0, message.id.lastIndexOf(".")) as ServerId) : undefined;
}

function pushSteps(steps: readonly SearchStep[], effects: RoomEffect[]): void {
  for (const step of steps) effects.push({ kind: "search", step });
}
