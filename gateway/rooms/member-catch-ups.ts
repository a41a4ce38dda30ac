/**
 * Brings joining members to the room's position: from the recent edits, or by a question to the owner. A member goes
 * live at exactly the room's position, so that it misses nothing: after [1,2,3], a client at 1 receives [2,3], never
 * [3]. entrance.ts handles joins and leaves.
 */

import { assertNever } from "../../shared/assert.ts";
import type { CatchUpReply, ToOwner } from "../../shared/bus/envelope.ts";
import type { Millis, Position, Seq } from "../../shared/ids.ts";
import type { ResyncReason } from "../../shared/wire/frames.ts";
import type { ConnectionId } from "../ports.ts";
import type { Asker, CatchUpQuestions, CaughtUp } from "./catch-up-questions.ts";
import type { MemberEditFeed } from "./edit-feed.ts";
import type { Entrance } from "./entrance.ts";
import { FirstContentGate } from "./first-content-gate.ts";
import type { FirstContentOutcome } from "./first-content-host.ts";
import type { MemberConnection, MemberConnections } from "./members.ts";
import { TooOldPosition } from "./recent.ts";
import type { FollowedRoomEffect, JoinInput } from "./room-messages.ts";

export class MemberCatchUps {
  readonly #feed: MemberEditFeed;
  readonly #entrance: Entrance;
  readonly #members: MemberConnections;
  readonly #questions: CatchUpQuestions;
  /** Undefined: the application is not asked for first content. */
  readonly #gate: FirstContentGate | undefined;
  readonly #tooOld = new TooOldPosition();

  constructor(feed: MemberEditFeed, entrance: Entrance, members: MemberConnections, questions: CatchUpQuestions, isGated: boolean) {
    this.#feed = feed;
    this.#entrance = entrance;
    this.#members = members;
    this.#questions = questions;
    this.#gate = isGated ? new FirstContentGate() : undefined;
  }

  /** What the waiting members wait for: an owner, or the room's first content. */
  get missing(): "unavailable" | "no-content" {
    return this.#gate?.isAsking === true ? "no-content" : "unavailable";
  }

  receiveJoin(input: JoinInput, now: Millis, effects: FollowedRoomEffect[]): void {
    const { connection, position } = input;
    const member = this.#entrance.receiveJoin(input, now, effects);
    if (this.#isOurs(position)) {
      const head = this.#feed.position!.seq;
      if (!this.#isKeptOut(head, effects)) this.#goLiveOrAsk(this.#entrance.admit(member, head, now, effects), position, now, effects);
    } else if (this.#tooOld.covers(position, now)) this.#entrance.sendToSnapshot([member], "too-old", this.#feed.position!, now, effects);
    else this.#ask(this.#questions.askForMember(connection, position, now), effects);
  }

  /** The client has found a gap in its edits. */
  receiveReplay(connection: ConnectionId, after: Seq, through: Seq, now: Millis, effects: FollowedRoomEffect[]): void {
    if (!this.#entrance.isServed(connection)) return;
    const recent = this.#feed.recent.after(after, through);
    if (recent !== undefined) return this.#sendEdits([connection], recent, effects);
    this.#ask(this.#questions.askForReplay(connection, { epoch: this.#entrance.epoch, seq: after }, through, now), effects);
  }

  receiveCatchUp(message: CatchUpReply, now: Millis, effects: FollowedRoomEffect[]): void {
    const { answer } = message;
    const head: Position = { epoch: message.epoch, seq: message.head };
    this.#feed.resyncIfBeyond(head, now, effects);
    const caughtUp = this.#questions.receiveCatchUp(message, now);
    if (caughtUp === undefined) return;
    if (this.#feed.position === undefined) this.#feed.startAt(head, now, effects);
    this.#ask(caughtUp.ask, effects);
    if (answer.kind === "resync") return this.#receiveResync(caughtUp, answer.reason, head, now, effects);
    this.#receiveEdits(caughtUp, answer.parts, head, now, effects);
    for (const connection of caughtUp.reading) effects.push({ kind: "watch-read", connection });
    this.#feed.receiveHead(head, now, effects);
  }

  receiveRead(connection: ConnectionId, now: Millis, effects: FollowedRoomEffect[]): void {
    this.#ask(this.#questions.receiveRead(connection, now), effects);
  }

  /** A failure has no effect on a room that meanwhile has an edit. */
  receiveContent(outcome: FirstContentOutcome, now: Millis, effects: FollowedRoomEffect[]): void {
    const isRejected = outcome === "failed" && this.#gate?.isAsking === true;
    this.#gate?.receiveOutcome(outcome);
    if (isRejected) this.#entrance.reject("no-content", 0, now, effects);
  }

  /**
   * Call after each input. Asks the owner for all members that the gate kept out, once they may enter. The room's content
   * may be on its way to this gateway.
   */
  recallKeptOut(now: Millis, effects: FollowedRoomEffect[]): void {
    if (this.#gate === undefined) return;
    this.#gate.receiveHead(this.#feed.position?.seq ?? (0 as Seq));
    if (!this.#entrance.hasWaiting) this.#gate.receiveNobodyWaits();
    if (!this.#gate.takeRecall()) return;
    for (const { connection, state } of this.#members.all())
      if (state.kind === "waiting" && !this.#questions.isOpenFor(connection))
        this.#ask(this.#questions.askForMember(connection, state.position, now), effects);
  }

  /**
   * Another owner may assess positions differently. Its log may lack edits that a live member has beyond the room's
   * position, so it is asked about the member's own. The question is sent with all that are open.
   */
  receiveNewEpoch(now: Millis, effects: FollowedRoomEffect[]): void {
    this.#tooOld.forget();
    this.#gate?.receiveNewEpoch();
    for (const member of this.#members.all()) {
      const beyond = member.state.kind === "live" ? member.state.beyond : undefined;
      if (beyond === undefined || beyond.seq <= this.#feed.position!.seq) continue;
      this.#entrance.catchUpAgain(member, effects);
      this.#questions.askForMember(member.connection, beyond, now);
    }
  }

  /** Whether the position is the room's own or among its recent ones. Only the owner can judge other positions. */
  #isOurs(position: Position): boolean {
    const here = this.#feed.position;
    const { epoch } = this.#entrance;
    if (here === undefined || this.#feed.isUnconfirmed || position.epoch > epoch) return false;
    const atHead = position.seq === here.seq && (position.seq === 0 || position.epoch === here.epoch || position.epoch === epoch);
    return (
      atHead ||
      (this.#feed.recent.vouchesFor(position, epoch) && (position.seq === here.seq || this.#feed.recent.after(position.seq) !== undefined))
    );
  }

  /**
   * A member that has all edits up to `position` receives the later ones and goes live. If they are no longer in
   * memory, it asks again. `fruitless`: number of its questions in a row without progress.
   */
  #goLiveOrAsk(member: MemberConnection, position: Position, now: Millis, effects: FollowedRoomEffect[], fruitless = 0): void {
    const { connection } = member;
    const missing = this.#feed.isUnconfirmed
      ? undefined
      : position.seq >= this.#feed.position!.seq
        ? []
        : this.#feed.recent.after(position.seq);
    if (missing === undefined) return this.#ask(this.#questions.askForMember(connection, position, now, fruitless), effects);
    this.#sendEdits([connection], missing, effects);
    this.#entrance.goLive(member, position.seq > this.#feed.position!.seq ? position : undefined, effects);
  }

  #receiveEdits(caughtUp: CaughtUp, parts: readonly Uint8Array[], head: Position, now: Millis, effects: FollowedRoomEffect[]): void {
    const { asker, batches } = caughtUp;
    const taken = batches.map(({ bytes }) => bytes);
    switch (asker.kind) {
      case "order":
        return this.#feed.receiveConfirmed(batches, now, effects);
      case "replay":
        if (this.#entrance.isServed(asker.member)) this.#sendEdits([asker.member], taken, effects);
        return;
      case "members": {
        if (this.#isKeptOut(head.seq, effects)) return;
        const headNow = this.#headNow(head);
        const members = this.#membersOf(asker.members).map((member) => this.#entrance.admit(member, headNow, now, effects));
        this.#sendEdits([...asker.members], taken, effects);
        if (caughtUp.isComplete)
          for (const member of members) this.#goLiveOrAsk(member, caughtUp.position, now, effects, caughtUp.fruitless);
        return;
      }
      case "nobody": {
        const bytes = parts.reduce((sum, part) => sum + part.byteLength, 0);
        if (bytes > 0) effects.push({ kind: "unwanted-catch-up", connection: asker.member, bytes });
        return;
      }
      default:
        assertNever(asker);
    }
  }

  #receiveResync(caughtUp: CaughtUp, reason: ResyncReason, head: Position, now: Millis, effects: FollowedRoomEffect[]): void {
    const { asker, position, isBegun } = caughtUp;
    if (reason === "too-old" && !isBegun) this.#tooOld.remember(position, now);
    this.#sendToSnapshot(asker, reason, head, now, effects);
  }

  #sendToSnapshot(asker: Asker, reason: ResyncReason, head: Position, now: Millis, effects: FollowedRoomEffect[]): void {
    switch (asker.kind) {
      case "order":
        return this.#feed.restart(reason, head, now, effects);
      case "members":
        if (this.#isKeptOut(head.seq, effects)) return; // JOINED would let them write.
        return this.#entrance.sendToSnapshot(this.#membersOf(asker.members), reason, head, now, effects);
      case "replay":
        return this.#entrance.sendToSnapshot(this.#membersOf([asker.member]), reason, head, now, effects);
      case "nobody":
        return;
      default:
        assertNever(asker);
    }
  }

  /** A member that enters a gated room must not take it for empty because of an answer that is older than the first edit. */
  #headNow({ seq }: Position): Seq {
    return seq === 0 && this.#gate !== undefined && !this.#feed.isUnconfirmed ? (this.#feed.position?.seq ?? seq) : seq;
  }

  #isKeptOut(head: Seq, effects: FollowedRoomEffect[]): boolean {
    return this.#gate?.keepsOut(head, effects) === true;
  }

  #membersOf(connections: Iterable<ConnectionId>): MemberConnection[] {
    return [...connections].map((connection) => this.#members.get(connection)).filter((member) => member !== undefined);
  }

  #sendEdits(to: readonly ConnectionId[], parts: readonly Uint8Array[], effects: FollowedRoomEffect[]): void {
    for (const edits of parts) effects.push({ kind: "send-edits", to, edits });
  }

  #ask(messages: readonly ToOwner[], effects: FollowedRoomEffect[]): void {
    for (const message of messages) effects.push({ kind: "send-to-owner", message });
  }
}
