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
  /** At which check it is sent again, unless an answer comes first. */
  resendAt: number;
  /** While the log is asked what its last record is. */
  looking: boolean;
  /** The line was lost since the expected record was known to be the last: a look comes before it is sent. */
  isUnproven: boolean;
};

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
  /** How often there was a new one. */
  let lines = 0;

  const checkIn = (delayMs: number): number => checks + Math.ceil(delayMs / CHECK_MS);

  const send = (append: Append): void => {
    append.resendAt = checkIn(options.appendAnswerMsMax);
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

  const lookAtLast = async (token: string, append: Append): Promise<void> => {
    const line = lines;
    append.looking = true;
    append.resendAt = checkIn(options.appendAnswerMsMax);
    const outcome = await deps.readLast(append.room).then(
      (last) => outcomeByLast(append.record, last) ?? "as-expected",
      (cause: unknown) => void log.warn({ room: append.room, cause }, "the log did not tell its last record; trying on"),
    );
    if (line !== lines) return; // What a line told that is lost is no proof.
    append.looking = false;
    if (typeof outcome === "object") return settle(token, append, outcome);
    append.resendAt = checkIn(UNAVAILABLE_RETRY_MS);
    if (outcome === undefined || !append.isUnproven) return;
    append.isUnproven = false;
    resend(append, "disconnect");
  };

  const receiveReconnect = (): void => {
    connected = true;
    lines += 1;
    let looks = 0;
    for (const [token, append] of appends) {
      append.isUnproven = true;
      append.resendAt = checks + Math.floor(looks / LOOKS_AT_ONCE);
      if (looks++ < LOOKS_AT_ONCE) void lookAtLast(token, append);
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
    if (ack.error?.err_code !== undefined && WRONG_LAST_SEQUENCE.has(ack.error.err_code))
      return append.looking ? undefined : void lookAtLast(token, append);
    log.warn({ room: append.room, error: ack.error ?? msg.headers?.description }, "the log does not take a record; trying on");
    append.resendAt = Math.min(append.resendAt, checkIn(UNAVAILABLE_RETRY_MS));
  };

  nats.subscribe(subjects.allAppended(options.server), { callback: crashing(receiveAnswer) });
  const check = (): void => {
    cancelCheck = undefined;
    checks += 1;
    for (const [token, append] of appends) {
      if (checks < append.resendAt) continue;
      if (append.isUnproven && connected) void lookAtLast(token, append);
      if (!append.isUnproven && !append.looking) resend(append, "silence");
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
      resendAt: 0,
      looking: false,
      isUnproven: false,
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
