/**
 * From the owner to the members: committed edits in order, catch-ups for those who join, repairs of what was
 * lost on the way. A member goes live at the very position the room is at, so that nothing falls between. How members
 * come in at all, entrance.ts knows.
 */

import { assertNever } from "../../shared/assert.ts";
import type { CatchUpAnswer, ToOwner } from "../../shared/bus/envelope.ts";
import type { Epoch, Millis, Position, Seq } from "../../shared/ids.ts";
import type { Channel, ResyncReason, TentativeEdit } from "../../shared/wire/frames.ts";
import type { Asker, CatchUps, CaughtUp } from "./catch-ups.ts";
import { planDelivery } from "./delivery.ts";
import type { Entrance } from "./entrance.ts";
import { type CommittedBatch, InOrder } from "./in-order.ts";
import type { Member, Members } from "./members.ts";
import type { ConnectionId } from "../ports.ts";
import { Recent, type RecentOptions } from "./recent.ts";
import type { JoinInput, RoomEffect } from "./room-messages.ts";
import { TooOld } from "./too-old.ts";
import type { Unacked } from "./unacked.ts";

export type FeedOptions = RecentOptions & { readonly gapBytesMax: number };

/** A head that was told may be just behind: its edits come by another way. */
const HEAD_PATIENCE_MS = 50;
const TO_HEAD = 0 as Seq;

export class EditFeed {
  readonly #channel: Channel;
  readonly #entrance: Entrance;
  readonly #members: Members;
  readonly #unacked: Unacked;
  readonly #catchUps: CatchUps;
  readonly #order: InOrder;
  readonly #recent: Recent;
  /** The highest head told, and since when it is known to lie beyond what was delivered. */
  #told: { readonly head: Seq; readonly since: Millis } | undefined;
  /** The last seq that went by while nobody had asked for the room. */
  #wentBy = 0 as Seq;
  readonly #tooOld = new TooOld();

  constructor(options: FeedOptions, channel: Channel, entrance: Entrance, members: Members, unacked: Unacked, catchUps: CatchUps) {
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

  get restless(): boolean {
    return this.#told !== undefined;
  }

  /** Something is kept that is to be forgotten in time. */
  get lingers(): boolean {
    return !this.#recent.empty;
  }

  join(input: JoinInput, now: Millis, effects: RoomEffect[]): void {
    const { connection, position } = input;
    const member = this.#entrance.join(input, now, effects);
    if (this.#isOurs(position)) this.#meet(this.#entrance.letIn(member, this.#order.position!.seq, now, effects), position, now, effects);
    else if (this.#tooOld.covers(position, now)) this.#entrance.sendToSnapshot([member], "too-old", this.#order.position!, now, effects);
    else this.#ask(this.#catchUps.askForMember(connection, position, now), effects);
  }

  /** A member noticed a hole of its own. */
  replay(connection: ConnectionId, after: Seq, through: Seq, now: Millis, effects: RoomEffect[]): void {
    if (!this.#entrance.isServed(connection)) return;
    const recent = this.#recent.after(after);
    if (recent !== undefined) return this.#sendEdits([connection], recent, effects);
    this.#ask(this.#catchUps.askForReplay(connection, { epoch: this.#entrance.epoch, seq: after }, through, now), effects);
  }

  receiveBatch(batch: CommittedBatch, now: Millis, effects: RoomEffect[]): void {
    this.#beginAnewIfBeyond({ epoch: batch.epoch, seq: (batch.firstSeq - 1) as Seq }, now, effects);
    // Held until the position is known; or dropped, for members have it already, or nobody has asked for the room and whoever does is answered with it.
    if (this.position === undefined || batch.lastSeq <= this.position.seq) this.#settle(batch, now, effects);
    if (this.position === undefined && this.#catchUps.open === 0) {
      this.#wentBy = batch.lastSeq;
      return;
    }
    this.#deliver(this.#order.receive(batch), now, effects);
    const gap = this.#order.gap();
    if (gap !== undefined) this.#repair(gap.after, gap.through, now, effects);
  }

  /** The room's head, as the owner says: further than what came, something was lost or is just behind. */
  receiveHead(head: Position, now: Millis, effects: RoomEffect[]): void {
    this.#beginAnewIfBeyond(head, now, effects);
    if (this.position !== undefined && head.seq > this.position.seq && head.seq > (this.#told?.head ?? 0))
      this.#told = { head: head.seq, since: this.#told?.since ?? now };
  }

  receiveTentative(edit: TentativeEdit, effects: RoomEffect[]): void {
    if (this.#members.count("live") === 0) return;
    effects.push({
      kind: "publish",
      frame: { type: "tentative", channel: this.#channel, edit },
      except: this.#members.soleLive(edit.client),
    });
  }

  /** `begin`: where it begins behind the last epoch heard. Undefined: not known. */
  receiveNewEpoch(epoch: Epoch, begin: Seq | undefined, effects: RoomEffect[]): void {
    this.#order.forgetHeld();
    if (begin !== undefined) this.#order.receiveNext({ epoch, seq: begin });
    else this.#order.doubt();
    if (this.#order.isDoubtful) this.#catchUps.forgetOrder(); // It asks from before.
    this.#told = undefined; // The new owner's log may end before it, and says so itself.
    this.#wentBy = 0 as Seq;
    this.#tooOld.forget();
    this.#entrance.receiveNewEpoch(epoch, effects);
  }

  receiveCatchUp(message: CatchUpAnswer, now: Millis, effects: RoomEffect[]): void {
    const { answer } = message;
    const head: Position = { epoch: message.epoch, seq: message.head };
    this.#beginAnewIfBeyond(head, now, effects);
    const caughtUp = this.#catchUps.receive(message, now);
    if (caughtUp === undefined) return;
    if (this.position === undefined) this.#startAt(head, now, effects);
    this.#ask(caughtUp.ask, effects);
    if (answer.kind === "resync") return this.#receiveResync(caughtUp, answer.reason, head, now, effects);
    this.#receiveEdits(caughtUp, answer.parts, head, now, effects);
    this.receiveHead(head, now, effects);
  }

  /** What was said while the line was down is lost. */
  attached(now: Millis, effects: RoomEffect[]): void {
    if (this.position !== undefined) this.#ask(this.#catchUps.askForOrder(this.position, TO_HEAD, now), effects);
  }

  receiveTick(now: Millis, effects: RoomEffect[]): void {
    this.#recent.expire(now);
    const { position } = this;
    if (position === undefined || this.#told === undefined) return;
    if (this.#told.head <= position.seq) this.#told = undefined;
    else if (now - this.#told.since >= HEAD_PATIENCE_MS) this.#repair(position, TO_HEAD, now, effects);
  }

  /** Asks the owner whether its log has what was delivered, unless that is known. */
  settleDoubt(now: Millis, effects: RoomEffect[]): void {
    if (this.#order.isDoubtful) this.#ask(this.#catchUps.askForOrder(this.position!, TO_HEAD, now), effects);
  }

  #startAt(head: Position, now: Millis, effects: RoomEffect[]): void {
    this.#recent.beginAfter(head);
    this.#deliver(this.#order.startAt(head), now, effects);
    this.receiveHead({ epoch: head.epoch, seq: this.#wentBy }, now, effects); // Its owner may have answered before it knew.
  }

  #deliver(batches: readonly CommittedBatch[], now: Millis, effects: RoomEffect[]): void {
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

  #settle(batch: CommittedBatch, now: Millis, effects: RoomEffect[]): void {
    effects.push({ kind: "settled", batch });
    for (const { client, counter, count } of batch.runs) this.#unacked.settle(client, counter + count - 1, now);
  }

  #repair(after: Position, through: Seq, now: Millis, effects: RoomEffect[]): void {
    const asked = this.#catchUps.askForOrder(after, through, now);
    if (asked.length > 0) effects.push({ kind: "noted", what: "gap", count: 1 });
    this.#ask(asked, effects);
  }

  /** Whether a position is the room's own or among what came lately; any other is for the owner to judge. */
  #isOurs(position: Position): boolean {
    const here = this.position;
    const { epoch } = this.#entrance;
    if (here === undefined || this.#order.isDoubtful || position.epoch > epoch) return false;
    const atHead = position.seq === here.seq && (position.seq === 0 || position.epoch === here.epoch || position.epoch === epoch);
    return (
      atHead || (this.#recent.vouchesFor(position, epoch) && (position.seq === here.seq || this.#recent.after(position.seq) !== undefined))
    );
  }

  /** A member that has everything up to `position` gets what came since and goes live; if that is no longer here, it asks on. `inVain`: so many of its questions in a row brought it no further. */
  #meet(member: Member, position: Position, now: Millis, effects: RoomEffect[], inVain = 0): void {
    const { connection } = member;
    const missing = this.#order.isDoubtful ? undefined : position.seq >= this.position!.seq ? [] : this.#recent.after(position.seq);
    if (missing === undefined) return this.#ask(this.#catchUps.askForMember(connection, position, now, inVain), effects);
    this.#sendEdits([connection], missing, effects);
    this.#entrance.goLive(member, effects);
  }

  /** Members hold what the log has lost, or were told of it: they begin anew without asking, for the new owner's log is the truth. */
  #beginAnewIfBeyond(begin: Position, now: Millis, effects: RoomEffect[]): void {
    if (!this.#order.isBeyond(begin) && !this.#entrance.hasToldBeyond(begin)) return this.#entrance.receiveHead(begin);
    this.#catchUps.forgetOrder();
    this.#sendToSnapshot({ kind: "order" }, "other-epoch", begin, now, effects);
  }

  #receiveEdits(caughtUp: CaughtUp, parts: readonly Uint8Array[], head: Position, now: Millis, effects: RoomEffect[]): void {
    const { asker, batches } = caughtUp;
    const taken = batches.map(({ bytes }) => bytes);
    switch (asker.kind) {
      case "order":
        this.#deliver(this.#order.confirm(), now, effects);
        for (const batch of batches) this.#deliver(this.#order.receive(batch), now, effects);
        return;
      case "replay":
        if (this.#entrance.isServed(asker.member)) this.#sendEdits([asker.member], taken, effects);
        return;
      case "members": {
        const members = this.#membersOf(asker.members).map((member) => this.#entrance.letIn(member, head.seq, now, effects));
        this.#sendEdits([...asker.members], taken, effects);
        if (caughtUp.isWhole) for (const member of members) this.#meet(member, caughtUp.position, now, effects, caughtUp.inVain);
        return;
      }
      case "nobody": {
        const bytes = parts.reduce((sum, part) => sum + part.byteLength, 0);
        if (bytes > 0) effects.push({ kind: "asked-in-vain", connection: asker.member, bytes });
        return;
      }
      default:
        assertNever(asker);
    }
  }

  #receiveResync(caughtUp: CaughtUp, reason: ResyncReason, head: Position, now: Millis, effects: RoomEffect[]): void {
    const { asker, position, isBegun } = caughtUp;
    if (reason === "too-old" && !isBegun) this.#tooOld.receive(position, now);
    this.#sendToSnapshot(asker, reason, head, now, effects);
  }

  #sendToSnapshot(asker: Asker, reason: ResyncReason, head: Position, now: Millis, effects: RoomEffect[]): void {
    switch (asker.kind) {
      case "order":
        // What the members were given is not of this log, or what they miss is gone: they begin anew.
        this.#told = undefined;
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

  #membersOf(connections: Iterable<ConnectionId>): Member[] {
    return [...connections].map((connection) => this.#members.get(connection)).filter((member) => member !== undefined);
  }

  #sendEdits(to: readonly ConnectionId[], parts: readonly Uint8Array[], effects: RoomEffect[]): void {
    for (const edits of parts) effects.push({ kind: "send-edits", to, edits });
  }

  #ask(messages: readonly ToOwner[], effects: RoomEffect[]): void {
    for (const message of messages) effects.push({ kind: "tell", message });
  }
}
