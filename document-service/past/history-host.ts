/**
 * Keeps one room's past: what is about to be trimmed from its log becomes a segment first, and now and then a version
 * is made of its document. Each step may fail or be the last, and nothing that is named is ever missing:
 *
 *   write object, read it back, compare -> name it in the room's entry -> remove what it takes the place of
 *
 * An object that came to have no name is swept up later. Nobody waits for the past but the trimming of the log.
 */

import { assert } from "../../shared/assert.ts";
import type { StoredRecord } from "../../shared/bus/stored-record.ts";
import type { Clock } from "../../shared/clock.ts";
import type { Millis, Position, RoomKey, Seq } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import { unlessMistake } from "../../shared/pause.ts";
import { SeldomSet } from "../../shared/seldom.ts";
import {
  type History,
  type HistoryPolicy,
  isVersionDue,
  NO_HISTORY,
  retained,
  type Segment,
  segmentsToTakeUp,
  type Version,
  withVersion,
} from "./history.ts";
import type { Digest, EditLog, Histories, ObjectStore, StoredHistory } from "../ports.ts";
import { decodeSegment, encodeSegment, seqsOf } from "./segments.ts";
import { readVerified, writeVerified, type Written } from "../verified-write-host.ts";

export type HistoryPorts = { readonly log: EditLog; readonly histories: Histories; readonly history: ObjectStore; readonly digest: Digest };
/** The document as it is now. `leftOut`: edits at or below the position that it lacks. */
export type Present = { readonly state: Uint8Array; readonly applied: Position; readonly leftOut: number };
/** `newName`: unique among all objects ever written. */
export type HistoryDeps = { readonly clock: Clock; readonly log: Log; readonly newName: () => string };
export type Named = { readonly kind: "named"; readonly version: Version } | { readonly kind: "too-many" | "deleted" };

/** Another service writes the entry only while it takes this one for dead, so a second try is nearly always enough. */
const TRIES_MAX = 3;

export class HistoryHost {
  readonly #room: RoomKey;
  readonly #ports: HistoryPorts;
  readonly #policy: HistoryPolicy;
  readonly #deps: HistoryDeps;
  #stored: StoredHistory | undefined;
  /** The newest version, and since when it is there by the steady clock: its date is looked at only once. */
  #newest: { readonly id: string | undefined; readonly since: Millis };
  /** Objects of which it is not known whether the entry names them: a try to replace it may have failed, or not. */
  readonly #unsettled = new SeldomSet<string>();
  #turn: Promise<unknown> = Promise.resolve();

  constructor(room: RoomKey, ports: HistoryPorts, policy: HistoryPolicy, deps: HistoryDeps) {
    this.#room = room;
    this.#ports = ports;
    this.#policy = policy;
    this.#deps = deps;
    this.#newest = { id: undefined, since: deps.clock.now() };
  }

  async current(): Promise<History> {
    if (this.#stored !== undefined) return this.#stored.history;
    const read = await this.#ports.histories.read(this.#room);
    this.#stored ??= read; // What came to be known meanwhile stays: somebody may be about to replace just that.
    return this.#stored.history;
  }

  /** The stream sequence of the last record that is in a segment, or was. Undefined: none is put there. */
  async archivedThrough(): Promise<number | undefined> {
    if (this.#policy.historyMsMax === 0) return undefined;
    const { through, deleted } = await this.current();
    return deleted ? undefined : through;
  }

  /** To be called before the room's records before this one of its records are trimmed: they are in segments then. */
  archive(before: number): Promise<void> {
    return this.#policy.historyMsMax === 0 ? Promise.resolve() : this.#inTurn(() => this.#archive(before));
  }

  async #archive(before: number): Promise<void> {
    for (let tries = 0; tries < TRIES_MAX;) {
      const history = await this.current();
      if (history.deleted) return;
      const fresh = await this.#recordsBefore(before, history.through);
      if (fresh.length === 0) return;
      if (!(await this.#writeSegment(history, fresh))) tries += 1;
    }
    throw new Error(`the history of room ${this.#room} is written by another service as well; trying again`);
  }

  /** Whether enough has happened since the newest version. */
  async isVersionDue(seq: Seq): Promise<boolean> {
    const history = await this.current();
    const newest = history.versions.at(-1);
    const { clock } = this.#deps;
    if (newest !== undefined && this.#newest.id !== newest.id) {
      this.#newest = { id: newest.id, since: (clock.now() - Math.max(0, clock.wallNow() - newest.time)) as Millis };
    }
    return isVersionDue(history, { seq, versionedMs: clock.now() - this.#newest.since }, this.#policy);
  }

  /** A version of the document as it is; with a name it stays until `removeVersion`. */
  addVersion(present: Present, name?: string): Promise<Named> {
    return this.#inTurn(() => this.#addVersion(present, name));
  }

  /** An object is named in the entry that was known before it was written, or never: whoever wrote the entry since may have swept it up. */
  async #addVersion({ state, applied, leftOut }: Present, name: string | undefined): Promise<Named> {
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const history = await this.current();
      if (history.deleted) return { kind: "deleted" };
      if (name !== undefined && history.versions.filter((version) => version.name !== undefined).length >= this.#policy.historyNamedMax) {
        return { kind: "too-many" };
      }
      const id = this.#deps.newName();
      const written = await this.#write(`version-${applied.epoch}-${applied.seq}-${id}`, state);
      const version: Version = {
        ...written,
        id,
        epoch: applied.epoch,
        seq: applied.seq,
        time: this.#deps.clock.wallNow(),
        ...(name === undefined ? {} : { name }),
        ...(leftOut > 0 ? { leftOut } : {}),
      };
      if (await this.#replace(withVersion(history, version))) return { kind: "named", version };
      await this.#remove(version.object);
    }
    throw new Error(`a version of room ${this.#room} was not kept: another service writes its history as well`);
  }

  /** Whether there was one. */
  removeVersion(id: string): Promise<boolean> {
    return this.#inTurn(() => this.#removeVersion(id));
  }

  async #removeVersion(id: string): Promise<boolean> {
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const history = await this.current();
      const version = history.versions.find((one) => one.id === id);
      if (version === undefined) return false;
      this.#unsettled.add(version.object);
      if (await this.#replace({ ...history, versions: history.versions.filter((one) => one !== version) })) return true;
    }
    throw new Error(`a version of room ${this.#room} was not removed: another service writes its history as well`);
  }

  /**
   * Removes objects that a crash left behind. Whoever wrote them may only be slow and about to name one: the entry is
   * written again first, so that it finds another revision than it knows and gives up.
   */
  removeOrphans(names: readonly string[]): Promise<void> {
    return this.#inTurn(() => this.#removeOrphans(names));
  }

  async #removeOrphans(names: readonly string[]): Promise<void> {
    this.#stored = await this.#ports.histories.read(this.#room);
    const { history, revision } = this.#stored;
    const known = new Set(history.deleted ? [] : objectsOf(history));
    const orphans = names.filter((name) => !known.has(name));
    // Where there is no entry at all it may have been lost, and the objects are what is left.
    if (orphans.length === 0 || revision === 0 || !(await this.#replace(history))) return;
    for (const name of orphans) await this.#remove(name);
  }

  /** The room is deleted: says so in the entry first, so that nobody adds anything, and removes all that it names. */
  wipe(): Promise<void> {
    return this.#inTurn(() => this.#wipe());
  }

  async #wipe(): Promise<void> {
    const { histories, history: store } = this.#ports;
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const { history, revision } = await histories.read(this.#room);
      const fenced = history.deleted
        ? ({ kind: "written", revision } as const)
        : await histories.write(this.#room, { ...history, deleted: true }, revision);
      if (fenced.kind === "superseded") continue;
      for (const object of [...objectsOf(history), ...this.#unsettled]) await store.remove(object);
      this.#unsettled.clear();
      const nothing: History = { ...NO_HISTORY, deleted: true };
      const emptied = objectsOf(history).length === 0 ? fenced : await histories.write(this.#room, nothing, fenced.revision);
      this.#stored = emptied.kind === "written" ? { history: nothing, revision: emptied.revision } : undefined;
      if (emptied.kind === "written") return;
    }
    throw new Error(`the history of room ${this.#room}, which is deleted, is written by another service as well; trying again`);
  }

  /** Those that are not in segments yet, in order and without a hole; as many as a segment takes. */
  async #recordsBefore(before: number, after: number): Promise<StoredRecord[]> {
    const records: StoredRecord[] = [];
    let bytes = 0;
    for await (const record of this.#ports.log.read(this.#room, after, before)) {
      if (record.streamSeq === before || bytes > this.#policy.historySegmentBytesMax) return records;
      records.push({ ...record, bytes: record.bytes.slice() });
      bytes += record.bytes.byteLength;
    }
    // The log was lost: there is nothing of the room to archive, nor to trim.
    if ((await this.#ports.log.end(this.#room)).kind === "empty") return [];
    throw new Error(`the log does not show record ${before} of room ${this.#room}, which is there: a replica lags, or it was lost`);
  }

  /** Whether it was named. If not, somebody else has written the entry. */
  async #writeSegment(history: History, fresh: readonly StoredRecord[]): Promise<boolean> {
    const lastRecord = fresh.at(-1);
    assert(lastRecord !== undefined, "a segment is written of records");
    const bytes = fresh.reduce((sum, record) => sum + record.bytes.byteLength, 0);
    const earlier = await this.#takeUp(segmentsToTakeUp(history, { bytes, time: lastRecord.time }, this.#policy), fresh);
    const records = [...earlier.flatMap((segment) => segment.records), ...fresh];
    const { firstSeq, lastSeq } = seqsOf(records) ?? noSeqs(history);
    const written = await this.#write(`edits-${firstSeq}-${lastSeq}-${this.#deps.newName()}`, encodeSegment(this.#room, records));
    const segment: Segment = { ...written, firstSeq, lastSeq, firstTime: records[0]?.time ?? lastRecord.time, lastTime: lastRecord.time };
    const gone = new Set(earlier.map(({ object }) => object));
    for (const object of gone) this.#unsettled.add(object);
    const rest = history.segments.filter(({ object }) => !gone.has(object));
    if (await this.#replace({ ...history, segments: [...rest, segment], through: lastRecord.streamSeq })) return true;
    await this.#remove(segment.object);
    return false;
  }

  /** Those that can be read and that the records follow without a hole; others stay as they are. */
  async #takeUp(
    segments: readonly Segment[],
    fresh: readonly StoredRecord[],
  ): Promise<{ readonly object: string; readonly records: StoredRecord[] }[]> {
    const earlier: { readonly object: string; readonly records: StoredRecord[] }[] = [];
    let next = seqsOf(fresh)?.firstSeq;
    for (const segment of segments.toReversed()) {
      if (next !== undefined && segment.lastSeq + 1 !== next) break;
      const bytes = await readVerified(this.#ports.history, this.#ports.digest, segment);
      const records = bytes && decodeSegment(bytes);
      if (records === undefined) break;
      earlier.unshift({ object: segment.object, records });
      next = segment.firstSeq;
    }
    return earlier;
  }

  async #write(name: string, bytes: Uint8Array): Promise<Written> {
    const object = `${this.#room}/${name}`;
    this.#unsettled.add(object);
    const written = await writeVerified(this.#ports.history, this.#ports.digest, object, bytes);
    if (written === undefined) {
      throw new Error(`a part of the history of room ${this.#room} reads back other than it was written; it is not used`);
    }
    return written;
  }

  /**
   * Whether it was written. If not, somebody else had, and theirs is read next. What is too old goes with it, and all
   * else that it does not name.
   */
  async #replace(next: History): Promise<boolean> {
    const { history, dropped } = retained(next, this.#deps.clock.wallNow(), this.#policy);
    for (const object of dropped) this.#unsettled.add(object);
    const write = await this.#ports.histories.write(this.#room, history, this.#stored?.revision ?? 0);
    this.#stored = write.kind === "written" ? { history, revision: write.revision } : undefined;
    if (write.kind !== "written") return false;
    const named = new Set(objectsOf(history));
    for (const object of this.#unsettled) if (!named.has(object)) await this.#remove(object);
    this.#unsettled.clear();
    return true;
  }

  /** Changes of the entry wait for each other, so that each stands on what the one before made of it. */
  #inTurn<Value>(work: () => Promise<Value>): Promise<Value> {
    const turn = this.#turn.then(work, work);
    this.#turn = turn.catch(() => {}); // Whoever asked for the work hears of its failure.
    return turn;
  }

  /** One that is left behind costs space only, and is swept up later. */
  async #remove(object: string): Promise<void> {
    try {
      await this.#ports.history.remove(object);
    } catch (cause) {
      unlessMistake(cause);
      this.#deps.log.warn({ room: this.#room, object, cause }, "a part of a room's history was not removed");
    }
  }
}

function objectsOf({ versions, segments }: History): string[] {
  return [...versions, ...segments].map(({ object }) => object);
}

function noSeqs({ segments }: History): { firstSeq: Seq; lastSeq: Seq } {
  const lastSeq = segments.at(-1)?.lastSeq ?? (0 as Seq);
  return { firstSeq: (lastSeq + 1) as Seq, lastSeq };
}
