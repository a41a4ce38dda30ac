/**
 * One room while this server owns it: takes what happened, answers with what should happen next.
 *
 * Deterministic: `ownership/ownership.ts` feeds it, `ownership/hosted-room-host.ts` carries out its effects; what an effect
 * leads to comes back as another input. The invariant: an edit has a seq, and is acknowledged, only once the log holds it.
 */

import { assert, assertNever } from "../../shared/assert.ts";
import type { CatchUp } from "../../shared/bus/envelope.ts";
import type { LogEnd } from "../../shared/bus/placement-messages.ts";
import type { EpochHistory } from "../../shared/bus/epoch-history.ts";
import type { RecordStamp } from "../../shared/bus/record.ts";
import type { Epoch, GatewayId, Millis, RoomKey, Seq } from "../../shared/ids.ts";
import type { SavingState } from "../../shared/wire/frames.ts";
import type { Backlog } from "./backlog.ts";
import { Beacons, type BeaconsOptions } from "./beacons.ts";
import { type CatchUpRequest, CatchUps, type CatchUpsOptions } from "./catch-ups.ts";
import type { GroupCommit, UnackedEdit } from "./group-commit.ts";
import type { IntakeOptions, Taken } from "./intake.ts";
import { type NextRecord, nextRecord } from "./next-record.ts";
import type { Seal } from "../ports.ts";
import type { RoomEffect, RoomInput } from "./room-messages.ts";
import { decideSaving, type SavingOptions, showsTentative } from "./saving.ts";
import type { Sequencer } from "./sequencer.ts";
import { Writing } from "./writing.ts";

export type RoomOptions = IntakeOptions & SavingOptions & BeaconsOptions & CatchUpsOptions;

/** What the claim established. */
export type RoomStart = {
  readonly key: RoomKey;
  readonly epoch: Epoch;
  /** The room's last record. */
  readonly last: { readonly id: string; readonly streamSeq: number };
  readonly sequencer: Sequencer;
  readonly backlog: Backlog;
  /** Those of the log, this one the last. */
  readonly epochs: EpochHistory;
};

/** `nextStamp`: what the next record is marked with. */
export type RoomDeps = { readonly seal: Seal; readonly nextStamp: () => RecordStamp };

/** How often what has grown old is looked for. */
const SWEEP_MS = 5_000;

export type Pace = "soon" | "at-leisure" | "never";

export class Room {
  readonly #start: RoomStart;
  readonly #options: RoomOptions;
  readonly #deps: RoomDeps;
  /** Undefined: nobody writes. */
  #writing: Writing | undefined;
  readonly #beacons: Beacons;
  readonly #catchUps: CatchUps;
  #last: RoomStart["last"];
  #paused = false;
  /** The line was lost since the last record was known to be there: then the log may have lost it, and have another in its place. */
  #isEndUnproven = false;
  #saving: SavingState = "saved";
  #lastUsed: Millis;
  #lastSweep: Millis;
  /** The record in flight, for the backlog once it is in the log. */
  #appending: NextRecord | undefined;

  constructor(start: RoomStart, options: RoomOptions, deps: RoomDeps, now: Millis) {
    this.#start = start;
    this.#options = options;
    this.#deps = deps;
    this.#beacons = new Beacons(options, now);
    this.#catchUps = new CatchUps(start.backlog, options);
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

  /** The room's last record, while none is on its way. */
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

  /** When it wants its next tick: soon, while somebody waits for it; at leisure, where it only has its head to tell again. */
  get pace(): Pace {
    if (this.unacked > 0 || this.#writing?.savingNews.pending === true) return "soon";
    return this.#beacons.pending ? "at-leisure" : "never";
  }

  /** False since the line was lost, until the log was looked at. */
  get isEndProven(): boolean {
    return !this.#isEndUnproven;
  }

  /** For how long nobody was there, and no edit and no catch-up came. */
  idleMs(now: Millis): number {
    return this.unacked > 0 ? 0 : now - this.#lastUsed;
  }

  receive(input: RoomInput, now: Millis): RoomEffect[] {
    const effects: RoomEffect[] = [];
    switch (input.kind) {
      case "edits":
        this.#lastUsed = now;
        for (const edit of input.edits)
          this.#receiveTaken(input.gateway, this.#begunWriting.intake.receiveEdit(edit, this.#intakeState(), now), effects);
        this.#appendNext(now, effects);
        break;
      case "first-edit":
        this.#lastUsed = now;
        this.#receiveTaken(input.gateway, this.#begunWriting.intake.receiveFirstEdit(input.edit, this.#intakeState(), now), effects);
        this.#appendNext(now, effects);
        break;
      case "resubmit":
        this.#lastUsed = now;
        this.#receiveTaken(input.gateway, this.#begunWriting.intake.receiveResubmit(input.edit, this.#intakeState(), now), effects);
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
      case "gather":
        if (input.everyMs > 0 || this.#writing !== undefined) this.#begunWriting.unacked.gatherFor(input.everyMs);
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

  /** The owner has looked at the log: no later owner is there, so the position is not of this log. */
  answerDoubt(request: CatchUpRequest): RoomEffect {
    return this.#catchUpAnswer(request, { kind: "resync", reason: "other-epoch" });
  }

  /** The line is back: nothing is appended before the log was looked at. Of a record on its way `jetstream-append.ts` finds out. */
  receiveLineBack(): void {
    this.#isEndUnproven = this.#appending === undefined;
  }

  /** The log has the last record, and nobody else's behind it. */
  receiveEndProven(now: Millis): RoomEffect[] {
    this.#isEndUnproven = false;
    const effects: RoomEffect[] = [];
    this.#appendNext(now, effects);
    return effects;
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

  get #begunWriting(): Writing {
    return (this.#writing ??= new Writing(this.#start.key, { sequencer: this.#start.sequencer, seal: this.#deps.seal }, this.#options));
  }

  #intakeState(): { epoch: Epoch; saving: SavingState } {
    return { epoch: this.epoch, saving: this.#saving };
  }

  #receiveTaken(gateway: GatewayId, taken: Taken, effects: RoomEffect[]): void {
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

  /** Everything that waits shares the next record, once none is in flight. */
  #appendNext(now: Millis, effects: RoomEffect[]): void {
    if (this.#paused || this.#writing === undefined) return;
    if (this.#isEndUnproven) {
      if (this.unacked > 0) effects.push({ kind: "doubt", request: undefined });
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

  /** The stream has republished the record to every gateway: they acknowledge its edits to those who wrote them. */
  #receiveAppended(streamSeq: number, now: Millis, effects: RoomEffect[]): void {
    assert(this.#appending !== undefined && this.#writing !== undefined, "only an append in flight can settle");
    const { id, committed, forBacklog } = this.#appending;
    this.#appending = undefined;
    this.#last = { id, streamSeq };
    this.#writing.unacked.settle();
    this.#start.sequencer.commit(committed, now);
    this.#start.backlog.append(forBacklog, now);
    this.#beacons.committed(now);
    this.#decideSaving(now, effects);

    for (const request of this.#catchUps.takeDeferred()) this.#receiveCatchUp(request, effects);
    this.#appendNext(now, effects);
  }

  #receiveCatchUp(request: CatchUpRequest, effects: RoomEffect[]): void {
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
    this.#appendNext(now, effects); // What has gathered.
    this.#decideSaving(now, effects);
    if (this.#beacons.due(now)) effects.push({ kind: "broadcast", message: { kind: "beacon", epoch: this.epoch, head: this.head } });
    if (now - this.#lastSweep < SWEEP_MS) return;
    this.#lastSweep = now;
    this.#writing?.intake.forgetPast(now);
    if (this.#writing?.isOver === true) this.#writing = undefined;
    this.#start.backlog.expire(now);
    if (this.#start.sequencer.forgetSilent(now) > 0) effects.push({ kind: "limit-reached", limit: "dedupe-writers" });
  }

  #decideSaving(now: Millis, effects: RoomEffect[]): void {
    if (this.#writing === undefined) return; // All is saved.
    const { unacked, savingNews } = this.#writing;
    const state = decideSaving(this.#saving, unacked.waits(now), this.#options);
    this.#saving = state;
    const news = savingNews.due(state, now);
    if (news === "changed") effects.push({ kind: "saving-changed", state });
    if (news !== undefined) effects.push({ kind: "broadcast", message: { kind: "saving", epoch: this.epoch, state } });
    if (!showsTentative(state)) return;
    if (news === "again") this.#forgetShown(unacked);
    for (const edit of unacked.edits()) this.#show(edit, effects);
  }

  /** A gateway may have missed them, and clients show an author's edits in order: one that is lost would hold back all behind it. The oldest, as many as share a record. */
  #forgetShown(unacked: GroupCommit): void {
    let bytes = 0;
    for (const edit of unacked.edits()) {
      if (edit.shown !== "yes") continue;
      bytes += edit.payload.byteLength;
      if (bytes > this.#options.recordBytesMax) return;
      edit.shown = "no";
    }
  }

  /** Each unacked edit that may goes out as tentative, and again only for those who missed it. */
  #show(unacked: UnackedEdit, effects: RoomEffect[]): void {
    if (unacked.shown !== "no") return;
    unacked.shown = "yes";
    const { author, counter, ackedThrough, parentSeq, payload } = unacked;
    const edit = { ...author, counter, ackedThrough, parentSeq, payload };
    const mac = this.#deps.seal.sealOf(this.#start.key, edit);
    effects.push({ kind: "broadcast", message: { kind: "tentative", edit: { ...edit, epoch: this.epoch, mac } } });
  }
}
