/**
 * One room over one connection: joins it, comes back to it, sends what the outbox holds, delivers what the inbox
 * lets through. Takes what happened, answers with what should happen next. Deterministic. Rules ROO1 to ROO14.
 *
 * Leaving the room or losing the line takes nothing from the outbox and nothing from the position.
 */

import { assertNever } from "../shared/assert.ts";
import type { ClientId, ClientKey, Epoch, Millis, Position, Seq } from "../shared/ids.ts";
import type { Channel, ClientFrame, Limits, Rights, SavingState, ServerFrame, TentativeEdit } from "../shared/wire/frames.ts";
import { type Batch, Inbox, type InboxOptions, type RoomEdit } from "./inbox.ts";
import { Outbox, type OutboxOptions } from "./outbox.ts";
import type { Pace } from "./pace.ts";
import type { Chance, SnapshotAnswer } from "./ports.ts";
import { outboxFull, type Problem, readOnly, type Refusal, tooLarge } from "./problems.ts";
import { Resync } from "./resync.ts";
import type { Backoff } from "./backoff.ts";
import { TentativeEdits, type TentativeOptions } from "./tentative-edits.ts";

export type RoomFrame = Exclude<ServerFrame, { type: "welcome" | "pong" | "error" }>;

export type RoomInput =
  | { kind: "enter" }
  | { kind: "leave" }
  | { kind: "line-open"; limits: Limits; pace: Pace }
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
  | { kind: "load-snapshot"; position: Position; payload: Uint8Array }
  /** The server's log has lost edits that this client had received. */
  | { kind: "log-rolled-back" }
  | { kind: "refused"; refusal: Refusal }
  | { kind: "problem"; problem: Problem };

export type RoomOptions = {
  readonly outbox: OutboxOptions;
  readonly inbox: InboxOptions;
  readonly tentative: TentativeOptions;
  readonly resyncBackoff: Backoff;
  readonly joinMsMax: number;
  readonly joinJitterMs: number;
  /** Servers know a silent client's numbering for so long at least. */
  readonly dedupeMs: number;
  /** While the room catches up, a gap is left to fill by itself for so long. */
  readonly gapPatienceMs: number;
};

type Line = { readonly limits: Limits; readonly pace: Pace };
/** What a join gave. `snapshot`: the way back over a snapshot, until the room is joined anew from there. */
type Joined = { readonly channel: Channel; rights: Rights; readonly head: Seq; snapshot: { fetchAt: Millis | undefined } | undefined };

/** A room joined before holds until the new JOINED. */
type State =
  | { readonly kind: "out" }
  | { readonly kind: "refused" }
  | { readonly kind: "offline" }
  | { readonly kind: "waiting"; readonly line: Line; readonly until: Millis }
  | { readonly kind: "joining"; readonly line: Line; readonly until: Millis; readonly before: Joined | undefined }
  | { readonly kind: "live"; readonly line: Line; readonly joined: Joined };

export type RoomStatus = "disconnected" | "stopped" | "connecting" | "connected";

/** What a frame adds to an edit's payload at most. */
const FRAME_OVERHEAD_BYTES = 64;
const NO_RIGHTS: Rights = { read: false, write: false };

export class RoomSession {
  readonly #options: RoomOptions;
  readonly #chance: Chance;
  readonly #outbox: Outbox;
  readonly #inbox: Inbox;
  readonly #tentative: TentativeEdits;
  readonly #resync: Resync;
  #state: State = { kind: "out" };
  #clientKey: ClientKey;
  #client: ClientId | undefined;
  /** Every id this client has had: its edits under earlier ones are its own still. */
  readonly #ownClients = new Set<ClientId>();
  #rights = NO_RIGHTS;
  #saving: SavingState = "saved";
  #synced = false;
  #toldReadOnly = false;
  /** Smaller than any edit that the server refused as too large. */
  #bytesRefused = Infinity;
  /** When the line was last known to hold. */
  #heardAt: Millis | undefined;

  constructor(options: RoomOptions, chance: Chance) {
    const unit = (): number => chance.unit();
    this.#options = options;
    this.#chance = chance;
    this.#outbox = new Outbox(options.outbox);
    this.#inbox = new Inbox(options.inbox);
    this.#tentative = new TentativeEdits(options.tentative, unit);
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
    return this.#inbox.position;
  }

  /** Everything up to the head told in JOINED has been delivered. */
  get synced(): boolean {
    return this.#synced;
  }

  get saving(): SavingState {
    return this.#saving;
  }

  get unsavedEdits(): number {
    return this.#outbox.unsavedEdits;
  }

  get client(): ClientId | undefined {
    return this.#client;
  }

  get rights(): Rights {
    return this.#rights;
  }

  /** The largest payload that the server takes, once it has said so. */
  get editBytesMax(): number | undefined {
    return "line" in this.#state ? this.#bytesMaxOf(this.#state.line) : undefined;
  }

  /** When a tick is next needed. */
  dueAt(now: Millis): Millis | undefined {
    const state = this.#state;
    if (state.kind === "waiting") return state.until;
    const joined = this.#joined;
    if (joined === undefined) return state.kind === "joining" ? state.until : undefined;
    const due = [this.#inbox.dueAt, this.#tentative.dueAt, joined.snapshot?.fetchAt];
    if (state.kind === "joining") due.push(state.until);
    else if (this.#rights.write) due.push(this.#outbox.dueAt(now), this.#flushAt(now));
    return due.reduce((first, next) => (first === undefined || (next !== undefined && next < first) ? next : first), undefined);
  }

  receive(input: RoomInput, now: Millis): RoomEffect[] {
    const effects: RoomEffect[] = [];
    switch (input.kind) {
      case "enter":
        if (this.#state.kind === "out" || this.#state.kind === "refused") this.#state = { kind: "offline" };
        return effects;
      case "leave":
        this.#receiveLeave(effects);
        return effects;
      case "line-open":
        if (this.#state.kind === "offline") this.#joinAgain(input, now, effects);
        return effects;
      case "line-lost":
        if (this.#joined !== undefined) this.#heardAt = input.heardAt;
        if ("line" in this.#state) this.#end({ kind: "offline" });
        return effects;
      case "edit":
        this.#receiveEdit(input.payload, effects);
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
    this.#flush(now, effects);
    return effects;
  }

  get #joined(): Joined | undefined {
    if (this.#state.kind === "joining") return this.#state.before;
    return this.#state.kind === "live" ? this.#state.joined : undefined;
  }

  #receiveEdit(payload: Uint8Array, effects: RoomEffect[]): void {
    if (!this.#outbox.add(payload)) effects.push({ kind: "problem", problem: outboxFull(payload) });
    this.#tellReadOnly(effects);
  }

  #receiveLeave(effects: RoomEffect[]): void {
    const joined = this.#joined;
    if (joined !== undefined) effects.push({ kind: "send", frame: { type: "leave", channel: joined.channel } });
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
    effects.push({ kind: "join", clientKey: this.#clientKey, position: this.#inbox.position });
  }

  #takeNewKey(): void {
    this.#outbox.newKey();
    this.#clientKey = this.#chance.clientKey();
  }

  #end(next: State): void {
    this.#state = next;
    this.#synced = false;
    this.#saving = "saved";
    this.#inbox.forgetHeld();
    this.#tentative.receiveUnsaved();
  }

  #receiveFrame(frame: RoomFrame, now: Millis, effects: RoomEffect[]): void {
    switch (frame.type) {
      case "joined":
        return this.#receiveJoined(frame, now, effects);
      case "join-refused":
        return this.#receiveJoinRefused(frame, now, effects);
      case "left":
        if (frame.reason !== "rights-revoked") return;
        this.#end({ kind: "refused" });
        effects.push({ kind: "refused", refusal: { kind: "room-refused", reason: "rights-revoked", message: "the right to this room was taken away" } });
        return;
      case "committed":
        return this.#receiveCommitted(frame, now, effects);
      case "ack":
        return this.#receiveAck(frame, now, effects);
      case "acked-through":
        this.#outbox.receiveAck(frame.counter, now);
        return;
      case "nack":
        return this.#receiveNack(frame, now, effects);
      case "resync-required":
        return this.#receiveResyncRequired(frame, now, effects);
      case "tentative":
        if (!this.#ownClients.has(frame.edit.client)) this.#show(this.#tentative.receive(frame.edit), effects);
        if (this.#saving === "saved" && this.#tentative.dueAt === undefined) this.#tentative.receiveSaved(now);
        return;
      case "saving":
        this.#saving = frame.state;
        if (frame.state === "saved") this.#tentative.receiveSaved(now);
        else this.#tentative.receiveUnsaved();
        return;
      default:
        assertNever(frame);
    }
  }

  #receiveJoined({ channel, client, head, rights }: RoomFrame & { type: "joined" }, now: Millis, effects: RoomEffect[]): void {
    if (this.#state.kind !== "joining") return;
    this.#state = { kind: "live", line: this.#state.line, joined: { channel, rights, head, snapshot: undefined } };
    this.#client = client;
    this.#ownClients.add(client);
    this.#rights = rights;
    this.#saving = "saved"; // If it is not, the server says so next.
    this.#tentative.receiveSaved(now);
    this.#outbox.joined(now);
    // Beyond the head: what this client has is not of this log, and the server says so next.
    this.#synced = false;
    if (this.#inbox.position.seq === head) this.#caughtUp();
    this.#toldReadOnly = false;
    if (!this.#outbox.isEmpty) this.#tellReadOnly(effects);
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

  #receiveCommitted({ edits: { epoch, firstSeq, edits } }: RoomFrame & { type: "committed" }, now: Millis, effects: RoomEffect[]): void {
    const batch: RoomEdit[] = [];
    for (const [index, { client, counter, payload }] of edits.entries()) {
      const own = this.#ownClients.has(client);
      batch.push({ seq: (firstSeq + index) as Seq, client, counter, payload, own });
      if (client === this.#client) this.#outbox.receiveAck(counter, now);
      else if (!own) this.#show(this.#tentative.receiveCommitted(client, counter), effects);
    }
    this.#receiveBatch({ epoch, edits: batch }, now, effects);
  }

  /** The client's own edits, known here: only their seqs are told. */
  #receiveAck({ epoch, counter, seq, count }: RoomFrame & { type: "ack" }, now: Millis, effects: RoomEffect[]): void {
    const client = this.#client;
    if (client === undefined) return;
    const settled = this.#outbox.receiveAck(counter + count - 1, now);
    const edits = settled
      .filter((edit) => edit.counter >= counter)
      .map((edit): RoomEdit => ({ seq: (seq + edit.counter - counter) as Seq, client, counter: edit.counter, payload: edit.payload, own: true }));
    if (edits.length > 0) this.#receiveBatch({ epoch, edits }, now, effects);
  }

  #receiveBatch(batch: Batch & { readonly epoch: Epoch }, now: Millis, effects: RoomEffect[]): void {
    const joined = this.#joined;
    if (joined === undefined) return;
    const patienceMs = this.#synced ? 0 : this.#options.gapPatienceMs;
    for (const { edits } of this.#inbox.receive(batch, patienceMs, now)) effects.push({ kind: "deliver", edits });
    if (!this.#synced && joined.snapshot === undefined && this.#state.kind === "live" && this.#inbox.position.seq >= joined.head) this.#caughtUp();
    this.#repair(now, effects);
  }

  #caughtUp(): void {
    this.#synced = true;
    this.#resync.caughtUp();
  }

  #repair(now: Millis, effects: RoomEffect[]): void {
    if (this.#state.kind !== "live") return;
    const { line, joined } = this.#state;
    const repair = this.#inbox.planRepair(now);
    if (repair?.kind === "replay") effects.push({ kind: "send", frame: { type: "replay-request", channel: joined.channel, after: repair.after, through: repair.through } });
    if (repair?.kind === "rejoin") this.#join(line, joined, now, effects);
  }

  #receiveNack({ counter, reason, expected, retryAfterMs }: RoomFrame & { type: "nack" }, now: Millis, effects: RoomEffect[]): void {
    if (reason === "read-only") {
      this.#rights = { ...this.#rights, write: false };
      return this.#tellReadOnly(effects);
    }
    const refused = this.#outbox.receiveNack(counter, reason, expected, retryAfterMs, now);
    if (refused === undefined) return;
    this.#bytesRefused = Math.min(this.#bytesRefused, refused.payload.byteLength);
    effects.push({ kind: "problem", problem: tooLarge(refused.payload, this.#bytesRefused - 1) });
  }

  #receiveResyncRequired({ reason }: RoomFrame & { type: "resync-required" }, now: Millis, effects: RoomEffect[]): void {
    if (this.#state.kind !== "live") return; // Joined anew already.
    this.#synced = false;
    this.#inbox.forgetHeld();
    if (reason !== "too-old") effects.push({ kind: "log-rolled-back" });
    this.#state.joined.snapshot = { fetchAt: this.#resync.begin(now) };
    this.#fetchSnapshot(now, effects);
  }

  #fetchSnapshot(now: Millis, effects: RoomEffect[]): void {
    const snapshot = this.#joined?.snapshot;
    if (snapshot?.fetchAt === undefined || now < snapshot.fetchAt) return;
    snapshot.fetchAt = undefined;
    effects.push({ kind: "fetch-snapshot" });
  }

  #receiveSnapshot(answer: SnapshotAnswer, now: Millis, effects: RoomEffect[]): void {
    if (this.#state.kind !== "live" || this.#state.joined.snapshot === undefined) return; // The line was lost meanwhile: the next join says what is needed.
    const { line, joined } = this.#state;
    const step = this.#resync.receive(answer, now);
    switch (step.kind) {
      case "begin":
        this.#inbox.startAt(step.position);
        if (step.payload !== undefined) effects.push({ kind: "load-snapshot", position: step.position, payload: step.payload });
        return this.#join(line, joined, now, effects);
      case "wait":
        joined.snapshot = { fetchAt: step.until };
        if (answer.kind === "unavailable") effects.push({ kind: "problem", problem: { kind: "snapshot-unavailable", message: `the room's snapshot cannot be had now, it is tried again: ${answer.why}` } });
        return;
      default:
        assertNever(step);
    }
  }

  #receiveTick(now: Millis, effects: RoomEffect[]): void {
    const state = this.#state;
    if ((state.kind === "waiting" || state.kind === "joining") && now >= state.until) this.#join(state.line, this.#joined, now, effects);
    if (this.#state.kind !== "live") return;
    this.#fetchSnapshot(now, effects);
    this.#repair(now, effects);
    if (!this.#rights.write) return;
    if (this.#saving === "saved") this.#outbox.receiveTick(now);
    const { channel } = this.#state.joined;
    for (const edit of this.#tentative.takeDue(now)) effects.push({ kind: "send", frame: { type: "resubmit", channel, edit } });
  }

  /** Sends what may go out now. */
  #flush(now: Millis, effects: RoomEffect[]): void {
    if (this.#state.kind !== "live" || !this.#rights.write) return;
    const { line, joined } = this.#state;
    const outbox = this.#outbox;
    const bytesMax = this.#bytesMaxOf(line);
    while (outbox.hasNext(this.#windowOf(line), now) && line.pace.take(now)) {
      const next = outbox.takeNext(this.#inbox.position.seq, bytesMax, now);
      if (next.kind === "too-large") {
        effects.push({ kind: "problem", problem: tooLarge(next.payload, bytesMax) });
        continue;
      }
      const { counter, parentSeq, payload } = next.edit;
      effects.push({ kind: "send", frame: { type: "edit", channel: joined.channel, counter, ackedThrough: next.ackedThrough, parentSeq, payload } });
    }
    if (!outbox.needsNewKey) return;
    this.#takeNewKey();
    this.#join(line, joined, now, effects);
  }

  /** Where the pace alone holds edits back. */
  #flushAt(now: Millis): Millis | undefined {
    if (this.#state.kind !== "live") return undefined;
    const { line } = this.#state;
    return this.#outbox.hasNext(this.#windowOf(line), now) ? line.pace.nextAt(now) : undefined;
  }

  /**
   * No more in flight than may be sent at once: however long the network held them back, they arrive within the
   * limits. While the log is slow acks say nothing about the network, and edits are to reach the room unacknowledged.
   */
  #windowOf(line: Line): number {
    switch (this.#saving) {
      case "saved":
        return line.pace.burst;
      case "saving":
        return Infinity;
      case "refusing":
        return 1; // To see when it ends.
      default:
        return assertNever(this.#saving);
    }
  }

  #bytesMaxOf({ limits }: Line): number {
    return Math.min(limits.editBytesMax, limits.frameBytesMax - FRAME_OVERHEAD_BYTES, this.#bytesRefused - 1);
  }

  #show(edits: readonly TentativeEdit[], effects: RoomEffect[]): void {
    if (edits.length > 0) effects.push({ kind: "show-tentative", edits });
  }

  /** Once for each join. */
  #tellReadOnly(effects: RoomEffect[]): void {
    if (this.#joined === undefined || this.#rights.write || this.#toldReadOnly) return;
    this.#toldReadOnly = true;
    effects.push({ kind: "problem", problem: readOnly() });
  }
}
