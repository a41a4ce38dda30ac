/**
 * The restore of one room from its remaining snapshots, versions, segments and log, while no service runs. One effect
 * at a time; its outcome is the next input. The name of an object describes its content, so the object is useful even
 * if the entry that named it is lost. Edits that no source contains are counted, and the rest is restored.
 *
 * The invariant: the entry of the room's history is written last. Without a checkpoint only that entry may know the
 * room's last seq, and a restore after a failed one must find it again.
 */

import { assert, assertNever } from "../../shared/assert.ts";
import { type Checkpoint, type CheckpointEntry, isDeleted } from "../../shared/bus/checkpoint.ts";
import { NO_EPOCHS, withEpoch, withRecords } from "../../shared/bus/epoch-history.ts";
import { epochOf, type StoredRecord } from "../../shared/bus/record.ts";
import type { LeaseWrite } from "../../shared/cluster/lease.ts";
import type { Epoch, RoomKey, Seq, UnixMillis } from "../../shared/ids.ts";
import { EMPTY_STATE, type MergedDocument } from "../merge.ts";
import type { Digest, RoomLogEnd, StoredCheckpoint, StoredHistory, Unread } from "../ports.ts";
import type { Written } from "../verified-write-host.ts";
import type { History } from "./history.ts";
import {
  archivedThrough,
  editsAfter,
  type FoundObject,
  type FoundSegment,
  foundSegment,
  headOfEdits,
  highest,
  lastNamedSeq,
  lastStreamSeq,
  namesExactly,
  restoredHistory,
  type RoomObjects,
  segmentNames,
  type StateName,
  stateNames,
  stateOfName,
} from "./restored-history.ts";
import { type LoggedEdits, loggedEditsOf } from "./segments.ts";

export type RestoredRoom =
  /** The checkpoint and its snapshot exist. Or the room never had a checkpoint, and its log has all edits. */
  | { readonly kind: "whole" }
  /** The room was rebuilt from the remaining data. `missing`: edits that no source contains. */
  | { readonly kind: "rebuilt"; readonly seq: Seq; readonly missing: number }
  /** The room is deleted permanently. A document service removes the data that a backup brought back. */
  | { readonly kind: "deleted" }
  | { readonly kind: "superseded" };

export type RestoreInput =
  | { readonly kind: "checkpoint-read"; readonly found: StoredCheckpoint }
  | { readonly kind: "history-read"; readonly found: StoredHistory }
  | { readonly kind: "log-end-read"; readonly end: RoomLogEnd }
  /** `bytes` undefined: the object is missing, or does not match the given digest. */
  | { readonly kind: "object-read"; readonly bytes: Uint8Array | undefined }
  | { readonly kind: "records-read"; readonly records: readonly StoredRecord[] }
  | { readonly kind: "merged"; readonly merged: MergedDocument | Unread }
  /** `written` undefined: the snapshot read back differs from what was written. */
  | { readonly kind: "snapshot-written"; readonly written: Written | undefined }
  | { readonly kind: "checkpoint-written"; readonly write: LeaseWrite }
  | { readonly kind: "history-written"; readonly write: LeaseWrite };

export type RestoreEffect =
  | { readonly kind: "read-checkpoint" }
  | { readonly kind: "read-history" }
  | { readonly kind: "read-log-end" }
  | { readonly kind: "read-object"; readonly store: "snapshots" | "history"; readonly object: string }
  | { readonly kind: "read-verified-snapshot"; readonly object: string; readonly sha256: string }
  /** Reads the room's records up to the stream sequence. */
  | { readonly kind: "read-records"; readonly through: number }
  | { readonly kind: "merge"; readonly state: Uint8Array; readonly edits: readonly Uint8Array[] }
  | { readonly kind: "write-snapshot"; readonly object: string; readonly bytes: Uint8Array }
  | { readonly kind: "write-checkpoint"; readonly entry: CheckpointEntry; readonly revision: number }
  | { readonly kind: "write-history"; readonly history: History; readonly revision: number }
  | { readonly kind: "end"; readonly restored: RestoredRoom }
  /** A person must act before the restore can succeed. */
  | { readonly kind: "fail"; readonly why: string };

type State = { readonly state: Uint8Array; readonly epoch: Epoch; readonly seq: Seq };
/** The newest readable state, and all edits that were found. Some of them may already be in the state. */
type Reach = { readonly base: State; readonly edits: readonly LoggedEdits[]; readonly top: Seq; readonly streamSeq: number };
/** The effect whose outcome the restore waits for. */
type Step =
  | { readonly kind: "reading-checkpoint" }
  | { readonly kind: "reading-history" }
  | { readonly kind: "reading-log-end" }
  | { readonly kind: "marking-deleted" }
  | { readonly kind: "reading-segments"; readonly names: readonly string[] }
  | { readonly kind: "reading-snapshot" }
  | { readonly kind: "reading-state"; readonly states: readonly StateName[] }
  | { readonly kind: "checking-state"; readonly states: readonly StateName[]; readonly state: Uint8Array }
  | {
      readonly kind: "reading-log";
      readonly base: State;
      readonly kept: readonly LoggedEdits[];
      readonly ahead: number;
      readonly place: number | undefined;
    }
  | { readonly kind: "merging"; readonly reach: Reach; readonly missing: number }
  | {
      readonly kind: "writing-snapshot";
      readonly reach: Reach;
      readonly epoch: Epoch;
      readonly missing: number;
      readonly leftOut: number;
      readonly refused: number;
    }
  | { readonly kind: "writing-checkpoint"; readonly seq: Seq; readonly missing: number }
  | { readonly kind: "reading-history-again"; readonly restored: RestoredRoom }
  | {
      readonly kind: "reading-versions";
      readonly restored: RestoredRoom;
      readonly before: StoredHistory;
      readonly names: readonly string[];
      readonly versions: readonly FoundObject[];
    }
  | { readonly kind: "writing-history"; readonly restored: RestoredRoom };

const REASONS: Readonly<Record<Unread, string>> = {
  overran: " in time: raise COROOM_MERGE_MS_MAX",
  busy: " because its thread died: give this command more memory",
  unreadable: ": Yjs refuses its edits",
};

export class RoomRestore {
  readonly #room: RoomKey;
  readonly #objects: RoomObjects;
  readonly #deps: { readonly newName: () => string; readonly digest: Digest };
  #step: Step = { kind: "reading-checkpoint" };
  #checkpoint: Checkpoint | undefined;
  #revision = 0;
  /** The last seq that the entry of the room's history names. */
  #namedSeq = 0;
  #isHistoryDeleted = false;
  readonly #segments: FoundSegment[] = [];

  constructor(room: RoomKey, objects: RoomObjects, deps: { newName: () => string; digest: Digest }) {
    this.#room = room;
    this.#objects = objects;
    this.#deps = deps;
  }

  begin(): RestoreEffect {
    return { kind: "read-checkpoint" };
  }

  receive(input: RestoreInput, date: UnixMillis): RestoreEffect {
    switch (input.kind) {
      case "checkpoint-read":
        return this.#receiveCheckpoint(input.found);
      case "history-read":
        return this.#receiveHistory(input.found, date);
      case "log-end-read":
        return this.#receiveLogEnd(input.end, date);
      case "object-read":
        return this.#receiveObject(input.bytes, date);
      case "records-read":
        return this.#planMerge(input.records);
      case "merged":
        return this.#receiveMerged(input.merged);
      case "snapshot-written":
        return this.#writeCheckpoint(input.written, date);
      case "checkpoint-written":
        return this.#receiveCheckpointWrite(input.write);
      case "history-written":
        assert(this.#step.kind === "writing-history", "the history's entry is written last");
        return { kind: "end", restored: input.write.kind === "written" ? this.#step.restored : { kind: "superseded" } };
      default:
        return assertNever(input);
    }
  }

  #receiveCheckpoint({ checkpoint, revision }: StoredCheckpoint): RestoreEffect {
    if (isDeleted(checkpoint)) return { kind: "end", restored: { kind: "deleted" } };
    [this.#checkpoint, this.#revision] = [checkpoint, revision];
    return this.#wait({ kind: "reading-history" }, { kind: "read-history" });
  }

  #receiveHistory(found: StoredHistory, date: UnixMillis): RestoreEffect {
    if (this.#step.kind === "reading-history-again") return this.#planHistory(found, this.#step.restored, date);
    this.#namedSeq = lastNamedSeq(found.history);
    this.#isHistoryDeleted = found.history.deleted === true;
    return this.#wait({ kind: "reading-log-end" }, { kind: "read-log-end" });
  }

  #receiveLogEnd(end: RoomLogEnd, time: UnixMillis): RestoreEffect {
    if (end.kind !== "deleted" && !this.#isHistoryDeleted) return this.#readNextSegment(segmentNames(this.#objects));
    const entry: CheckpointEntry = { deleted: true, time, wiping: true };
    return this.#wait({ kind: "marking-deleted" }, { kind: "write-checkpoint", entry, revision: this.#revision });
  }

  #receiveObject(bytes: Uint8Array | undefined, date: UnixMillis): RestoreEffect {
    const step = this.#step;
    switch (step.kind) {
      case "reading-segments": {
        const [object = "", ...rest] = step.names;
        const segment = foundSegment(object, bytes);
        if (segment !== undefined) this.#segments.push(segment);
        return this.#readNextSegment(rest);
      }
      case "reading-snapshot":
        return bytes === undefined ? this.#readNextState(stateNames(this.#objects)) : this.#readHistoryAgain({ kind: "whole" });
      case "reading-state":
        return bytes === undefined
          ? this.#readNextState(step.states.slice(1))
          : this.#wait({ kind: "checking-state", states: step.states, state: bytes }, { kind: "merge", state: bytes, edits: [] });
      default: {
        assert(step.kind === "reading-versions", "an object is a segment, a snapshot or a version");
        const [object = "", ...names] = step.names;
        const versions = bytes === undefined ? step.versions : [...step.versions, { object, bytes }];
        return this.#readNextVersion({ ...step, names, versions }, date);
      }
    }
  }

  #readNextSegment(names: readonly string[]): RestoreEffect {
    const [object] = names;
    if (object !== undefined) return this.#wait({ kind: "reading-segments", names }, { kind: "read-object", store: "history", object });
    if (this.#checkpoint !== undefined) {
      return this.#wait({ kind: "reading-snapshot" }, { kind: "read-verified-snapshot", ...this.#checkpoint.snapshot });
    }
    const isUntouched = this.#objects.snapshots.length === 0 && this.#segments.length === 0 && this.#namedSeq === 0;
    return isUntouched ? this.#readHistoryAgain({ kind: "whole" }) : this.#readNextState(stateNames(this.#objects));
  }

  /** The base is the newest state that can be read as a document, or the empty document. */
  #readNextState(states: readonly StateName[]): RestoreEffect {
    const [next] = states;
    if (next === undefined) return this.#readLog({ state: EMPTY_STATE, epoch: 0 as Epoch, seq: 0 as Seq });
    return this.#wait({ kind: "reading-state", states }, { kind: "read-object", store: next.store, object: next.object });
  }

  #receiveMerged(merged: MergedDocument | Unread): RestoreEffect {
    const step = this.#step;
    if (step.kind === "merging") return this.#writeSnapshot(step, merged);
    assert(step.kind === "checking-state", "a merge checks a state, or makes the new one");
    const [newest, ...older] = step.states;
    assert(newest !== undefined, "the state that is checked has a name");
    if (merged === "unreadable") return this.#readNextState(older);
    if (typeof merged === "string") {
      const why = `${newest.object} could not be checked${REASONS[merged]}. If it is damaged, remove it from its store`;
      return { kind: "fail", why };
    }
    return this.#readLog({ state: step.state, epoch: newest.epoch, seq: newest.seq });
  }

  /**
   * If an object is ahead of the checkpoint, the checkpoint's place in the log is too early for the new checkpoint. A
   * reader that continues from there would find covered edits and take them for a gap. So the complete log is merged,
   * and the new place is its end.
   */
  #readLog(base: State): RestoreEffect {
    const kept = this.#segments.flatMap(({ records }) => loggedEditsOf(records));
    const ahead = Math.max(base.seq, this.#namedSeq, headOfEdits(kept));
    const place = ahead > (this.#checkpoint?.seq ?? 0) ? undefined : this.#checkpoint?.streamSeq;
    return this.#wait(
      { kind: "reading-log", base, kept, ahead, place },
      { kind: "read-records", through: place ?? Number.MAX_SAFE_INTEGER },
    );
  }

  #planMerge(records: readonly StoredRecord[]): RestoreEffect {
    assert(this.#step.kind === "reading-log", "records are read to be merged");
    const { base, kept, ahead, place } = this.#step;
    const checkpoint = this.#checkpoint;
    const edits = [...kept, ...loggedEditsOf(records)];
    const top = Math.max(checkpoint?.seq ?? 0, ahead, headOfEdits(edits)) as Seq;
    const streamSeq = place ?? Math.max(1, checkpoint?.streamSeq ?? 0, lastStreamSeq(records), archivedThrough(this.#segments));
    const { payloads, missing } = editsAfter(base.seq, top, edits);
    return this.#wait(
      { kind: "merging", reach: { base, edits, top, streamSeq }, missing },
      { kind: "merge", state: base.state, edits: payloads },
    );
  }

  #writeSnapshot({ reach, missing }: Step & { kind: "merging" }, merged: MergedDocument | Unread): RestoreEffect {
    if (typeof merged === "string")
      return { kind: "fail", why: `the document of room ${this.#room} could not be merged${REASONS[merged]}` };
    const checkpoint = this.#checkpoint;
    const newestEdits = highest(reach.edits, ({ record }) => epochOf(record));
    const epoch = Math.max(1, checkpoint?.epoch ?? 0, reach.base.epoch, newestEdits) as Epoch;
    const leftOut = (checkpoint?.leftOut ?? 0) + missing + merged.refused;
    const refused = (checkpoint?.refused ?? 0) + merged.refused;
    return this.#wait(
      { kind: "writing-snapshot", reach, epoch, missing, leftOut, refused },
      { kind: "write-snapshot", object: `${this.#room}/${epoch}-${reach.top}-${this.#deps.newName()}`, bytes: merged.state },
    );
  }

  #writeCheckpoint(snapshot: Written | undefined, time: UnixMillis): RestoreEffect {
    assert(this.#step.kind === "writing-snapshot", "a checkpoint names the snapshot that was written");
    const { reach, epoch, missing, leftOut, refused } = this.#step;
    if (snapshot === undefined) {
      return { kind: "fail", why: `a snapshot of room ${this.#room} differs from what was written when it is read back: check the store` };
    }
    const inOrder = reach.edits.map(({ record }) => record).sort((a, b) => a.edits.firstSeq - b.edits.firstSeq);
    const epochs = withRecords(this.#checkpoint?.epochs ?? NO_EPOCHS, inOrder);
    const entry: Checkpoint = {
      epoch,
      seq: reach.top,
      streamSeq: reach.streamSeq,
      time,
      epochs: withEpoch(epochs, epoch, reach.top),
      clients: this.#checkpoint?.clients ?? [],
      ...(leftOut > 0 ? { leftOut } : {}),
      ...(refused > 0 ? { refused } : {}),
      snapshot,
    };
    return this.#wait(
      { kind: "writing-checkpoint", seq: reach.top, missing },
      { kind: "write-checkpoint", entry, revision: this.#revision },
    );
  }

  #receiveCheckpointWrite(write: LeaseWrite): RestoreEffect {
    if (this.#step.kind === "marking-deleted") return { kind: "end", restored: { kind: "deleted" } };
    assert(this.#step.kind === "writing-checkpoint", "a checkpoint is written for a deleted or a rebuilt room");
    const { seq, missing } = this.#step;
    return this.#readHistoryAgain(write.kind === "written" ? { kind: "rebuilt", seq, missing } : { kind: "superseded" });
  }

  #readHistoryAgain(restored: RestoredRoom): RestoreEffect {
    return this.#wait({ kind: "reading-history-again", restored }, { kind: "read-history" });
  }

  #planHistory(before: StoredHistory, restored: RestoredRoom, date: UnixMillis): RestoreEffect {
    const { history } = this.#objects;
    if (namesExactly(before, history)) return { kind: "end", restored };
    const names = history.filter((name) => stateOfName(name) !== undefined);
    return this.#readNextVersion({ kind: "reading-versions", restored, before, names, versions: [] }, date);
  }

  #readNextVersion(step: Step & { kind: "reading-versions" }, date: UnixMillis): RestoreEffect {
    const [object] = step.names;
    if (object !== undefined) return this.#wait(step, { kind: "read-object", store: "history", object });
    const { history, revision } = step.before;
    const restored = restoredHistory(history, { segments: this.#segments, versions: step.versions }, this.#deps.digest, date);
    return this.#wait({ kind: "writing-history", restored: step.restored }, { kind: "write-history", history: restored, revision });
  }

  #wait(step: Step, effect: RestoreEffect): RestoreEffect {
    this.#step = step;
    return effect;
  }
}
