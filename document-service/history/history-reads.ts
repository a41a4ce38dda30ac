/**
 * Reads of one room's history: the document at a seq or a time, and the edit that restores such a state. Each read is a
 * state machine with one effect at a time.
 *
 * The invariant: a state is never built across a missing edit, nor from edits that the log lost together with edits
 * that now have their numbers. Another service may replace the entry during a read and remove its objects, so a read
 * that finds nothing reads the entry a second time.
 */

import { assert, assertNever } from "../../shared/assert.ts";
import { type Position, type Seq, START, type UnixMillis } from "../../shared/ids.ts";
import { EMPTY_STATE, type MergedDocument } from "../merge.ts";
import type { RoomLogEnd, Unread } from "../ports.ts";
import { type History, type HistoryPath, pathsTo, type Segment } from "./history.ts";
import type { CurrentDocument } from "./history-messages.ts";
import { EditsInTail, SeqInTail, type TailReader } from "./log-tail.ts";
import type { Reverted } from "./reverting.ts";
import { editsBetween, editsInSegment, type LoggedEdits, LoggedEditsReader, seqAt } from "./segments.ts";

export type HistoryMoment = { readonly seq: Seq } | { readonly time: UnixMillis };
export type HistoryRefusal =
  /** The room has not reached the seq. */
  | { readonly kind: "not-yet"; readonly head: Seq }
  /** The moment is no longer in the history, or never was. */
  | { readonly kind: "not-kept" }
  /** The read needs more edits than it may read, or merging them takes too long. */
  | { readonly kind: "too-much" }
  /** The stored objects cannot be read. */
  | { readonly kind: "unreadable" }
  /** The answer is not available now. The caller asks again. */
  | { readonly kind: "loading" };
export type HistoryState = { readonly kind: "state"; readonly state: Uint8Array; readonly position: Position } | HistoryRefusal;
export type HistoryReadsOptions = { readonly historySessionMsMax: number; readonly historyReadBytesMax: number };

export type HistoryReadInput =
  | { readonly kind: "entry-read"; readonly history: History }
  | { readonly kind: "log-end-read"; readonly end: RoomLogEnd }
  /** `bytes` undefined: the object is missing or damaged. */
  | { readonly kind: "object-read"; readonly bytes: Uint8Array | undefined }
  /** `isAborted`: no caller waits for the answer any more. */
  | { readonly kind: "tail-read"; readonly isAborted: boolean }
  | { readonly kind: "merged"; readonly merged: MergedDocument | Unread }
  | { readonly kind: "current-read"; readonly document: CurrentDocument | undefined }
  | { readonly kind: "reverted"; readonly reverted: Reverted | Unread };

export type HistoryReadEffect<Answer> =
  | { readonly kind: "read-entry" }
  | { readonly kind: "read-log-end" }
  | { readonly kind: "read-object"; readonly object: string; readonly sha256: string }
  /** Hands the room's records after the stream sequence to the reader until it is done. */
  | { readonly kind: "read-tail"; readonly after: number; readonly reader: TailReader }
  | { readonly kind: "merge"; readonly state: Uint8Array; readonly edits: readonly Uint8Array[] }
  | { readonly kind: "read-current" }
  | { readonly kind: "revert"; readonly current: Uint8Array; readonly earlier: Uint8Array }
  | { readonly kind: "answer"; readonly answer: Answer };

/** The effect whose outcome the read waits for. */
type Step =
  | { readonly kind: "reading-entry" }
  | { readonly kind: "finding-seq-in-tail"; readonly reader: SeqInTail; readonly time: UnixMillis }
  | { readonly kind: "finding-seq-in-segment"; readonly segment: Segment; readonly time: UnixMillis }
  /** `target` undefined: the read found no edit. */
  | { readonly kind: "reading-log-end"; readonly target: Seq | undefined; readonly known: Seq }
  | { readonly kind: "reading-version"; readonly reading: PathReading }
  | { readonly kind: "reading-segment"; readonly reading: PathReading; readonly rest: readonly Segment[] }
  | { readonly kind: "reading-tail"; readonly reading: PathReading; readonly reader: EditsInTail }
  | { readonly kind: "merging"; readonly position: Position }
  | { readonly kind: "reading-current"; readonly earlier: Uint8Array }
  | { readonly kind: "reverting" };
/** A path to the target. `others`: the paths to try if this one fails. `records`: has read the records of `edits`. */
type PathReading = {
  readonly target: Seq;
  readonly path: HistoryPath;
  readonly others: readonly HistoryPath[];
  readonly state: Uint8Array;
  readonly records: LoggedEditsReader;
  readonly edits: readonly LoggedEdits[];
};

/** The document at a moment, or the edit that brings it back. */
export class StateRead {
  readonly #moment: HistoryMoment;
  readonly #wants: "state" | "revert";
  readonly #options: HistoryReadsOptions;
  #step: Step = { kind: "reading-entry" };
  #history: History | undefined;
  #isSecondTry = false;

  constructor(moment: HistoryMoment, wants: "state" | "revert", options: HistoryReadsOptions) {
    this.#moment = moment;
    this.#wants = wants;
    this.#options = options;
  }

  begin(): HistoryReadEffect<HistoryState | Reverted> {
    return this.#wait({ kind: "reading-entry" }, { kind: "read-entry" });
  }

  receive(input: HistoryReadInput): HistoryReadEffect<HistoryState | Reverted> {
    const step = this.#step;
    switch (input.kind) {
      case "entry-read":
        this.#history = input.history;
        return "seq" in this.#moment ? this.#compareWithHead(this.#moment.seq) : this.#findSeq(this.#moment.time);
      case "log-end-read":
        assert(step.kind === "reading-log-end", "the log's end is read to know the last seq");
        return this.#receiveLogEnd(step, input.end);
      case "object-read":
        return this.#receiveObject(step, input.bytes);
      case "tail-read":
        return input.isAborted ? this.#answer({ kind: "loading" }) : this.#receiveTail(step);
      case "merged":
        assert(step.kind === "merging", "edits are merged into the version before them");
        return typeof input.merged === "string"
          ? this.#answer(refusalOf(input.merged))
          : this.#receiveState(input.merged.state, step.position);
      case "current-read":
        assert(step.kind === "reading-current", "the current document is read to revert it");
        return input.document === undefined
          ? this.#answer({ kind: "loading" })
          : this.#wait({ kind: "reverting" }, { kind: "revert", current: input.document.state, earlier: step.earlier });
      case "reverted":
        return this.#answer(typeof input.reverted === "string" ? refusalOf(input.reverted) : input.reverted);
      default:
        return assertNever(input);
    }
  }

  get #entry(): History {
    assert(this.#history !== undefined, "a read begins with the entry");
    return this.#history;
  }

  /** Finds the last seq at the time: in the log's tail if the last segment ends before the time, otherwise in a segment. */
  #findSeq(time: UnixMillis): HistoryReadEffect<HistoryState | Reverted> {
    const newest = this.#entry.segments.at(-1);
    if (newest !== undefined && newest.lastTime > time) return this.#findSeqInSegments(time);
    const reader = new SeqInTail(time);
    return this.#wait({ kind: "finding-seq-in-tail", reader, time }, { kind: "read-tail", after: this.#entry.through, reader });
  }

  #findSeqInSegments(time: UnixMillis): HistoryReadEffect<HistoryState | Reverted> {
    const { segments, versions } = this.#entry;
    if (segments.length + versions.length === 0) {
      return this.#wait({ kind: "reading-log-end", target: undefined, known: 0 as Seq }, { kind: "read-log-end" });
    }
    const segment = segments.findLast(({ firstTime }) => firstTime <= time);
    if (segment !== undefined) return this.#wait({ kind: "finding-seq-in-segment", segment, time }, readSegment(segment));
    return segments[0]?.firstSeq === 1 ? this.#compareWithHead(0 as Seq) : this.#answerNotKept();
  }

  #compareWithHead(target: Seq): HistoryReadEffect<HistoryState | Reverted> {
    const { segments, versions } = this.#entry;
    const known = Math.max(segments.at(-1)?.lastSeq ?? 0, versions.at(-1)?.seq ?? 0) as Seq;
    if (target <= known) return this.#followNext(target, pathsTo(this.#entry, target));
    return this.#wait({ kind: "reading-log-end", target, known }, { kind: "read-log-end" });
  }

  #receiveLogEnd({ target, known }: Step & { kind: "reading-log-end" }, end: RoomLogEnd): HistoryReadEffect<HistoryState | Reverted> {
    const head = end.kind === "at" && end.seq > known ? end.seq : known;
    // An edit that the read did not find is newer than the read, or is no longer kept. A second read decides.
    if (target === undefined && head > 0) return this.#answerNotKept();
    return target === undefined || target > head
      ? this.#answer({ kind: "not-yet", head })
      : this.#followNext(target, pathsTo(this.#entry, target));
  }

  #followNext(target: Seq, [path, ...others]: readonly HistoryPath[]): HistoryReadEffect<HistoryState | Reverted> {
    if (path === undefined) return this.#answerNotKept();
    const { base, segments } = path;
    if (segments.reduce((sum, { bytes }) => sum + bytes, 0) > this.#options.historyReadBytesMax) return this.#answer({ kind: "too-much" });
    const reading: PathReading = { target, path, others, state: EMPTY_STATE, records: new LoggedEditsReader(), edits: [] };
    return base === undefined
      ? this.#readNextSegment(reading, segments)
      : this.#wait({ kind: "reading-version", reading }, { kind: "read-object", object: base.object, sha256: base.sha256 });
  }

  #receiveObject(step: Step, bytes: Uint8Array | undefined): HistoryReadEffect<HistoryState | Reverted> {
    switch (step.kind) {
      case "finding-seq-in-segment": {
        const edits = editsInSegment(bytes);
        if (edits === undefined) return this.#answerNotKept();
        return this.#compareWithHead(seqAt(edits, step.time) ?? ((step.segment.firstSeq - 1) as Seq));
      }
      case "reading-version": {
        const { reading } = step;
        if (bytes === undefined) return this.#followNext(reading.target, reading.others);
        return this.#readNextSegment({ ...reading, state: bytes }, reading.path.segments);
      }
      default: {
        assert(step.kind === "reading-segment", "an object is read for a version or a segment");
        const { reading, rest } = step;
        const edits = editsInSegment(bytes, reading.records);
        if (edits === undefined) return this.#followNext(reading.target, reading.others);
        return this.#readNextSegment({ ...reading, edits: [...reading.edits, ...edits] }, rest);
      }
    }
  }

  #readNextSegment(reading: PathReading, [next, ...rest]: readonly Segment[]): HistoryReadEffect<HistoryState | Reverted> {
    if (next !== undefined) return this.#wait({ kind: "reading-segment", reading, rest }, readSegment(next));
    const { target, path } = reading;
    const after = path.base?.seq ?? (0 as Seq);
    if (Math.max(after, path.segments.at(-1)?.lastSeq ?? 0) >= target) return this.#merge(reading);
    const reader = new EditsInTail({ after, through: target, bytesMax: this.#options.historyReadBytesMax }, reading.records);
    return this.#wait({ kind: "reading-tail", reading, reader }, { kind: "read-tail", after: this.#entry.through, reader });
  }

  #receiveTail(step: Step): HistoryReadEffect<HistoryState | Reverted> {
    if (step.kind === "finding-seq-in-tail") {
      const { seq } = step.reader;
      const isFound = seq !== undefined && (seq > 0 || this.#entry.segments.length === 0);
      return isFound ? this.#compareWithHead(seq) : this.#findSeqInSegments(step.time);
    }
    assert(step.kind === "reading-tail", "the tail is read for a seq or for edits");
    const { reading, reader } = step;
    return reader.isCut ? this.#answer({ kind: "too-much" }) : this.#merge({ ...reading, edits: [...reading.edits, ...reader.edits] });
  }

  #merge({ target, path, others, state, edits }: PathReading): HistoryReadEffect<HistoryState | Reverted> {
    const found = editsBetween(edits, path.base ?? START, target);
    if (found.kind === "missing") return this.#followNext(target, others);
    // The segment that ends at the version shows whether the version's epoch goes on, or was lost and replaced.
    const before = found.isAssumed ? this.#entry.segments.findLast(({ lastSeq }) => lastSeq === path.base?.seq) : undefined;
    if (before !== undefined && !path.segments.includes(before)) {
      return this.#followNext(target, [{ ...path, segments: [before, ...path.segments] }, ...others]);
    }
    const position: Position = { epoch: found.epoch, seq: target };
    if (found.payloads.length === 0) return this.#receiveState(state, position);
    return this.#wait({ kind: "merging", position }, { kind: "merge", state, edits: found.payloads });
  }

  #receiveState(state: Uint8Array, position: Position): HistoryReadEffect<HistoryState | Reverted> {
    return this.#wants === "state"
      ? this.#answer({ kind: "state", state, position })
      : this.#wait({ kind: "reading-current", earlier: state }, { kind: "read-current" });
  }

  #answerNotKept(): HistoryReadEffect<HistoryState | Reverted> {
    if (this.#isSecondTry) return this.#answer({ kind: "not-kept" });
    this.#isSecondTry = true;
    return this.begin();
  }

  #answer(answer: HistoryState | Reverted): HistoryReadEffect<HistoryState | Reverted> {
    return { kind: "answer", answer };
  }

  #wait(step: Step, effect: HistoryReadEffect<HistoryState | Reverted>): HistoryReadEffect<HistoryState | Reverted> {
    this.#step = step;
    return effect;
  }
}

/** Whether the current document can be named. `document` undefined: it cannot be read at the moment. */
export function planNaming(
  document: CurrentDocument | undefined,
): { readonly kind: "loading" | "no-document" } | { readonly kind: "name"; readonly document: CurrentDocument } {
  if (document === undefined) return { kind: "loading" };
  return document.applied.seq === 0 ? { kind: "no-document" } : { kind: "name", document };
}

export function readSegment({ object, sha256 }: Segment): HistoryReadEffect<never> {
  return { kind: "read-object", object, sha256 };
}

function refusalOf(why: Unread): HistoryRefusal {
  switch (why) {
    case "busy":
      return { kind: "loading" };
    case "overran":
      return { kind: "too-much" };
    case "unreadable":
      return { kind: "unreadable" };
    default:
      return assertNever(why);
  }
}
