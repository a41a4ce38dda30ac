/**
 * The log's stream and the buckets, with the behaviour of a real server that
 * `test/contract/jetstream-facts.system.test.ts` shows. All subjects share one sequence. The server republishes each
 * stored record, and then answers. It stores all records of a batch or none. In addition, this class simulates how a
 * cluster under stress treats appends.
 */

import { type Checkpoint, type CheckpointEntry, isDeleted } from "../../shared/bus/checkpoint.ts";
import { type DeletedRecord, encodeDeletedRecord, type StoredRecord as StoredBytes } from "../../shared/bus/record.ts";
import type { PlannedRoom, RoomEntry } from "../../shared/bus/placement-messages.ts";
import { ownersRecordOf } from "../../shared/testing/owners-record.ts";
import type { Lease } from "../../shared/cluster/lease.ts";
import { roomOfSubject, type Subjects } from "../../shared/bus/subjects.ts";
import type { RoomKey, UnixMillis } from "../../shared/ids.ts";
import type { Prng } from "../../shared/collections/prng.ts";
import type { KnownCheckpoint, LastRecord, DecodedRecord } from "../../room-server/ports.ts";
import { Pipe } from "./pipe.ts";
import { BATCH_INCOMPLETE, SimBatches, type StagedMessages } from "./sim-batches.ts";
import { SimBucket } from "./sim-bucket.ts";
import type { Scheduler } from "./scheduler.ts";
import type { Inside, Published, SimNats } from "./sim-nats.ts";

/**
 * silent: accepts nothing, answers nothing. refusing: answers with an error. mute: accepts appends, and the answers are
 * lost. changing-leader: accepts appends, but neither republishes nor answers. full: has no storage, so it refuses
 * appends and answers reads.
 */
export type LogCondition = "well" | "silent" | "refusing" | "mute" | "changing-leader" | "full";

const WRONG_LAST_SEQUENCE = 10_071;
const NO_LEADER = 10_008;
const STORAGE_FULL = 10_077;

/** Streams with separate leaders. */
export type LedStream = "log" | "checkpoints";

type Kept = LastRecord & { readonly at: number; readonly bytes: Uint8Array };
/** A leader that does not know that another leader was elected. */
type OldLeader = {
  readonly since: number;
  readonly of: ReadonlySet<LedStream>;
  readonly prng: Prng;
  /**
   * `alone`: the other nodes wait for the leader. `apart`: they have elected another one, and the old leader's node is
   * cut off. `together`: all nodes are connected again.
   */
  stage: "alone" | "apart" | "together";
};
/** `trimmed` and replaced `checkpoints`: the disk has them until the next sync. */
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
  readonly #batches = new SimBatches();
  readonly entries: SimBucket<RoomEntry>;
  readonly plans: SimBucket<PlannedRoom>;
  readonly leases: SimBucket<Lease>;
  /** Written by the simulated document services. Undefined: none runs, and `checkpointAndTrim` simulates their work. */
  checkpointEntries: SimBucket<CheckpointEntry> | undefined;
  readonly #appendedAt: { readonly streamSeq: number; readonly at: number }[] = [];
  #lastSeq = 0;
  /** Counts of appends in each mood except `well`, and while the log was slow. */
  readonly met: Record<Exclude<LogCondition, "well"> | "slow", number> = {
    "silent": 0,
    "refusing": 0,
    "mute": 0,
    "changing-leader": 0,
    "full": 0,
    "slow": 0,
  };
  mood: LogCondition = "well";
  #oldLeader: OldLeader | undefined;
  #staleEver = 0;
  /** Additional latency of an append. */
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

  /** Whether the leader has a majority and storage, so that buckets accept writes. */
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

  /** The server was killed: appends that it had not stored are lost. */
  loseUnderWay(): void {
    this.#appends.break();
    this.#batches.clear();
  }

  /** Count of reads that returned old data. */
  get staleEver(): number {
    return this.#staleEver;
  }

  /**
   * From now on an old leader answers reads at its node with its current data, and accepts no writes. No other node
   * accepts writes until a new leader is elected. False: there is an old leader already.
   */
  leaveOldLeader(prng: Prng): boolean {
    if (this.#oldLeader !== undefined) return false;
    this.loseUnderWay(); // No majority stored these appends.
    const of = (["log", "checkpoints"] as const).filter(() => prng.chance(0.7));
    this.#oldLeader = { since: this.#scheduler.now, of: new Set(of), prng, stage: "alone" };
    return true;
  }

  /** Changes the stage. While all nodes are connected again, both leaders answer reads, until the old one learns of the new one. */
  moveOldLeader(stage: "apart" | "together"): void {
    if (this.#oldLeader !== undefined) this.#oldLeader.stage = stage;
  }

  endOldLeader(): void {
    this.#oldLeader = undefined;
  }

  /** The time of the data that a read at a node returns. Undefined: no leader answers there. */
  asOf(led: LedStream, side: number): number | undefined {
    const old = this.#oldLeader?.of.has(led) === true ? this.#oldLeader : undefined;
    if (side !== 0) return old === undefined || old.stage === "together" ? undefined : old.since;
    if (!this.isReadable) return undefined;
    return old?.stage === "together" && old.prng.chance(0.5) ? old.since : this.#scheduler.now;
  }

  last(room: RoomKey, asOf: number): LastRecord | undefined {
    return this.#keptAt(room, asOf).at(-1);
  }

  /** Returns the next records after a stream sequence. */
  read(room: RoomKey, after: number, countMax: number, asOf: number): LastRecord[] {
    return this.#keptAt(room, asOf)
      .filter(({ streamSeq }) => streamSeq > after)
      .slice(0, countMax);
  }

  /** Returns the next records of all rooms, in the log's order. */
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

  /** The last stream sequence that was assigned at that time. */
  lastSeq(asOf: number): number {
    return this.#appendedAt.findLast(({ at }) => at <= asOf)?.streamSeq ?? 0;
  }

  /** The rooms with more than one record. */
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

  /** Appends a deletion record without an expected sequence, as the document service does. False: the log refuses it. */
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

  /**
   * Assigns all stream sequences up to `past` to records that are not kept, as `shared/io/log-numbers.ts` does. Returns
   * the count of missing numbers.
   */
  advance(past: number): number {
    while (this.#lastSeq < past) this.#nextSeq();
    return 0;
  }

  /** A purge: removes the room's records before a stream sequence, which may include the last one. Returns the removed records. */
  trim(key: RoomKey, before: number): readonly LastRecord[] {
    const room = this.#room(key);
    const first = room.kept.findIndex(({ streamSeq }) => streamSeq >= before);
    const records = room.kept.splice(0, first < 0 ? room.kept.length : first);
    room.trimmed.push({ records, at: this.#scheduler.now });
    return records;
  }

  /** Removes all records except the deletion record. */
  wipe(room: RoomKey): void {
    this.#cover(room, "deleted", this.#room(room).kept.length);
  }

  /** Writes the checkpoint and then removes the covered records, as the document service does. The last record always stays. */
  checkpointAndTrim(room: RoomKey, checkpoint: Checkpoint): void {
    const { kept } = this.#room(room);
    const covered = kept.findIndex(({ streamSeq }) => streamSeq >= checkpoint.streamSeq);
    this.#cover(room, checkpoint, covered < 0 ? kept.length : covered);
  }

  /**
   * The machine lost power: all changes since the last sync are undone, in the log and in the buckets, and their
   * numbers are assigned again. Returns the last stream sequence that is left.
   */
  loseSince(syncedAt: number): number {
    this.loseUnderWay();
    this.endOldLeader(); // Only a single node can lose acknowledged records.
    for (const room of this.#rooms.values()) {
      room.kept = keptAt(room, syncedAt);
      room.trimmed = room.trimmed.filter(({ at }) => at <= syncedAt);
      room.checkpoints = room.checkpoints.filter(({ at }) => at <= syncedAt);
    }
    const last = this.#appendedAt.findLast(({ at }) => at <= syncedAt)?.streamSeq ?? 0;
    while ((this.#appendedAt.at(-1)?.streamSeq ?? 0) > last) this.#appendedAt.pop();
    this.#lastSeq = last;
    for (const bucket of [this.entries, this.plans, this.leases]) bucket.loseSince(syncedAt);
    return last;
  }

  /** Removes a room's covered records, except its last one. */
  #cover(key: RoomKey, checkpoint: Checkpoint | "deleted", covered: number): void {
    const room = this.#room(key);
    const at = this.#scheduler.now;
    room.checkpoints.push({ checkpoint, at });
    room.trimmed.push({ records: room.kept.splice(0, Math.min(covered, room.kept.length - 1)), at });
  }

  #append(message: Published): void {
    const staged = this.#batches.receive(message);
    if (staged === "incomplete") this.#answer(message, BATCH_INCOMPLETE);
    else if (staged !== "staged") this.#appendTogether(staged);
  }

  /** Stores all messages, or none if the last record of a room is another than expected. Answers the last message. */
  #appendTogether({ messages, facts }: StagedMessages): void {
    if (!messages.every((message) => this.#isExpected(message)))
      return this.#answer(messages.at(-1)!, { error: { err_code: WRONG_LAST_SEQUENCE, description: "wrong last sequence" } });
    for (const { subject, data } of messages) {
      const [room, streamSeq] = [roomOfSubject(subject)!, this.#nextSeq()];
      const stored = { record: ownersRecordOf(data), streamSeq };
      this.#room(room).kept.push({ ...stored, at: this.#scheduler.now, bytes: data });
      this.#judge(room, stored);
      if (this.mood !== "changing-leader") this.#republish(room, data, streamSeq);
    }
    if (this.mood !== "changing-leader" && this.mood !== "mute")
      this.#answer(messages.at(-1)!, { stream: "log", seq: this.#lastSeq, ...facts });
  }

  #isExpected({ subject, headers }: Published): boolean {
    const expected = headers?.get("Nats-Expected-Last-Subject-Sequence");
    return expected === undefined || Number(expected) === (this.#room(roomOfSubject(subject)!).kept.at(-1)?.streamSeq ?? 0);
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

/** A room's records at that time, with records that were trimmed later. */
function keptAt({ kept, trimmed }: RoomLogs, then: number): Kept[] {
  const untrimmed = trimmed.filter(({ at }) => at > then).flatMap(({ records }) => records);
  return [...untrimmed, ...kept].filter(({ at }) => at <= then);
}
