/**
 * The changes of one room's history, one job at a time: which objects to write, which entry names them, which objects
 * to remove. A crash may follow any step, and every object that an entry names exists:
 *
 *   write object, read it back, compare -> name it in the room's entry -> remove the objects that it replaces
 *
 * The invariant: a job names an object only by replacing the entry that it read before it wrote the object. Another
 * service that replaced the entry since may have removed the object as an orphan; then the job writes it again.
 */

import { assert, assertNever } from "../../shared/assert.ts";
import type { StoredRecord } from "../../shared/bus/record.ts";
import type { LeaseWrite } from "../../shared/cluster/lease.ts";
import type { Millis, RoomKey, Seq, UnixMillis } from "../../shared/ids.ts";
import type { RoomLogEnd, StoredHistory } from "../ports.ts";
import type { Written } from "../verified-write-host.ts";
import {
  type History,
  type HistoryPolicy,
  isVersionDue,
  NO_HISTORY,
  objectsOf,
  retained,
  type Segment,
  segmentsToTakeUp,
} from "./history.ts";
import type { CurrentDocument, HistoryEffect, HistoryInput, HistoryJob, HistoryResult } from "./history-messages.ts";
import { KnownEntry } from "./known-entry.ts";
import { type DraftedObject, draftSegment, draftVersion, entryNaming, type ObjectDraft, type ReadSegment } from "./object-drafts.ts";
import { bytesOf, decodeSegment, seqsOf } from "./segments.ts";

/** The effect whose outcome the job waits for. `history`: the entry that the job began from. */
type Step =
  | { readonly kind: "reading-entry" }
  | { readonly kind: "reading-records"; readonly history: History }
  | { readonly kind: "reading-log-end" }
  /** `candidates`: earlier segments that the new one may replace, the newest last. `earlier`: those that were read. */
  | {
      readonly kind: "reading-segments";
      readonly history: History;
      readonly fresh: readonly StoredRecord[];
      readonly candidates: readonly Segment[];
      readonly earlier: readonly ReadSegment[];
    }
  | { readonly kind: "writing-object"; readonly history: History; readonly draft: ObjectDraft }
  /** `result`: ends the job once the entry is written; undefined: the job continues. */
  | {
      readonly kind: "writing-entry";
      readonly orphans?: readonly string[];
      readonly result: HistoryResult | undefined;
    }
  | { readonly kind: "removing-unnamed"; readonly result: HistoryResult | undefined }
  | { readonly kind: "fencing-entry"; readonly history: History }
  | { readonly kind: "erasing"; readonly history: History; readonly revision: number }
  | { readonly kind: "emptying-entry" };
type RunningJob = { readonly job: HistoryJob; tries: number; step: Step };

/**
 * Number of tries. Another service writes the entry only while it believes that this one is dead, so a second try is
 * nearly always enough.
 */
const TRIES_MAX = 3;
const DONE: HistoryResult = { kind: "done" };
const EMPTIED: History = { ...NO_HISTORY, deleted: true };

export class HistoryPlan {
  readonly #room: RoomKey;
  readonly #policy: HistoryPolicy;
  readonly #newName: () => string;
  readonly #entry: KnownEntry;
  /** The newest version, and the time since which it exists by the steady clock. Its date is compared only once. */
  #newest: { readonly id: string | undefined; readonly since: Millis };
  readonly #waiting: HistoryJob[] = [];
  #running: RunningJob | undefined;
  /** The date of the input that is being received, and the date at which what is too old is dropped. */
  #dates = { now: 0 as UnixMillis, retention: 0 as UnixMillis };

  /** `newName` returns a name that no other object ever has. */
  constructor(room: RoomKey, policy: HistoryPolicy, newName: () => string, now: Millis) {
    this.#room = room;
    this.#policy = policy;
    this.#newName = newName;
    this.#entry = new KnownEntry(policy);
    this.#newest = { id: undefined, since: now };
  }

  get isKept(): boolean {
    return this.#policy.historyMsMax > 0;
  }

  /** Undefined: read the entry first. */
  get history(): History | undefined {
    return this.#entry.history;
  }

  receiveEntry(found: StoredHistory): History {
    return this.#entry.receiveRead(found);
  }

  /** Whether enough edits or time passed since the newest version. */
  isVersionDue(history: History, seq: Seq, now: Millis, date: UnixMillis): boolean {
    const newest = history.versions.at(-1);
    if (newest !== undefined && this.#newest.id !== newest.id) {
      this.#newest = { id: newest.id, since: (now - Math.max(0, date - newest.time)) as Millis };
    }
    return isVersionDue(history, { seq, versionedMs: now - this.#newest.since }, this.#policy);
  }

  /** Jobs end in the order in which they are received. A date that is years ahead must not end the history of every room. */
  receive(input: HistoryInput, date: UnixMillis, storeDate: UnixMillis): HistoryEffect[] {
    this.#dates = { now: date, retention: Math.min(date, storeDate) as UnixMillis };
    if (input.kind === "job") {
      this.#waiting.push(input.job);
      return this.#running === undefined ? this.#beginNext() : [];
    }
    const running = this.#running;
    assert(running !== undefined, "an outcome belongs to the running job");
    return input.kind === "failed" ? this.#beginNext() : this.#receiveOutcome(running, input);
  }

  #receiveOutcome(running: RunningJob, input: Exclude<HistoryInput, { kind: "job" | "failed" }>): HistoryEffect[] {
    const { step } = running;
    switch (input.kind) {
      case "entry-read":
        return this.#receiveEntryRead(running, input.found);
      case "records-read":
        assert(step.kind === "reading-records", "records are read for a segment");
        return input.isComplete
          ? this.#planSegment(running, step.history, input.records)
          : this.#wait(running, { kind: "reading-log-end" }, { kind: "read-log-end" });
      case "log-end-read":
        return this.#receiveLogEnd(running, input.end);
      case "segment-read":
        return this.#receiveSegment(running, input.bytes);
      case "object-written":
        return this.#receiveObject(running, input.written);
      case "entry-written":
        return this.#receiveEntryWrite(running, input.write);
      case "objects-removed":
        return this.#receiveRemoved(running);
      default:
        return assertNever(input);
    }
  }

  #beginNext(): HistoryEffect[] {
    const job = this.#waiting.shift();
    this.#running = job && { job, tries: 0, step: { kind: "reading-entry" } };
    return this.#running === undefined ? [] : this.#begin(this.#running);
  }

  /**
   * Every job begins with the entry in the store. A known revision may be of another entry now: buckets that lost their end
   * assign revisions again.
   */
  #begin(running: RunningJob): HistoryEffect[] {
    if (running.job.kind === "archive" && !this.isKept) return this.#end(DONE);
    return this.#wait(running, { kind: "reading-entry" }, { kind: "read-entry" });
  }

  #receiveEntryRead(running: RunningJob, found: StoredHistory): HistoryEffect[] {
    const { job } = running;
    switch (job.kind) {
      case "wipe":
        return this.#fenceEntry(running, found);
      case "remove-orphans":
        this.#entry.set(found);
        return this.#confirmOrphans(running, job.names, found);
      default:
        this.#entry.set(found);
        return this.#beginFrom(running, job, found.history);
    }
  }

  #beginFrom(running: RunningJob, job: Exclude<HistoryJob, { kind: "remove-orphans" | "wipe" }>, history: History): HistoryEffect[] {
    if (history.deleted && job.kind !== "remove-version") {
      return this.#removeThenEnd(running, this.#entry.takeUnsettled(), job.kind === "archive" ? DONE : { kind: "deleted" });
    }
    switch (job.kind) {
      case "archive":
        return this.#wait(
          running,
          { kind: "reading-records", history },
          { kind: "read-records", after: history.through, before: job.before, bytesMax: this.#policy.historySegmentBytesMax },
        );
      case "add-version":
        return this.#writeVersion(running, history, job.document, job.name);
      case "remove-version":
        return this.#removeVersion(running, history, job.id);
      default:
        return assertNever(job);
    }
  }

  /** The log did not return all records of the range. An empty log has nothing to archive or to trim. */
  #receiveLogEnd({ job }: RunningJob, end: RoomLogEnd): HistoryEffect[] {
    assert(job.kind === "archive", "an archive job looks at the end of the log");
    if (end.kind === "empty") return this.#end(DONE);
    const why = `the log does not show record ${job.before} of room ${this.#room}, which was there: a replica lags, or the record was lost`;
    return this.#end({ kind: "failed", why });
  }

  #planSegment(running: RunningJob, history: History, fresh: readonly StoredRecord[]): HistoryEffect[] {
    const last = fresh.at(-1);
    if (last === undefined) return this.#end(DONE);
    const candidates = segmentsToTakeUp(history, { bytes: bytesOf(fresh), time: last.time }, this.#policy);
    return this.#readNextSegment(running, { history, fresh, candidates, earlier: [] });
  }

  /** A new segment replaces earlier segments that were read, if its records follow them without a gap. */
  #readNextSegment(running: RunningJob, read: Omit<Step & { kind: "reading-segments" }, "kind">): HistoryEffect[] {
    const next = read.candidates.at(-1);
    const nextSeq = read.earlier[0]?.segment.firstSeq ?? seqsOf(read.fresh)?.firstSeq;
    if (next === undefined || (nextSeq !== undefined && next.lastSeq + 1 !== nextSeq)) return this.#writeSegment(running, read);
    return this.#wait(running, { kind: "reading-segments", ...read }, { kind: "read-segment", segment: next });
  }

  #receiveSegment(running: RunningJob, bytes: Uint8Array | undefined): HistoryEffect[] {
    const { step } = running;
    assert(step.kind === "reading-segments", "a segment is read to be replaced by a larger one");
    const records = bytes && decodeSegment(bytes);
    const segment = step.candidates.at(-1);
    if (records === undefined || segment === undefined) return this.#writeSegment(running, step);
    return this.#readNextSegment(running, {
      ...step,
      candidates: step.candidates.slice(0, -1),
      earlier: [{ segment, records }, ...step.earlier],
    });
  }

  #writeSegment(running: RunningJob, read: Omit<Step & { kind: "reading-segments" }, "kind">): HistoryEffect[] {
    return this.#writeObject(running, read.history, draftSegment(this.#room, this.#newName(), read));
  }

  #writeVersion(running: RunningJob, history: History, document: CurrentDocument, name: string | undefined): HistoryEffect[] {
    const named = history.versions.filter((version) => version.name !== undefined);
    if (name !== undefined && named.length >= this.#policy.historyNamedMax) return this.#end({ kind: "too-many" });
    const version = { id: this.#newName(), name, time: this.#dates.now };
    return this.#writeObject(running, history, draftVersion(this.#room, version, document));
  }

  #removeVersion(running: RunningJob, history: History, id: string): HistoryEffect[] {
    const version = history.versions.find((one) => one.id === id);
    if (version === undefined) return this.#end({ kind: "no-version" });
    this.#entry.addUnsettled(version.object);
    return this.#writeEntry(running, { ...history, versions: history.versions.filter((one) => one !== version) }, { result: DONE });
  }

  /**
   * The writer of an orphan may be slow and about to name it. So the entry is written again first. The writer then
   * finds an unknown revision and stops. Without an entry nothing is removed, because the entry may be lost. The new entry
   * omits what is older than the limit: nobody may write another entry, because nobody edits the room.
   */
  #confirmOrphans(running: RunningJob, names: readonly string[], { history, revision }: StoredHistory): HistoryEffect[] {
    const known = new Set(history.deleted ? [] : objectsOf(history));
    const orphans = names.filter((name) => !known.has(name));
    const hasExpired = retained(history, this.#dates.retention, this.#policy).dropped.length > 0;
    if ((orphans.length === 0 && !hasExpired) || revision === 0) return this.#end(DONE);
    return this.#writeEntry(running, history, { orphans, result: DONE });
  }

  /** The entry states that the room is deleted before anything is removed. After that no other service adds anything. */
  #fenceEntry(running: RunningJob, { history, revision }: StoredHistory): HistoryEffect[] {
    if (history.deleted) return this.#eraseObjects(running, history, revision);
    const deleted: History = { ...history, deleted: true };
    return this.#wait(running, { kind: "fencing-entry", history }, { kind: "write-entry", history: deleted, revision });
  }

  #eraseObjects(running: RunningJob, history: History, revision: number): HistoryEffect[] {
    return this.#wait(running, { kind: "erasing", history, revision }, { kind: "erase-objects", objects: this.#entry.allObjects(history) });
  }

  #writeObject(running: RunningJob, history: History, { object, bytes, draft }: DraftedObject): HistoryEffect[] {
    this.#entry.addUnsettled(object);
    return this.#wait(running, { kind: "writing-object", history, draft }, { kind: "write-object", object, bytes });
  }

  #receiveObject(running: RunningJob, written: Written | undefined): HistoryEffect[] {
    assert(running.step.kind === "writing-object", "an object is written to be named");
    const { history, draft } = running.step;
    if (written === undefined) {
      const why = `an object of the history of room ${this.#room} differs from what was written when it is read back; it is not used`;
      return this.#end({ kind: "failed", why });
    }
    if (draft.kind === "segment") for (const earlier of draft.replaced) this.#entry.addUnsettled(earlier);
    const result: HistoryResult | undefined =
      draft.kind === "version" ? { kind: "named", version: { ...written, ...draft.version } } : undefined;
    return this.#writeEntry(running, entryNaming(history, draft, written), { result });
  }

  #writeEntry(running: RunningJob, next: History, step: Omit<Step & { kind: "writing-entry" }, "kind">): HistoryEffect[] {
    const write = this.#entry.planWrite(next, this.#dates.retention);
    return this.#wait(running, { kind: "writing-entry", ...step }, { kind: "write-entry", ...write });
  }

  #receiveEntryWrite(running: RunningJob, write: LeaseWrite): HistoryEffect[] {
    const { step, job } = running;
    switch (step.kind) {
      case "fencing-entry":
        return write.kind === "written" ? this.#eraseObjects(running, step.history, write.revision) : this.#tryAgain(running);
      case "emptying-entry":
        this.#entry.set(write.kind === "written" ? { history: EMPTIED, revision: write.revision } : undefined);
        return write.kind === "written" ? this.#end(DONE) : this.#tryAgain(running);
      default:
        assert(step.kind === "writing-entry", "an entry is written to change it, to fence it or to empty it");
    }
    const unnamed = this.#entry.receiveWrite(write);
    if (unnamed === "superseded") return job.kind === "remove-orphans" ? this.#end(DONE) : this.#tryAgain(running); // The next sweep tries again.
    return this.#removeThenEnd(running, [...unnamed, ...(step.orphans ?? [])], step.result);
  }

  /** Objects that no entry names any more. Without a result the job continues. */
  #removeThenEnd(running: RunningJob, objects: readonly string[], result: HistoryResult | undefined): HistoryEffect[] {
    running.step = { kind: "removing-unnamed", result };
    return objects.length === 0 ? this.#receiveRemoved(running) : [{ kind: "remove-objects", objects }];
  }

  #receiveRemoved(running: RunningJob): HistoryEffect[] {
    const { step } = running;
    switch (step.kind) {
      case "removing-unnamed":
        return step.result === undefined ? this.#begin(running) : this.#end(step.result);
      default:
        assert(step.kind === "erasing", "objects are removed once no entry names them, or with the room");
        this.#entry.clearUnsettled();
        if (objectsOf(step.history).length > 0) {
          return this.#wait(running, { kind: "emptying-entry" }, { kind: "write-entry", history: EMPTIED, revision: step.revision });
        }
        this.#entry.set({ history: EMPTIED, revision: step.revision });
        return this.#end(DONE);
    }
  }

  #tryAgain(running: RunningJob): HistoryEffect[] {
    running.tries += 1;
    if (running.tries < TRIES_MAX) return this.#begin(running);
    return this.#end({ kind: "failed", why: `another service writes the history of room ${this.#room} as well; trying again` });
  }

  #wait(running: RunningJob, step: Step, effect: HistoryEffect): HistoryEffect[] {
    running.step = step;
    return [effect];
  }

  #end(result: HistoryResult): HistoryEffect[] {
    return [{ kind: "end", result }, ...this.#beginNext()];
  }
}
