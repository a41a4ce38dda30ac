/**
 * Delivers committed edits to the members in order, catches up members that join, and closes gaps. A member goes live
 * at exactly the room's position, so that it misses nothing: after [1,2,3], a client at 1 receives [2,3]. Joining and
 * leaving is in entrance.ts.
 */

import { assertNever } from "../../shared/assert.ts";
import type { CatchUpReply, ToOwner } from "../../shared/bus/envelope.ts";
import type { Epoch, Millis, Position, Seq } from "../../shared/ids.ts";
import type { Channel, ResyncReason, TentativeEdit } from "../../shared/wire/frames.ts";
import type { Asker, CatchUpQuestions, CaughtUp } from "./catch-up-questions.ts";
import type { Entrance } from "./entrance.ts";
import { type CommittedBatch, InOrder } from "./in-order.ts";
import type { MemberConnection, MemberConnections } from "./members.ts";
import type { ConnectionId } from "../ports.ts";
import { Recent, type RecentOptions, TooOldPosition } from "./recent.ts";
import type { JoinInput, FollowedRoomEffect } from "./room-messages.ts";
import type { CounterRun } from "../../shared/wire/committed-edits.ts";
import type { Unacked } from "./edit-relay.ts";

/**
 * All members receive the same bytes, encoded once. The only author of a batch receives an ack instead, because it has
 * the edits already.
 */
type Delivery = { readonly kind: "everyone" } | { readonly kind: "others"; readonly author: ConnectionId; readonly acked: CounterRun };

function planDelivery(batch: CommittedBatch, members: MemberConnections): Delivery {
  const [run] = batch.runs;
  if (run === undefined || batch.runs.length > 1) return { kind: "everyone" };
  // The batch is omitted only for an author with a single live connection: another connection of the client would miss
  // the edits.
  const author = members.soleLive(run.client);
  return author === undefined ? { kind: "everyone" } : { kind: "others", author, acked: run };
}

export type MemberEditFeedOptions = RecentOptions & { readonly gapBytesMax: number };

/** Edits up to an announced head may arrive a moment later, by another way. */
const HEAD_PATIENCE_MS = 50;
const TO_HEAD = 0 as Seq;

export class MemberEditFeed {
  readonly #channel: Channel;
  readonly #entrance: Entrance;
  readonly #members: MemberConnections;
  readonly #unacked: Unacked;
  readonly #catchUps: CatchUpQuestions;
  readonly #order: InOrder;
  readonly #recent: Recent;
  /** The highest head that the owner has announced, and since when it is beyond the delivered edits. */
  #announcedHead: { readonly head: Seq; readonly since: Millis } | undefined;
  /** The last seq that arrived while nobody had asked for the room. */
  #lastIgnored = 0 as Seq;
  readonly #tooOld = new TooOldPosition();

  constructor(
    options: MemberEditFeedOptions,
    channel: Channel,
    entrance: Entrance,
    members: MemberConnections,
    unacked: Unacked,
    catchUps: CatchUpQuestions,
  ) {
    this.#channel = channel;
    this.#entrance = entrance;
    this.#members = members;
    this.#unacked = unacked;
    this.#catchUps = catchUps;
    this.#order = new InOrder({ heldBytesMax: options.gapBytesMax });
    this.#recent = new Recent(options);
  }

  get position(): Position | undefined {
    return this.#order.position;
  }

  get awaitsEdits(): boolean {
    return this.#announcedHead !== undefined;
  }

  /** Recent edits are kept, which have to expire. */
  get hasRecent(): boolean {
    return !this.#recent.empty;
  }

  receiveJoin(input: JoinInput, now: Millis, effects: FollowedRoomEffect[]): void {
    const { connection, position } = input;
    const member = this.#entrance.receiveJoin(input, now, effects);
    if (this.#isOurs(position))
      this.#goLiveOrAsk(this.#entrance.admit(member, this.#order.position!.seq, now, effects), position, now, effects);
    else if (this.#tooOld.covers(position, now)) this.#entrance.sendToSnapshot([member], "too-old", this.#order.position!, now, effects);
    else this.#ask(this.#catchUps.askForMember(connection, position, now), effects);
  }

  /** The client has found a gap in its edits. */
  receiveReplay(connection: ConnectionId, after: Seq, through: Seq, now: Millis, effects: FollowedRoomEffect[]): void {
    if (!this.#entrance.isServed(connection)) return;
    const recent = this.#recent.after(after);
    if (recent !== undefined) return this.#sendEdits([connection], recent, effects);
    this.#ask(this.#catchUps.askForReplay(connection, { epoch: this.#entrance.epoch, seq: after }, through, now), effects);
  }

  receiveBatch(batch: CommittedBatch, now: Millis, effects: FollowedRoomEffect[]): void {
    this.#resyncIfBeyond({ epoch: batch.epoch, seq: (batch.firstSeq - 1) as Seq }, now, effects);
    // The batch is held until the position is known. It is dropped if members have it, or if nobody has asked for the
    // room: the first answer will contain it.
    if (this.position === undefined || batch.lastSeq <= this.position.seq) this.#settle(batch, now, effects);
    if (this.position === undefined && this.#catchUps.open === 0) {
      this.#lastIgnored = batch.lastSeq;
      return;
    }
    this.#deliver(this.#order.receiveBatch(batch), now, effects);
    const gap = this.#order.gap();
    if (gap !== undefined) this.#repair(gap.after, gap.through, now, effects);
  }

  /** The room's head according to the owner. A head beyond the received edits means that some are lost or late. */
  receiveHead(head: Position, now: Millis, effects: FollowedRoomEffect[]): void {
    this.#resyncIfBeyond(head, now, effects);
    if (this.position !== undefined && head.seq > this.position.seq && head.seq > (this.#announcedHead?.head ?? 0))
      this.#announcedHead = { head: head.seq, since: this.#announcedHead?.since ?? now };
  }

  receiveTentative(edit: TentativeEdit, effects: FollowedRoomEffect[]): void {
    if (this.#members.count("live") === 0) return;
    effects.push({
      kind: "publish",
      frame: { type: "tentative", channel: this.#channel, edit },
      except: this.#members.soleLive(edit.client),
    });
  }

  /** `begin`: the seq after which the epoch begins, if it directly follows the last known one. Undefined: not known. */
  receiveNewEpoch(epoch: Epoch, begin: Seq | undefined, effects: FollowedRoomEffect[]): void {
    this.#order.forgetHeld();
    if (begin !== undefined) this.#order.receiveNext({ epoch, seq: begin });
    else this.#order.doubt();
    if (this.#order.isUnconfirmed) this.#catchUps.forgetOrder(); // The question names a position of the former epoch.
    this.#announcedHead = undefined; // The new owner's log may end earlier, and the owner announces its head itself.
    this.#lastIgnored = 0 as Seq;
    this.#tooOld.forget();
    this.#entrance.receiveNewEpoch(epoch, effects);
  }

  receiveCatchUp(message: CatchUpReply, now: Millis, effects: FollowedRoomEffect[]): void {
    const { answer } = message;
    const head: Position = { epoch: message.epoch, seq: message.head };
    this.#resyncIfBeyond(head, now, effects);
    const caughtUp = this.#catchUps.receiveCatchUp(message, now);
    if (caughtUp === undefined) return;
    if (this.position === undefined) this.#startAt(head, now, effects);
    this.#ask(caughtUp.ask, effects);
    if (answer.kind === "resync") return this.#receiveResync(caughtUp, answer.reason, head, now, effects);
    this.#receiveEdits(caughtUp, answer.parts, head, now, effects);
    this.receiveHead(head, now, effects);
  }

  /** Messages sent while NATS was out of reach are lost. */
  receiveAttached(now: Millis, effects: FollowedRoomEffect[]): void {
    if (this.position !== undefined) this.#ask(this.#catchUps.askForOrder(this.position, TO_HEAD, now), effects);
  }

  receiveTick(now: Millis, effects: FollowedRoomEffect[]): void {
    this.#recent.expire(now);
    const { position } = this;
    if (position === undefined || this.#announcedHead === undefined) return;
    if (this.#announcedHead.head <= position.seq) this.#announcedHead = undefined;
    else if (now - this.#announcedHead.since >= HEAD_PATIENCE_MS) this.#repair(position, TO_HEAD, now, effects);
  }

  /** Asks the owner whether its log contains the delivered edits, unless that is known. */
  settleDoubt(now: Millis, effects: FollowedRoomEffect[]): void {
    if (this.#order.isUnconfirmed) this.#ask(this.#catchUps.askForOrder(this.position!, TO_HEAD, now), effects);
  }

  #startAt(head: Position, now: Millis, effects: FollowedRoomEffect[]): void {
    this.#recent.beginAfter(head);
    this.#deliver(this.#order.startAt(head), now, effects);
    this.receiveHead({ epoch: head.epoch, seq: this.#lastIgnored }, now, effects); // The owner may have answered before it knew of these edits.
  }

  #deliver(batches: readonly CommittedBatch[], now: Millis, effects: FollowedRoomEffect[]): void {
    for (const batch of batches) {
      this.#settle(batch, now, effects);
      this.#recent.append(batch, now);
      if (this.#members.count("live") === 0) continue;
      const delivery = planDelivery(batch, this.#members);
      switch (delivery.kind) {
        case "everyone":
          effects.push({ kind: "publish-edits", batch, except: undefined });
          break;
        case "others": {
          const { counter, seq, count } = delivery.acked;
          effects.push({ kind: "publish-edits", batch, except: delivery.author });
          effects.push({
            kind: "send",
            to: [delivery.author],
            frame: { type: "ack", channel: this.#channel, epoch: batch.epoch, counter, seq, count },
          });
          break;
        }
        default:
          assertNever(delivery);
      }
    }
  }

  #settle(batch: CommittedBatch, now: Millis, effects: FollowedRoomEffect[]): void {
    effects.push({ kind: "settled", batch });
    for (const { client, counter, count } of batch.runs) this.#unacked.settle(client, counter + count - 1, now);
  }

  #repair(after: Position, through: Seq, now: Millis, effects: FollowedRoomEffect[]): void {
    const asked = this.#catchUps.askForOrder(after, through, now);
    if (asked.length > 0) effects.push({ kind: "gap-found" });
    this.#ask(asked, effects);
  }

  /** Whether the position is the room's own or among its recent ones. Only the owner can judge other positions. */
  #isOurs(position: Position): boolean {
    const here = this.position;
    const { epoch } = this.#entrance;
    if (here === undefined || this.#order.isUnconfirmed || position.epoch > epoch) return false;
    const atHead = position.seq === here.seq && (position.seq === 0 || position.epoch === here.epoch || position.epoch === epoch);
    return (
      atHead || (this.#recent.vouchesFor(position, epoch) && (position.seq === here.seq || this.#recent.after(position.seq) !== undefined))
    );
  }

  /**
   * A member that has all edits up to `position` receives the later ones and goes live. If they are no longer here, it
   * asks again. `fruitless`: number of its questions in a row without progress.
   */
  #goLiveOrAsk(member: MemberConnection, position: Position, now: Millis, effects: FollowedRoomEffect[], fruitless = 0): void {
    const { connection } = member;
    const missing = this.#order.isUnconfirmed ? undefined : position.seq >= this.position!.seq ? [] : this.#recent.after(position.seq);
    if (missing === undefined) return this.#ask(this.#catchUps.askForMember(connection, position, now, fruitless), effects);
    this.#sendEdits([connection], missing, effects);
    this.#entrance.goLive(member, effects);
  }

  /**
   * Members have edits that the log has lost. They resync without a question, because the new owner's log is the truth.
   */
  #resyncIfBeyond(begin: Position, now: Millis, effects: FollowedRoomEffect[]): void {
    if (!this.#order.isBeyond(begin) && !this.#entrance.hasAnnouncedBeyond(begin)) return this.#entrance.receiveHead(begin);
    this.#catchUps.forgetOrder();
    this.#sendToSnapshot({ kind: "order" }, "other-epoch", begin, now, effects);
  }

  #receiveEdits(caughtUp: CaughtUp, parts: readonly Uint8Array[], head: Position, now: Millis, effects: FollowedRoomEffect[]): void {
    const { asker, batches } = caughtUp;
    const taken = batches.map(({ bytes }) => bytes);
    switch (asker.kind) {
      case "order":
        this.#deliver(this.#order.confirm(), now, effects);
        for (const batch of batches) this.#deliver(this.#order.receiveBatch(batch), now, effects);
        return;
      case "replay":
        if (this.#entrance.isServed(asker.member)) this.#sendEdits([asker.member], taken, effects);
        return;
      case "members": {
        const members = this.#membersOf(asker.members).map((member) => this.#entrance.admit(member, head.seq, now, effects));
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
        // The members' edits are not in this log, or the edits that they miss are gone: all of them resync.
        this.#announcedHead = undefined;
        this.#entrance.beginAnew(reason, head, now, effects);
        return this.#startAt(head, now, effects);
      case "members":
        return this.#entrance.sendToSnapshot(this.#membersOf(asker.members), reason, head, now, effects);
      case "replay":
        return this.#entrance.sendToSnapshot(this.#membersOf([asker.member]), reason, head, now, effects);
      case "nobody":
        return;
      default:
        assertNever(asker);
    }
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
