/**
 * Decides about an incoming edit before the log has it. The edit is accepted in its writer's order, answered if the log
 * already has it, or refused with a reason. Accepted edits wait and share the next record. Rules INT1 to INT6.
 */

import { assert, assertNever } from "../../shared/assert.ts";
import { ONLY_EDIT_COUNTER_MIN, type OwnerReply, type SubmittedEdit } from "../../shared/bus/envelope.ts";
import { editsBytesOf, encodeEditsRecord, type RecordStamp } from "../../shared/bus/record.ts";
import { LazyMap } from "../../shared/collections/lazy-map.ts";
import type { ClientId, Epoch, Millis, RoomKey, Seq, UserId } from "../../shared/ids.ts";
import type { CommittedEdits, NackReason, SavingState, TentativeEdit } from "../../shared/wire/frames.ts";
import type { Seal } from "../ports.ts";
import { SavingAnnouncer, type AnnouncementOptions, type CommitDelays } from "./announcements.ts";
import type { BacklogRecord } from "./backlog.ts";
import type { Sequencer } from "./sequencer.ts";

export type EditIntakeOptions = GroupCommitOptions & {
  /** Milliseconds after which an edit refused for lack of space may be sent again. */
  readonly refusedRetryMs: number;
  /** Minimum interval between two answers to a writer whose counters have a gap. */
  readonly gapQuietMs: number;
};

export type IntakeResult =
  | { kind: "accepted"; edit: UnackedEdit }
  | { kind: "answered"; answer: OwnerReply }
  /** The edit is refused for lack of space. The refusal is counted. */
  | { kind: "full"; answer: OwnerReply }
  /** The edit already waits, or its writer was informed of a gap a moment ago. */
  | { kind: "passed-over" };

/** `saving`: new edits are refused while it is "refusing". */
type IntakeState = { readonly epoch: Epoch; readonly saving: SavingState };

const PASSED_OVER: IntakeResult = { kind: "passed-over" };

export class Intake {
  readonly #key: RoomKey;
  readonly #sequencer: Sequencer;
  readonly #unacked: GroupCommit;
  readonly #seal: Seal;
  readonly #options: EditIntakeOptions;
  readonly #refusals = new Refusals();

  constructor(key: RoomKey, parts: { sequencer: Sequencer; unacked: GroupCommit; seal: Seal }, options: EditIntakeOptions) {
    this.#key = key;
    this.#sequencer = parts.sequencer;
    this.#unacked = parts.unacked;
    this.#seal = parts.seal;
    this.#options = options;
  }

  receiveEdit(edit: SubmittedEdit, state: IntakeState, now: Millis): IntakeResult {
    const { client } = edit.author;
    const place = this.#sequencer.placeOf(client, edit.counter, edit.ackedThrough, edit.payload, now);
    switch (place.kind) {
      case "next":
        return this.#receiveNext(edit, state, now);
      case "waiting":
        return PASSED_OVER;
      case "committed": {
        const { seq, exact } = place;
        return { kind: "answered", answer: { kind: "acked", epoch: state.epoch, client, counter: edit.counter, seq, exact } };
      }
      case "gap":
        if (!this.#refusals.mayRefuse(client, now)) return PASSED_OVER;
        this.#refusals.noteRefusal(client, this.#options.gapQuietMs, now);
        return { kind: "answered", answer: refusal(state, edit, "gap", place.expected, 0) };
      case "key-reused":
        return { kind: "answered", answer: { kind: "key-reused", epoch: state.epoch, client, counter: edit.counter } };
      default:
        return assertNever(place);
    }
  }

  /**
   * Accepted only if the room has no edit. A repeat is answered like any other. While another edit waits for the log
   * there is no answer: the gateway sends this edit again when the other one is stored or lost. It is never shown as
   * tentative, because any client with a tentative copy could submit it after another edit became the first.
   */
  receiveFirstEdit(edit: SubmittedEdit, state: IntakeState, now: Millis): IntakeResult {
    const { author, counter, ackedThrough, payload } = edit;
    if (this.#sequencer.placeOf(author.client, counter, ackedThrough, payload, now).kind !== "next")
      return this.receiveEdit(edit, state, now);
    if (this.#sequencer.head > 0)
      return { kind: "answered", answer: { kind: "not-first", epoch: state.epoch, client: author.client, counter } };
    if (this.#unacked.size > 0) return PASSED_OVER;
    const taken = this.receiveEdit(edit, state, now);
    if (taken.kind === "accepted") taken.edit.shown = "never";
    return taken;
  }

  /**
   * An edit that another client has a tentative copy of, and sends for a writer that may be gone. A room server's seal
   * proves its origin.
   */
  receiveResubmit(edit: TentativeEdit, state: IntakeState, now: Millis): IntakeResult {
    const { user, client, counter, ackedThrough, parentSeq, payload } = edit;
    const submitted = { author: { user, client }, counter, ackedThrough, parentSeq, payload };
    if (this.#seal.isGenuine(this.#key, edit)) return this.receiveEdit(submitted, state, now);
    return { kind: "answered", answer: refusal(state, submitted, "forged", counter, 0) };
  }

  /** No remembered refusal applies to this writer. */
  get isIdle(): boolean {
    return this.#refusals.size === 0;
  }

  forgetExpired(now: Millis): void {
    this.#refusals.forgetExpired(now);
  }

  #receiveNext(edit: SubmittedEdit, state: IntakeState, now: Millis): IntakeResult {
    const { client } = edit.author;
    const reason = this.#reasonToRefuse(edit.payload, state);
    if (reason !== undefined) {
      const retryAfterMs = reason === "too-large" ? 0 : this.#options.refusedRetryMs;
      this.#refusals.noteRefusal(client, Math.max(retryAfterMs, this.#options.gapQuietMs), now);
      return {
        kind: reason === "write-backpressure" ? "full" : "answered",
        answer: refusal(state, edit, reason, edit.counter, retryAfterMs),
      };
    }
    this.#refusals.noteAccepted(client);
    this.#sequencer.accept(client, edit.counter);
    const accepted = this.#unacked.add(edit, now);
    if (edit.counter >= ONLY_EDIT_COUNTER_MIN) accepted.shown = "never"; // The counter follows no other, so no member could show the edit.
    return { kind: "accepted", edit: accepted };
  }

  #reasonToRefuse(payload: Uint8Array, { saving }: IntakeState): NackReason | undefined {
    if (payload.byteLength > this.#options.recordBytesMax) return "too-large";
    if (saving === "refusing") return "log-stalled";
    return this.#unacked.hasRoomFor(payload) ? undefined : "write-backpressure";
  }
}

function refusal(
  { epoch }: IntakeState,
  { author, counter }: SubmittedEdit,
  reason: NackReason,
  expected: number,
  retryAfterMs: number,
): OwnerReply {
  return { kind: "refused", epoch, client: author.client, counter, reason, expected, retryAfterMs };
}

/**
 * Limits the number of refusals. A refused edit refuses all later ones of its writer that were already sent. They get
 * no separate answers until the writer had time to start again. Rules REF1, REF2.
 */
export class Refusals {
  readonly #quietUntil = new LazyMap<ClientId, Millis>();

  get size(): number {
    return this.#quietUntil.size;
  }

  /** Whether a gap in this writer's counters is answered now. */
  mayRefuse(client: ClientId, now: Millis): boolean {
    return now >= (this.#quietUntil.get(client) ?? 0);
  }

  noteRefusal(client: ClientId, quietMs: number, now: Millis): void {
    this.#quietUntil.set(client, (now + quietMs) as Millis);
  }

  /** The writer's next edit was accepted, so the next gap is a new one. */
  noteAccepted(client: ClientId): void {
    if (this.#quietUntil.size > 0) this.#quietUntil.delete(client);
  }

  forgetExpired(now: Millis): void {
    for (const [client, until] of this.#quietUntil) if (now >= until) this.#quietUntil.delete(client);
  }
}

export type UnackedEdit = SubmittedEdit & {
  readonly acceptedAt: Millis;
  /** Whether the edit was sent as tentative. "never": it must not be sent as tentative. */
  shown: "no" | "yes" | "never";
};

type GroupCommitOptions = {
  readonly unackedEditsMax: number;
  readonly unackedBytesMax: number;
  /** Payload bytes in one record; no edit is larger. */
  readonly recordBytesMax: number;
};

const LONG_AGO = Number.NEGATIVE_INFINITY as Millis;
const NONE: readonly UnackedEdit[] = [];

/**
 * The edits of one room that the log does not have yet: those of the append in flight, and those that wait and share
 * the next record. One append at a time keeps the order of the log. A throttled room starts records less often, so more
 * edits share each record. Rules GRP1 to GRP6.
 */
export class GroupCommit {
  readonly #options: GroupCommitOptions;
  #inFlight: readonly UnackedEdit[] = NONE;
  #inFlightSince = LONG_AGO;
  #everyMs = 0;
  #waiting: UnackedEdit[] = [];
  #bytes = 0;

  constructor(options: GroupCommitOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#inFlight.length + this.#waiting.length;
  }

  /** The room has no edits here, and starts a record as soon as there is one. */
  get isIdle(): boolean {
    return this.size === 0 && this.#everyMs === 0;
  }

  /** Number of edits in the append in flight. */
  get inFlight(): number {
    return this.#inFlight.length;
  }

  /** The age of the append in flight, and the waiting time of the oldest edit. */
  delays(now: Millis): CommitDelays {
    const oldest = this.#inFlight[0] ?? this.#waiting[0];
    return {
      appendMs: this.#inFlight.length === 0 ? 0 : now - this.#inFlightSince,
      oldestMs: oldest === undefined ? 0 : now - oldest.acceptedAt,
    };
  }

  hasRoomFor(payload: Uint8Array): boolean {
    return this.size < this.#options.unackedEditsMax && this.#bytes + payload.byteLength <= this.#options.unackedBytesMax;
  }

  /** Minimum time between the starts of two records; 0 for none. */
  gatherFor(everyMs: number): void {
    this.#everyMs = everyMs;
  }

  /** Copies the payload, because a view would keep all of the network's buffer. */
  add(edit: SubmittedEdit, now: Millis): UnackedEdit {
    const { author, counter, ackedThrough, parentSeq, payload } = edit;
    assert(payload.byteLength <= this.#options.recordBytesMax, "an edit too large for a record was refused before");
    const unacked: UnackedEdit = {
      author,
      counter,
      ackedThrough,
      parentSeq,
      payload: new Uint8Array(payload),
      acceptedAt: now,
      shown: "no",
    };
    this.#waiting.push(unacked);
    this.#bytes += payload.byteLength;
    return unacked;
  }

  /**
   * The edits of the next record, which is in flight from now on. Empty while another append is in flight, too early
   * after it, or if no edit waits.
   */
  takeNext(now: Millis): readonly UnackedEdit[] {
    if (this.#inFlight.length > 0 || this.#waiting.length === 0 || now - this.#inFlightSince < this.#everyMs) return NONE;
    let count = 0;
    let bytes = 0;
    for (; count < this.#waiting.length; count++) {
      bytes += this.#waiting[count]!.payload.byteLength;
      if (bytes > this.#options.recordBytesMax) break;
    }
    this.#inFlight = count === this.#waiting.length ? this.#waiting : this.#waiting.slice(0, count);
    this.#waiting = this.#waiting.slice(count);
    this.#inFlightSince = now;
    return this.#inFlight;
  }

  /** The log has stored the record in flight. */
  settle(): void {
    for (const { payload } of this.#inFlight) this.#bytes -= payload.byteLength;
    this.#inFlight = NONE;
  }

  /** All unacknowledged edits in order. */
  *edits(): Iterable<UnackedEdit> {
    yield* this.#inFlight;
    yield* this.#waiting;
  }
}

/** `forBacklog`: the record for the backlog, once the log has it. */
export type NextRecord = {
  readonly id: string;
  readonly bytes: Uint8Array;
  readonly committed: CommittedEdits;
  readonly forBacklog: BacklogRecord;
};

/** Turns accepted edits into the log record that gives them their seqs. */
export function nextRecord(taken: readonly UnackedEdit[], at: { epoch: Epoch; head: Seq; stamp: RecordStamp; now: Millis }): NextRecord {
  const { epoch, head, stamp, now } = at;
  const firstSeq = (head + 1) as Seq;
  const users = new Map<ClientId, UserId>();
  const edits = taken.map(({ author, counter, parentSeq, payload }) => {
    users.set(author.client, author.user);
    return { client: author.client, counter, parentSeq, payload };
  });
  const committed: CommittedEdits = { epoch, firstSeq, edits };
  const bytes = encodeEditsRecord({ ...stamp, users, edits: committed });
  const lastSeq = (firstSeq + edits.length - 1) as Seq;
  return { id: stamp.id, bytes, committed, forBacklog: { firstSeq, lastSeq, since: now, bytes: editsBytesOf(bytes) } };
}

/**
 * The parts that a room needs only while a user writes. They are created with the first edit and dropped when empty:
 * they were a third of an idle room's memory, about 300 bytes.
 */
export class WritingState {
  readonly unacked: GroupCommit;
  readonly intake: Intake;
  readonly savingAnnouncer: SavingAnnouncer;

  constructor(
    key: RoomKey,
    parts: { readonly sequencer: Sequencer; readonly seal: Seal },
    options: EditIntakeOptions & AnnouncementOptions,
  ) {
    this.unacked = new GroupCommit(options);
    this.intake = new Intake(key, { ...parts, unacked: this.unacked }, options);
    this.savingAnnouncer = new SavingAnnouncer(options);
  }

  /** Whether a new instance would behave the same. */
  get isIdle(): boolean {
    return this.unacked.isIdle && this.intake.isIdle && this.savingAnnouncer.isIdle;
  }
}
