/**
 * Appends records to the log and finds out each outcome with certainty. An append is a core publish with the expected
 * sequence; all replies arrive on one subscription, at a tenth of the cost of the client's publish().
 *
 * Without a reply in time the identical bytes are sent again. If the first copy was stored, the server reports a wrong
 * expected sequence. Then the id of the room's last record, read from the stream's leader, shows whether this record
 * was stored.
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

import { headers, type Msg, type MsgHdrs } from "nats";

import { partitionOf, type Subjects } from "../../shared/bus/subjects.ts";
import type { Millis, RoomKey, ServerId } from "../../shared/ids.ts";
import { STORAGE_FULL } from "../../shared/io/jetstream-stores.ts";
import { crashing, type NatsConnection, publish } from "../../shared/io/nats.ts";
import type { Log } from "../../shared/process/log.ts";
import type { Clock } from "../../shared/time/clock.ts";
import type { RoomServerMetrics } from "../metrics.ts";
import type { AppendOutcome, CheckpointReader, OutgoingRecord, RoomLog } from "../ports.ts";
import { outcomeByLast, outcomeOfAck } from "./append-outcome.ts";
import { AppendQueue } from "./append-queue.ts";
import { LogStorage } from "./log-storage.ts";

/** `aloneMax`: the number of appends in flight in a partition from which further ones are sent in batches. */
export type AppendOptions = {
  readonly server: ServerId;
  readonly partitions: number;
  readonly appendAnswerMsMax: number;
  readonly aloneMax?: number;
};
export type AppendDeps = {
  readonly readLast: RoomLog["readLast"];
  readonly checkpoints: CheckpointReader;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: RoomServerMetrics;
  readonly storage?: LogStorage;
  /** Replicas of the partition's stream. Absent: silence never counts as a failure of the storage. */
  readonly replicasOf?: (partition: number) => Promise<number>;
  /** Whether the partition's stream takes batches. Absent: no stream does. */
  readonly takesBatches?: (partition: number) => boolean;
};

type Append = {
  readonly token: string;
  readonly partition: number;
  readonly room: RoomKey;
  readonly record: OutgoingRecord;
  readonly subject: string;
  readonly settled: (outcome: AppendOutcome) => void;
  readonly refused: () => void;
  /** For the histogram, in fractions of a millisecond. */
  readonly begun: number;
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
  /** The log reported another last record than expected, so the last record is requested. */
  | { readonly kind: "looking" }
  /**
   * The connection was lost after the expected record was known to be last. The last record is requested, repeatedly,
   * before the record is sent.
   */
  | { readonly kind: "unproven"; nextAt: number };

/** `count`: the number of records of a batch. */
type PubAck = {
  readonly seq?: number;
  readonly count?: number;
  readonly error?: { readonly err_code?: number; readonly description?: string };
};

/** The error of a single server, and the error of a cluster while another append is in flight. */
const WRONG_LAST_SEQUENCE = new Set([10_071, 10_164]);
/** Deadlines are counted in checks. With a clock that jumps, all records would be sent again, or none until the jump has passed. */
const CHECK_MS = 50;
const UNAVAILABLE_RETRY_MS = 100;
/** Minimum time between two warnings: while a stream has no leader, each of thousands of rooms is refused ten times a second. */
const WARNING_MS_MIN = 1_000;
/** An expected stream name that no stream has, so that every stream refuses the message. Stream names contain no dots. */
const OTHER_STREAM = "none.of.these";
/** Maximum number of reads that begin at one check after a reconnect, because JetStream drops requests that do not fit its queue. */
const LOOKS_AT_ONCE = 200;
/** With fewer appends in flight, a batch would delay records more than it saves (ADR 62). */
const ALONE_MAX = 8;

export function jetstreamAppend(nats: NatsConnection, subjects: Subjects, options: AppendOptions, deps: AppendDeps): RoomLog["append"] {
  const { clock, log, metrics, storage = new LogStorage(deps) } = deps;
  const appends = new Map<string, Append>();
  /** Batches whose answer is missing, by token. */
  const batches = new Map<string, readonly Append[]>();
  const queues = Array.from(
    { length: options.partitions },
    (_, partition) => new AppendQueue<Append>(deps.takesBatches?.(partition) === true ? (options.aloneMax ?? ALONE_MAX) : Infinity),
  );
  /** Partitions whose stream is being tested. */
  const tested = new Set<number>();
  let tokens = 0;
  let checks = 0;
  let connected = true;
  let nextWarningAt = 0;
  /** Undefined: no append is in flight. */
  let cancelCheck: (() => void) | undefined;

  const checkIn = (delayMs: number): number => checks + Math.ceil(delayMs / CHECK_MS);

  const warn = (facts: object, sentence: string): void => {
    if (checks < nextWarningAt) return;
    nextWarningAt = checkIn(WARNING_MS_MIN);
    log.warn(facts, sentence);
  };

  /** `token`: where the answer arrives. Undefined: the answer to a later record of its batch is also for this one. */
  const publishRecord = (append: Append, head: MsgHdrs, token: string | undefined): void => {
    append.step = { kind: "sent", nextAt: checkIn(options.appendAnswerMsMax), cause: "silence" };
    const given = token === undefined ? { headers: head } : { headers: head, reply: subjects.appended(options.server, token) };
    if (connected) publish(nats, append.subject, append.record.bytes, given);
  };

  const send = (append: Append): void => publishRecord(append, expecting(append.record), append.token);

  /** Sends appends that leave the queue at the same moment. */
  const sendTogether = (together: readonly Append[]): void => {
    if (together.length < 2) return together.forEach(send);
    const token = `batch-${++tokens}`;
    batches.set(token, together);
    metrics.batchedAppends.inc(together.length);
    for (const [index, append] of together.entries()) {
      append.batch = token;
      const isLast = index === together.length - 1;
      const head = expecting(append.record);
      head.set("Nats-Batch-Id", `${options.server}.${token}`);
      head.set("Nats-Batch-Sequence", String(index + 1));
      if (isLast) head.set("Nats-Batch-Commit", "1");
      publishRecord(append, head, isLast ? token : undefined);
    }
  };

  const resend = (append: Append, cause: "silence" | "unavailable" | "disconnect" | "batch"): void => {
    metrics.appendRetries.inc({ cause });
    if (append.batch !== undefined) batches.delete(append.batch);
    append.batch = undefined;
    queues[append.partition]!.remove(append);
    send(append);
  };

  const forget = (append: Append): boolean => {
    queues[append.partition]!.remove(append);
    return appends.delete(append.token);
  };

  const settle = (append: Append, outcome: AppendOutcome): void => {
    if (!forget(append)) return; // Abandoned, or another copy's reply came first.
    metrics.appendSeconds.observe((performance.now() - append.begun) / 1000);
    // A pause of this process, in which no check ran, does not count: the log was not slow.
    storage.receiveAppend(Math.min(clock.now() - append.begunAt, (checks - append.begunCheck + 1) * CHECK_MS));
    append.settled(outcome);
  };

  const look = async (append: Append, step: Step & { kind: "looking" | "unproven" }): Promise<void> => {
    append.step = step;
    queues[append.partition]!.remove(append);
    if (step.kind === "unproven") step.nextAt = checkIn(options.appendAnswerMsMax);
    const readOutcome = async (): Promise<AppendOutcome | "as-expected"> => {
      // Reads the checkpoint before the record: see `isAheadOfLog`.
      const checkpoint = step.kind === "unproven" ? await deps.checkpoints.newest(append.room) : undefined;
      return outcomeByLast(append.record, await deps.readLast(append.room), checkpoint) ?? "as-expected";
    };
    const outcome = await readOutcome().catch(
      (cause: unknown) => void warn({ room: append.room, cause }, "cannot read the log's last record; trying again"),
    );
    if (append.step !== step || !appends.has(append.token)) return; // An answer over a lost connection proves nothing.
    if (typeof outcome === "object") return settle(append, outcome);
    if (step.kind === "unproven" && outcome === "as-expected") return resend(append, "disconnect");
    const nextAt = checkIn(UNAVAILABLE_RETRY_MS);
    if (step.kind === "unproven") step.nextAt = nextAt;
    else append.step = { kind: "sent", nextAt, cause: "unavailable" };
  };

  const receiveReconnect = (): void => {
    connected = true;
    batches.clear();
    for (const queue of queues) queue.clear();
    let looks = 0;
    for (const append of appends.values()) {
      const step: Step = { kind: "unproven", nextAt: checks + Math.floor(looks / LOOKS_AT_ONCE) };
      append.step = step;
      if (looks++ < LOOKS_AT_ONCE) void look(append, step);
    }
  };

  const receiveStored = (append: Append, seq: number): void => {
    storage.receiveStored();
    const outcome = outcomeOfAck(append.record, seq);
    if (outcome.kind === "fenced")
      log.error(
        { room: append.room, expected: append.record.expectedStreamSeq, seq },
        "the log stored a record before its predecessor: the log was lost or rolled back, and the room must be claimed again",
      );
    settle(append, outcome);
  };

  /** The records of a batch have consecutive sequences, and the answer names the last one. */
  const receiveBatchAnswer = (token: string, batch: readonly Append[], { seq, count, error }: PubAck): void => {
    batches.delete(token);
    for (const [index, append] of batch.entries()) {
      if (append.batch !== token || append.step.kind !== "sent" || !appends.has(append.token)) continue;
      if (error === undefined && seq !== undefined && count === batch.length) receiveStored(append, seq - (count - 1 - index));
      else resend(append, "batch");
    }
  };

  const receiveOwnAnswer = (append: Append, ack: PubAck, description = ""): void => {
    if (ack.seq !== undefined && ack.error === undefined) return receiveStored(append, ack.seq);
    const { step } = append;
    if (ack.error?.err_code !== undefined && WRONG_LAST_SEQUENCE.has(ack.error.err_code))
      return step.kind === "sent" ? void look(append, { kind: "looking" }) : undefined;
    if (STORAGE_FULL.has(ack.error?.err_code)) {
      storage.receiveFailure("full", ack.error?.description);
      append.refused();
    } else warn({ room: append.room, error: ack.error ?? description }, "the log does not accept a record; trying again");
    if (step.kind !== "sent" && step.kind !== "unproven") return;
    const nextAt = Math.min(step.nextAt, checkIn(UNAVAILABLE_RETRY_MS));
    if (step.kind === "sent") append.step = { kind: "sent", nextAt, cause: "unavailable" };
    else step.nextAt = nextAt;
  };

  const receiveAnswer = (error: Error | null, msg: Msg): void => {
    if (error !== null) return;
    const token = msg.subject.slice(msg.subject.lastIndexOf(".") + 1);
    const batch = batches.get(token);
    const append = batch?.[0] ?? appends.get(token);
    if (append === undefined) return;
    const ack = readPubAck(msg);
    if (batch === undefined) receiveOwnAnswer(append, ack, msg.headers?.description);
    else receiveBatchAnswer(token, batch, ack);
    sendTogether(queues[append.partition]!.takeTurn());
  };

  /** Called after copies were sent again without an answer to the first ones. */
  const testStream = async (partition: number): Promise<void> => {
    if (deps.replicasOf === undefined || tested.has(partition)) return;
    tested.add(partition);
    try {
      if ((await deps.replicasOf(partition)) !== 1) return; // A leader refuses before earlier records have their quorum.
      const waiting = [...appends.values()]
        .filter((append) => append.step.kind === "sent" && append.partition === partition)
        .map((append) => ({ append, step: append.step }));
      const meant = headers();
      meant.set("Nats-Expected-Stream", OTHER_STREAM);
      const subject = waiting[0]?.append.subject;
      if (subject === undefined) return;
      const answer = readPubAck(await nats.request(subject, undefined, { headers: meant, timeout: options.appendAnswerMsMax }));
      if (answer.error === undefined) return;
      const unstored = waiting.filter(({ append, step }) => appends.has(append.token) && append.step === step);
      if (unstored.length > 0) storage.receiveFailure("broken", undefined);
      for (const { append } of unstored) append.refused();
    } catch (cause) {
      // NATS is unreachable, or the server is overloaded.
      log.debug({ partition, cause }, "the stream does not answer a question about its storage");
    } finally {
      tested.delete(partition);
    }
  };

  nats.subscribe(subjects.allAppended(options.server), { callback: crashing(receiveAnswer) });
  const check = (): void => {
    cancelCheck = undefined;
    checks += 1;
    const silent = new Set<number>();
    for (const queue of queues) sendTogether(queue.takeWaiting());
    for (const append of appends.values()) {
      const { step } = append;
      if (step.kind === "queued" || step.kind === "looking" || checks < step.nextAt) continue;
      if (step.kind === "sent") {
        resend(append, step.cause);
        if (step.cause === "silence") silent.add(append.partition);
      } else if (connected) void look(append, step);
    }
    if (connected) for (const partition of silent) void testStream(partition);
    if (appends.size > 0) checkLater();
  };
  const checkLater = (): void => void (cancelCheck ??= clock.after(CHECK_MS, check));
  void nats.closed().then(() => cancelCheck?.());
  void (async () => {
    for await (const { type } of nats.status()) {
      if (type === "disconnect") connected = false;
      else if (type === "reconnect") receiveReconnect();
    }
  })();

  return (room, record, settled, refused = () => {}) => {
    const partition = partitionOf(room, options.partitions);
    const append: Append = {
      token: String(++tokens),
      partition,
      room,
      record,
      subject: subjects.log(partition, room),
      settled,
      refused,
      begun: performance.now(),
      begunAt: clock.now(),
      begunCheck: checks,
      batch: undefined,
      step: { kind: "queued" },
    };
    appends.set(append.token, append);
    sendTogether(queues[partition]!.add(append));
    checkLater();
    return () => forget(append);
  };
}

/** The record is stored only if the room's last record has the expected sequence. */
function expecting({ expectedStreamSeq }: OutgoingRecord): MsgHdrs {
  const head = headers();
  head.set("Nats-Expected-Last-Subject-Sequence", String(expectedStreamSeq));
  return head;
}

/** Empty for replies that are not from JetStream, such as NATS's "no responders". */
function readPubAck(msg: Msg): PubAck {
  return msg.data.length === 0 ? {} : msg.json<PubAck>();
}
