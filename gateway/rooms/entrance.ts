/**
 * How members come into a room and go: each waits, is let in with JOINED, and is on its way to where the room is until it
 * goes live or is sent to a snapshot. Told on the way is whose the room is and whether it saves; which edits it is given,
 * edit-feed.ts knows.
 */

import { type Epoch, type Millis, type Position, type Seq, START } from "../../shared/ids.ts";
import type { Channel, JoinRefusal, ResyncReason, SavingState } from "../../shared/wire/frames.ts";
import type { ConnectionId } from "../ports.ts";
import type { CatchUps } from "./catch-ups.ts";
import { CATCHING_UP, LIVE, type Member, type Members, RESYNCING } from "./members.ts";
import type { JoinInput, RoomEffect } from "./room-messages.ts";
import type { Unacked } from "./unacked.ts";

export type EntranceOptions = { readonly joinMsMax: number };

export class Entrance {
  readonly #options: EntranceOptions;
  readonly #channel: Channel;
  readonly #members: Members;
  readonly #unacked: Unacked;
  readonly #catchUps: CatchUps;
  #epoch = 0 as Epoch;
  #saving: SavingState = "saved";
  /** The furthest head that somebody was let in with. */
  #told: Position = START;

  constructor(options: EntranceOptions, channel: Channel, members: Members, unacked: Unacked, catchUps: CatchUps) {
    this.#options = options;
    this.#channel = channel;
    this.#members = members;
    this.#unacked = unacked;
    this.#catchUps = catchUps;
  }

  get epoch(): Epoch {
    return this.#epoch;
  }

  /** The owner says that the log keeps it waiting, and not for so long yet that another might fare better. */
  get isSlow(): boolean {
    return this.#saving === "saving";
  }

  get anybodyWaits(): boolean {
    return this.#members.count("waiting") > 0;
  }

  /** Members were told of more than a later owner's log has: they would take themselves for behind until that much is written again. */
  hasToldBeyond(head: Position): boolean {
    return head.epoch > this.#told.epoch && head.seq < this.#told.seq;
  }

  /** A later owner's log has what members were told of, or as many others in its place. */
  receiveHead(head: Position): void {
    if (head.epoch > this.#told.epoch && head.seq >= this.#told.seq) this.#told = START;
  }

  /** Neither waiting nor on its way to a snapshot: until it has JOINED it is sent no edits. */
  isServed(connection: ConnectionId): boolean {
    const kind = this.#members.get(connection)?.state.kind;
    return kind !== undefined && kind !== "waiting" && kind !== "resyncing";
  }

  /** It waits from now on. A second join takes the place of the first. */
  join({ connection, request, client, position }: JoinInput, now: Millis, effects: RoomEffect[]): Member {
    this.leave(connection, now, effects);
    const member: Member = { connection, client, state: { kind: "waiting", request, position, since: now } };
    this.#members.set(member);
    this.#unacked.clientBack(client);
    return member;
  }

  leave(connection: ConnectionId, now: Millis, effects: RoomEffect[]): void {
    const member = this.#members.remove(connection);
    if (member === undefined) return;
    this.#catchUps.forget(connection);
    if (!this.#members.has(member.client)) this.#unacked.clientGone(member.client, now);
    if (member.state.kind === "live") effects.push({ kind: "unlisten", connection });
  }

  /** JOINED, if the member has not had it yet. */
  letIn(member: Member, head: Seq, now: Millis, effects: RoomEffect[]): Member {
    const isNews = this.#epoch > this.#told.epoch || head > this.#told.seq;
    if (member.state.kind === "waiting" && isNews) this.#told = { epoch: this.#epoch, seq: head };
    return this.#letIn(member, { head, toSnapshot: false }, now, effects);
  }

  /** It has everything up to where the room is. */
  goLive(member: Member, effects: RoomEffect[]): void {
    this.#members.set({ ...member, state: LIVE });
    effects.push({ kind: "listen", connection: member.connection });
  }

  sendToSnapshot(members: readonly Member[], reason: ResyncReason, head: Position, now: Millis, effects: RoomEffect[]): void {
    for (const member of members) {
      this.#letIn(member, { head: head.seq, toSnapshot: true }, now, effects);
      if (member.state.kind === "live") effects.push({ kind: "unlisten", connection: member.connection });
      if (member.state.kind === "catching-up") this.#catchUps.forget(member.connection);
      this.#members.set({ ...member, state: RESYNCING });
      effects.push({ kind: "send", to: [member.connection], frame: { type: "resync-required", channel: this.#channel, reason, head } });
    }
  }

  /** What members were given is not to be gone on from; nor is one on its way come to where it was told that the room is. */
  beginAnew(reason: ResyncReason, head: Position, now: Millis, effects: RoomEffect[]): void {
    const isToldBeyond = this.hasToldBeyond(head);
    if (isToldBeyond) this.#told = START;
    const served = this.#members.all().filter(({ state: { kind } }) => kind === "live" || (isToldBeyond && kind === "catching-up"));
    this.sendToSnapshot(served, reason, head, now, effects);
  }

  /** Those who have waited so long to be let in. */
  turnAway(reason: JoinRefusal, waitedMsMin: number, now: Millis, effects: RoomEffect[]): void {
    for (const { connection, state } of this.#members.all()) {
      if (state.kind !== "waiting" || now - state.since < waitedMsMin) continue;
      this.leave(connection, now, effects);
      effects.push({ kind: "turn-away", connection, request: state.request, reason });
    }
  }

  /** Whatever kept the old owner from saving, the new one says anew. */
  receiveNewEpoch(epoch: Epoch, effects: RoomEffect[]): void {
    this.#epoch = epoch;
    this.receiveSaving("saved", effects);
  }

  receiveSaving(state: SavingState, effects: RoomEffect[]): void {
    if (state === this.#saving) return;
    this.#saving = state;
    const frame = { type: "saving", channel: this.#channel, state } as const;
    if (this.#members.count("live") > 0) effects.push({ kind: "publish", frame, except: undefined });
    if (this.#members.count("catching-up") === 0) return;
    // They were told how it went when they came, and do not hear the room yet.
    effects.push({
      kind: "send",
      to: this.#members.all().flatMap((member) => (member.state.kind === "catching-up" ? [member.connection] : [])),
      frame,
    });
  }

  receiveTick(now: Millis, effects: RoomEffect[]): void {
    if (this.anybodyWaits) this.turnAway("unavailable", this.#options.joinMsMax, now, effects);
  }

  #letIn(member: Member, into: { head: Seq; toSnapshot: boolean }, now: Millis, effects: RoomEffect[]): Member {
    if (member.state.kind !== "waiting") return member;
    const { connection, client, state } = member;
    const joined: Member = { ...member, state: CATCHING_UP };
    this.#members.set(joined);
    const waitedMs = now - state.since;
    effects.push({ kind: "let-in", connection, client, request: state.request, epoch: this.#epoch, ...into, waitedMs });
    if (this.#saving !== "saved")
      effects.push({ kind: "send", to: [connection], frame: { type: "saving", channel: this.#channel, state: this.#saving } });
    return joined;
  }
}
