/**
 * One room while this server owns it: takes what happened, answers with what should happen next.
 *
 * Deterministic: `room-host.ts` feeds it and carries out its effects; what an effect leads to comes back as
 * another input. The invariant: an edit has a seq, and is acknowledged, only once the log holds it.
 */

import { assert, assertNever } from "../shared/assert.ts";
import type { Answer, CatchUp, FromOwner, SubmittedEdit, ToOwner } from "../shared/bus/envelope.ts";
import { editsBytesOf, encodeEditsRecord, type LogRecord, type RecordStamp } from "../shared/bus/record.ts";
import type { ClientId, Epoch, GatewayId, Millis, RoomKey, Seq, UserId } from "../shared/ids.ts";
import type { CommittedEdits, NackReason, SavingState, TentativeEdit } from "../shared/wire/frames.ts";
import type { Backlog, BacklogRecord } from "./backlog.ts";
import { Beacons, type BeaconsOptions } from "./beacons.ts";
import { type CatchUpRequest, CatchUps, type CatchUpsOptions } from "./catch-ups.ts";
import { GroupCommit, type GroupCommitOptions, type UnackedEdit } from "./group-commit.ts";
import type { OutgoingRecord, Seal } from "./ports.ts";
import { Refusals } from "./refusals.ts";
import { decideSaving, SavingNews, type SavingOptions, showsTentative } from "./saving.ts";
import type { Sequencer } from "./sequencer.ts";

export type RoomInput = ToOwner | { kind: "appended"; streamSeq: number } | { kind: "inhabited" } | { kind: "tick" };

export type RoomEffect =
  | { kind: "append"; record: OutgoingRecord; edits: number }
  | { kind: "answer"; gateway: GatewayId; answer: Answer }
  | { kind: "broadcast"; message: Exclude<FromOwner, LogRecord> }
  | { kind: "saving-changed"; state: SavingState }
  /** The range is not in memory: answer the request from the log. */
  | { kind: "read-log"; request: CatchUpRequest; epoch: Epoch; head: Seq; streamSeq: number }
  /** A gateway has heard of a later owner. */
  | { kind: "doubt"; request: CatchUpRequest }
  /** Something was full, and what that costs is counted. */
  | { kind: "limit-reached"; limit: Limit };

export type Limit = "unacked-edits" | "held-messages" | "deferred-catch-ups" | "dedupe-writers" | "log-reads";

export type RoomOptions = GroupCommitOptions & SavingOptions & BeaconsOptions & CatchUpsOptions & {
  /** When an edit that was refused for want of room may be sent again. */
  readonly refusedRetryMs: number;
  /** A writer that left a gap is told once in so long. */
  readonly gapQuietMs: number;
};

/** What the claim established. */
export type RoomStart = {
  readonly key: RoomKey;
  readonly epoch: Epoch;
  /** The stream sequence of the room's last record. */
  readonly streamSeq: number;
  readonly sequencer: Sequencer;
  readonly backlog: Backlog;
};

/** `nextStamp`: what the next record is marked with. */
export type RoomDeps = { readonly seal: Seal; readonly nextStamp: () => RecordStamp };

/** How often what has grown old is looked for. */
const SWEEP_MS = 5_000;

export class Room {
  readonly #start: RoomStart;
  readonly #options: RoomOptions;
  readonly #deps: RoomDeps;
  readonly #unacked: GroupCommit;
  readonly #refusals = new Refusals();
  readonly #beacons: Beacons;
  readonly #catchUps: CatchUps;
  #streamSeq: number;
  #paused = false;
  #saving: SavingState = "saved";
  readonly #savingNews: SavingNews;
  #lastUsed: Millis;
  #lastSweep: Millis;
  /** The record in flight, for the backlog once it is in the log. */
  #appending: { edits: CommittedEdits; record: BacklogRecord } | undefined;

  constructor(start: RoomStart, options: RoomOptions, deps: RoomDeps, now: Millis) {
    this.#start = start;
    this.#options = options;
    this.#deps = deps;
    this.#unacked = new GroupCommit(options);
    this.#beacons = new Beacons(options, now);
    this.#savingNews = new SavingNews(options);
    this.#catchUps = new CatchUps(start.backlog, options);
    this.#streamSeq = start.streamSeq;
    this.#lastUsed = now;
    this.#lastSweep = now;
  }

  get epoch(): Epoch {
    return this.#start.epoch;
  }

  get head(): Seq {
    return this.#start.sequencer.head;
  }

  get unacked(): number {
    return this.#unacked.unacked;
  }

  /** Whether a record is on its way to the log. */
  get isAppending(): boolean {
    return this.#appending !== undefined;
  }

  /** Whether it has something to do at the next tick. */
  get restless(): boolean {
    return this.#unacked.unacked > 0 || this.#beacons.pending || this.#savingNews.pending;
  }

  /** For how long nobody was there, and no edit and no catch-up came. */
  idleMs(now: Millis): number {
    return this.#unacked.unacked > 0 ? 0 : now - this.#lastUsed;
  }

  receive(input: RoomInput, now: Millis): RoomEffect[] {
    const effects: RoomEffect[] = [];
    switch (input.kind) {
      case "edits":
        for (const edit of input.edits) this.#receiveEdit(input.gateway, edit, now, effects);
        this.#appendNext(now, effects);
        break;
      case "resubmit":
        this.#receiveResubmit(input.gateway, input.edit, now, effects);
        this.#appendNext(now, effects);
        break;
      case "catch-up-request":
        this.#lastUsed = now;
        this.#receiveCatchUp(input, effects);
        break;
      case "appended":
        this.#receiveAppended(input.streamSeq, now, effects);
        break;
      case "inhabited":
        this.#lastUsed = now;
        break;
      case "tick":
        this.#receiveTick(now, effects);
        break;
      default:
        assertNever(input);
    }
    return effects;
  }

  /** The owner has looked at the log: no later owner is there, so the position is not of this log. */
  answerDoubt(request: CatchUpRequest): RoomEffect {
    return this.#catchUpAnswer(request, { kind: "resync", reason: "other-epoch" });
  }

  /** From now on edits wait, but for those in flight. */
  pauseAppends(): void {
    this.#paused = true;
  }

  resumeAppends(now: Millis): RoomEffect[] {
    this.#paused = false;
    const effects: RoomEffect[] = [];
    this.#appendNext(now, effects);
    return effects;
  }

  /** Gives its memory's share back. */
  end(): void {
    this.#start.backlog.clear();
  }

  #receiveEdit(gateway: GatewayId, edit: SubmittedEdit, now: Millis, effects: RoomEffect[]): void {
    this.#lastUsed = now;
    const { client } = edit.author;
    const place = this.#start.sequencer.placeOf(client, edit.counter, edit.ackedThrough, now);
    switch (place.kind) {
      case "next":
        return this.#receiveNext(gateway, edit, now, effects);
      case "waiting":
        return;
      case "committed": {
        if (place.seq === 0) return; // A writer that claims commits in an empty log.
        const { seq, exact } = place;
        effects.push({ kind: "answer", gateway, answer: { kind: "acked", epoch: this.epoch, client, counter: edit.counter, seq, exact } });
        return;
      }
      case "gap":
        if (!this.#refusals.maySay(client, now)) return;
        this.#refusals.refused(client, this.#options.gapQuietMs, now);
        effects.push(this.#refusal(gateway, edit, "gap", place.expected, 0));
        return;
      default:
        assertNever(place);
    }
  }

  #receiveNext(gateway: GatewayId, edit: SubmittedEdit, now: Millis, effects: RoomEffect[]): void {
    const { client } = edit.author;
    const reason = this.#reasonToRefuse(edit.payload, effects);
    if (reason !== undefined) {
      const retryAfterMs = reason === "too-large" ? 0 : this.#options.refusedRetryMs;
      this.#refusals.refused(client, Math.max(retryAfterMs, this.#options.gapQuietMs), now);
      effects.push(this.#refusal(gateway, edit, reason, edit.counter, retryAfterMs));
      return;
    }
    this.#refusals.accepted(client);
    this.#start.sequencer.accept(client, edit.counter);
    const unacked = this.#unacked.add(edit, now);
    if (showsTentative(this.#saving)) this.#show(unacked, effects);
  }

  #reasonToRefuse(payload: Uint8Array, effects: RoomEffect[]): NackReason | undefined {
    if (payload.byteLength > this.#options.recordBytesMax) return "too-large";
    if (this.#saving === "refusing") return "log-stalled";
    if (this.#unacked.hasRoomFor(payload)) return undefined;
    effects.push({ kind: "limit-reached", limit: "unacked-edits" });
    return "write-backpressure";
  }

  #receiveResubmit(gateway: GatewayId, edit: TentativeEdit, now: Millis, effects: RoomEffect[]): void {
    const { user, client, counter, ackedThrough, parentSeq, payload } = edit;
    const submitted = { author: { user, client }, counter, ackedThrough, parentSeq, payload };
    if (this.#deps.seal.isGenuine(this.#start.key, edit)) return this.#receiveEdit(gateway, submitted, now, effects);
    effects.push(this.#refusal(gateway, submitted, "forged", counter, 0));
  }

  #refusal(gateway: GatewayId, edit: SubmittedEdit, reason: NackReason, expected: number, retryAfterMs: number): RoomEffect {
    return { kind: "answer", gateway, answer: { kind: "refused", epoch: this.epoch, client: edit.author.client, counter: edit.counter, reason, expected, retryAfterMs } };
  }

  /** Everything that waits shares the next record, once none is in flight. */
  #appendNext(now: Millis, effects: RoomEffect[]): void {
    if (this.#paused) return;
    const taken = this.#unacked.takeNext(now);
    if (taken.length === 0) return;
    const firstSeq = (this.head + 1) as Seq;
    const users = new Map<ClientId, UserId>();
    const edits = taken.map(({ author, counter, parentSeq, payload }, index) => {
      users.set(author.client, author.user);
      // A parent can only come before its edit; a writer that says otherwise has seen a log that is no more.
      return { client: author.client, counter, parentSeq: Math.min(parentSeq, firstSeq + index - 1) as Seq, payload };
    });
    const stamp = this.#deps.nextStamp();
    const committed: CommittedEdits = { epoch: this.epoch, firstSeq, edits };
    const bytes = encodeEditsRecord({ ...stamp, users, edits: committed });
    const lastSeq = (firstSeq + edits.length - 1) as Seq;
    this.#appending = { edits: committed, record: { epoch: this.epoch, firstSeq, lastSeq, since: now, bytes: editsBytesOf(bytes) } };
    effects.push({ kind: "append", record: { id: stamp.id, bytes, expectedStreamSeq: this.#streamSeq }, edits: edits.length });
  }

  /** The stream has republished the record to every gateway: they acknowledge its edits to those who wrote them. */
  #receiveAppended(streamSeq: number, now: Millis, effects: RoomEffect[]): void {
    assert(this.#appending !== undefined, "only an append in flight can settle");
    const { edits, record } = this.#appending;
    this.#appending = undefined;
    this.#streamSeq = streamSeq;
    this.#unacked.settle();
    this.#start.sequencer.commit(edits, now);
    this.#start.backlog.append(record, now);
    this.#beacons.committed(now);
    this.#decideSaving(now, effects);

    for (const request of this.#catchUps.takeDeferred()) this.#receiveCatchUp(request, effects);
    this.#appendNext(now, effects);
  }

  #receiveCatchUp(request: CatchUpRequest, effects: RoomEffect[]): void {
    const { epoch, head } = this;
    const decision = this.#catchUps.decide(request, { epoch, head, inFlight: this.#unacked.inFlight });
    switch (decision.kind) {
      case "answers":
        for (const answer of decision.answers) effects.push(this.#catchUpAnswer(request, answer));
        return;
      case "read-log":
        effects.push({ kind: "read-log", request: decision.request, epoch, head, streamSeq: this.#streamSeq });
        return;
      case "deferred":
        return;
      case "full":
        effects.push({ kind: "limit-reached", limit: "deferred-catch-ups" });
        return;
      case "doubt":
        effects.push({ kind: "doubt", request });
        return;
      default:
        assertNever(decision);
    }
  }

  #catchUpAnswer({ gateway, request }: CatchUpRequest, answer: CatchUp): RoomEffect {
    return { kind: "answer", gateway, answer: { kind: "catch-up", request, epoch: this.epoch, head: this.head, answer } };
  }

  #receiveTick(now: Millis, effects: RoomEffect[]): void {
    this.#decideSaving(now, effects);
    if (this.#beacons.due(now)) effects.push({ kind: "broadcast", message: { kind: "beacon", epoch: this.epoch, head: this.head } });
    if (now - this.#lastSweep < SWEEP_MS) return;
    this.#lastSweep = now;
    this.#refusals.forgetPast(now);
    this.#start.backlog.expire(now);
    if (this.#start.sequencer.forgetSilent(now) > 0) effects.push({ kind: "limit-reached", limit: "dedupe-writers" });
  }

  #decideSaving(now: Millis, effects: RoomEffect[]): void {
    const state = decideSaving(this.#saving, this.#unacked.waits(now), this.#options);
    this.#saving = state;
    const news = this.#savingNews.due(state, now);
    if (news === "changed") effects.push({ kind: "saving-changed", state });
    if (news !== undefined) effects.push({ kind: "broadcast", message: { kind: "saving", epoch: this.epoch, state } });
    if (showsTentative(state)) for (const edit of this.#unacked.edits()) this.#show(edit, effects);
  }

  /** Each unacked edit goes out as tentative once. */
  #show(unacked: UnackedEdit, effects: RoomEffect[]): void {
    if (unacked.shown) return;
    unacked.shown = true;
    const { author, counter, ackedThrough, parentSeq, payload } = unacked;
    const edit = { ...author, counter, ackedThrough, parentSeq, payload };
    const mac = this.#deps.seal.sealOf(this.#start.key, edit);
    effects.push({ kind: "broadcast", message: { kind: "tentative", edit: { ...edit, epoch: this.epoch, mac } } });
  }
}
