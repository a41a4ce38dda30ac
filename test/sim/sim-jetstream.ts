/**
 * The log's stream and the buckets, with what `test/contract/jetstream-facts.system.test.ts` shows of the real server:
 * one sequence for all subjects, the expected sequence checked before the message id, each record republished as
 * stored and before its answer. On top of that, what a cluster under stress does to whoever appends.
 */

import { type Checkpoint, type CheckpointEntry, isDeleted } from "../../shared/bus/checkpoint.ts";
import type { StoredRecord as StoredBytes } from "../../shared/bus/record.ts";
import type { PlannedRoom, RoomEntry } from "../../shared/bus/placement-messages.ts";
import { type DeletedRecord, encodeDeletedRecord } from "../../shared/bus/record.ts";
import { ownersRecordOf } from "../../shared/testing/owners-record.ts";
import type { Lease } from "../../shared/cluster/lease.ts";
import { roomOfSubject, type Subjects } from "../../shared/bus/subjects.ts";
import type { RoomKey, UnixMillis } from "../../shared/ids.ts";
import type { Prng } from "../../shared/collections/prng.ts";
import type { KnownCheckpoint, LastRecord, DecodedRecord } from "../../room-server/ports.ts";
import { Pipe } from "./pipe.ts";
import { SimBucket } from "./sim-bucket.ts";
import type { Scheduler } from "./scheduler.ts";
import type { Inside, Published, SimNats } from "./sim-nats.ts";

/**
 * silent: nothing is taken, nothing answered. refusing: an error is answered. mute: taken, the answer is lost.
 * changing-leader: taken, and neither republished nor answered. full: no storage for anything, so appends are refused, and what
 * is there can be read.
 */
export type LogMood = "well" | "silent" | "refusing" | "mute" | "changing-leader" | "full";

const WRONG_LAST_SEQUENCE = 10_071;
const NO_LEADER = 10_008;
const STORAGE_FULL = 10_077;

/** Of the streams of the log and of the checkpoints each has a leader of its own. */
export type Led = "log" | "checkpoints";

type Kept = LastRecord & { readonly at: number; readonly bytes: Uint8Array };
/** A leader that has not heard that there is another. */
type OldLeader = {
  readonly since: number;
  readonly of: ReadonlySet<Led>;
  readonly prng: Prng;
  /** The others wait for it, until they choose another; its node is cut off from theirs; all are together again. */
  stage: "alone" | "apart" | "together";
};
/** `trimmed`, and checkpoints that others took the place of: what the disk has still, until it is synced. */
type RoomLogs = {
  kept: Kept[];
  trimmed: { readonly records: readonly Kept[]; readonly at: number }[];
  checkpoints: { readonly checkpoint: Checkpoint | "deleted"; readonly at: number }[];
};

export class SimJetStream implements Inside {
  readonly prefix: string;
  readonly #subjects: Subjects;
  readonly #nats: SimNats;
  readonly #judge: (room: RoomKey, stored: DecodedRecord) => void;
  readonly #appends: Pipe;
  readonly #scheduler: Scheduler;
  readonly #rooms = new Map<RoomKey, RoomLogs>();
  readonly #seqOfMessage = new Map<string, number>();
  readonly entries: SimBucket<RoomEntry>;
  readonly plans: SimBucket<PlannedRoom>;
  readonly leases: SimBucket<Lease>;
  /** Written by the simulated document services. Undefined: there are none, and `checkpointAndTrim` stands for them. */
  checkpointEntries: SimBucket<CheckpointEntry> | undefined;
  readonly #appendedAt: { readonly streamSeq: number; readonly at: number }[] = [];
  #lastSeq = 0;
  /** How many appends met each mood but the good one, and how many the slowness. */
  readonly met: Record<Exclude<LogMood, "well"> | "slow", number> = {
    "silent": 0,
    "refusing": 0,
    "mute": 0,
    "changing-leader": 0,
    "full": 0,
    "slow": 0,
  };
  mood: LogMood = "well";
  #oldLeader: OldLeader | undefined;
  #staleEver = 0;
  /** What an append takes beside the usual. */
  slowMs = 0;

  constructor(
    subjects: Subjects,
    nats: SimNats,
    scheduler: Scheduler,
    latencyMs: () => number,
    judge: (room: RoomKey, stored: DecodedRecord) => void,
  ) {
    this.prefix = subjects.log(0, "" as RoomKey);
    this.#subjects = subjects;
    this.#nats = nats;
    this.#judge = judge;
    this.#scheduler = scheduler;
    this.#appends = new Pipe(scheduler, () => latencyMs() + this.slowMs);
    this.entries = new SimBucket(scheduler);
    this.plans = new SimBucket(scheduler);
    this.leases = new SimBucket(scheduler);
    nats.addInside(this);
  }

  get isReadable(): boolean {
    return this.mood !== "silent" && this.mood !== "refusing" && this.#oldLeader?.stage !== "alone";
  }

  /** Whether the leader has a majority and storage, and so takes what is written to buckets. */
  get takesWrites(): boolean {
    return this.#oldLeader?.stage !== "alone" && this.mood !== "full";
  }

  receive(message: Published): void {
    if (this.mood !== "well") this.met[this.mood] += 1;
    if (this.slowMs > 0) this.met.slow += 1;
    if (this.mood === "silent" || this.#oldLeader?.stage === "alone") return;
    if (this.mood === "refusing")
      return this.#answer(message, { error: { err_code: NO_LEADER, description: "JetStream system temporarily unavailable" } });
    if (this.mood === "full") return this.#answer(message, { error: { err_code: STORAGE_FULL, description: "maximum bytes exceeded" } });
    this.#appends.send(() => this.#append(message));
  }

  /** The server was killed: what it had not stored is gone. */
  loseUnderWay(): void {
    this.#appends.break();
  }

  /** So many reads were told what was no longer so. */
  get staleEver(): number {
    return this.#staleEver;
  }

  /** From now on a leader answers what is read at its node, with what it has, and takes nothing; nor does anybody else yet. False: there is one already. */
  leaveOldLeader(prng: Prng): boolean {
    if (this.#oldLeader !== undefined) return false;
    this.loseUnderWay(); // No majority took it.
    const of = (["log", "checkpoints"] as const).filter(() => prng.chance(0.7));
    this.#oldLeader = { since: this.#scheduler.now, of: new Set(of), prng, stage: "alone" };
    return true;
  }

  /** The others have a new leader; or the old one's node is with them again: whoever reads is answered by both, until it hears of the other. */
  moveOldLeader(stage: "apart" | "together"): void {
    if (this.#oldLeader !== undefined) this.#oldLeader.stage = stage;
  }

  endOldLeader(): void {
    this.#oldLeader = undefined;
  }

  /** As of when whoever answers a read at a node has that stream. Undefined: nobody answers. */
  asOf(led: Led, side: number): number | undefined {
    const old = this.#oldLeader?.of.has(led) === true ? this.#oldLeader : undefined;
    if (side !== 0) return old === undefined || old.stage === "together" ? undefined : old.since;
    if (!this.isReadable) return undefined;
    return old?.stage === "together" && old.prng.chance(0.5) ? old.since : this.#scheduler.now;
  }

  last(room: RoomKey, asOf: number): LastRecord | undefined {
    return this.#keptAt(room, asOf).at(-1);
  }

  /** What comes next behind a record. */
  read(room: RoomKey, after: number, countMax: number, asOf: number): LastRecord[] {
    return this.#keptAt(room, asOf)
      .filter(({ streamSeq }) => streamSeq > after)
      .slice(0, countMax);
  }

  /** Of all rooms, in the order of the log. */
  readAll(after: number, countMax: number, asOf: number): StoredBytes[] {
    return [...this.#rooms.keys()]
      .flatMap((room) => this.#keptAt(room, asOf).map((kept) => storedBytes(room, kept)))
      .filter(({ streamSeq }) => streamSeq > after)
      .sort((a, b) => a.streamSeq - b.streamSeq)
      .slice(0, countMax);
  }

  readBytes(room: RoomKey, after: number, countMax: number, asOf: number): StoredBytes[] {
    return this.read(room, after, countMax, asOf).map((kept) => storedBytes(room, kept as Kept));
  }

  /** The last stream sequence that was given out by then. */
  lastSeq(asOf: number): number {
    return this.#appendedAt.findLast(({ at }) => at <= asOf)?.streamSeq ?? 0;
  }

  /** The rooms that have more than one record. */
  untrimmed(asOf: number): RoomKey[] {
    return [...this.#rooms.keys()].filter((room) => this.#keptAt(room, asOf).length > 1);
  }

  checkpoint(room: RoomKey, asOf: number = this.#scheduler.now): KnownCheckpoint {
    if (this.checkpointEntries !== undefined) {
      const { entry, revision } = this.checkpointEntries.entryAsOf(room, asOf);
      if (revision !== this.checkpointEntries.entryAsOf(room, this.#scheduler.now).revision) this.#staleEver += 1;
      return isDeleted(entry) ? "deleted" : entry;
    }
    const checkpoints = this.#rooms.get(room)?.checkpoints;
    const known = checkpoints?.findLast(({ at }) => at <= asOf);
    if (known !== checkpoints?.at(-1)) this.#staleEver += 1;
    return known?.checkpoint;
  }

  /** As the document service does: a record behind whatever stands there. False: the log does not take it. */
  delete(room: RoomKey): boolean {
    if (!this.isReadable || !this.takesWrites) return false;
    this.appendDeletion(room);
    return true;
  }

  /** Returns the record's stream sequence. */
  appendDeletion(room: RoomKey): number {
    const streamSeq = this.#nextSeq();
    const record: DeletedRecord = { kind: "deleted", id: `deletion.${streamSeq}`, time: this.#scheduler.now as UnixMillis };
    const bytes = encodeDeletedRecord(record);
    this.#room(room).kept.push({ record, streamSeq, at: this.#scheduler.now, bytes });
    if (this.mood !== "changing-leader") this.#republish(room, bytes, streamSeq);
    return streamSeq;
  }

  /** As `shared/io/log-numbers.ts`: the numbers up to there are used, by nothing that is kept. Returns how many are missing. */
  advance(past: number): number {
    while (this.#lastSeq < past) this.#nextSeq();
    return 0;
  }

  /** A purge: removes the room's records before that stream sequence, the last one too if it is among them. Returns what is removed. */
  trim(key: RoomKey, before: number): readonly LastRecord[] {
    const room = this.#room(key);
    const first = room.kept.findIndex(({ streamSeq }) => streamSeq >= before);
    const records = room.kept.splice(0, first < 0 ? room.kept.length : first);
    room.trimmed.push({ records, at: this.#scheduler.now });
    return records;
  }

  /** Nothing but that record stays. */
  wipe(room: RoomKey): void {
    this.#cover(room, "deleted", this.#room(room).kept.length);
  }

  /** As the document service does: the checkpoint first, then what it covers goes. The last record always stays. */
  checkpointAndTrim(room: RoomKey, checkpoint: Checkpoint): void {
    const { kept } = this.#room(room);
    const covered = kept.findIndex(({ streamSeq }) => streamSeq >= checkpoint.streamSeq);
    this.#cover(room, checkpoint, covered < 0 ? kept.length : covered);
  }

  /**
   * Its machine lost power: all that was done since it last synced is undone, in the log and in the buckets, and their
   * numbers are given out again. Returns the log's last that is there still.
   */
  loseSince(syncedAt: number): number {
    this.loseUnderWay();
    this.endOldLeader(); // A single one loses its end.
    for (const room of this.#rooms.values()) {
      room.kept = keptAt(room, syncedAt);
      room.trimmed = room.trimmed.filter(({ at }) => at <= syncedAt);
      room.checkpoints = room.checkpoints.filter(({ at }) => at <= syncedAt);
    }
    const last = this.#appendedAt.findLast(({ at }) => at <= syncedAt)?.streamSeq ?? 0;
    while ((this.#appendedAt.at(-1)?.streamSeq ?? 0) > last) this.#appendedAt.pop();
    this.#lastSeq = last;
    for (const [id, streamSeq] of this.#seqOfMessage) if (streamSeq > last) this.#seqOfMessage.delete(id);
    for (const bucket of [this.entries, this.plans, this.leases]) bucket.loseSince(syncedAt);
    return last;
  }

  /** A room's first records go, but never its last. */
  #cover(key: RoomKey, checkpoint: Checkpoint | "deleted", covered: number): void {
    const room = this.#room(key);
    const at = this.#scheduler.now;
    room.checkpoints.push({ checkpoint, at });
    room.trimmed.push({ records: room.kept.splice(0, Math.min(covered, room.kept.length - 1)), at });
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

    const streamSeq = this.#nextSeq();
    if (id !== undefined) this.#seqOfMessage.set(id, streamSeq);
    const stored = { record: ownersRecordOf(message.data), streamSeq };
    kept.push({ ...stored, at: this.#scheduler.now, bytes: message.data });
    this.#judge(room, stored);
    if (this.mood === "changing-leader") return;
    this.#republish(room, message.data, streamSeq);
    if (this.mood !== "mute") this.#answer(message, { stream: "log", seq: streamSeq });
  }

  #republish(room: RoomKey, data: Uint8Array, streamSeq: number): void {
    this.#nats.publish({ subject: this.#subjects.editsOut(room), data, headers: new Map([["Nats-Sequence", String(streamSeq)]]) });
  }

  #answer({ reply }: Published, answer: object): void {
    if (reply !== undefined) this.#nats.publish({ subject: reply, data: new TextEncoder().encode(JSON.stringify(answer)) });
  }

  #nextSeq(): number {
    const streamSeq = ++this.#lastSeq;
    this.#appendedAt.push({ streamSeq, at: this.#scheduler.now });
    return streamSeq;
  }

  #keptAt(key: RoomKey, asOf: number): readonly Kept[] {
    const room = this.#rooms.get(key);
    if (room === undefined) return [];
    if (asOf >= this.#scheduler.now) return room.kept;
    const kept = keptAt(room, asOf);
    if (kept.at(-1) !== room.kept.at(-1)) this.#staleEver += 1;
    return kept;
  }

  #room(room: RoomKey): RoomLogs {
    const known = this.#rooms.get(room) ?? { kept: [], trimmed: [], checkpoints: [] };
    this.#rooms.set(room, known);
    return known;
  }
}

function storedBytes(room: RoomKey, { streamSeq, at, bytes }: Kept): StoredBytes {
  return { room, streamSeq, time: Math.floor(at) as UnixMillis, bytes };
}

/** A room's records as they were then, those that were trimmed since among them. */
function keptAt({ kept, trimmed }: RoomLogs, then: number): Kept[] {
  const untrimmed = trimmed.filter(({ at }) => at > then).flatMap(({ records }) => records);
  return [...untrimmed, ...kept].filter(({ at }) => at <= then);
}
