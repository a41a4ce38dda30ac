/**
 * Appends records to the log: carries out what `log/appends.ts` decides. An append is a core publish with the expected
 * sequence; all answers arrive on one subscription, at a tenth of the cost of the client's publish().
 */

import { headers, type Msg, type MsgHdrs } from "nats";

import { partitionOf, type Subjects } from "../../shared/bus/subjects.ts";
import type { RoomKey, ServerId } from "../../shared/ids.ts";
import { STORAGE_FULL } from "../../shared/io/jetstream-stores.ts";
import { crashing, type NatsConnection, publish } from "../../shared/io/nats.ts";
import type { Log } from "../../shared/process/log.ts";
import type { Clock } from "../../shared/time/clock.ts";
import {
  type Append,
  type AppendAnswer,
  type AppendEffect,
  Appends,
  type AppendsOptions,
  CHECK_MS,
  type StreamTest,
} from "../log/appends.ts";
import type { RoomServerMetrics } from "../metrics.ts";
import type { AppendOutcome, CheckpointReader, OutgoingRecord, RoomLog } from "../ports.ts";
import { LogStorage } from "./log-storage.ts";

export type AppendOptions = Omit<AppendsOptions, "takesBatches"> & { readonly server: ServerId };
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

/** `begun`: for the histogram, in fractions of a millisecond. */
type Caller = { readonly settled: (outcome: AppendOutcome) => void; readonly refused: () => void; readonly begun: number };
type PubAck = {
  readonly seq?: number;
  readonly count?: number;
  readonly error?: { readonly err_code?: number; readonly description?: string };
};

/** The error of a single server, and the error of a cluster while another append is in flight. */
const WRONG_LAST_SEQUENCE = new Set<number | undefined>([10_071, 10_164]);
/** An expected stream name that no stream has, so that every stream refuses the message. Stream names contain no dots. */
const OTHER_STREAM = "none.of.these";

export function jetstreamAppend(nats: NatsConnection, subjects: Subjects, options: AppendOptions, deps: AppendDeps): RoomLog["append"] {
  const appender = new JetStreamAppender(nats, subjects, options, deps);
  return (room, record, settled, refused = () => {}) => {
    const append = appender.append(room, record, { settled, refused, begun: performance.now() });
    return () => appender.abandon(append);
  };
}

class JetStreamAppender {
  readonly #nats: NatsConnection;
  readonly #subjects: Subjects;
  readonly #options: AppendOptions;
  readonly #deps: AppendDeps;
  readonly #storage: LogStorage;
  readonly #appends: Appends;
  readonly #callers = new Map<Append, Caller>();
  /** Partitions whose stream is being tested. */
  readonly #tested = new Set<number>();
  /** Undefined: no append is in flight. */
  #cancelCheck: (() => void) | undefined;

  constructor(nats: NatsConnection, subjects: Subjects, options: AppendOptions, deps: AppendDeps) {
    this.#nats = nats;
    this.#subjects = subjects;
    this.#options = options;
    this.#deps = deps;
    this.#storage = deps.storage ?? new LogStorage(deps);
    this.#appends = new Appends({ ...options, takesBatches: deps.takesBatches ?? (() => false) });
    nats.subscribe(subjects.allAppended(options.server), {
      callback: crashing((error: Error | null, msg: Msg) => {
        if (error === null) this.#receiveMessage(msg);
      }),
    });
    void nats.closed().then(() => this.#cancelCheck?.());
    void this.#followConnection();
  }

  append(room: RoomKey, record: OutgoingRecord, caller: Caller): Append {
    const place = { room, partition: partitionOf(room, this.#options.partitions) };
    const [append, effects] = this.#appends.begin(place, record, this.#deps.clock.now());
    this.#callers.set(append, caller);
    this.#carryOut(effects);
    this.#checkLater();
    return append;
  }

  abandon(append: Append): void {
    this.#callers.delete(append);
    this.#appends.end(append);
  }

  async #followConnection(): Promise<void> {
    for await (const { type } of this.#nats.status()) {
      if (type === "disconnect") this.#appends.receiveDisconnect();
      else if (type === "reconnect") this.#carryOut(this.#appends.receiveReconnect());
    }
  }

  #checkLater(): void {
    this.#cancelCheck ??= this.#deps.clock.after(CHECK_MS, () => {
      this.#cancelCheck = undefined;
      this.#carryOut(this.#appends.receiveCheck());
      if (this.#appends.inFlight > 0) this.#checkLater();
    });
  }

  #receiveMessage(msg: Msg): void {
    const answer = answerOf(msg);
    if (answer.kind === "stored") this.#storage.receiveStored();
    const token = msg.subject.slice(msg.subject.lastIndexOf(".") + 1);
    this.#carryOut(this.#appends.receiveAnswer(token, answer, this.#deps.clock.now()));
    this.#carryOut(this.#appends.takeTurn());
  }

  #carryOut(effects: readonly AppendEffect[]): void {
    for (const effect of effects) this.#carryOutOne(effect);
  }

  #carryOutOne(effect: AppendEffect): void {
    const { log, metrics } = this.#deps;
    switch (effect.kind) {
      case "publish":
        return this.#publish(effect);
      case "read-last":
        return void this.#readLast(effect);
      case "test-stream":
        return void this.#testStream(effect.partition);
      case "settle": {
        const caller = this.#callers.get(effect.append);
        if (caller === undefined) return; // Abandoned by another room's caller since the answer.
        this.#callers.delete(effect.append);
        metrics.appendSeconds.observe((performance.now() - caller.begun) / 1000);
        this.#storage.receiveAppend(effect.tookMs);
        return caller.settled(effect.outcome);
      }
      case "refuse":
        this.#storage.receiveFailure(effect.failure, effect.reason);
        return this.#callers.get(effect.append)?.refused();
      case "log":
        return log[effect.level](effect.facts, effect.text);
    }
  }

  #publish({ append, reply, place, retry }: AppendEffect & { kind: "publish" }): void {
    const { metrics } = this.#deps;
    const head = expecting(append.record);
    if (place !== undefined) {
      head.set("Nats-Batch-Id", `${this.#options.server}.${place.batch}`);
      head.set("Nats-Batch-Sequence", String(place.number));
      if (place.isLast) head.set("Nats-Batch-Commit", "1");
      metrics.batchedAppends.inc();
    }
    if (retry !== undefined) metrics.appendRetries.inc({ cause: retry });
    const replyTo = reply === undefined ? {} : { reply: this.#subjects.appended(this.#options.server, reply) };
    publish(this.#nats, this.#subjects.log(append.partition, append.room), append.record.bytes, { headers: head, ...replyTo });
  }

  async #readLast(effect: AppendEffect & { kind: "read-last" }): Promise<void> {
    const { readLast, checkpoints, clock } = this.#deps;
    const { room } = effect.append;
    const read = async () => {
      // Reads the checkpoint before the record: see `isAheadOfLog`.
      const checkpoint = effect.withCheckpoint ? await checkpoints.newest(room) : undefined;
      return { last: await readLast(room), checkpoint };
    };
    const found = await read().catch((cause: unknown) => ({ cause }));
    this.#carryOut(this.#appends.receiveLast(effect, found, clock.now()));
  }

  async #testStream(partition: number): Promise<void> {
    const { replicasOf, log } = this.#deps;
    if (replicasOf === undefined || this.#tested.has(partition)) return;
    this.#tested.add(partition);
    const test = await this.#askStream(partition, replicasOf).catch((cause: unknown) => {
      // NATS is unreachable, or the server is overloaded.
      log.debug({ partition, cause }, "the stream does not answer a question about its storage");
      return undefined;
    });
    this.#tested.delete(partition);
    if (test !== undefined) this.#carryOut(this.#appends.receiveTested(test));
  }

  /** Undefined: nothing was tested, or the answer shows nothing. */
  async #askStream(partition: number, replicasOf: (partition: number) => Promise<number>): Promise<StreamTest | undefined> {
    if ((await replicasOf(partition)) !== 1) return undefined; // A leader refuses before earlier records have their quorum.
    const test = this.#appends.beginTest(partition);
    if (test === undefined) return undefined;
    const head = headers();
    head.set("Nats-Expected-Stream", OTHER_STREAM);
    const subject = this.#subjects.log(partition, test.waiting[0]!.append.room);
    const answer = await this.#nats.request(subject, undefined, { headers: head, timeout: this.#options.appendAnswerMsMax });
    return readPubAck(answer).error === undefined ? undefined : test;
  }
}

/** The record is stored only if the room's last record has the expected sequence. */
function expecting({ expectedStreamSeq }: OutgoingRecord): MsgHdrs {
  const head = headers();
  head.set("Nats-Expected-Last-Subject-Sequence", String(expectedStreamSeq));
  return head;
}

function answerOf(msg: Msg): AppendAnswer {
  const { seq, count, error } = readPubAck(msg);
  if (seq !== undefined && error === undefined) return { kind: "stored", streamSeq: seq, count };
  if (WRONG_LAST_SEQUENCE.has(error?.err_code)) return { kind: "wrong-last" };
  if (STORAGE_FULL.has(error?.err_code)) return { kind: "full", reason: error?.description };
  return { kind: "not-accepted", error: error ?? msg.headers?.description ?? "" };
}

/** Empty for replies that are not from JetStream, such as NATS's "no responders". */
function readPubAck(msg: Msg): PubAck {
  return msg.data.length === 0 ? {} : msg.json<PubAck>();
}
