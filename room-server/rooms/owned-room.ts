/**
 * One room while this server owns it: takes inputs and returns effects. Deterministic: `ownership/ownership.ts` passes
 * inputs, and `ownership/hosted-room-host.ts` carries out the effects, whose results come back as inputs. The
 * invariant: an edit has a seq, and is acknowledged, only once the log contains it.
 */

import { assert, assertNever } from "../../shared/assert.ts";
import type { CatchUp, FromGateway } from "../../shared/bus/envelope.ts";
import type { EpochHistory } from "../../shared/bus/epoch-history.ts";
import type { LogEnd } from "../../shared/bus/placement-messages.ts";
import type { RecordStamp } from "../../shared/bus/record.ts";
import type { Epoch, GatewayId, Millis, RoomKey, Seq } from "../../shared/ids.ts";
import type { SavingState } from "../../shared/wire/frames.ts";
import type { Seal } from "../ports.ts";
import { decideSaving, type SavingOptions, showsTentative, Beacons, type BeaconsOptions } from "./announcements.ts";
import type { Backlog } from "./backlog.ts";
import { type CatchUpRequest, CatchUpAnswers, type CatchUpsOptions } from "./catch-ups.ts";
import type { EditIntakeOptions, IntakeResult, GroupCommit, UnackedEdit, NextRecord } from "./intake.ts";
import { nextRecord, WritingState } from "./intake.ts";
import type { OwnedRoomEffect, OwnedRoomInput } from "./room-messages.ts";
import type { Sequencer } from "./sequencer.ts";

export type OwnedRoomOptions = EditIntakeOptions & SavingOptions & BeaconsOptions & CatchUpsOptions;

/** The result of the claim. */
export type OwnedRoomStart = {
  readonly key: RoomKey;
  readonly epoch: Epoch;
  /** The room's last record. */
  readonly last: { readonly id: string; readonly streamSeq: number };
  readonly sequencer: Sequencer;
  readonly backlog: Backlog;
  /** The log's epochs, this one last. */
  readonly epochs: EpochHistory;
};

/** `nextStamp`: the mark of the next record. */
export type OwnedRoomDeps = { readonly seal: Seal; readonly nextStamp: () => RecordStamp };

/** Interval of removing expired entries. */
const SWEEP_MS = 5_000;

export type TickUrgency = "soon" | "low-priority" | "never";

export class OwnedRoom {
  readonly #start: OwnedRoomStart;
  readonly #options: OwnedRoomOptions;
  readonly #deps: OwnedRoomDeps;
  /** Undefined: the room has no recent edits. */
  #writing: WritingState | undefined;
  readonly #beacons: Beacons;
  readonly #catchUps: CatchUpAnswers;
  #last: OwnedRoomStart["last"];
  #isPaused = false;
  /** False: the connection was lost after the last record was confirmed. The log may have lost that record and have another in its place. */
  #isEndProven = true;
  #saving: SavingState = "saved";
  #lastUsed: Millis;
  #lastSweep: Millis;
  /** The record in flight, kept for the backlog. */
  #appending: NextRecord | undefined;
  /** The storage of the log refused the record in flight. */
  #isLogFull = false;

  constructor(start: OwnedRoomStart, options: OwnedRoomOptions, deps: OwnedRoomDeps, now: Millis) {
    this.#start = start;
    this.#options = options;
    this.#deps = deps;
    this.#beacons = new Beacons(options, now);
    this.#catchUps = new CatchUpAnswers(start.backlog, options);
    this.#last = start.last;
    this.#lastUsed = now;
    this.#lastSweep = now;
  }

  get epoch(): Epoch {
    return this.#start.epoch;
  }

  get head(): Seq {
    return this.#start.sequencer.head;
  }

  /** The room's last record, while none is in flight. */
  get logEnd(): LogEnd {
    return { ...this.#last, epoch: this.epoch, head: this.head };
  }

  get unacked(): number {
    return this.#writing?.unacked.size ?? 0;
  }

  /** Whether a record is on its way to the log. */
  get isAppending(): boolean {
    return this.#appending !== undefined;
  }

  /** Edits after an unproven end of the log, or while the log stores no records, go to the next owner. */
  get hasEditsToAppend(): boolean {
    return this.unacked > 0 && this.isEndProven && !this.#isLogFull;
  }

  /** Urgency of the next tick: "soon" while an edit waits, otherwise low, for repeated announcements. */
  get tickUrgency(): TickUrgency {
    if (this.unacked > 0) return "soon";
    return this.#beacons.isPending || this.#writing?.savingAnnouncer.isPending === true ? "low-priority" : "never";
  }

  /** False from a connection loss until the log was checked. */
  get isEndProven(): boolean {
    return this.#isEndProven;
  }

  /** Milliseconds since the last member, edit or catch-up. */
  idleMs(now: Millis): number {
    return this.unacked > 0 ? 0 : now - this.#lastUsed;
  }

  receiveRoomInput(input: OwnedRoomInput, now: Millis): OwnedRoomEffect[] {
    const effects: OwnedRoomEffect[] = [];
    switch (input.kind) {
      case "edits":
      case "first-edit":
      case "resubmit":
        this.#lastUsed = now;
        this.#receiveEdits(input, now, effects);
        this.#appendNext(now, effects);
        break;
      case "catch-up-request":
        this.#lastUsed = now;
        this.#receiveCatchUp(input, effects);
        break;
      case "appended":
        this.#receiveAppended(input.streamSeq, now, effects);
        break;
      case "log-full":
        this.#isLogFull = this.isAppending;
        this.#decideSaving(now, effects);
        break;
      case "inhabited":
        this.#lastUsed = now;
        break;
      case "gather":
        this.#startedWriting.unacked.gatherFor(input.everyMs);
        this.#appendNext(now, effects);
        break;
      case "tick":
        this.#receiveTick(now, effects);
        break;
      default:
        assertNever(input);
    }
    return effects;
  }

  /** The log shows no later owner, so the position is not in this log. */
  answerOwnershipCheck(request: CatchUpRequest): OwnedRoomEffect {
    return this.#catchUpAnswer(request, { kind: "resync", reason: "other-epoch" });
  }

  /** The connection is back. Appends wait until the log was checked. `jetstream-append.ts` settles a record in flight. */
  receiveReconnect(): void {
    this.#isEndProven = this.#appending !== undefined;
  }

  /** The log has the last record, and no other owner's record after it. */
  receiveEndProven(now: Millis): OwnedRoomEffect[] {
    this.#isEndProven = true;
    const effects: OwnedRoomEffect[] = [];
    this.#appendNext(now, effects);
    return effects;
  }

  /** Edits wait from now on, except the edits in flight. */
  pauseAppends(): void {
    this.#isPaused = true;
  }

  resumeAppends(now: Millis): OwnedRoomEffect[] {
    this.#isPaused = false;
    const effects: OwnedRoomEffect[] = [];
    this.#appendNext(now, effects);
    return effects;
  }

  /** Releases the room's part of the memory budget. */
  end(): void {
    this.#start.backlog.clear();
  }

  get #startedWriting(): WritingState {
    return (this.#writing ??= new WritingState(
      this.#start.key,
      { sequencer: this.#start.sequencer, seal: this.#deps.seal },
      this.#options,
    ));
  }

  #receiveEdits(input: FromGateway & { kind: "edits" | "first-edit" | "resubmit" }, now: Millis, effects: OwnedRoomEffect[]): void {
    const { intake } = this.#startedWriting;
    const { gateway } = input;
    const state = { epoch: this.epoch, saving: this.#saving };
    if (input.kind === "first-edit") this.#receiveTaken(gateway, intake.receiveFirstEdit(input.edit, state, now), effects);
    else if (input.kind === "resubmit") this.#receiveTaken(gateway, intake.receiveResubmit(input.edit, state, now), effects);
    else for (const edit of input.edits) this.#receiveTaken(gateway, intake.receiveEdit(edit, state, now), effects);
  }

  #receiveTaken(gateway: GatewayId, taken: IntakeResult, effects: OwnedRoomEffect[]): void {
    switch (taken.kind) {
      case "accepted":
        if (showsTentative(this.#saving)) this.#show(taken.edit, effects);
        return;
      case "full":
        effects.push({ kind: "limit-reached", limit: "unacked-edits" }, { kind: "answer", gateway, answer: taken.answer });
        return;
      case "answered":
        effects.push({ kind: "answer", gateway, answer: taken.answer });
        return;
      case "passed-over":
        return;
      default:
        assertNever(taken);
    }
  }

  /** All waiting edits share the next record, which is sent once no other record is in flight. */
  #appendNext(now: Millis, effects: OwnedRoomEffect[]): void {
    if (this.#isPaused || this.#writing === undefined) return;
    if (!this.#isEndProven) {
      if (this.unacked > 0) effects.push({ kind: "check-ownership", request: undefined });
      return;
    }
    const taken = this.#writing.unacked.takeNext(now);
    if (taken.length === 0) return;
    const stamp = this.#deps.nextStamp();
    this.#appending = nextRecord(taken, { epoch: this.epoch, head: this.head, stamp, now });
    effects.push({
      kind: "append",
      record: { id: stamp.id, bytes: this.#appending.bytes, expectedId: this.#last.id, expectedStreamSeq: this.#last.streamSeq },
      edits: taken.length,
    });
  }

  /** The stream has republished the record to every gateway, and gateways acknowledge its edits to their authors. */
  #receiveAppended(streamSeq: number, now: Millis, effects: OwnedRoomEffect[]): void {
    assert(this.#appending !== undefined && this.#writing !== undefined, "only an append in flight can settle");
    const { id, committed, forBacklog } = this.#appending;
    this.#appending = undefined;
    this.#isLogFull = false;
    this.#last = { id, streamSeq };
    this.#writing.unacked.settle();
    this.#start.sequencer.commit(committed, now);
    this.#start.backlog.append(forBacklog, now);
    this.#beacons.committed(now);
    this.#decideSaving(now, effects);

    for (const request of this.#catchUps.takeDeferred()) this.#receiveCatchUp(request, effects);
    this.#appendNext(now, effects);
  }

  #receiveCatchUp(request: CatchUpRequest, effects: OwnedRoomEffect[]): void {
    const { epoch, head } = this;
    const { epochs } = this.#start;
    const decision = this.#catchUps.decide(request, { epoch, epochs, head, inFlight: this.#writing?.unacked.inFlight ?? 0 });
    switch (decision.kind) {
      case "resync":
        if (decision.isForgotten) effects.push({ kind: "limit-reached", limit: "epochs" });
        effects.push(this.#catchUpAnswer(request, decision.answer));
        return;
      case "answer":
        effects.push(this.#catchUpAnswer(request, decision.answer));
        return;
      case "read-log":
        effects.push({ kind: "read-log", request: decision.request, epoch, head, streamSeq: this.#last.streamSeq });
        return;
      case "deferred":
        return;
      case "full":
        effects.push({ kind: "limit-reached", limit: "deferred-catch-ups" });
        return;
      case "check-ownership":
        effects.push({ kind: "check-ownership", request });
        return;
      default:
        assertNever(decision);
    }
  }

  #catchUpAnswer({ gateway, request }: CatchUpRequest, answer: CatchUp): OwnedRoomEffect {
    return { kind: "answer", gateway, answer: { kind: "catch-up", request, epoch: this.epoch, head: this.head, answer } };
  }

  #receiveTick(now: Millis, effects: OwnedRoomEffect[]): void {
    this.#appendNext(now, effects); // Appends the edits that were collected in the meantime.
    this.#decideSaving(now, effects);
    if (this.#beacons.due(now)) effects.push({ kind: "broadcast", message: { kind: "beacon", epoch: this.epoch, head: this.head } });
    if (now - this.#lastSweep < SWEEP_MS) return;
    this.#lastSweep = now;
    this.#writing?.intake.forgetExpired(now);
    if (this.#writing?.isIdle === true) this.#writing = undefined;
    this.#start.backlog.expire(now);
    if (this.#start.sequencer.forgetSilent(now) > 0) effects.push({ kind: "limit-reached", limit: "dedupe-writers" });
  }

  #decideSaving(now: Millis, effects: OwnedRoomEffect[]): void {
    if (this.#writing === undefined) return; // All edits are saved.
    const { unacked, savingAnnouncer } = this.#writing;
    const { appendMs, oldestMs } = unacked.delays(now);
    // Before an append the log is asked for its end. A slow log answers that late too.
    const delays = { appendMs: this.#isEndProven ? appendMs : oldestMs, oldestMs };
    const state = this.#isLogFull ? "refusing" : decideSaving(this.#saving, delays, this.#options);
    this.#saving = state;
    const announcement = savingAnnouncer.due(state, now);
    if (announcement === "changed") effects.push({ kind: "saving-changed", state });
    if (announcement !== undefined) effects.push({ kind: "broadcast", message: { kind: "saving", epoch: this.epoch, state } });
    if (!showsTentative(state)) return;
    if (announcement === "again") this.#forgetShown(unacked);
    for (const edit of unacked.edits()) this.#show(edit, effects);
  }

  /**
   * Gateways may have missed tentative edits. Clients show an author's edits in order, so one lost edit would hide all
   * later ones. Sends the oldest edits again, up to the size of a record.
   */
  #forgetShown(unacked: GroupCommit): void {
    let bytes = 0;
    for (const edit of unacked.edits()) {
      if (edit.shown !== "yes") continue;
      bytes += edit.payload.byteLength;
      if (bytes > this.#options.recordBytesMax) return;
      edit.shown = "no";
    }
  }

  /** Sends each unacknowledged edit as tentative once, and again only for gateways that missed it. */
  #show(unacked: UnackedEdit, effects: OwnedRoomEffect[]): void {
    if (unacked.shown !== "no") return;
    unacked.shown = "yes";
    const { author, counter, ackedThrough, parentSeq, payload } = unacked;
    const edit = { ...author, counter, ackedThrough, parentSeq, payload };
    const mac = this.#deps.seal.sealOf(this.#start.key, edit);
    effects.push({ kind: "broadcast", message: { kind: "tentative", edit: { ...edit, epoch: this.epoch, mac } } });
  }
}
