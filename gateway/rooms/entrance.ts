/**
 * Joins and leaves of members. A member waits, receives JOINED, catches up, and goes live or fetches a snapshot.
 * Meanwhile it also receives the epoch, and whether the log is slow. edit-feed.ts decides which edits it receives.
 */

import { type Epoch, type Millis, type Position, type Seq, START } from "../../shared/ids.ts";
import type { Channel, ResyncReason, SavingState } from "../../shared/wire/frames.ts";
import type { ConnectionId } from "../ports.ts";
import type { CatchUpQuestions } from "./catch-up-questions.ts";
import { CATCHING_UP, LIVE, type MemberConnection, type MemberConnections, RESYNCING } from "./members.ts";
import type { JoinInput, FollowedRoomEffect, JoinRejection } from "./room-messages.ts";
import type { Unacked } from "./edit-relay.ts";

export type EntranceOptions = { readonly joinMsMax: number };

export class Entrance {
  readonly #options: EntranceOptions;
  readonly #channel: Channel;
  readonly #members: MemberConnections;
  readonly #unacked: Unacked;
  readonly #questions: CatchUpQuestions;
  #epoch = 0 as Epoch;
  #saving: SavingState = "saved";
  /** The highest head in any JOINED. */
  #announced: Position = START;

  constructor(options: EntranceOptions, channel: Channel, members: MemberConnections, unacked: Unacked, questions: CatchUpQuestions) {
    this.#options = options;
    this.#channel = channel;
    this.#members = members;
    this.#unacked = unacked;
    this.#questions = questions;
  }

  get epoch(): Epoch {
    return this.#epoch;
  }

  /** The owner reports that its log is slow, but not yet so slow that a search for another owner would help. */
  get isSlow(): boolean {
    return this.#saving === "saving";
  }

  get hasWaiting(): boolean {
    return this.#members.count("waiting") > 0;
  }

  /** Members know a head that the log of a later owner does not have. They would wait for edits until the log reaches that head again. */
  hasAnnouncedBeyond(head: Position): boolean {
    return head.epoch > this.#announced.epoch && head.seq < this.#announced.seq;
  }

  /** The later owner's log has reached the head that members know. */
  receiveHead(head: Position): void {
    if (head.epoch > this.#announced.epoch && head.seq >= this.#announced.seq) this.#announced = START;
  }

  /** The member has received JOINED and need not fetch a snapshot. Other members receive no edits. */
  isServed(connection: ConnectionId): boolean {
    const kind = this.#members.get(connection)?.state.kind;
    return kind !== undefined && kind !== "waiting" && kind !== "resyncing";
  }

  /** The member waits from now on. A second join replaces the first. */
  receiveJoin({ connection, request, client, position }: JoinInput, now: Millis, effects: FollowedRoomEffect[]): MemberConnection {
    this.receiveLeave(connection, now, effects);
    const member: MemberConnection = { connection, client, state: { kind: "waiting", request, position, since: now } };
    this.#members.set(member);
    this.#unacked.clientBack(client);
    return member;
  }

  receiveLeave(connection: ConnectionId, now: Millis, effects: FollowedRoomEffect[]): void {
    const member = this.#members.remove(connection);
    if (member === undefined) return;
    this.#questions.forget(connection);
    if (!this.#members.has(member.client)) this.#unacked.clientGone(member.client, now);
    if (member.state.kind === "live") effects.push({ kind: "unlisten", connection });
  }

  /** Sends JOINED, unless the member has received it. `head`: the member knows it, or receives the edits up to it. */
  admit(member: MemberConnection, head: Seq, now: Millis, effects: FollowedRoomEffect[]): MemberConnection {
    const isHigher = this.#epoch > this.#announced.epoch || head > this.#announced.seq;
    if (isHigher) this.#announced = { epoch: this.#epoch, seq: head };
    return this.#sendJoined(member, { head, toSnapshot: false }, now, effects);
  }

  /** Call when the member has all edits up to the room's position. `beyond`: its own, if that is later. */
  goLive(member: MemberConnection, beyond: Position | undefined, effects: FollowedRoomEffect[]): void {
    this.#members.set({ ...member, state: beyond === undefined ? LIVE : { kind: "live", beyond } });
    effects.push({ kind: "listen", connection: member.connection });
  }

  /** A live member receives no edits of the room until its own position is confirmed. */
  catchUpAgain(member: MemberConnection, effects: FollowedRoomEffect[]): void {
    this.#members.set({ ...member, state: CATCHING_UP });
    effects.push({ kind: "unlisten", connection: member.connection });
  }

  sendToSnapshot(
    members: readonly MemberConnection[],
    reason: ResyncReason,
    head: Position,
    now: Millis,
    effects: FollowedRoomEffect[],
  ): void {
    for (const member of members) {
      this.#sendJoined(member, { head: head.seq, toSnapshot: true }, now, effects);
      if (member.state.kind === "live") effects.push({ kind: "unlisten", connection: member.connection });
      if (member.state.kind === "catching-up") this.#questions.forget(member.connection);
      this.#members.set({ ...member, state: RESYNCING });
      effects.push({ kind: "send", to: [member.connection], frame: { type: "resync-required", channel: this.#channel, reason, head } });
    }
  }

  /** Members cannot continue from their edits. A member that is catching up also resyncs if it knows a head that the log has lost. */
  beginAnew(reason: ResyncReason, head: Position, now: Millis, effects: FollowedRoomEffect[]): void {
    const isAnnouncedBeyond = this.hasAnnouncedBeyond(head);
    if (isAnnouncedBeyond) this.#announced = START;
    const served = this.#members.all().filter(({ state: { kind } }) => kind === "live" || (isAnnouncedBeyond && kind === "catching-up"));
    this.sendToSnapshot(served, reason, head, now, effects);
  }

  /** Rejects the members that have waited at least this long. */
  reject(reason: JoinRejection, waitedMsMin: number, now: Millis, effects: FollowedRoomEffect[]): void {
    for (const { connection, state } of this.#members.all()) {
      if (state.kind !== "waiting" || now - state.since < waitedMsMin) continue;
      this.receiveLeave(connection, now, effects);
      effects.push({ kind: "reject", connection, request: state.request, reason });
    }
  }

  /** A new owner announces its state if its log is slow. */
  receiveNewEpoch(epoch: Epoch, effects: FollowedRoomEffect[]): void {
    this.#epoch = epoch;
    this.receiveSaving("saved", effects);
  }

  receiveSaving(state: SavingState, effects: FollowedRoomEffect[]): void {
    if (state === this.#saving) return;
    this.#saving = state;
    const frame = { type: "saving", channel: this.#channel, state } as const;
    if (this.#members.count("live") > 0) effects.push({ kind: "publish", frame, except: undefined });
    if (this.#members.count("catching-up") === 0) return;
    // Members that are catching up received the status in their JOINED, and are not subscribed to the room yet.
    effects.push({
      kind: "send",
      to: this.#members.all().flatMap((member) => (member.state.kind === "catching-up" ? [member.connection] : [])),
      frame,
    });
  }

  /** `missing`: what the waiting members wait for. */
  receiveTick(missing: "unavailable" | "no-content", now: Millis, effects: FollowedRoomEffect[]): void {
    if (this.hasWaiting) this.reject(missing, this.#options.joinMsMax, now, effects);
  }

  #sendJoined(
    member: MemberConnection,
    into: { head: Seq; toSnapshot: boolean },
    now: Millis,
    effects: FollowedRoomEffect[],
  ): MemberConnection {
    if (member.state.kind !== "waiting") return member;
    const { connection, client, state } = member;
    const joined: MemberConnection = { ...member, state: CATCHING_UP };
    this.#members.set(joined);
    const waitedMs = now - state.since;
    effects.push({ kind: "admit", connection, client, request: state.request, epoch: this.#epoch, ...into, waitedMs });
    if (this.#saving !== "saved")
      effects.push({ kind: "send", to: [connection], frame: { type: "saving", channel: this.#channel, state: this.#saving } });
    return joined;
  }
}
