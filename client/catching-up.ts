/**
 * Whether a client has all that a room has, and what it does about what it lacks: asks for what fills a gap, joins
 * anew where that does not help, begins again from a snapshot where the server says so.
 */

import type { Millis, Position, Seq } from "../shared/ids.ts";
import type { Channel } from "../shared/wire/frames.ts";
import { earlier } from "./alarm.ts";
import type { EditFeed } from "./edit-feed.ts";
import type { SnapshotAnswer } from "./ports.ts";
import { snapshotUnavailable } from "./problems.ts";
import type { Resync } from "./resync.ts";
import type { RoomEffect, RoomFrame } from "./room-messages.ts";

/** `rejoin`: the room is to be joined anew, from the position that has been reached. */
export type Next = "go-on" | "rejoin";

export class CatchingUp {
  readonly #feed: EditFeed;
  readonly #resync: Resync;
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

  get dueAt(): Millis | undefined {
    return earlier(this.#resync.dueAt, this.#feed.repairAt);
  }

  /** Nothing comes any more, until the room is joined anew. */
  lost(): void {
    this.#synced = false;
    this.#feed.lost();
    this.#resync.abandon();
  }

  joined(head: Seq): void {
    this.#resync.abandon(); // A room joined anew says anew whether it is needed.
    // Beyond the head: what this client has is not of this log, and the server says so next.
    this.#synced = false;
    if (this.position.seq === head) this.#caughtUp();
  }

  deliveredSoFar(head: Seq): void {
    if (!this.#synced && !this.#resync.active && this.position.seq >= head) this.#caughtUp();
  }

  repair(channel: Channel, now: Millis, effects: RoomEffect[]): Next {
    const repair = this.#feed.planRepair(now);
    if (repair?.kind === "replay") effects.push({ kind: "send", frame: { type: "replay-request", channel, after: repair.after, through: repair.through } });
    return repair?.kind === "rejoin" ? "rejoin" : "go-on";
  }

  receiveResyncRequired({ reason }: RoomFrame & { type: "resync-required" }, now: Millis, effects: RoomEffect[]): void {
    this.#synced = false;
    this.#feed.lost();
    if (reason !== "too-old") effects.push({ kind: "log-rolled-back" });
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
    const { position, payload } = beginning;
    this.#feed.startAt(position);
    if (payload !== undefined) effects.push({ kind: "load-snapshot", position, payload });
    return "rejoin";
  }

  #caughtUp(): void {
    this.#synced = true;
    this.#resync.caughtUp();
  }
}
