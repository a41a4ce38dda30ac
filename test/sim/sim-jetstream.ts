/**
 * The log's stream and the buckets, with what `test/contract/jetstream-facts.system.test.ts` shows of the real server:
 * one sequence for all subjects, the expected sequence checked before the message id, each record republished as
 * stored and before its answer. On top of that, what a cluster under stress does to whoever appends.
 */

import type { Checkpoint } from "../../shared/bus/checkpoint.ts";
import type { PlannedRoom, RoomEntry } from "../../shared/bus/placement-messages.ts";
import { decodeRecord } from "../../shared/bus/record.ts";
import type { Lease } from "../../shared/lease.ts";
import { roomOfSubject, type Subjects } from "../../shared/bus/subjects.ts";
import type { RoomKey } from "../../shared/ids.ts";
import type { StoredRecord } from "../../room-server/ports.ts";
import { Pipe } from "./pipe.ts";
import type { Scheduler } from "./scheduler.ts";
import type { Inside, Published, SimNats } from "./sim-nats.ts";

/**
 * silent: nothing is taken, nothing answered. refusing: an error is answered. mute: taken, the answer is lost.
 * changing-leader: taken, and neither republished nor answered.
 */
export type LogMood = "well" | "silent" | "refusing" | "mute" | "changing-leader";

const WRONG_LAST_SEQUENCE = 10_071;
const NO_LEADER = 10_008;

type RoomLogs = { readonly kept: StoredRecord[] };

export class SimJetStream implements Inside {
  readonly prefix: string;
  readonly #subjects: Subjects;
  readonly #nats: SimNats;
  readonly #judge: (room: RoomKey, stored: StoredRecord) => void;
  readonly #appends: Pipe;
  readonly #rooms = new Map<RoomKey, RoomLogs>();
  readonly #seqOfMessage = new Map<string, number>();
  readonly #checkpoints = new Map<RoomKey, Checkpoint>();
  readonly entries: SimBucket<RoomEntry>;
  readonly plans: SimBucket<PlannedRoom>;
  readonly leases: SimBucket<Lease>;
  #lastSeq = 0;
  mood: LogMood = "well";
  /** What an append takes beside the usual. */
  slowMs = 0;

  constructor(subjects: Subjects, nats: SimNats, scheduler: Scheduler, latencyMs: () => number, judge: (room: RoomKey, stored: StoredRecord) => void) {
    this.prefix = subjects.log(0, "" as RoomKey);
    this.#subjects = subjects;
    this.#nats = nats;
    this.#judge = judge;
    this.#appends = new Pipe(scheduler, () => latencyMs() + this.slowMs);
    this.entries = new SimBucket(scheduler);
    this.plans = new SimBucket(scheduler);
    this.leases = new SimBucket(scheduler);
    nats.addInside(this);
  }

  get isReadable(): boolean {
    return this.mood !== "silent" && this.mood !== "refusing";
  }

  receive(message: Published): void {
    if (this.mood === "silent") return;
    if (this.mood === "refusing") return this.#answer(message, { error: { err_code: NO_LEADER, description: "JetStream system temporarily unavailable" } });
    this.#appends.send(() => this.#append(message));
  }

  /** The server was killed: what it had not stored is gone. */
  loseUnderWay(): void {
    this.#appends.break();
  }

  last(room: RoomKey): StoredRecord | undefined {
    return this.#rooms.get(room)?.kept.at(-1);
  }

  read(room: RoomKey, after: number, through: number, countMax: number): StoredRecord[] {
    return (this.#rooms.get(room)?.kept ?? []).filter(({ streamSeq }) => streamSeq > after && streamSeq <= through).slice(0, countMax);
  }

  checkpoint(room: RoomKey): Checkpoint | undefined {
    return this.#checkpoints.get(room);
  }

  /** As the document service does: the checkpoint first, then what it covers goes. The last record always stays. */
  checkpointAndTrim(room: RoomKey, checkpoint: Checkpoint): void {
    this.#checkpoints.set(room, checkpoint);
    const { kept } = this.#room(room);
    const covered = kept.findIndex(({ streamSeq }) => streamSeq >= checkpoint.streamSeq);
    kept.splice(0, Math.min(covered < 0 ? kept.length : covered, kept.length - 1));
  }

  #append(message: Published): void {
    const room = roomOfSubject(message.subject)!;
    const id = message.headers?.get("Nats-Msg-Id");
    const expected = message.headers?.get("Nats-Expected-Last-Subject-Sequence");
    const { kept } = this.#room(room);
    if (expected !== undefined && Number(expected) !== (kept.at(-1)?.streamSeq ?? 0)) {
      return this.#answer(message, { error: { err_code: WRONG_LAST_SEQUENCE, description: "wrong last sequence" } });
    }
    const before = id === undefined ? undefined : this.#seqOfMessage.get(id);
    if (before !== undefined) return this.#answer(message, { stream: "log", seq: before, duplicate: true });

    const streamSeq = ++this.#lastSeq;
    if (id !== undefined) this.#seqOfMessage.set(id, streamSeq);
    const stored = { record: decodeRecord(message.data)!, streamSeq };
    kept.push(stored);
    this.#judge(room, stored);
    if (this.mood === "changing-leader") return;
    this.#nats.publish({ subject: this.#subjects.editsOut(room), data: message.data, headers: new Map([["Nats-Sequence", String(streamSeq)]]) });
    if (this.mood !== "mute") this.#answer(message, { stream: "log", seq: streamSeq });
  }

  #answer({ reply }: Published, answer: object): void {
    if (reply !== undefined) this.#nats.publish({ subject: reply, data: new TextEncoder().encode(JSON.stringify(answer)) });
  }

  #room(room: RoomKey): RoomLogs {
    const known = this.#rooms.get(room) ?? { kept: [] };
    this.#rooms.set(room, known);
    return known;
  }
}

/** A bucket: every write against a revision; a read may be behind while the bucket lags. */
export class SimBucket<Entry> {
  readonly #scheduler: Scheduler;
  readonly #entries = new Map<RoomKey, { revision: number; at: number; entry: Entry | undefined }[]>();
  #revision = 0;
  lagMs = 0;
  isThere = true;

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  read(room: RoomKey): { revision: number; entry: Entry | undefined } {
    const visible = this.#entries.get(room)?.findLast(({ at }) => at + this.lagMs <= this.#scheduler.now);
    return visible ?? { revision: 0, entry: undefined };
  }

  all(): Map<RoomKey, Entry> {
    const entries = [...this.#entries.keys()].map((room) => [room, this.read(room).entry] as const);
    return new Map(entries.filter((pair): pair is [RoomKey, NonNullable<Entry>] => pair[1] !== undefined));
  }

  /** False: it was written meanwhile. */
  write(room: RoomKey, entry: Entry | undefined, revision: number): boolean {
    const history = this.#entries.get(room) ?? [];
    if ((history.at(-1)?.revision ?? 0) !== revision) return false;
    history.push({ revision: ++this.#revision, at: this.#scheduler.now, entry });
    this.#entries.set(room, history);
    return true;
  }
}
