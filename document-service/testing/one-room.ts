/** One room of the document service over stores in memory that outlive it and fail at a chosen step. */

import { createHash } from "node:crypto";

import { Registry } from "prom-client";
import * as Y from "yjs";
import { type Checkpoint, type DeletedCheckpoint, isDeleted } from "../../shared/bus/checkpoint.ts";
import type { OperationsReport } from "../../shared/bus/operations-events.ts";
import { decodeRecord, encodeDeletedRecord, encodeEditsRecord, headOf, type StoredRecord } from "../../shared/bus/record.ts";
import type { ClientId, Epoch, Millis, RoomKey, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import { type History, NO_HISTORY } from "../history/history.ts";
import { mergeEdits } from "../merge.ts";
import { documentServiceMetrics } from "../metrics.ts";
import { NO_NOTIFICATIONS } from "../webhooks/change-queue-host.ts";
import type { EditLog, RoomLogEnd, ObjectStore } from "../ports.ts";
import { revertingEdit } from "../history/reverting.ts";
import { LeftOutEdits } from "../rooms/left-out-edits.ts";
import { DocumentRoomHost, type DocumentRoomHostOptions, type DocumentRoomPorts } from "../rooms/room-host.ts";
import type { Freshness } from "../rooms/room-messages.ts";

export const ROOM = "acme.notes" as RoomKey;
export const ann = "annannannannann1" as ClientId;
const REPLAY_WINDOW_MS = 1_000;
const OPTIONS: DocumentRoomHostOptions = {
  snapshotEditsMax: 1,
  snapshotBytesMax: 1,
  snapshotAgeMsMax: 1,
  snapshotIntervalMsMin: 1,
  replayWindowMs: REPLAY_WINDOW_MS,
  boardsHoldMsMax: 60_000,
  checkpointClientsMax: 10,
  checkpointClientMsMax: 60_000,
  checkpointClientsBytesMax: 10_000,
  mergeEditsMax: 100,
  mergeBytesMax: 10_000,
  mergeMsMax: 1_000,
  snapshotLagBytesMax: 200,
  stalledBytesMax: 400,
  documentsAnswerMsMax: 5_000,
  documentIdleMsMax: 1_000,
  historyMsMax: 1_000_000,
  opaqueLogMsMax: 0,
  historyBytesMax: 1_000_000,
  historyVersionMsMin: 3_600_000,
  historyVersionEditsMax: 100,
  historyVersionsMax: 10,
  historyNamedMax: 2,
  historySegmentBytesMax: 100_000,
  historySegmentMsMin: 1,
  historySessionMsMax: 60_000,
  historyReadBytesMax: 1_000_000,
};

/**
 * Stores that outlive the service and fail at a chosen step. `kept`: the store of snapshots and history, instead of
 * memory.
 */
export class Stores {
  checkpoint: Checkpoint | undefined;
  /** Stands in the checkpoint's place. */
  deleted: DeletedCheckpoint | undefined;
  /** A room server holds the room, and does not look at the log. */
  isOwned = false;
  revision = 0;
  readonly snapshots = new Map<string, Uint8Array>();
  trimmedBefore = 0;
  /** The room's records that are not trimmed. */
  log: StoredRecord[] = [];
  history: History = NO_HISTORY;
  historyRevision = 0;
  /** The date of the store of histories; always later than the service's unless a test sets it. */
  date = Number.POSITIVE_INFINITY as UnixMillis;
  readonly objects = new Map<string, Uint8Array>();
  failing: { step: string; when: "before" | "after" } | undefined;

  readonly #kept: ObjectStore | undefined;

  constructor(kept?: ObjectStore) {
    this.#kept = kept;
  }

  #held: { step: string; until: Promise<void> } | undefined;

  /** The next call of the step waits until the returned function is called. */
  hold(step: string): () => void {
    let release = (): void => {};
    this.#held = { step, until: new Promise((resolve) => (release = resolve)) };
    return release;
  }

  async #step<Value>(step: string, effect: () => Value | Promise<Value>): Promise<Value> {
    if (this.#held?.step === step) {
      const { until } = this.#held;
      this.#held = undefined;
      await until;
    }
    const isFailing = (when: "before" | "after") => this.failing?.step === step && this.failing.when === when;
    if (isFailing("before")) throw new Error(`${step} was not done`);
    const value = await effect();
    if (isFailing("after")) throw new Error(`${step} was done, and its answer was lost`);
    return value;
  }

  #objects(map: () => Map<string, Uint8Array>, steps: { write: string; read: string; remove: string }): ObjectStore {
    const store = (): ObjectStore => this.#kept ?? inMemory(map());
    return {
      write: (name, bytes) => this.#step(steps.write, () => store().write(name, bytes)),
      read: (name) => this.#step(steps.read, () => store().read(name)),
      remove: (name) => this.#step(steps.remove, () => store().remove(name)),
      list: () => store().list(),
      sweep: () => store().sweep(),
    };
  }

  async *#read(after: number, through: number): AsyncIterable<StoredRecord> {
    yield* this.log.filter(({ streamSeq }) => streamSeq > after && streamSeq <= through && streamSeq >= this.trimmedBefore);
  }

  get #end(): RoomLogEnd {
    const last = this.log.at(-1);
    if (last === undefined) return { kind: "empty" };
    const record = decodeRecord(last.bytes);
    return record?.kind === "deleted"
      ? { kind: "deleted", streamSeq: last.streamSeq }
      : { kind: "at", seq: record === undefined ? (0 as Seq) : headOf(record) };
  }

  readonly ports: DocumentRoomPorts & { readonly log: EditLog } = {
    log: {
      follow: () => {
        throw new Error("the tests hand over the records themselves");
      },
      end: () => Promise.resolve(this.#end),
      untrimmed: () => Promise.resolve([]),
      read: (_, after, through) => this.#read(after, through),
      readAll: (_, after, through) => this.#read(after, through),
      at: () => Promise.resolve(undefined), // Each run has its own.
      trim: (_, before) => this.#step("trim", () => void (this.trimmedBefore = before)),
    },
    checkpoints: {
      read: () => Promise.resolve({ checkpoint: this.deleted ?? this.checkpoint, revision: this.revision }),
      write: (_, checkpoint, revision) =>
        this.#step("checkpoint", () => {
          if (revision !== this.revision) return { kind: "superseded" };
          if (isDeleted(checkpoint)) {
            this.deleted = checkpoint;
            this.checkpoint = undefined;
          } else this.checkpoint = checkpoint;
          return { kind: "written", revision: ++this.revision };
        }),
    },
    histories: {
      read: () => Promise.resolve({ history: this.history, revision: this.historyRevision }),
      write: (_, history, revision) =>
        this.#step("history", () => {
          if (revision !== this.historyRevision) return { kind: "superseded" };
          this.history = history;
          return { kind: "written", revision: ++this.historyRevision };
        }),
      storeDate: () => this.date,
    },
    history: this.#objects(() => this.objects, { write: "archive", read: "read archive back", remove: "remove archive" }),
    deletions: {
      append: () => Promise.reject(new Error("the tests append the record themselves")),
      notifyOwner: () => this.#step("tell owner", () => (this.isOwned ? "somebody" : "nobody")).catch(() => "somebody" as const),
    },
    reverting: {
      mergeHistory: (state, edits) => Promise.resolve(mergeEdits(state, edits)),
      revert: (current, past) => Promise.resolve(revertingEdit(current, past, 99)),
    },
    snapshots: this.#objects(() => this.snapshots, { write: "write", read: "read back", remove: "remove" }),
    merging: { merge: (state, edits, _room, _urgency, authors) => Promise.resolve(mergeEdits(state, edits, authors)) },
    digest: (bytes) => createHash("sha256").update(bytes).digest("hex"),
  };
}

function inMemory(objects: Map<string, Uint8Array>): ObjectStore {
  return {
    write: (name, bytes) => Promise.resolve(void objects.set(name, bytes)),
    read: (name) => Promise.resolve(objects.get(name)),
    remove: (name) => Promise.resolve(void objects.delete(name)),
    list: () => Promise.resolve(new Map([...objects].map(([name, bytes]) => [name, bytes.byteLength]))),
    sweep: () => Promise.resolve(0),
  };
}

export class RoomRun {
  static #named = 0;
  readonly #stores: Stores;
  now = 0 as Millis;
  dateAheadMs = 0;
  readonly metrics = documentServiceMetrics(new Registry());
  readonly room: DocumentRoomHost;
  readonly reported: OperationsReport[] = [];

  constructor(stores: Stores, options: Partial<DocumentRoomHostOptions> = {}) {
    this.#stores = stores;
    const silent = () => {};
    const clock = { now: () => this.now, wallNow: () => (this.now + this.dateAheadMs) as UnixMillis, after: () => silent };
    const log = { debug: silent, info: silent, warn: silent, error: silent };
    const at: EditLog["at"] = (_, streamSeq) =>
      Promise.resolve(stores.log.find((stored) => stored.streamSeq === streamSeq && streamSeq >= stores.trimmedBefore));
    this.room = new DocumentRoomHost(
      ROOM,
      { ...stores.ports, log: { ...stores.ports.log, at } },
      { ...OPTIONS, ...options },
      {
        clock,
        log,
        metrics: this.metrics,
        newName: () => `run-${++RoomRun.#named}`,
        boardsFloor: () => Number.POSITIVE_INFINITY,
        readAfter: 0,
        notifications: NO_NOTIFICATIONS,
        operations: { report: (report) => void this.reported.push(report) },
        leftOut: new LeftOutEdits(),
      },
    );
  }

  async take(...records: readonly StoredRecord[]): Promise<void> {
    for (const record of records) {
      if (this.#stores.log.at(-1)?.streamSeq !== record.streamSeq) this.#stores.log.push(record);
      this.room.receiveRecord(record);
    }
    await new Promise(setImmediate); // The room may read its checkpoint first.
  }

  async save(): Promise<void> {
    await this.room.runJob({ kind: "save" });
  }

  async trim(): Promise<void> {
    await this.room.runJob({ kind: "trim", before: undefined });
  }

  /** Saves and trims if that is due at this time. */
  async saveAndTrim(at: number): Promise<void> {
    this.now = at as Millis;
    if (this.room.state.isSaveDue(this.now, true)) await this.save();
    if (this.room.state.isTrimDue(this.now)) await this.trim();
  }

  /** Removes what is left of a deleted room if that is due at this time. */
  async wipe(at: number): Promise<void> {
    this.now = at as Millis;
    if (this.room.state.isWipeDue(this.now)) await this.room.runJob({ kind: "wipe" });
  }

  async served(freshness: Freshness = "newest"): Promise<string> {
    const served = await this.room.serve(freshness);
    if (served.kind !== "snapshot") return served.kind;
    const doc = new Y.Doc();
    Y.applyUpdate(doc, served.state);
    return `${served.position.seq} ${doc.getText("text").toString()}`;
  }
}

/** One record for each text, at the stream sequences 10, 20, 30 and so on. */
export function recordsOf(text: Iterable<string>, userOf: (seq: number) => string = () => "ann"): StoredRecord[] {
  const doc = new Y.Doc();
  const records: StoredRecord[] = [];
  doc.on("update", (payload: Uint8Array) => {
    const seq = records.length + 1;
    const edits = [{ client: ann, counter: seq, parentSeq: (seq - 1) as Seq, payload }];
    const bytes = encodeEditsRecord({
      id: `server.${seq}`,
      time: 0 as UnixMillis,
      users: new Map([[ann, userOf(seq) as UserId]]),
      edits: { epoch: 1 as Epoch, firstSeq: seq as Seq, edits },
    });
    records.push({ room: ROOM, streamSeq: seq * 10, time: 0 as UnixMillis, bytes });
  });
  for (const typed of text) doc.getText("text").insert(doc.getText("text").length, typed);
  return records;
}

export function deletedRecord(streamSeq: number): StoredRecord {
  return { room: ROOM, streamSeq, time: 0 as UnixMillis, bytes: encodeDeletedRecord({ id: "deletion.1", time: 0 as UnixMillis }) };
}
