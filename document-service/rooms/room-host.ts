/** Carries out the effects of one room (room.ts), and passes each outcome back. The only caller of `DocumentRoom.receive`. */

import { assertNever } from "../../shared/assert.ts";
import { UndecodableEntry } from "../../shared/bus/json-messages.ts";
import type { Operations } from "../../shared/bus/operations-events.ts";
import type { ReadPosition, RecordPlace, StoredRecord } from "../../shared/bus/record.ts";
import type { Millis, RoomKey, Seq } from "../../shared/ids.ts";
import type { Log } from "../../shared/process/log.ts";
import type { Clock } from "../../shared/time/clock.ts";
import { rethrowMistake, within } from "../../shared/time/pause.ts";
import { HistoryHost } from "../history/history-host.ts";
import { HistoryReadsHost, type HistoryReadsPorts } from "../history/history-reads-host.ts";
import type { HistoryReadsOptions } from "../history/history-reads.ts";
import type { HistoryPolicy } from "../history/history.ts";
import type { DocumentServiceMetrics } from "../metrics.ts";
import type { ChangeNotifications, Checkpoints, Deletions, Merging, ObjectStore } from "../ports.ts";
import type { RoomBytes } from "../storage/stored-bytes.ts";
import { readVerified, writeVerified } from "../verified-write-host.ts";
import { DeletionHost } from "./deletion-host.ts";
import type { MergedState } from "./document.ts";
import type { LeftOutEdits } from "./left-out-edits.ts";
import type { RoomRange } from "./read-ahead.ts";
import type { RoomReading } from "./record-intake.ts";
import type {
  DocumentRoomEffect,
  DocumentRoomInput,
  Freshness,
  RoomJobRequest,
  Served,
  StoreEffect,
  StoreFailure,
} from "./room-messages.ts";
import { reportRoom } from "./room-reports-host.ts";
import { DocumentRoom, type DocumentRoomOptions } from "./room.ts";
import { decideSnapshotSweep } from "./sweep.ts";

export type DocumentRoomPorts = HistoryReadsPorts & {
  readonly checkpoints: Checkpoints;
  readonly snapshots: ObjectStore;
  readonly merging: Merging;
  readonly deletions: Deletions;
};
export type DocumentRoomHostOptions = DocumentRoomOptions & HistoryPolicy & HistoryReadsOptions & { readonly documentsAnswerMsMax: number };
/** `newName`: unique among all snapshots ever written. `boardsFloor`: the boards need no record up to it. */
export type DocumentRoomHostDeps = RoomReading & {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: DocumentServiceMetrics;
  readonly newName: () => string;
  readonly boardsFloor: () => number;
  readonly notifications: ChangeNotifications;
  readonly operations: Operations;
  /** Of all rooms of the process. */
  readonly leftOut: LeftOutEdits;
};

/** A sweep skips a room whose checkpoint is not read within this time. */
const SWEEP_OPEN_MS_MAX = 5_000;

type Caller<Answer> = { readonly resolve: (answer: Answer) => void; readonly reject: (cause: unknown) => void };

export class DocumentRoomHost {
  /** The decisions of the room. Read-only for other files. */
  readonly state: Omit<DocumentRoom, "receive" | "open">;
  readonly historyReads: HistoryReadsHost;
  /** Resolves to true once the checkpoint is known, or to false if the room is closed before. */
  readonly opened: Promise<boolean>;
  /** Resolves once the checkpoint is known, or known not to decode. */
  readonly lookedUp: Promise<void>;
  readonly #room: DocumentRoom;
  readonly #ports: DocumentRoomPorts;
  readonly #deps: DocumentRoomHostDeps;
  readonly #history: HistoryHost;
  readonly #deletion: DeletionHost;
  #onOpened: (isOpen: boolean) => void = () => {};
  #onLookedUp: () => void = () => {};
  #onJobEnded: (isTrimmed: boolean) => void = () => {};
  #requestCount = 0;
  #isClosed = false;
  /** Resolves at the next record, or at the end of the room. */
  #next: Promise<void> | undefined;
  #onNext: () => void = () => {};
  readonly #serving = new Map<number, Caller<Served>>();
  readonly #reading = new Map<number, Caller<MergedState | undefined>>();

  constructor(key: RoomKey, ports: DocumentRoomPorts, options: DocumentRoomHostOptions, deps: DocumentRoomHostDeps) {
    this.#ports = ports;
    this.#deps = deps;
    this.#history = new HistoryHost(key, ports, options, deps);
    this.#deletion = new DeletionHost(key, ports, this.#history, deps);
    this.historyReads = new HistoryReadsHost(key, ports, options, {
      history: this.#history,
      present: (seq) => within(deps.clock, options.documentsAnswerMsMax, this.#readStateThrough(seq), undefined), // A merge may wait for a thread.
    });
    this.opened = new Promise((resolve) => (this.#onOpened = resolve));
    this.lookedUp = new Promise((resolve) => (this.#onLookedUp = resolve));
    this.#room = new DocumentRoom(key, options, { ...deps, deletion: this.#deletion }, deps.clock.now());
    this.state = this.#room;
    for (const effect of this.#room.open()) this.#carryOut(effect);
  }

  get room(): RoomKey {
    return this.#room.key;
  }

  /** Undefined: the checkpoint is not known yet. */
  get storedBytes(): RoomBytes | undefined {
    const { storedBytes } = this.#room;
    const { bytes, bytesFound } = this.#history;
    return storedBytes && { ...storedBytes, history: this.#room.isDeleted ? 0 : bytes, historyFound: bytesFound };
  }

  /** Reads the bytes of the history too, once the checkpoint is known. Undefined: the room is closed first. */
  async measure(): Promise<RoomBytes | undefined> {
    if (!(await this.opened) || this.#room.isDeleted) return undefined;
    const history = await this.#history.measure();
    const { storedBytes } = this.#room;
    return storedBytes && { ...storedBytes, history };
  }

  receiveRecord(stored: StoredRecord): void {
    this.#receive({ kind: "record", stored });
    this.#endWait();
  }

  /** `streamSeq`: the stream sequence of the record that deletes the room. */
  receiveDeleted(streamSeq: number): void {
    this.#receive({ kind: "deletion", streamSeq });
  }

  /** `isPressed`: the partition needs memory. */
  tick(isPressed: boolean): void {
    this.#receive({ kind: "tick", isPressed });
  }

  serve(freshness: Freshness, minSeq = 0): Promise<Served> {
    return new Promise((resolve, reject) => {
      const request = ++this.#requestCount;
      this.#serving.set(request, { resolve, reject });
      this.#receive({ kind: "serve", request, freshness, minSeq });
    });
  }

  /** Resolves once the log and the stores contain nothing of the room. */
  untilWiped(): Promise<void> {
    return this.#deletion.untilWiped();
  }

  /** One job at a time. Resolves at its end with whether the log was trimmed. */
  runJob(job: RoomJobRequest): Promise<boolean> {
    return new Promise((resolve) => {
      this.#onJobEnded = resolve;
      this.#receive({ kind: "job", job });
    });
  }

  /** The range of the log that a trim reads. Undefined: none, or the history cannot be read now. */
  async trimRange(): Promise<RoomRange | undefined> {
    const through = this.#room.trimThrough(this.#now);
    if (through === undefined) return undefined;
    try {
      return this.#room.trimRange(through, await this.#history.archivedThrough());
    } catch (cause) {
      this.#receive({ kind: "failure", what: "the length of its log to trim is not known", failure: failureOf(cause) });
      return undefined;
    }
  }

  /**
   * Takes the records that the room lacks, although the partition has read them: the bucket lost their checkpoint after
   * the room had left memory. If the log has lost the partition's last record, others may have these numbers. A stalled room
   * takes none, and its log may be long.
   */
  async takeMissing({ after: through, last }: ReadPosition, hasRecord: (last: RecordPlace) => Promise<boolean>): Promise<void> {
    if (!(await within(this.#deps.clock, SWEEP_OPEN_MS_MAX, this.opened, false)) || !this.#room.canBeCovered) return;
    const missing: StoredRecord[] = [];
    for await (const stored of this.#ports.log.read(this.room, this.#room.appliedThrough, through)) missing.push(stored);
    if (missing.length > 0 && last !== undefined && (await hasRecord(last))) for (const stored of missing) this.receiveRecord(stored);
  }

  /** Removes the snapshots in the list that the room's checkpoint does not name. False: the room has other work to do first. */
  async sweepSnapshots(names: readonly string[]): Promise<boolean> {
    const isOpened = await within(this.#deps.clock, SWEEP_OPEN_MS_MAX, this.opened, false);
    const { isLookingUp, isBusy, isUnwiped } = this.#room;
    const decision = decideSnapshotSweep({ isOpened, isOpening: isLookingUp, isBusy, isWipeDue: isUnwiped });
    if (decision === "sweep") await this.runJob({ kind: "remove-orphans", names });
    return decision !== "later";
  }

  async sweepHistory(names: readonly string[]): Promise<void> {
    try {
      await this.#history.removeOrphans(names);
    } catch (cause) {
      this.#receive({ kind: "failure", what: "what a crash left behind of its history was not removed", failure: failureOf(cause) });
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#receive({ kind: "close" });
    this.#endWait();
  }

  get #now(): Millis {
    return this.#deps.clock.now();
  }

  /** The document with all edits up to `seq`, which the log has. Waits for their records. Undefined: the room is closed first. */
  async #readStateThrough(seq: Seq): Promise<MergedState | undefined> {
    for (;;) {
      const received = this.#nextRecord();
      const { kind } = await this.serve("newest", seq);
      const isBehind = kind === "loading" || (kind === "no-document" && seq > 0);
      if (!isBehind) return this.#readState();
      if (this.#isClosed) return undefined;
      await received;
    }
  }

  #nextRecord(): Promise<void> {
    return (this.#next ??= new Promise((resolve) => (this.#onNext = resolve)));
  }

  #endWait(): void {
    this.#next = undefined;
    this.#onNext();
  }

  /** The document with all records received by now; undefined: it is not available. */
  #readState(): Promise<MergedState | undefined> {
    return new Promise((resolve, reject) => {
      const request = ++this.#requestCount;
      this.#reading.set(request, { resolve, reject });
      this.#receive({ kind: "read-state", request });
    });
  }

  #receive(input: DocumentRoomInput): void {
    const { clock } = this.#deps;
    for (const effect of this.#room.receive(input, clock.now(), clock.wallNow())) this.#carryOut(effect);
  }

  #carryOut(effect: DocumentRoomEffect): void {
    switch (effect.kind) {
      case "notify-edits":
        return this.#deps.notifications.receiveEdits(this.room, effect.position, effect.edits);
      case "looked-up":
        return this.#onLookedUp();
      case "opened":
        return this.#onOpened(effect.isOpen);
      case "answer":
        this.#serving.get(effect.request)?.resolve(effect.served);
        return void this.#serving.delete(effect.request);
      case "answer-state":
        this.#reading.get(effect.request)?.resolve(effect.state);
        return void this.#reading.delete(effect.request);
      case "answer-failure":
        this.#serving.get(effect.request)?.reject(effect.cause);
        this.#reading.get(effect.request)?.reject(effect.cause);
        this.#serving.delete(effect.request);
        return void this.#reading.delete(effect.request);
      case "job-ended":
        return this.#onJobEnded(effect.isTrimmed);
      case "report":
        return reportRoom(this.room, effect.report, this.#deps);
      default:
        return void this.#useStore(effect);
    }
  }

  async #useStore(effect: StoreEffect): Promise<void> {
    this.#receive(
      await this.#outcomeOf(effect).catch((cause: unknown) => ({ kind: "failed", effect, failure: failureOf(cause) }) as const),
    );
  }

  async #outcomeOf(effect: StoreEffect): Promise<DocumentRoomInput> {
    const { checkpoints, snapshots, digest, merging, log } = this.#ports;
    const { notifications } = this.#deps;
    const { kind } = effect;
    switch (kind) {
      case "read-checkpoint":
        return { kind: "checkpoint-read", reader: effect.reader, found: await checkpoints.read(this.room) };
      case "read-snapshot":
        return { kind: "snapshot-read", state: await readVerified(snapshots, digest, effect.checkpoint.snapshot) };
      case "read-covered": {
        const { streamSeq } = effect.checkpoint;
        const [first, last] = await Promise.all([firstOf(log.read(this.room, 0, streamSeq)), log.at(this.room, streamSeq)]);
        return { kind: "covered-read", first, last };
      }
      case "merge":
        return { kind: "merge-ended", outcome: await merging.merge(effect.base, effect.edits, this.room, effect.urgency, effect.authors) };
      case "write-snapshot":
        return { kind: "snapshot-written", written: await writeVerified(snapshots, digest, effect.object, effect.state) };
      case "queue-notifications":
        await notifications.queuePending(this.room);
        return { kind: "notifications-queued" };
      case "read-record":
        return { kind: "record-read", stored: await log.at(this.room, effect.streamSeq) };
      case "write-checkpoint": {
        const { checkpoint, revision } = effect;
        return { kind: "checkpoint-written", checkpoint, write: await checkpoints.write(this.room, checkpoint, revision) };
      }
      case "remove-snapshots":
        for (const name of effect.names) await this.#removeSnapshot(name);
        return { kind: "snapshots-removed", isAwaited: effect.isAwaited };
      case "verify-snapshot":
        return { kind: "snapshot-verified", isReadable: (await readVerified(snapshots, digest, effect.checkpoint.snapshot)) !== undefined };
      case "announce-snapshot":
        await notifications.receiveSnapshot(this.room, effect.position, effect.bytes);
        return { kind: "snapshot-announced" };
      case "check-version":
        return { kind: "version-checked", isDue: await this.#history.isVersionDue(effect.seq) };
      case "add-version":
        await this.#history.addVersion(effect.present);
        return { kind: "version-added" };
      case "archive":
        await this.#history.archive(effect.before);
        return { kind: "archived" };
      case "trim-log":
        await log.trim(this.room, effect.before);
        return { kind: "log-trimmed" };
      case "wipe":
        return { kind: "wiped", isWiped: await this.#deletion.wipe() };
      default:
        return assertNever(kind);
    }
  }

  async #removeSnapshot(name: string): Promise<void> {
    try {
      await this.#ports.snapshots.remove(name);
    } catch (cause) {
      rethrowMistake(cause);
      this.#deps.log.warn({ room: this.room, name, cause }, "an old snapshot was not removed");
    }
  }
}

async function firstOf<Value>(values: AsyncIterable<Value>): Promise<Value | undefined> {
  for await (const value of values) return value;
  return undefined;
}

/** A programming error is thrown again, and ends the process. */
function failureOf(cause: unknown): StoreFailure {
  rethrowMistake(cause);
  return { cause, isUndecodable: cause instanceof UndecodableEntry };
}
