/**
 * Delivers committed edits to the members in seq order. Repeated edits are dropped. Early edits are held until the gap
 * before them is repaired: after [1,2] and [4], members receive 4 only after 3. No batch is delivered after edits that
 * the log has lost. `member-catch-ups.ts` brings joining members to this position.
 */

import { assertNever } from "../../shared/assert.ts";
import type { ToOwner } from "../../shared/bus/envelope.ts";
import { LazyMap } from "../../shared/collections/lazy-map.ts";
import type { Epoch, Millis, Position, Seq } from "../../shared/ids.ts";
import { type CommittedBatch, type CounterRun, payloadsIn } from "../../shared/wire/committed-edits.ts";
import type { Channel, ResyncReason, TentativeEdit } from "../../shared/wire/frames.ts";
import type { ConnectionId } from "../ports.ts";
import type { CatchUpQuestions } from "./catch-up-questions.ts";
import type { Unacked } from "./edit-relay.ts";
import type { Entrance } from "./entrance.ts";
import type { MemberConnections } from "./members.ts";
import { Recent, type RecentOptions } from "./recent.ts";
import type { FollowedRoomEffect } from "./room-messages.ts";

export type MemberEditFeedOptions = RecentOptions & { readonly gapBytesMax: number };

/** Edits up to an announced head may arrive a moment later, on another connection. */
const HEAD_PATIENCE_MS = 50;
const TO_HEAD = 0 as Seq;

export class MemberEditFeed {
  readonly recent: Recent;
  readonly #channel: Channel;
  readonly #entrance: Entrance;
  readonly #members: MemberConnections;
  readonly #unacked: Unacked;
  readonly #questions: CatchUpQuestions;
  readonly #order: InOrder;
  /** The highest head that the owner has announced or acknowledged, and the time since which it is higher than the delivered edits. */
  #announcedHead: { readonly head: Seq; readonly since: Millis } | undefined;
  /** The last seq that arrived before any member asked for the room. */
  #lastIgnored = 0 as Seq;

  constructor(
    options: MemberEditFeedOptions,
    channel: Channel,
    entrance: Entrance,
    members: MemberConnections,
    unacked: Unacked,
    questions: CatchUpQuestions,
  ) {
    this.#channel = channel;
    this.#entrance = entrance;
    this.#members = members;
    this.#unacked = unacked;
    this.#questions = questions;
    this.#order = new InOrder({ heldBytesMax: options.gapBytesMax });
    this.recent = new Recent(options);
  }

  /** Position of the live members. Undefined: not known yet. */
  get position(): Position | undefined {
    return this.#order.position;
  }

  /** The owner has not confirmed yet that its log contains the delivered edits. */
  get isUnconfirmed(): boolean {
    return this.#order.isUnconfirmed;
  }

  /** The room may lack edits that the owner's log had at the time of the question. */
  get isCatchingUp(): boolean {
    return this.#order.isUnconfirmed || this.#questions.asksForOrder;
  }

  get awaitsEdits(): boolean {
    return this.#announcedHead !== undefined;
  }

  receiveBatch(batch: CommittedBatch, now: Millis, effects: FollowedRoomEffect[]): void {
    this.resyncIfBeyond({ epoch: batch.epoch, seq: (batch.firstSeq - 1) as Seq }, now, effects);
    // The batch is held until the position is known. It is dropped if members have it, or if no member has asked for
    // the room, because the first answer will contain it.
    if (this.position === undefined || batch.lastSeq <= this.position.seq) this.#settle(batch, now, effects);
    if (this.position === undefined && this.#questions.open === 0) {
      this.#lastIgnored = batch.lastSeq;
      return;
    }
    this.#deliver(this.#order.receiveBatch(batch), now, effects);
    const gap = this.#order.gap();
    if (gap !== undefined) this.#repair(gap.after, gap.through, now, effects);
  }

  /** The room's head according to the owner. If it is higher than the received edits, some edits are lost or late. */
  receiveHead(head: Position, now: Millis, effects: FollowedRoomEffect[]): void {
    this.resyncIfBeyond(head, now, effects);
    this.receiveStored(head.seq, now);
  }

  /** The owner's log has this edit. The announcements of the head may all be lost, and the edit with them. */
  receiveStored(seq: Seq, now: Millis): void {
    if (this.position !== undefined && seq > this.position.seq && seq > (this.#announcedHead?.head ?? 0))
      this.#announcedHead = { head: seq, since: this.#announcedHead?.since ?? now };
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
    if (this.#order.isUnconfirmed) this.#questions.forgetOrder(); // The open question names a position of the former epoch.
    this.#announcedHead = undefined; // The new owner's log may end earlier, and the owner announces its head itself.
    this.#lastIgnored = 0 as Seq;
    this.#entrance.receiveNewEpoch(epoch, effects);
  }

  /** The owner's log contains the position, and `batches` follow it. */
  receiveConfirmed(batches: readonly CommittedBatch[], now: Millis, effects: FollowedRoomEffect[]): void {
    this.#deliver(this.#order.confirm(), now, effects);
    for (const batch of batches) this.#deliver(this.#order.receiveBatch(batch), now, effects);
  }

  /** Members have edits that the log has lost. They resync without a question, because only the new owner's log is valid. */
  resyncIfBeyond(begin: Position, now: Millis, effects: FollowedRoomEffect[]): void {
    if (!this.#order.isBeyond(begin) && !this.#entrance.hasAnnouncedBeyond(begin)) return this.#entrance.receiveHead(begin);
    this.#questions.forgetOrder();
    this.restart("other-epoch", begin, now, effects);
  }

  /** The members' edits are not in this log, or the missing edits are no longer stored: all members resync. */
  restart(reason: ResyncReason, head: Position, now: Millis, effects: FollowedRoomEffect[]): void {
    this.#announcedHead = undefined;
    this.#entrance.beginAnew(reason, head, now, effects);
    this.startAt(head, now, effects);
  }

  /** Begins at a position that all members have. */
  startAt(head: Position, now: Millis, effects: FollowedRoomEffect[]): void {
    this.recent.beginAfter(head);
    this.#deliver(this.#order.startAt(head), now, effects);
    this.receiveHead({ epoch: head.epoch, seq: this.#lastIgnored }, now, effects); // The owner may have answered before it knew of these edits.
  }

  /** Asks the owner for the edits in its log after the room's position. */
  catchUp(now: Millis, effects: FollowedRoomEffect[]): void {
    if (this.position !== undefined) this.#ask(this.#questions.askForOrder(this.position, TO_HEAD, now), effects);
  }

  receiveTick(now: Millis, effects: FollowedRoomEffect[]): void {
    this.recent.expire(now);
    const { position } = this;
    if (position === undefined || this.#announcedHead === undefined) return;
    if (this.#announcedHead.head <= position.seq) this.#announcedHead = undefined;
    else if (now - this.#announcedHead.since >= HEAD_PATIENCE_MS) this.#repair(position, TO_HEAD, now, effects);
  }

  /** Asks the owner whether its log contains the delivered edits, unless that is known. */
  settleDoubt(now: Millis, effects: FollowedRoomEffect[]): void {
    if (this.#order.isUnconfirmed) this.catchUp(now, effects);
  }

  #deliver(batches: readonly CommittedBatch[], now: Millis, effects: FollowedRoomEffect[]): void {
    for (const batch of batches) {
      const delivery = this.#members.count("live") === 0 ? undefined : planDelivery(batch, this.#members, this.#unacked);
      this.#settle(batch, now, effects);
      this.recent.append(batch, now);
      if (delivery === undefined) continue;
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
    let ownBytes = 0;
    const acked = batch.runs.flatMap(({ client, counter, count }) => {
      const held = this.#unacked.settle(client, counter + count - 1, now);
      for (const { payload } of held) ownBytes += payload.byteLength;
      return this.#members.has(client) ? held : [];
    });
    effects.push({ kind: "settled", batch, acked, ownBytes });
  }

  #repair(after: Position, through: Seq, now: Millis, effects: FollowedRoomEffect[]): void {
    const asked = this.#questions.askForOrder(after, through, now);
    if (asked.length > 0) effects.push({ kind: "gap-found" });
    this.#ask(asked, effects);
  }

  #ask(messages: readonly ToOwner[], effects: FollowedRoomEffect[]): void {
    for (const message of messages) effects.push({ kind: "send-to-owner", message });
  }
}

/**
 * All members receive the same bytes, encoded once. The only author of a batch receives an ack instead, because it has
 * the edits already.
 */
type Delivery = { readonly kind: "everyone" } | { readonly kind: "others"; readonly author: ConnectionId; readonly acked: CounterRun };

function planDelivery(batch: CommittedBatch, members: MemberConnections, unacked: Unacked): Delivery {
  const [run] = batch.runs;
  if (run === undefined || batch.runs.length > 1) return { kind: "everyone" };
  // The batch is omitted only for an author with a single live connection, because another connection of the client
  // would miss the edits. The edits must also have come from this gateway: a copy of the client at another gateway may
  // have sent other bytes with these counters.
  const author = members.soleLive(run.client);
  if (author === undefined || !unacked.holds(run.client, run.counter, payloadsIn(batch))) return { kind: "everyone" };
  return { kind: "others", author, acked: run };
}

type Gap = { readonly after: Position; readonly through: Seq };

/** Memory of a held batch in addition to its bytes. */
const HELD_OVERHEAD_BYTES = 200;

/** Puts a room's committed edits into seq order. Rules ORD1 to ORD13. */
export class InOrder {
  readonly #heldBytesMax: number;
  readonly #held = new LazyMap<Seq, CommittedBatch>();
  #heldBytes = 0;
  #position: Position | undefined;
  #isUnconfirmed = false;

  constructor(options: { heldBytesMax: number }) {
    this.#heldBytesMax = options.heldBytesMax;
  }

  /** Position of the members. Undefined: not known yet, so all batches are held. */
  get position(): Position | undefined {
    return this.#position;
  }

  /** The owner has not confirmed yet that its log contains the delivered edits. */
  get isUnconfirmed(): boolean {
    return this.#isUnconfirmed;
  }

  /** A new owner's log may have other edits up to this seq. All batches are held until that is known. */
  doubt(): void {
    this.#isUnconfirmed = this.#position !== undefined && this.#position.seq > 0;
  }

  /** The owner's log contains the position. */
  confirm(): CommittedBatch[] {
    if (!this.#isUnconfirmed) return [];
    this.#isUnconfirmed = false;
    return this.#release();
  }

  /** The next owner begins directly after the last one, so its log contains the delivered edits. */
  receiveNext(begin: Position): void {
    if (this.#position?.seq === begin.seq && !this.#isUnconfirmed) this.#position = begin;
  }

  /** Delivered edits beyond the beginning of a later owner are lost: its log does not contain them. */
  isBeyond(begin: Position): boolean {
    const position = this.#position;
    return position !== undefined && begin.epoch > position.epoch && begin.seq < position.seq;
  }

  /** Returns the batches to deliver now, in order. */
  receiveBatch(batch: CommittedBatch): CommittedBatch[] {
    const position = this.#position;
    if (position === undefined || this.#isUnconfirmed || batch.firstSeq > position.seq + 1) {
      this.#hold(batch);
      return [];
    }
    if (batch.lastSeq <= position.seq) return [];
    this.#position = { epoch: batch.epoch, seq: batch.lastSeq };
    return this.#held.size === 0 ? [batch] : [batch, ...this.#release()];
  }

  /** Begins at a position that all members have. */
  startAt(position: Position): CommittedBatch[] {
    this.#position = position;
    this.#isUnconfirmed = false;
    return this.#release();
  }

  /** Held batches of the former owner may be lost from the log. If the log has them, they are requested again. */
  forgetHeld(): void {
    this.#held.clear();
    this.#heldBytes = 0;
  }

  /** The missing edits before the first held batch. */
  gap(): Gap | undefined {
    if (this.#position === undefined || this.#isUnconfirmed || this.#held.size === 0) return undefined;
    const first = Math.min(...this.#held.keys());
    return { after: this.#position, through: (first - 1) as Seq };
  }

  /** A batch beyond the limit is dropped. Once the gap is closed, the dropped one is the next gap and is requested. */
  #hold(batch: CommittedBatch): void {
    if (this.#held.has(batch.firstSeq) || this.#heldBytes + costOf(batch) > this.#heldBytesMax) return;
    this.#held.set(batch.firstSeq, { ...batch, bytes: batch.bytes.slice() }); // NATS reuses the buffer of these bytes.
    this.#heldBytes += costOf(batch);
  }

  #release(): CommittedBatch[] {
    const released: CommittedBatch[] = [];
    for (const batch of [...this.#held.values()].sort((a, b) => a.firstSeq - b.firstSeq)) {
      const seq = this.#position?.seq ?? 0;
      if (batch.firstSeq > seq + 1) break;
      this.#held.delete(batch.firstSeq);
      this.#heldBytes -= costOf(batch);
      if (batch.lastSeq <= seq) continue;
      this.#position = { epoch: batch.epoch, seq: batch.lastSeq };
      released.push(batch);
    }
    return released;
  }
}

function costOf(batch: CommittedBatch): number {
  return batch.bytes.byteLength + HELD_OVERHEAD_BYTES;
}
