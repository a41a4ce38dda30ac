/**
 * The records on their way to the log: decides what is sent again, and finds out each outcome with certainty.
 * `io/jetstream-append.ts` carries out the effects and passes back what it receives and reads.
 *
 * Without an answer in time the identical bytes are sent again. If the first copy was stored, the log reports a wrong
 * expected sequence. Then the id of the room's last record shows whether this record was stored.
 *
 * A replicated stream takes the records of several rooms in one atomic batch (append-queue.ts). If the stream refuses
 * the batch, it has stored none of them, and each is sent again alone.
 *
 * On a full disk a stream does not answer at all. A stream without replicas handles its messages in order. So each
 * repeated copy is followed by a test message that the stream refuses without storing it. If the refusal arrives and no
 * answer to the copy, the stream stores no records.
 *
 * After a connection loss the log may have lost its end. It may then have another record at the expected sequence, or
 * may have lost the records of a later owner. So a record in flight is sent again only if the last record, read over
 * the new connection, has the expected id, and no checkpoint covers a later record.
 */

import type { Millis, RoomKey } from "../../shared/ids.ts";
import type { AppendOutcome, KnownCheckpoint, LastRecord, OutgoingRecord } from "../ports.ts";
import { outcomeByLast, outcomeOfAck } from "./append-outcome.ts";
import { AppendQueue } from "./append-queue.ts";

/** Deadlines are counted in checks. With a clock that jumps, all records would be sent again, or none until the jump has passed. */
export const CHECK_MS = 50;
const UNAVAILABLE_RETRY_MS = 100;
/** Minimum time between two warnings: while a stream has no leader, each of thousands of rooms is refused ten times a second. */
const WARNING_MS_MIN = 1_000;
/** Maximum number of reads that begin at one check after a reconnect, because JetStream drops requests that do not fit its queue. */
const READS_AT_ONCE = 200;
/** With fewer appends in flight, a batch would delay records more than it saves (ADR 62). */
const ALONE_MAX = 8;

/**
 * `appendAnswerMsMax`: a record without an answer is sent again after this time. `aloneMax`: the number of appends in
 * flight in a partition from which further ones are sent in batches. `takesBatches`: whether the partition's stream
 * takes batches.
 */
export type AppendsOptions = {
  readonly partitions: number;
  readonly appendAnswerMsMax: number;
  readonly aloneMax?: number;
  readonly takesBatches: (partition: number) => boolean;
};

export type Append = {
  readonly token: string;
  readonly partition: number;
  readonly room: RoomKey;
  readonly record: OutgoingRecord;
  readonly begunAt: Millis;
  readonly begunCheck: number;
  /** The batch in which it was last sent. */
  batch: string | undefined;
  step: Step;
};

/** `nextAt`: the check at which the next action is due. */
type Step =
  /** In the partition's queue, and not sent yet. */
  | { readonly kind: "queued" }
  /**
   * The record is sent again at that check, unless its outcome comes first. `cause`: the reason of that repetition.
   * "unavailable": NATS has answered, and the log did not accept the record.
   */
  | { readonly kind: "sent"; readonly nextAt: number; readonly cause: "silence" | "unavailable" }
  /** The log reported another last record than expected, so the last record is read. */
  | { readonly kind: "reading" }
  /**
   * The connection was lost after the expected record was known to be last. The last record is read, repeatedly,
   * before the record is sent.
   */
  | { readonly kind: "unproven"; nextAt: number };

type ResendCause = "silence" | "unavailable" | "disconnect" | "batch";

/** `number`: the place of the record in its batch, from 1. */
type BatchPlace = { readonly batch: string; readonly number: number; readonly isLast: boolean };

export type AppendEffect =
  /**
   * `reply`: the token of the answer. Undefined: the answer to the last record of its batch is also for this one.
   * `retry`: why the record is sent again.
   */
  | {
      readonly kind: "publish";
      readonly append: Append;
      readonly reply: string | undefined;
      readonly place?: BatchPlace;
      readonly retry?: ResendCause;
    }
  /** Read the room's last record, and before it the newest checkpoint if `withCheckpoint`. The result goes to `receiveLast`. */
  | { readonly kind: "read-last"; readonly append: Append; readonly step: Step; readonly withCheckpoint: boolean }
  /** Several copies had no answer: send a test message to the partition's stream (`beginTest`). */
  | { readonly kind: "test-stream"; readonly partition: number }
  /** `tookMs`: without a pause of this process, in which no check ran. */
  | { readonly kind: "settle"; readonly append: Append; readonly outcome: AppendOutcome; readonly tookMs: number }
  | { readonly kind: "refuse"; readonly append: Append; readonly failure: "full" | "broken"; readonly reason: string | undefined }
  | { readonly kind: "log"; readonly level: "warn" | "error"; readonly facts: object; readonly text: string };

/** `count`: the number of records of a batch. `not-accepted`: for example NATS's "no responders", or a stream without a leader. */
export type AppendAnswer =
  | { readonly kind: "stored"; readonly streamSeq: number; readonly count: number | undefined }
  | { readonly kind: "wrong-last" }
  | { readonly kind: "full"; readonly reason: string | undefined }
  | { readonly kind: "not-accepted"; readonly error: unknown };

/** The records without an answer when a test message was sent to their stream. */
export type StreamTest = { readonly waiting: readonly { readonly append: Append; readonly step: Step }[] };

export class Appends {
  readonly #appendAnswerMsMax: number;
  readonly #appends = new Map<string, Append>();
  /** Batches whose answer is missing, by token. */
  readonly #batches = new Map<string, readonly Append[]>();
  readonly #queues: readonly AppendQueue<Append>[];
  /** Stored as a batch since the last turn. Until then they count as in flight, so that their rooms' next records wait for each other. */
  #stored: Append[] = [];
  #tokens = 0;
  #checks = 0;
  #isConnected = true;
  #nextWarningAt = 0;

  constructor({ partitions, appendAnswerMsMax, aloneMax = ALONE_MAX, takesBatches }: AppendsOptions) {
    this.#appendAnswerMsMax = appendAnswerMsMax;
    this.#queues = Array.from({ length: partitions }, (_, partition) => new AppendQueue(takesBatches(partition) ? aloneMax : Infinity));
  }

  get inFlight(): number {
    return this.#appends.size;
  }

  /** Batches whose answer is missing. */
  get batchCount(): number {
    return this.#batches.size;
  }

  begin(place: { readonly partition: number; readonly room: RoomKey }, record: OutgoingRecord, now: Millis): [Append, AppendEffect[]] {
    const append: Append = {
      ...place,
      token: String(++this.#tokens),
      record,
      begunAt: now,
      begunCheck: this.#checks,
      batch: undefined,
      step: { kind: "queued" },
    };
    this.#appends.set(append.token, append);
    return [append, this.#send(this.#queues[append.partition]!.add(append))];
  }

  /** Ends an append without an outcome. False: it has ended before. */
  end(append: Append): boolean {
    this.#queues[append.partition]!.remove(append);
    const isOpen = this.#appends.delete(append.token);
    const batch = append.batch === undefined ? undefined : this.#batches.get(append.batch);
    if (batch?.every(({ token }) => !this.#appends.has(token)) === true) this.#batches.delete(append.batch!);
    return isOpen;
  }

  /** Called after the effects of answers: rooms whose append was settled have given their next record by then. */
  takeTurn(): AppendEffect[] {
    for (const append of this.#stored) this.#queues[append.partition]!.remove(append);
    this.#stored = [];
    return this.#queues.flatMap((queue) => this.#send(queue.takeTurn()));
  }

  receiveDisconnect(): void {
    this.#isConnected = false;
  }

  receiveReconnect(): AppendEffect[] {
    this.#isConnected = true;
    this.#batches.clear();
    for (const queue of this.#queues) queue.clear();
    const effects: AppendEffect[] = [];
    let reads = 0;
    for (const append of this.#appends.values()) {
      append.step = { kind: "unproven", nextAt: this.#checks + Math.floor(reads / READS_AT_ONCE) };
      if (reads++ < READS_AT_ONCE) effects.push(this.#readLast(append, append.step));
    }
    return effects;
  }

  /** Called every CHECK_MS while an append is in flight. */
  receiveCheck(): AppendEffect[] {
    this.#checks += 1;
    const effects = this.#queues.flatMap((queue) => this.#send(queue.takeWaiting()));
    const silent = new Set<number>();
    for (const append of this.#appends.values()) {
      const { step } = append;
      if (step.kind === "queued" || step.kind === "reading" || this.#checks < step.nextAt) continue;
      if (step.kind === "sent") {
        effects.push(...this.#sendAgain(append, step.cause));
        if (step.cause === "silence") silent.add(append.partition);
      } else if (this.#isConnected) effects.push(this.#readLast(append, step));
    }
    if (this.#isConnected) for (const partition of silent) effects.push({ kind: "test-stream", partition });
    return effects;
  }

  /** `token`: of a record, or of a batch. */
  receiveAnswer(token: string, answer: AppendAnswer, now: Millis): AppendEffect[] {
    const batch = this.#batches.get(token);
    if (batch !== undefined) return this.#receiveBatchAnswer(token, batch, answer, now);
    const append = this.#appends.get(token);
    return append === undefined ? [] : this.#receiveOwnAnswer(append, answer, now);
  }

  /** `found`: what the log and the checkpoints contain, or the cause why it is unknown. */
  receiveLast(
    { append, step }: { readonly append: Append; readonly step: Step },
    found: { readonly last: LastRecord | undefined; readonly checkpoint: KnownCheckpoint | undefined } | { readonly cause: unknown },
    now: Millis,
  ): AppendEffect[] {
    const failed = "cause" in found ? this.#warn({ room: append.room, ...found }, "cannot read the log's last record; trying again") : [];
    if (append.step !== step || !this.#appends.has(append.token)) return failed; // An answer over a lost connection proves nothing.
    if (!("cause" in found)) {
      const outcome = outcomeByLast(append.record, found.last, found.checkpoint);
      if (outcome !== undefined) return this.#settle(append, outcome, now);
      if (step.kind === "unproven") return this.#sendAgain(append, "disconnect");
    }
    const nextAt = this.#checkIn(UNAVAILABLE_RETRY_MS);
    if (step.kind === "unproven") step.nextAt = nextAt;
    else append.step = { kind: "sent", nextAt, cause: "unavailable" };
    return failed;
  }

  /** Call it immediately before the test message is sent. Undefined: no record waits for an answer. */
  beginTest(partition: number): StreamTest | undefined {
    const waiting = [...this.#appends.values()]
      .filter((append) => append.step.kind === "sent" && append.partition === partition)
      .map((append) => ({ append, step: append.step }));
    return waiting.length === 0 ? undefined : { waiting };
  }

  /** The stream refused the test message, so it has handled all earlier messages. */
  receiveTested({ waiting }: StreamTest): AppendEffect[] {
    return waiting
      .filter(({ append, step }) => this.#appends.has(append.token) && append.step === step)
      .map(({ append }) => ({ kind: "refuse", append, failure: "broken", reason: undefined }));
  }

  #receiveOwnAnswer(append: Append, answer: AppendAnswer, now: Millis): AppendEffect[] {
    const { room, step } = append;
    if (answer.kind === "stored") return this.#receiveStored(append, answer.streamSeq, now);
    if (answer.kind === "wrong-last") return step.kind === "sent" ? [this.#readLast(append, { kind: "reading" })] : [];
    if (step.kind === "sent" || step.kind === "unproven") {
      const nextAt = Math.min(step.nextAt, this.#checkIn(UNAVAILABLE_RETRY_MS));
      if (step.kind === "unproven") step.nextAt = nextAt;
      else append.step = { kind: "sent", nextAt, cause: "unavailable" };
    }
    return answer.kind === "full"
      ? [{ kind: "refuse", append, failure: "full", reason: answer.reason }]
      : this.#warn({ room, error: answer.error }, "the log does not accept a record; trying again");
  }

  /** The records of a batch have consecutive sequences, and the answer names the last one. */
  #receiveBatchAnswer(token: string, batch: readonly Append[], answer: AppendAnswer, now: Millis): AppendEffect[] {
    this.#batches.delete(token);
    const isStored = answer.kind === "stored" && answer.count === batch.length;
    return batch.flatMap((append, index) => {
      if (!this.#appends.has(append.token)) return []; // Abandoned.
      return isStored ? this.#receiveStored(append, answer.streamSeq - (batch.length - 1 - index), now) : this.#sendAgain(append, "batch");
    });
  }

  #receiveStored(append: Append, streamSeq: number, now: Millis): AppendEffect[] {
    const outcome = outcomeOfAck(append.record, streamSeq);
    const settled = this.#settle(append, outcome, now);
    if (outcome.kind !== "fenced") return settled;
    const facts = { room: append.room, expected: append.record.expectedStreamSeq, seq: streamSeq };
    const text = "the log stored a record before its predecessor: the log was lost or rolled back, and the room must be claimed again";
    return [{ kind: "log", level: "error", facts, text }, ...settled];
  }

  #settle(append: Append, outcome: AppendOutcome, now: Millis): AppendEffect[] {
    this.#appends.delete(append.token);
    if (append.batch === undefined) this.#queues[append.partition]!.remove(append);
    else this.#stored.push(append);
    const tookMs = Math.min(now - append.begunAt, (this.#checks - append.begunCheck + 1) * CHECK_MS);
    return [{ kind: "settle", append, outcome, tookMs }];
  }

  /** Sends appends that leave the queue at the same moment. */
  #send(together: readonly Append[]): AppendEffect[] {
    if (together.length < 2) return together.flatMap((append) => this.#publish({ append, reply: append.token }));
    const batch = `batch-${++this.#tokens}`;
    this.#batches.set(batch, together);
    return together.flatMap((append, index) => {
      append.batch = batch;
      const isLast = index === together.length - 1;
      return this.#publish({ append, reply: isLast ? batch : undefined, place: { batch, number: index + 1, isLast } });
    });
  }

  #sendAgain(append: Append, retry: ResendCause): AppendEffect[] {
    if (append.batch !== undefined) this.#batches.delete(append.batch);
    append.batch = undefined;
    this.#queues[append.partition]!.remove(append);
    return this.#publish({ append, reply: append.token, retry });
  }

  #publish(copy: Omit<Extract<AppendEffect, { kind: "publish" }>, "kind">): AppendEffect[] {
    copy.append.step = { kind: "sent", nextAt: this.#checkIn(this.#appendAnswerMsMax), cause: "silence" };
    return this.#isConnected ? [{ kind: "publish", ...copy }] : [];
  }

  #readLast(append: Append, step: Step & { kind: "reading" | "unproven" }): AppendEffect {
    append.step = step;
    this.#queues[append.partition]!.remove(append);
    if (step.kind === "unproven") step.nextAt = this.#checkIn(this.#appendAnswerMsMax);
    return { kind: "read-last", append, step, withCheckpoint: step.kind === "unproven" };
  }

  #warn(facts: object, text: string): AppendEffect[] {
    if (this.#checks < this.#nextWarningAt) return [];
    this.#nextWarningAt = this.#checkIn(WARNING_MS_MIN);
    return [{ kind: "log", level: "warn", facts, text }];
  }

  #checkIn(delayMs: number): number {
    return this.#checks + Math.ceil(delayMs / CHECK_MS);
  }
}
