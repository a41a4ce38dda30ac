/**
 * The log's stream and the buckets, with what `test/contract/jetstream-facts.system.test.ts` shows of the real server:
 * one sequence for all subjects, the expected sequence checked before the message id, each record republished as
 * stored and before its answer. On top of that, what a cluster under stress does to whoever appends.
 */

import type { Checkpoint } from "../../shared/bus/checkpoint.ts";
import type { PlannedRoom, RoomEntry } from "../../shared/bus/placement-messages.ts";
import { type DeletedRecord, encodeDeletedRecord } from "../../shared/bus/record.ts";
import { ownersRecordOf } from "../../shared/testing/owners-record.ts";
import type { Lease } from "../../shared/lease.ts";
import { roomOfSubject, type Subjects } from "../../shared/bus/subjects.ts";
import type { RoomKey, UnixMillis } from "../../shared/ids.ts";
import type { Prng } from "../../shared/prng.ts";
import type { KnownCheckpoint, LastRecord, StoredRecord } from "../../room-server/ports.ts";
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

/** Of the streams of the log and of the checkpoints each has a leader of its own. */
export type Led = "log" | "checkpoints";

type Kept = LastRecord & { readonly at: number };
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
  readonly #judge: (room: RoomKey, stored: StoredRecord) => void;
  readonly #appends: Pipe;
  readonly #scheduler: Scheduler;
  readonly #rooms = new Map<RoomKey, RoomLogs>();
  readonly #seqOfMessage = new Map<string, number>();
  readonly entries: SimBucket<RoomEntry>;
  readonly plans: SimBucket<PlannedRoom>;
  readonly leases: SimBucket<Lease>;
  readonly #appendedAt: { readonly streamSeq: number; readonly at: number }[] = [];
  #lastSeq = 0;
  /** How many appends met each mood but the good one, and how many the slowness. */
  readonly met: Record<Exclude<LogMood, "well"> | "slow", number> = {
    "silent": 0,
    "refusing": 0,
    "mute": 0,
    "changing-leader": 0,
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
    judge: (room: RoomKey, stored: StoredRecord) => void,
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

  receive(message: Published): void {
    if (this.mood !== "well") this.met[this.mood] += 1;
    if (this.slowMs > 0) this.met.slow += 1;
    if (this.mood === "silent" || this.#oldLeader?.stage === "alone") return;
    if (this.mood === "refusing")
      return this.#answer(message, { error: { err_code: NO_LEADER, description: "JetStream system temporarily unavailable" } });
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

  checkpoint(room: RoomKey, asOf: number = this.#scheduler.now): KnownCheckpoint {
    const checkpoints = this.#rooms.get(room)?.checkpoints;
    const known = checkpoints?.findLast(({ at }) => at <= asOf);
    if (known !== checkpoints?.at(-1)) this.#staleEver += 1;
    return known?.checkpoint;
  }

  /** As the document service does: a record behind whatever stands there. False: the log does not take it. */
  delete(room: RoomKey): boolean {
    if (!this.isReadable) return false;
    const streamSeq = this.#nextSeq();
    const record: DeletedRecord = { kind: "deleted", id: `deletion.${streamSeq}`, time: this.#scheduler.now as UnixMillis };
    this.#room(room).kept.push({ record, streamSeq, at: this.#scheduler.now });
    if (this.mood !== "changing-leader") this.#republish(room, encodeDeletedRecord(record), streamSeq);
    return true;
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
    kept.push({ ...stored, at: this.#scheduler.now });
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

/** A room's records as they were then, those that were trimmed since among them. */
function keptAt({ kept, trimmed }: RoomLogs, then: number): Kept[] {
  const untrimmed = trimmed.filter(({ at }) => at > then).flatMap(({ records }) => records);
  return [...untrimmed, ...kept].filter(({ at }) => at <= then);
}

/** A bucket: every write against a revision; a read may be behind while the bucket lags. */
export class SimBucket<Entry> {
  readonly #scheduler: Scheduler;
  readonly #entries = new Map<RoomKey, { revision: number; at: number; entry: Entry | undefined }[]>();
  readonly #followers: (() => void)[] = [];
  #revision = 0;
  #lateEver = 0;
  #unansweredEver = 0;
  #isThere = true;
  lagMs = 0;

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  /** So many reads were told what was no longer so. */
  get lateEver(): number {
    return this.#lateEver;
  }

  get unansweredEver(): number {
    return this.#unansweredEver;
  }

  /** Asked once for each question. */
  answers(): boolean {
    if (!this.#isThere) this.#unansweredEver += 1;
    return this.#isThere;
  }

  goAway(): void {
    this.#isThere = false;
  }

  comeBack(): void {
    this.#isThere = true;
    this.#tellFollowers();
  }

  read(room: RoomKey): { revision: number; entry: Entry | undefined } {
    const history = this.#entries.get(room);
    const visible = history?.findLast(({ at }) => at + this.lagMs <= this.#scheduler.now);
    if (visible !== history?.at(-1)) this.#lateEver += 1;
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
    if (this.lagMs > 0) this.#lateEver += 1;
    history.push({ revision: ++this.#revision, at: this.#scheduler.now, entry });
    this.#entries.set(room, history);
    this.#scheduler.after(this.lagMs, () => this.#tellFollowers());
    return true;
  }

  /** Called when there is something new to be read. */
  onChange(tell: () => void): void {
    this.#followers.push(tell);
  }

  /** The server lost power: what was written since it last synced is gone, and its revisions are given out again. */
  loseSince(syncedAt: number): void {
    this.#revision = 0;
    for (const [room, history] of this.#entries) {
      const synced = history.filter(({ at }) => at <= syncedAt);
      if (synced.length > 0) this.#entries.set(room, synced);
      else this.#entries.delete(room);
      this.#revision = Math.max(this.#revision, synced.at(-1)?.revision ?? 0);
    }
  }

  #tellFollowers(): void {
    if (this.#isThere) for (const tell of this.#followers) tell();
  }
}
