/**
 * Checks whether a client has all edits of a room, and repairs it if not. It requests a replay for a gap, joins again
 * if that fails, starts from a snapshot if the server demands it, and starts from the beginning if the stored content
 * belongs to another log.
 */

import { type ClientId, type Millis, type Position, type Seq, START } from "../../shared/ids.ts";
import type { Channel, ResyncReason } from "../../shared/wire/frames.ts";
import { type Backoff, backoffMs } from "../connection/retry.ts";
import { earlier } from "../connection/turns.ts";
import type { KeptDocument, EditName } from "../persistence/edit-store.ts";
import type { SnapshotAnswer } from "../ports.ts";
import type { IncomingEdits } from "./incoming-edits.ts";
import type { JoinResult } from "./join-state.ts";
import { snapshotUnavailable } from "./problems.ts";
import type { KnownEdit, RoomSessionEffect, RoomFrame } from "./room-messages.ts";

/** `rejoin`: join the room again, from the reached position. */
export type CatchUpStep = "go-on" | "rejoin";

export class RoomCatchUp {
  readonly #feed: IncomingEdits;
  readonly #resync: Resync;
  readonly #stored = new StoredPosition();
  /** The seq that the last JOIN named. */
  #askedFrom: Seq = START.seq;
  #isSynced = false;

  /** `since`: the application has all content up to this edit. The first join proves that the server's log has it. */
  constructor(feed: IncomingEdits, resync: Resync, since?: KnownEdit | undefined) {
    this.#feed = feed;
    this.#resync = resync;
    if (since !== undefined) this.#startAfter(since.position, since.last);
  }

  /** Everything up to the head in JOINED has been delivered. */
  get synced(): boolean {
    return this.#isSynced;
  }

  get position(): Position {
    return this.#feed.position;
  }

  /** Returns the position to send in JOIN. */
  beginJoin(): Position {
    const from = this.#stored.joinFrom(this.position);
    this.#askedFrom = from.seq;
    return from;
  }

  get dueAt(): Millis | undefined {
    return earlier(this.#resync.dueAt, this.#feed.repairAt);
  }

  /** Starts from the content of the local store. */
  restored({ position, last, payload }: KeptDocument, effects: RoomSessionEffect[]): void {
    this.#startAfter(position, last);
    effects.push({ kind: "load-snapshot", position, payload });
  }

  /** No frames arrive until the room is joined again. */
  lost(): void {
    this.#isSynced = false;
    this.#feed.lost();
    this.#resync.abandon();
  }

  joined(head: Seq, effects: RoomSessionEffect[]): CatchUpStep {
    this.#resync.abandon(); // A new join shows again whether a resync is needed.
    // A position beyond the head belongs to another log. The server sends RESYNC_REQUIRED next, unless the client was
    // given those edits after it sent JOIN. Then it joins again, so that the server sees its position.
    this.#isSynced = false;
    if (this.position.seq === head) this.#caughtUp();
    const next = this.#settle(this.#stored.receiveHead(head), effects);
    return this.#askedFrom <= head && head < this.position.seq ? "rejoin" : next;
  }

  /** Call before the frame's edits are delivered. `rejoin`: they do not follow the stored content. `self`: this client's id in the room. */
  checkStored(frame: RoomFrame & { type: "committed" | "ack" }, self: ClientId | undefined, effects: RoomSessionEffect[]): CatchUpStep {
    return this.#settle(this.#stored.receiveFrame(frame, self), effects);
  }

  /** An edit of a later epoch follows all edits that the log has up to the head in JOINED, also if it has lost its end since. */
  deliveredSoFar({ epoch, head }: Pick<JoinResult, "epoch" | "head">): void {
    const isThere = this.position.seq >= head || this.position.epoch > epoch;
    if (!this.#isSynced && !this.#resync.isActive && isThere) this.#caughtUp();
  }

  repair(channel: Channel, now: Millis, effects: RoomSessionEffect[]): CatchUpStep {
    const repair = this.#feed.planRepair(now);
    if (repair?.kind === "replay") {
      effects.push({ kind: "send", frame: { type: "replay-request", channel, after: repair.after, through: repair.through } });
    }
    return repair?.kind === "rejoin" ? "rejoin" : "go-on";
  }

  receiveResyncRequired(given: ResyncReason, now: Millis, effects: RoomSessionEffect[]): void {
    const reason = this.#stored.isUnproven ? "other-epoch" : given;
    this.#stored.settle();
    this.#isSynced = false;
    this.#feed.lost();
    if (reason !== "too-old") this.#rollBack(effects);
    this.#resync.begin(reason, now);
    this.fetchSnapshot(now, effects);
  }

  fetchSnapshot(now: Millis, effects: RoomSessionEffect[]): void {
    if (this.#resync.takeDue(now)) effects.push({ kind: "fetch-snapshot" });
  }

  receiveSnapshot(answer: SnapshotAnswer, now: Millis, effects: RoomSessionEffect[]): CatchUpStep {
    if (answer.kind === "unavailable") effects.push({ kind: "problem", problem: snapshotUnavailable(answer.why) });
    const beginning = this.#resync.receiveSnapshot(answer, this.position, now);
    if (beginning === undefined) return "go-on";
    const { position, last, payload } = beginning;
    this.#feed.startAt(position);
    if (payload !== undefined) effects.push({ kind: "load-snapshot", position, last, payload });
    if (last !== undefined) this.#feed.receiveLast(last, effects);
    return "rejoin";
  }

  #startAfter(position: Position, last: EditName | undefined): void {
    this.#stored.restored(position, last);
    if (last !== undefined) this.#feed.startAt(position);
  }

  /** Stored content of another log gives no valid position in this one. */
  #settle(proof: Proof, effects: RoomSessionEffect[]): CatchUpStep {
    if (proof === "unknown") return "go-on";
    this.#stored.settle();
    if (proof === "proven") return "go-on";
    this.#isSynced = false;
    this.#rollBack(effects);
    return "rejoin";
  }

  /** The position is invalid. The application is informed, and receives everything again from the start or from a snapshot. */
  #rollBack(effects: RoomSessionEffect[]): void {
    this.#feed.startAt(START);
    effects.push({ kind: "log-rolled-back" });
  }

  /** Stored content must first be proven to belong to this log. Each join requests the edit that proves it. */
  #caughtUp(): void {
    if (this.#stored.isUnproven) return;
    this.#isSynced = true;
    this.#resync.caughtUp();
  }
}

/** The position to join from, and the snapshot's content up to it. */
type Beginning = { readonly position: Position; readonly last?: EditName | undefined; readonly payload: Uint8Array | undefined };

type State = { readonly kind: "idle" } | { readonly kind: "waiting"; readonly until: Millis } | { readonly kind: "fetching" };

/**
 * Resync of a client that cannot catch up edit by edit: fetch the room's snapshot and continue after it. Decides the
 * next step, and the session carries it out. Rules RES1 to RES7.
 */
export class Resync {
  readonly #backoff: Backoff;
  readonly #unit: () => number;
  #state: State = { kind: "idle" };
  /** Attempts since the room was last caught up. */
  #attempts = 0;
  /** True: this client's edits do not belong to the server's log. */
  #isRolledBack = false;

  /** `unit`: returns a number in [0, 1). */
  constructor(backoff: Backoff, unit: () => number) {
    this.#backoff = backoff;
    this.#unit = unit;
  }

  get isActive(): boolean {
    return this.#state.kind !== "idle";
  }

  get dueAt(): Millis | undefined {
    return this.#state.kind === "waiting" ? this.#state.until : undefined;
  }

  /** The first snapshot is fetched at once; later ones after a delay. */
  begin(reason: ResyncReason, now: Millis): void {
    this.#isRolledBack = reason !== "too-old";
    this.#attempts += 1;
    this.#state = { kind: "waiting", until: this.#attempts === 1 ? now : this.#later(now) };
  }

  /** True once, when the snapshot should be fetched now. */
  takeDue(now: Millis): boolean {
    if (this.#state.kind !== "waiting" || now < this.#state.until) return false;
    this.#state = { kind: "fetching" };
    return true;
  }

  /** `held`: this client's position. Undefined: fetch again later, or no fetch is needed any more. */
  receiveSnapshot(answer: SnapshotAnswer, held: Position, now: Millis): Beginning | undefined {
    if (this.#state.kind === "idle") return undefined;
    switch (answer.kind) {
      case "snapshot":
        return this.#beginAt(answer, held);
      case "none":
        return this.#beginAt({ position: START, payload: undefined }, held); // The log was not trimmed yet, so it has all edits.
      case "deleted": // The gateway may not know it yet. To answer a join, it asks the owner, and learns it.
        return this.#beginAt({ position: held, payload: undefined }, held);
      case "unavailable":
        this.#attempts += 1;
        this.#state = { kind: "waiting", until: Math.max(now + answer.retryAfterMs, this.#later(now)) as Millis };
        return undefined;
    }
  }

  /** The connection is lost, and the next join shows what is needed. */
  abandon(): void {
    this.#state = { kind: "idle" };
  }

  caughtUp(): void {
    this.#attempts = 0;
  }

  /**
   * A catch-up that was interrupted may have passed the newest snapshot. The room then continues from the client's
   * position.
   */
  #beginAt({ position, last, payload }: Beginning, held: Position): Beginning {
    this.#state = { kind: "idle" };
    return this.#isRolledBack || position.seq > held.seq ? { position, last, payload } : { position: held, payload: undefined };
  }

  #later(now: Millis): Millis {
    return (now + backoffMs(this.#backoff, this.#attempts, this.#unit())) as Millis;
  }
}

type Proof = "unknown" | "proven" | "refuted";

/**
 * Whether the stored document belongs to the server's log. A log that was lost and started anew may have the same
 * position with another edit. So the client requests the last known edit again and compares it. If no last edit is
 * known, it requests everything. Rules KPO1 to KPO5.
 */
class StoredPosition {
  #unproven: { readonly position: Position; readonly last: EditName | undefined } | undefined;

  get isUnproven(): boolean {
    return this.#unproven !== undefined;
  }

  restored(position: Position, last: EditName | undefined): void {
    this.#unproven = { position, last };
  }

  /** The position to send in JOIN. */
  joinFrom(position: Position): Position {
    if (this.#unproven === undefined) return position;
    const {
      position: { epoch, seq },
      last,
    } = this.#unproven;
    return seq === 1 || last === undefined ? START : { epoch, seq: (seq - 1) as Seq };
  }

  /** The question is answered, either way. */
  settle(): void {
    this.#unproven = undefined;
  }

  receiveHead(head: Seq): Proof {
    if (this.#unproven === undefined) return "unknown";
    return this.#unproven.last === undefined || head < this.#unproven.position.seq ? "refuted" : "unknown";
  }

  /** `self`: this client's id in the room. */
  receiveFrame(frame: RoomFrame & { type: "committed" | "ack" }, self: ClientId | undefined): Proof {
    const { position, last } = this.#unproven ?? {};
    const there = position && editAt(position.seq, frame, self);
    if (last === undefined || there === undefined) return "unknown";
    return there.client === last.client && there.counter === last.counter ? "proven" : "refuted";
  }
}

function editAt(seq: Seq, frame: RoomFrame & { type: "committed" | "ack" }, self: ClientId | undefined): EditName | undefined {
  if (frame.type === "committed") return frame.edits.edits[seq - frame.edits.firstSeq];
  const behind = seq - frame.seq;
  return self === undefined || behind < 0 || behind >= frame.count ? undefined : { client: self, counter: frame.counter + behind };
}
