/**
 * Appends records to the log and finds out each outcome with certainty. An append is a core publish with the expected
 * sequence; all replies arrive on one subscription, at a tenth of the cost of the client's publish().
 *
 * Without a reply in time the identical bytes are sent again. If the first copy was stored, the server reports a wrong
 * expected sequence (it checks that before repeats: test/contract/jetstream-facts). Then the id of the room's last
 * record, read from the stream's leader, shows whether this record was stored.
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

import { isAheadOfLog } from "../../shared/bus/checkpoint.ts";
import { partitionOf, type Subjects } from "../../shared/bus/subjects.ts";
import type { Clock } from "../../shared/time/clock.ts";
import type { RoomKey, ServerId } from "../../shared/ids.ts";
import { crashing, type NatsConnection, publish } from "../../shared/io/nats.ts";
import type { Log } from "../../shared/process/log.ts";
import type { RoomServerMetrics } from "../metrics.ts";
import { LogStorage } from "./log-storage.ts";
import { STORAGE_FULL } from "../../shared/io/jetstream-stores.ts";
import type { AppendOutcome, CheckpointReader, KnownCheckpoint, OutgoingRecord, RoomLog, LastRecord } from "../ports.ts";

export type AppendOptions = { readonly server: ServerId; readonly partitions: number; readonly appendAnswerMsMax: number };
export type AppendDeps = {
  readonly readLast: RoomLog["readLast"];
  readonly checkpoints: CheckpointReader;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: RoomServerMetrics;
  readonly storage?: LogStorage;
  /** Replicas of the partition's stream. Absent: silence never counts as a failure of the storage. */
  readonly replicasOf?: (partition: number) => Promise<number>;
};

type Append = {
  readonly room: RoomKey;
  readonly record: OutgoingRecord;
  readonly subject: string;
  readonly reply: string;
  readonly headers: MsgHdrs;
  readonly settled: (outcome: AppendOutcome) => void;
  readonly refused: () => void;
  readonly begun: number;
  step: Step;
};

/** `nextAt`: the check at which the next action is due. */
type Step =
  /** The record is sent again at that check, unless a reply comes first. */
  | { readonly kind: "sent"; nextAt: number }
  /** The log reported another last record than expected, so the last record is requested. */
  | { readonly kind: "looking" }
  /**
   * The connection was lost after the expected record was known to be last. The last record is requested, repeatedly,
   * before the record is sent.
   */
  | { readonly kind: "unproven"; nextAt: number };

type PubAck = { readonly seq?: number; readonly error?: { readonly err_code?: number; readonly description?: string } };

/** The error of a single server, and the error of a cluster while another append is in flight. */
const WRONG_LAST_SEQUENCE = new Set([10_071, 10_164]);
/** Deadlines are counted in checks. With a clock that jumps, all records would be sent again, or none until the jump has passed. */
const CHECK_MS = 50;
const UNAVAILABLE_RETRY_MS = 100;
/** An expected stream name that no stream has, so that every stream refuses the message. Stream names contain no dots. */
const OTHER_STREAM = "none.of.these";
/** Maximum number of reads that begin at one check after a reconnect, because JetStream drops requests that do not fit its queue. */
const LOOKS_AT_ONCE = 200;

export function jetstreamAppend(nats: NatsConnection, subjects: Subjects, options: AppendOptions, deps: AppendDeps): RoomLog["append"] {
  const { clock, log, metrics, storage = new LogStorage(deps) } = deps;
  const appends = new Map<string, Append>();
  let tokens = 0;
  let checks = 0;
  let connected = true;

  const checkIn = (delayMs: number): number => checks + Math.ceil(delayMs / CHECK_MS);

  const send = (append: Append): void => {
    append.step = { kind: "sent", nextAt: checkIn(options.appendAnswerMsMax) };
    if (connected) publish(nats, append.subject, append.record.bytes, { headers: append.headers, reply: append.reply });
  };

  const resend = (append: Append, cause: "silence" | "unavailable" | "disconnect"): void => {
    metrics.appendRetries.inc({ cause });
    send(append);
  };

  const settle = (token: string, append: Append, outcome: AppendOutcome): void => {
    if (!appends.delete(token)) return; // Abandoned, or another copy's reply came first.
    const tookMs = performance.now() - append.begun;
    metrics.appendSeconds.observe(tookMs / 1000);
    storage.receiveAppend(tookMs);
    append.settled(outcome);
  };

  const look = async (token: string, append: Append, step: Exclude<Step, { kind: "sent" }>): Promise<void> => {
    append.step = step;
    if (step.kind === "unproven") step.nextAt = checkIn(options.appendAnswerMsMax);
    const readOutcome = async (): Promise<AppendOutcome | "as-expected"> => {
      // Reads the checkpoint before the record: see `isAheadOfLog`.
      const checkpoint = step.kind === "unproven" ? await deps.checkpoints.newest(append.room) : undefined;
      return outcomeByLast(append.record, await deps.readLast(append.room), checkpoint) ?? "as-expected";
    };
    const outcome = await readOutcome().catch(
      (cause: unknown) => void log.warn({ room: append.room, cause }, "cannot read the log's last record; trying again"),
    );
    if (append.step !== step || !appends.has(token)) return; // An answer over a lost connection proves nothing.
    if (typeof outcome === "object") return settle(token, append, outcome);
    if (step.kind === "unproven" && outcome === "as-expected") return resend(append, "disconnect");
    const nextAt = checkIn(UNAVAILABLE_RETRY_MS);
    if (step.kind === "unproven") step.nextAt = nextAt;
    else append.step = { kind: "sent", nextAt };
  };

  const receiveReconnect = (): void => {
    connected = true;
    let looks = 0;
    for (const [token, append] of appends) {
      const step: Step = { kind: "unproven", nextAt: checks + Math.floor(looks / LOOKS_AT_ONCE) };
      append.step = step;
      if (looks++ < LOOKS_AT_ONCE) void look(token, append, step);
    }
  };

  const receiveAnswer = (error: Error | null, msg: Msg): void => {
    if (error !== null) return;
    const token = msg.subject.slice(msg.subject.lastIndexOf(".") + 1);
    const append = appends.get(token);
    if (append === undefined) return;
    const ack = readPubAck(msg);
    if (ack.seq !== undefined && ack.error === undefined) {
      storage.receiveStored();
      const outcome = outcomeOfAck(append.record, ack.seq);
      if (outcome.kind === "fenced")
        log.error(
          { room: append.room, expected: append.record.expectedStreamSeq, seq: ack.seq },
          "the log stored a record before its predecessor: the log was lost or rolled back, and the room must be claimed again",
        );
      return settle(token, append, outcome);
    }
    const { step } = append;
    if (ack.error?.err_code !== undefined && WRONG_LAST_SEQUENCE.has(ack.error.err_code))
      return step.kind === "sent" ? void look(token, append, { kind: "looking" }) : undefined;
    if (STORAGE_FULL.has(ack.error?.err_code)) {
      storage.receiveFailure("full", ack.error?.description);
      append.refused();
    } else log.warn({ room: append.room, error: ack.error ?? msg.headers?.description }, "the log does not accept a record; trying again");
    if (step.kind !== "looking") step.nextAt = Math.min(step.nextAt, checkIn(UNAVAILABLE_RETRY_MS));
  };

  /** Partitions whose stream is being tested. */
  const asked = new Set<number>();

  /** Called after copies were sent again without an answer to the first ones. */
  const askStream = async (partition: number): Promise<void> => {
    if (deps.replicasOf === undefined || asked.has(partition)) return;
    asked.add(partition);
    try {
      if ((await deps.replicasOf(partition)) !== 1) return; // A leader refuses before earlier records have their quorum.
      const waiting = [...appends].filter(
        ([, { room, step }]) => step.kind === "sent" && partitionOf(room, options.partitions) === partition,
      );
      const steps = waiting.map(([, { step }]) => step);
      const meant = headers();
      meant.set("Nats-Expected-Stream", OTHER_STREAM);
      const subject = waiting[0]?.[1].subject;
      if (subject === undefined) return;
      const answer = readPubAck(await nats.request(subject, undefined, { headers: meant, timeout: options.appendAnswerMsMax }));
      if (answer.error === undefined) return;
      const unstored = waiting.filter(([token, { step }], index) => appends.has(token) && step === steps[index]);
      if (unstored.length > 0) storage.receiveFailure("broken", undefined);
      for (const [, append] of unstored) append.refused();
    } catch (cause) {
      // NATS is unreachable, or the server is overloaded.
      log.debug({ partition, cause }, "the stream does not answer a question about its storage");
    } finally {
      asked.delete(partition);
    }
  };

  nats.subscribe(subjects.allAppended(options.server), { callback: crashing(receiveAnswer) });
  const check = (): void => {
    cancelCheck = undefined;
    checks += 1;
    const silent = new Set<number>();
    for (const [token, append] of appends) {
      const { step } = append;
      if (step.kind === "looking" || checks < step.nextAt) continue;
      if (step.kind === "sent") {
        resend(append, "silence");
        silent.add(partitionOf(append.room, options.partitions));
      } else if (connected) void look(token, append, step);
    }
    if (connected) for (const partition of silent) void askStream(partition);
    if (appends.size > 0) checkLater();
  };
  /** Undefined: no append is in flight. */
  let cancelCheck: (() => void) | undefined;
  const checkLater = (): void => void (cancelCheck ??= clock.after(CHECK_MS, check));
  void nats.closed().then(() => cancelCheck?.());
  void (async () => {
    for await (const { type } of nats.status()) {
      if (type === "disconnect") connected = false;
      else if (type === "reconnect") receiveReconnect();
    }
  })();

  return (room, record, settled, refused = () => {}) => {
    const token = String(++tokens);
    const head = headers();
    head.set("Nats-Msg-Id", record.id);
    head.set("Nats-Expected-Last-Subject-Sequence", String(record.expectedStreamSeq));
    const subject = subjects.log(partitionOf(room, options.partitions), room);
    const append: Append = {
      room,
      record,
      subject,
      reply: subjects.appended(options.server, token),
      headers: head,
      settled,
      refused,
      begun: performance.now(),
      step: { kind: "sent", nextAt: 0 },
    };
    appends.set(token, append);
    send(append);
    checkLater();
    return () => appends.delete(token);
  };
}

/** Empty for replies that are not from JetStream, such as NATS's "no responders". */
function readPubAck(msg: Msg): PubAck {
  return msg.data.length === 0 ? {} : msg.json<PubAck>();
}

/**
 * The outcome according to the room's last record, read after a wrong expected sequence or a connection loss. The last
 * record may be this one, sent before, or one of another owner. Undefined: it is still the expected one, so this record
 * was lost or is still on its way through the cluster. The outcome is also "fenced" if the log lost a later owner's
 * records and a checkpoint covers them.
 */
export function outcomeByLast(
  record: OutgoingRecord,
  last: LastRecord | undefined,
  checkpoint?: KnownCheckpoint,
): AppendOutcome | undefined {
  if (last !== undefined && last.record.id === record.id) return { kind: "appended", streamSeq: last.streamSeq };
  const isAsExpected = (last?.streamSeq ?? 0) === record.expectedStreamSeq && last?.record.id === record.expectedId;
  return isAsExpected && !isAheadOfLog(checkpoint, last) ? undefined : { kind: "fenced" };
}

/**
 * A sequence that is not above the expected one belongs to a log that was lost or rolled back. Then all known facts
 * about the room are invalid.
 */
export function outcomeOfAck(record: OutgoingRecord, streamSeq: number): AppendOutcome {
  return streamSeq > record.expectedStreamSeq ? { kind: "appended", streamSeq } : { kind: "fenced" };
}
