/**
 * Whether a client has all that a room has, and what it does about what it lacks: asks for what fills a gap, joins
 * anew where that does not help, begins again from a snapshot where the server says so, and from the start where what
 * was kept on this device is of another log.
 */

import { type ClientId, type Millis, type Position, type Seq, START } from "../../shared/ids.ts";
import type { Channel, ResyncReason } from "../../shared/wire/frames.ts";
import { earlier } from "../connection/alarm.ts";
import type { EditFeed } from "./edit-feed.ts";
import type { KeptDocument } from "../keeping/edit-store.ts";
import { KeptPosition, type Proof } from "../keeping/kept-position.ts";
import type { SnapshotAnswer } from "../ports.ts";
import { snapshotUnavailable } from "./problems.ts";
import type { Resync } from "./resync.ts";
import type { RoomEffect, RoomFrame } from "./room-messages.ts";

/** `rejoin`: the room is to be joined anew, from the position that has been reached. */
export type Next = "go-on" | "rejoin";

export class CatchingUp {
  readonly #feed: EditFeed;
  readonly #resync: Resync;
  readonly #kept = new KeptPosition();
  #synced = false;

  constructor(feed: EditFeed, resync: Resync) {
    this.#feed = feed;
    this.#resync = resync;
  }

  /** Everything up to the head told in JOINED has been delivered. */
  get synced(): boolean {
    return this.#synced;
  }

  get position(): Position {
    return this.#feed.position;
  }

  /** From where the room is to be joined. */
  get joinFrom(): Position {
    return this.#kept.joinFrom(this.position);
  }

  get dueAt(): Millis | undefined {
    return earlier(this.#resync.dueAt, this.#feed.repairAt);
  }

  /** The room's content as it was kept here: where it ends the room goes on. */
  restored({ position, last, payload }: KeptDocument, effects: RoomEffect[]): void {
    this.#kept.restored(position, last);
    if (last !== undefined) this.#feed.startAt(position);
    effects.push({ kind: "load-snapshot", position, payload });
  }

  /** Nothing comes any more, until the room is joined anew. */
  lost(): void {
    this.#synced = false;
    this.#feed.lost();
    this.#resync.abandon();
  }

  joined(head: Seq, effects: RoomEffect[]): Next {
    this.#resync.abandon(); // A room joined anew says anew whether it is needed.
    // Beyond the head: what this client has is not of this log, and the server says so next.
    this.#synced = false;
    if (this.position.seq === head) this.#caughtUp();
    return this.#settle(this.#kept.receiveHead(head), effects);
  }

  /** `self`: as whom the room is joined. */
  receiveSequenced(frame: RoomFrame & { type: "committed" | "ack" }, self: ClientId | undefined, now: Millis, effects: RoomEffect[]): Next {
    const next = this.#settle(this.#kept.receiveFrame(frame, self), effects);
    if (next === "rejoin") return next; // With the log that this is of.
    if (frame.type === "committed") this.#feed.receiveCommitted(frame, !this.#synced, now, effects);
    else this.#feed.receiveAck(frame, !this.#synced, now, effects);
    return next;
  }

  deliveredSoFar(head: Seq): void {
    if (!this.#synced && !this.#resync.active && this.position.seq >= head) this.#caughtUp();
  }

  repair(channel: Channel, now: Millis, effects: RoomEffect[]): Next {
    const repair = this.#feed.planRepair(now);
    if (repair?.kind === "replay") {
      effects.push({ kind: "send", frame: { type: "replay-request", channel, after: repair.after, through: repair.through } });
    }
    return repair?.kind === "rejoin" ? "rejoin" : "go-on";
  }

  receiveResyncRequired(told: ResyncReason, now: Millis, effects: RoomEffect[]): void {
    const reason = this.#kept.isUnproven ? "other-epoch" : told;
    this.#kept.settle();
    this.#synced = false;
    this.#feed.lost();
    if (reason !== "too-old") this.#rollBack(effects);
    this.#resync.begin(reason, now);
    this.fetchSnapshot(now, effects);
  }

  fetchSnapshot(now: Millis, effects: RoomEffect[]): void {
    if (this.#resync.takeDue(now)) effects.push({ kind: "fetch-snapshot" });
  }

  receiveSnapshot(answer: SnapshotAnswer, now: Millis, effects: RoomEffect[]): Next {
    if (answer.kind === "unavailable") effects.push({ kind: "problem", problem: snapshotUnavailable(answer.why) });
    const beginning = this.#resync.receive(answer, this.position, now);
    if (beginning === undefined) return "go-on";
    const { position, last, payload } = beginning;
    this.#feed.startAt(position);
    if (payload !== undefined) effects.push({ kind: "load-snapshot", position, last, payload });
    if (last !== undefined) this.#feed.receiveLast(last, effects);
    return "rejoin";
  }

  /** What was kept here and is of another log is no position in this one. */
  #settle(proof: Proof, effects: RoomEffect[]): Next {
    if (proof === "unknown") return "go-on";
    this.#kept.settle();
    if (proof === "proven") return "go-on";
    this.#synced = false;
    this.#rollBack(effects);
    return "rejoin";
  }

  /**
   * What this client holds is no position any more: told so, the application needs all that comes from the start, or
   * a snapshot, whatever line it comes on.
   */
  #rollBack(effects: RoomEffect[]): void {
    this.#feed.startAt(START);
    effects.push({ kind: "log-rolled-back" });
  }

  /** Not before it is known to be of this log: the edit that shows it is asked for with every join. */
  #caughtUp(): void {
    if (this.#kept.isUnproven) return;
    this.#synced = true;
    this.#resync.caughtUp();
  }
}
