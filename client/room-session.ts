/**
 * One room over one connection: joins it, comes back to it, sends what the outbox holds, delivers what the feed
 * lets through. Takes what happened, answers with what should happen next. Deterministic. Rules ROO1 to ROO15.
 *
 * Leaving the room or losing the line takes nothing from the outbox and nothing from the position.
 */

import { assertNever } from "../shared/assert.ts";
import type { ClientId, ClientKey, Millis, Position, Seq } from "../shared/ids.ts";
import type { Channel, ClientFrame, LeftReason, Rights, SavingState, ServerFrame, TentativeEdit } from "../shared/wire/frames.ts";
import type { Backoff } from "./backoff.ts";
import { EditFeed, type FeedOptions } from "./edit-feed.ts";
import { EditSender, type Line } from "./edit-sender.ts";
import type { RoomEdit } from "./inbox.ts";
import { Outbox, type OutboxOptions } from "./outbox.ts";
import type { Chance, SnapshotAnswer } from "./ports.ts";
import { type Problem, type Refusal, rightsRevoked, snapshotUnavailable } from "./problems.ts";
import { Resync } from "./resync.ts";

export type RoomFrame = Exclude<ServerFrame, { type: "welcome" | "pong" | "error" | "going-away" | "degraded" | "renewed" | "retry-later" }>;

export type RoomInput =
  | { kind: "enter" }
  | { kind: "leave" }
  | ({ kind: "line-open" } & Line)
  | { kind: "line-lost"; heardAt: Millis }
  | { kind: "frame"; frame: RoomFrame }
  /** Goes out with the next input: what is made at once is sent together. */
  | { kind: "edit"; payload: Uint8Array }
  | { kind: "snapshot"; answer: SnapshotAnswer }
  | { kind: "tick" };

export type RoomEffect =
  | { kind: "join"; clientKey: ClientKey; position: Position }
  | { kind: "send"; frame: ClientFrame }
  | { kind: "fetch-snapshot" }
  | { kind: "deliver"; edits: readonly RoomEdit[] }
  | { kind: "show-tentative"; edits: readonly TentativeEdit[] }
  /** Shown before, and given up: nobody else may have them. */
  | { kind: "unconfirmed"; edits: readonly TentativeEdit[] }
  | { kind: "load-snapshot"; position: Position; payload: Uint8Array }
  /** The server's log has lost edits that this client had received. */
  | { kind: "log-rolled-back" }
  | { kind: "refused"; refusal: Refusal }
  | { kind: "problem"; problem: Problem };

export type SessionOptions = {
  readonly outbox: OutboxOptions;
  readonly feed: FeedOptions;
  readonly resyncBackoff: Backoff;
  readonly joinMsMax: number;
  readonly joinJitterMs: number;
  /** Servers know a silent client's numbering for so long at least. */
  readonly dedupeMs: number;
};

/** What a join gave. */
type Joined = { readonly channel: Channel; readonly head: Seq };

/** A room joined before holds until the new JOINED. */
type State =
  | { readonly kind: "out" }
  | { readonly kind: "refused" }
  | { readonly kind: "offline" }
  | { readonly kind: "waiting"; readonly line: Line; readonly until: Millis }
  | { readonly kind: "joining"; readonly line: Line; readonly until: Millis; readonly before: Joined | undefined }
  | { readonly kind: "live"; readonly line: Line; readonly joined: Joined };

export type RoomStatus = "disconnected" | "stopped" | "connecting" | "connected";

export class RoomSession {
  readonly #options: SessionOptions;
  readonly #chance: Chance;
  readonly #outbox: Outbox;
  readonly #feed: EditFeed;
  readonly #sender: EditSender;
  readonly #resync: Resync;
  #state: State = { kind: "out" };
  #clientKey: ClientKey;
  #synced = false;
  /** When the line was last known to hold. */
  #heardAt: Millis | undefined;

  constructor(options: SessionOptions, chance: Chance) {
    const unit = (): number => chance.unit();
    this.#options = options;
    this.#chance = chance;
    this.#outbox = new Outbox(options.outbox);
    this.#feed = new EditFeed(options.feed, this.#outbox, unit);
    this.#sender = new EditSender(this.#outbox);
    this.#resync = new Resync(options.resyncBackoff, unit);
    this.#clientKey = chance.clientKey();
  }

  get status(): RoomStatus {
    switch (this.#state.kind) {
      case "out":
        return "disconnected";
      case "refused":
        return "stopped";
      case "offline":
      case "waiting":
        return "connecting";
      case "joining":
        return this.#state.before === undefined ? "connecting" : "connected";
      case "live":
        return "connected";
      default:
        return assertNever(this.#state);
    }
  }

  get position(): Position {
    return this.#feed.position;
  }

  /** Everything up to the head told in JOINED has been delivered. */
  get synced(): boolean {
    return this.#synced;
  }

  get saving(): SavingState {
    return this.#feed.saving;
  }

  get unsavedEdits(): number {
    return this.#outbox.unsavedEdits;
  }

  get client(): ClientId | undefined {
    return this.#feed.client;
  }

  get rights(): Rights {
    return this.#sender.rights;
  }

  /** The largest payload that the server takes, once it has said so. */
  get editBytesMax(): number | undefined {
    return "line" in this.#state ? this.#sender.bytesMaxOf(this.#state.line) : undefined;
  }

  /** When a tick is next needed. */
  dueAt(now: Millis): Millis | undefined {
    const state = this.#state;
    switch (state.kind) {
      case "out":
      case "refused":
      case "offline":
        return undefined;
      case "waiting":
      case "joining":
        return state.until;
      case "live": {
        const resubmitAt = this.#sender.rights.write ? this.#feed.resubmitAt : undefined;
        return earliest(this.#resync.dueAt, this.#feed.repairAt, resubmitAt, this.#sender.dueAt(state.line, this.#feed.saving, now));
      }
      default:
        return assertNever(state);
    }
  }

  receive(input: RoomInput, now: Millis): RoomEffect[] {
    const effects: RoomEffect[] = [];
    switch (input.kind) {
      case "enter":
        if (this.#state.kind === "out" || this.#state.kind === "refused") this.#state = { kind: "offline" };
        return effects;
      case "leave":
        this.#receiveLeave(now, effects);
        return effects;
      case "line-open":
        if (this.#state.kind === "offline") this.#joinAgain(input, now, effects);
        return effects;
      case "line-lost":
        if (this.#joined !== undefined) this.#heardAt = input.heardAt;
        if ("line" in this.#state) this.#end({ kind: "offline" });
        return effects;
      case "edit":
        this.#sender.receiveEdit(input.payload, effects);
        return effects;
      case "frame":
        this.#receiveFrame(input.frame, now, effects);
        break;
      case "snapshot":
        this.#receiveSnapshot(input.answer, now, effects);
        break;
      case "tick":
        this.#receiveTick(now, effects);
        break;
      default:
        assertNever(input);
    }
    this.#send(now, effects);
    return effects;
  }

  get #joined(): Joined | undefined {
    if (this.#state.kind === "joining") return this.#state.before;
    return this.#state.kind === "live" ? this.#state.joined : undefined;
  }

  #receiveLeave(now: Millis, effects: RoomEffect[]): void {
    const joined = this.#joined;
    if (joined !== undefined) {
      this.#heardAt = now;
      effects.push({ kind: "send", frame: { type: "leave", channel: joined.channel } });
    }
    this.#end({ kind: "out" });
  }

  /** A new line: all that is known of the old one is the position and what is not acknowledged. */
  #joinAgain(line: Line, now: Millis, effects: RoomEffect[]): void {
    if (this.#heardAt !== undefined && now - this.#heardAt > this.#options.dedupeMs) this.#outbox.keyIsStale();
    if (this.#outbox.needsNewKey) this.#takeNewKey();
    this.#join(line, undefined, now, effects);
  }

  #join(line: Line, before: Joined | undefined, now: Millis, effects: RoomEffect[]): void {
    this.#state = { kind: "joining", line, before, until: (now + this.#options.joinMsMax) as Millis };
    effects.push({ kind: "join", clientKey: this.#clientKey, position: this.#feed.position });
  }

  #takeNewKey(): void {
    this.#outbox.newKey();
    this.#clientKey = this.#chance.clientKey();
  }

  #end(next: State): void {
    this.#state = next;
    this.#synced = false;
    this.#feed.lost();
    this.#resync.abandon();
  }

  #receiveFrame(frame: RoomFrame, now: Millis, effects: RoomEffect[]): void {
    switch (frame.type) {
      case "joined":
        return this.#receiveJoined(frame, now, effects);
      case "join-refused":
        return this.#receiveJoinRefused(frame, now, effects);
      case "left":
        return this.#receiveLeft(frame.reason, now, effects);
      case "committed":
        if (this.#joined !== undefined) this.#feed.receiveCommitted(frame, !this.#synced, now, effects);
        return this.#deliveredSoFar(now, effects);
      case "ack":
        if (this.#joined !== undefined) this.#feed.receiveAck(frame, !this.#synced, now, effects);
        return this.#deliveredSoFar(now, effects);
      case "acked-through":
        this.#outbox.receiveAck(frame.counter, now);
        return;
      case "nack":
        return this.#sender.receiveNack(frame, now, effects);
      case "resync-required":
        return this.#receiveResyncRequired(frame, now, effects);
      case "tentative":
        return this.#feed.receiveTentative(frame.edit, now, effects);
      case "saving":
        return this.#feed.receiveSaving(frame.state, now);
      case "presence-news":
      case "mode":
      case "board":
      case "own-rank":
        return;
      default:
        assertNever(frame);
    }
  }

  #receiveJoined({ channel, client, head, rights }: RoomFrame & { type: "joined" }, now: Millis, effects: RoomEffect[]): void {
    if (this.#state.kind !== "joining") return;
    this.#state = { kind: "live", line: this.#state.line, joined: { channel, head } };
    this.#resync.abandon(); // A room joined anew says anew whether it is needed.
    this.#feed.joined(client, now);
    this.#sender.joined(rights, now, effects);
    // Beyond the head: what this client has is not of this log, and the server says so next.
    this.#synced = false;
    if (this.#feed.position.seq === head) this.#caughtUp();
  }

  #receiveJoinRefused({ reason, retryAfterMs, message }: RoomFrame & { type: "join-refused" }, now: Millis, effects: RoomEffect[]): void {
    if (this.#state.kind !== "joining") return;
    const { line } = this.#state;
    if (retryAfterMs > 0) {
      this.#end({ kind: "waiting", line, until: (now + retryAfterMs + this.#chance.unit() * this.#options.joinJitterMs) as Millis });
      return;
    }
    this.#end({ kind: "refused" });
    effects.push({ kind: "refused", refusal: { kind: "room-refused", reason, message } });
  }

  #receiveLeft(reason: LeftReason, now: Millis, effects: RoomEffect[]): void {
    if (!("line" in this.#state)) return;
    const { line } = this.#state;
    switch (reason) {
      case "asked":
        return;
      case "rights-revoked":
        this.#end({ kind: "refused" });
        effects.push({ kind: "refused", refusal: rightsRevoked() });
        return;
      case "rights-changed":
        this.#end({ kind: "offline" });
        return this.#join(line, undefined, now, effects);
      default:
        assertNever(reason);
    }
  }

  #deliveredSoFar(now: Millis, effects: RoomEffect[]): void {
    if (this.#state.kind !== "live") return;
    if (!this.#synced && !this.#resync.active && this.#feed.position.seq >= this.#state.joined.head) this.#caughtUp();
    this.#repair(now, effects);
  }

  #caughtUp(): void {
    this.#synced = true;
    this.#resync.caughtUp();
  }

  #repair(now: Millis, effects: RoomEffect[]): void {
    if (this.#state.kind !== "live") return;
    const { line, joined } = this.#state;
    const repair = this.#feed.planRepair(now);
    if (repair?.kind === "replay") effects.push({ kind: "send", frame: { type: "replay-request", channel: joined.channel, after: repair.after, through: repair.through } });
    if (repair?.kind === "rejoin") this.#join(line, joined, now, effects);
  }

  #receiveResyncRequired({ reason }: RoomFrame & { type: "resync-required" }, now: Millis, effects: RoomEffect[]): void {
    if (this.#state.kind !== "live") return; // Joined anew already.
    this.#synced = false;
    this.#feed.lost();
    if (reason !== "too-old") effects.push({ kind: "log-rolled-back" });
    this.#resync.begin(reason, now);
    this.#fetchSnapshot(now, effects);
  }

  #fetchSnapshot(now: Millis, effects: RoomEffect[]): void {
    if (this.#resync.takeDue(now)) effects.push({ kind: "fetch-snapshot" });
  }

  #receiveSnapshot(answer: SnapshotAnswer, now: Millis, effects: RoomEffect[]): void {
    if (this.#state.kind !== "live") return;
    const { line, joined } = this.#state;
    if (answer.kind === "unavailable") effects.push({ kind: "problem", problem: snapshotUnavailable(answer.why) });
    const beginning = this.#resync.receive(answer, this.#feed.position, now);
    if (beginning === undefined) return;
    const { position, payload } = beginning;
    this.#feed.startAt(position);
    if (payload !== undefined) effects.push({ kind: "load-snapshot", position, payload });
    this.#join(line, joined, now, effects);
  }

  #receiveTick(now: Millis, effects: RoomEffect[]): void {
    const state = this.#state;
    if ((state.kind === "waiting" || state.kind === "joining") && now >= state.until) this.#join(state.line, this.#joined, now, effects);
    if (this.#state.kind !== "live") return;
    this.#fetchSnapshot(now, effects);
    this.#repair(now, effects);
    this.#sender.receiveTick(this.#feed.saving, now);
    if (!this.#sender.rights.write) return;
    const { channel } = this.#state.joined;
    const { resubmit, givenUp } = this.#feed.takeResubmits(now);
    for (const edit of resubmit) effects.push({ kind: "send", frame: { type: "resubmit", channel, edit } });
    if (givenUp.length > 0) effects.push({ kind: "unconfirmed", edits: givenUp });
  }

  /** Sends what may go out now. */
  #send(now: Millis, effects: RoomEffect[]): void {
    if (this.#state.kind !== "live") return;
    const { line, joined } = this.#state;
    this.#sender.flush(line, joined.channel, this.#feed.position.seq, this.#feed.saving, now, effects);
    if (!this.#outbox.needsNewKey) return;
    this.#takeNewKey();
    this.#join(line, joined, now, effects);
  }
}

function earliest(...times: (Millis | undefined)[]): Millis | undefined {
  return times.reduce((first, next) => (first === undefined || (next !== undefined && next < first) ? next : first), undefined);
}
