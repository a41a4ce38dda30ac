/**
 * Appends records to the log and finds out for certain what became of each: a core publish with the expected
 * sequence and a reply to one subscription for all answers, which costs a tenth of the client's own publish().
 *
 * No answer in time: the identical bytes are sent again. Should the first copy have been stored, the server says
 * that the expected sequence is wrong (that check comes before the one for repeats: test/contract/jetstream-facts).
 * Then the room's last record, read from the stream's leader, tells by its id whether it is this one.
 *
 * After the line was lost the log may have lost its end, and another record may stand under the expected sequence. So
 * what was on its way is sent again only once the last record, read over the new line, is the expected one by its id.
 */

import { headers, type Msg, type MsgHdrs } from "nats";

import { partitionOf, type Subjects } from "../../shared/bus/subjects.ts";
import type { Clock } from "../../shared/clock.ts";
import type { RoomKey, ServerId } from "../../shared/ids.ts";
import { crashing, type NatsConnection, say } from "../../shared/io/nats.ts";
import type { Log } from "../../shared/log.ts";
import { outcomeByLast, outcomeOfAck } from "../rooms/append-outcome.ts";
import type { RoomServerMetrics } from "../metrics.ts";
import type { AppendOutcome, OutgoingRecord, RoomLog } from "../ports.ts";

export type AppendOptions = { readonly server: ServerId; readonly partitions: number; readonly appendAnswerMsMax: number };
export type AppendDeps = {
  readonly readLast: RoomLog["readLast"];
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: RoomServerMetrics;
};

type Append = {
  readonly room: RoomKey;
  readonly record: OutgoingRecord;
  readonly subject: string;
  readonly reply: string;
  readonly headers: MsgHdrs;
  readonly settled: (outcome: AppendOutcome) => void;
  readonly begun: number;
  step: Step;
};

/** `nextAt`: at which check it goes on by itself. */
type Step =
  /** Then it is sent again, unless an answer comes first. */
  | { readonly kind: "sent"; nextAt: number }
  /** The log said that its last record is another than expected, and is asked which. */
  | { readonly kind: "looking" }
  /** The line was lost since the expected record was known to be the last: the log is asked, then and again, before it is sent. */
  | { readonly kind: "unproven"; nextAt: number };

type PubAck = { readonly seq?: number; readonly error?: { readonly err_code?: number; readonly description?: string } };

/** As a single server says it, and as a cluster does while another append is on its way. */
const WRONG_LAST_SEQUENCE = new Set([10_071, 10_164]);
/** Deadlines are counted in checks: a clock that jumps would send everything again, or nothing for as long as it jumped. */
const CHECK_MS = 50;
const UNAVAILABLE_RETRY_MS = 100;
/** Looks that begin at one check after the line is back: JetStream drops what does not fit its queue. */
const LOOKS_AT_ONCE = 200;

export function jetstreamAppend(nats: NatsConnection, subjects: Subjects, options: AppendOptions, deps: AppendDeps): RoomLog["append"] {
  const { clock, log, metrics } = deps;
  const appends = new Map<string, Append>();
  let tokens = 0;
  let checks = 0;
  let connected = true;

  const checkIn = (delayMs: number): number => checks + Math.ceil(delayMs / CHECK_MS);

  const send = (append: Append): void => {
    append.step = { kind: "sent", nextAt: checkIn(options.appendAnswerMsMax) };
    if (connected) say(nats, append.subject, append.record.bytes, { headers: append.headers, reply: append.reply });
  };

  const resend = (append: Append, cause: "silence" | "unavailable" | "disconnect"): void => {
    metrics.appendRetries.inc({ cause });
    send(append);
  };

  const settle = (token: string, append: Append, outcome: AppendOutcome): void => {
    if (!appends.delete(token)) return; // Given up, or another copy's answer came first.
    metrics.appendSeconds.observe((performance.now() - append.begun) / 1000);
    append.settled(outcome);
  };

  const look = async (token: string, append: Append, step: Exclude<Step, { kind: "sent" }>): Promise<void> => {
    append.step = step;
    if (step.kind === "unproven") step.nextAt = checkIn(options.appendAnswerMsMax);
    const outcome = await deps.readLast(append.room).then(
      (last) => outcomeByLast(append.record, last) ?? "as-expected",
      (cause: unknown) => void log.warn({ room: append.room, cause }, "the log did not tell its last record; trying on"),
    );
    if (append.step !== step || !appends.has(token)) return; // What a line told that is lost is no proof.
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
      const outcome = outcomeOfAck(append.record, ack.seq);
      if (outcome.kind === "fenced")
        log.error(
          { room: append.room, expected: append.record.expectedStreamSeq, seq: ack.seq },
          "the log stored a record before its predecessor: it was lost or rolled back; the room has to be claimed anew",
        );
      return settle(token, append, outcome);
    }
    const { step } = append;
    if (ack.error?.err_code !== undefined && WRONG_LAST_SEQUENCE.has(ack.error.err_code))
      return step.kind === "sent" ? void look(token, append, { kind: "looking" }) : undefined;
    log.warn({ room: append.room, error: ack.error ?? msg.headers?.description }, "the log does not take a record; trying on");
    if (step.kind !== "looking") step.nextAt = Math.min(step.nextAt, checkIn(UNAVAILABLE_RETRY_MS));
  };

  nats.subscribe(subjects.allAppended(options.server), { callback: crashing(receiveAnswer) });
  const check = (): void => {
    cancelCheck = undefined;
    checks += 1;
    for (const [token, append] of appends) {
      const { step } = append;
      if (step.kind === "looking" || checks < step.nextAt) continue;
      if (step.kind === "sent") resend(append, "silence");
      else if (connected) void look(token, append, step);
    }
    if (appends.size > 0) checkLater();
  };
  /** Undefined: nothing is on its way. */
  let cancelCheck: (() => void) | undefined;
  const checkLater = (): void => void (cancelCheck ??= clock.after(CHECK_MS, check));
  void nats.closed().then(() => cancelCheck?.());
  void (async () => {
    for await (const { type } of nats.status()) {
      if (type === "disconnect") connected = false;
      else if (type === "reconnect") receiveReconnect();
    }
  })();

  return (room, record, settled) => {
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
      begun: performance.now(),
      step: { kind: "sent", nextAt: 0 },
    };
    appends.set(token, append);
    send(append);
    checkLater();
    return () => appends.delete(token);
  };
}

/** Empty for what JetStream does not say, like NATS's own "no responders". */
function readPubAck(msg: Msg): PubAck {
  return msg.data.length === 0 ? {} : msg.json<PubAck>();
}
