/**
 * Checks the promises of the document service and the leaderboard against the judge's log. Each trimmed record is
 * covered by a readable snapshot and is in the history, each room keeps its last record, the boards count each edit
 * exactly once, and nothing is left of a deleted room.
 */

import { type Checkpoint, isDeleted } from "../../shared/bus/checkpoint.ts";
import { type OwnersRecord, recordIdOf } from "../../shared/bus/record.ts";
import { type History, NO_HISTORY } from "../../document-service/history/history.ts";
import { decodeSegment } from "../../document-service/history/segments.ts";
import type { RoomKey } from "../../shared/ids.ts";
import { type ScoringOptions, pointsOfEdit } from "../../leaderboard/counting/scoring.ts";
import type { LastRecord } from "../../room-server/ports.ts";
import { contentOf } from "./keystrokes.ts";
import type { Judge, RoomTruth } from "./judge.ts";
import type { ServiceStores } from "./service-stores.ts";
import type { SimJetStream } from "./sim-jetstream.ts";

export class ServiceJudge {
  readonly #judge: Judge;
  readonly #stores: ServiceStores;
  readonly #log: SimJetStream;
  readonly #scoring: ScoringOptions;

  constructor(judge: Judge, stores: ServiceStores, log: SimJetStream, scoring: ScoringOptions) {
    this.#judge = judge;
    this.#stores = stores;
    this.#log = log;
    this.#scoring = scoring;
  }

  /** Returns the content of the room's checkpointed snapshot if that snapshot is at this seq, and covers more than `streamSeq`. */
  snapshotContent(key: RoomKey, seq: number, streamSeq: number): Uint8Array | undefined {
    const entry = this.#stores.checkpoints.entryAsOf(key, Number.POSITIVE_INFINITY).entry;
    if (entry === undefined || isDeleted(entry) || entry.seq !== seq || entry.streamSeq <= streamSeq) return undefined;
    const state = this.#stores.snapshots.read(entry.snapshot.object);
    return state && contentOf(state);
  }

  /** Checks that a durable checkpoint covers the records that were removed from the room's log. */
  receiveTrimmed(key: RoomKey, removed: readonly LastRecord[]): void {
    if (removed.length === 0) return;
    const last = removed.at(-1)!;
    if (this.#log.last(key, Number.POSITIVE_INFINITY) === undefined)
      this.#judge.fail("the last record of the room is trimmed from its log", key);
    if (this.#judge.room(key).isDeleted) return;
    const entry = this.#stores.checkpoints.entryAsOf(key, Number.POSITIVE_INFINITY).entry;
    if (entry === undefined || isDeleted(entry) || entry.streamSeq < last.streamSeq)
      return this.#judge.fail(`record ${last.streamSeq} is trimmed, and no checkpoint covers it`, key);
    const wrong = this.wrongAboutSnapshot(key, entry) ?? this.#missingInHistory(key, removed);
    if (wrong !== undefined) this.#judge.fail(`record ${last.streamSeq} is trimmed, and ${wrong}`, key);
  }

  /** Checks that the checkpoint's snapshot is readable, and has exactly the log's edits up to its seq. Undefined: it is correct. */
  wrongAboutSnapshot(key: RoomKey, { seq, snapshot }: Checkpoint): string | undefined {
    const state = this.#stores.snapshots.read(snapshot.object);
    if (state === undefined) return `the snapshot at seq ${seq} is not there`;
    return this.#isStateAt(key, seq, state) ? undefined : `the snapshot at seq ${seq} is not what the log had up to there`;
  }

  #isStateAt(key: RoomKey, seq: number, state: Uint8Array): boolean {
    const expected = this.#judge.room(key).order.slice(0, seq);
    return Buffer.concat(expected.map(({ payload }) => payload)).equals(contentOf(state));
  }

  #historyOf(key: RoomKey): History {
    return this.#stores.histories.entryAsOf(key, Number.POSITIVE_INFINITY).entry ?? NO_HISTORY;
  }

  /** Checks that readable segments contain the edits of these records. Undefined: they do. */
  #missingInHistory(key: RoomKey, records: readonly LastRecord[]): string | undefined {
    const segments = this.#historyOf(key).segments.map(({ object }) => this.#stores.archive.read(object));
    const archived = segments.flatMap((bytes) => (bytes && decodeSegment(bytes)) ?? []).map(({ bytes }) => recordIdOf(bytes));
    const missing = records.find(({ record }) => record.kind === "edits" && !archived.includes(record.id));
    return missing && `the history does not have the edits of record ${missing.streamSeq}`;
  }

  /** Checks that the history and the log together have all edits, and each version the edits up to its seq. */
  #wrongAboutHistory(key: RoomKey, { records, lost }: RoomTruth): string | undefined {
    const [first] = this.#log.read(key, 0, 1, Number.POSITIVE_INFINITY);
    const missing = this.#missingInHistory(
      key,
      records.filter(({ streamSeq }) => streamSeq < first!.streamSeq),
    );
    if (missing !== undefined || lost.hasAny) return missing; // A version may have edits that the log lost.
    const wrong = this.#historyOf(key).versions.find(({ object, seq }) => {
      const state = this.#stores.archive.read(object);
      return state === undefined || !this.#isStateAt(key, seq, state);
    });
    return wrong && `the version at seq ${wrong.seq} is not what the log had up to there`;
  }

  /** Describes data of a deleted room that is still stored. */
  #leftOf(key: RoomKey): string | undefined {
    const { snapshots, archive, boardCheckpoints, redis } = this.#stores;
    const [object] = [...snapshots.names(), ...archive.names()].filter((name) => name.startsWith(`${key}/`));
    if (object !== undefined) return object;
    if (this.#log.read(key, 0, 2, Number.POSITIVE_INFINITY).length > 1) return "the edits in its log";
    const points = redis.pointsOf(key);
    if (points !== "deleted" && points.size > 0) return "its board in Redis";
    return boardCheckpoints.entryAsOf(key, Number.POSITIVE_INFINITY).entry?.kind === "boards" ? "the checkpoint of its boards" : undefined;
  }

  /**
   * Describes unfinished work of document services and leaderboards. Undefined: all state is correct. `isVisited`: whether
   * anybody is in the room. An owner notices by its next append that the log lost its end, and nobody writes in other rooms.
   */
  unsettled(isVisited: (room: RoomKey) => boolean): string | undefined {
    for (const [key, room] of this.#judge.rooms) {
      const entry = this.#stores.checkpoints.entryAsOf(key, Number.POSITIVE_INFINITY).entry;
      const points = this.#stores.redis.pointsOf(key);
      if (room.isDeleted) {
        if (!isDeleted(entry) || entry.wiping === true)
          return `room ${key} is deleted, and its checkpoint does not record that nothing is left`;
        const left = this.#leftOf(key);
        if (left !== undefined) return `room ${key} is deleted, and ${left} is left`;
        continue;
      }
      if (room.head === 0) continue;
      if (entry === undefined || isDeleted(entry)) return `room ${key} has edits and no checkpoint`;
      if (entry.seq > room.head && room.lost.hasAny && !isVisited(key)) continue;
      if (entry.seq !== room.head) return `the checkpoint of room ${key} is at seq ${entry.seq}, the log at ${room.head}`;
      const wrong = this.wrongAboutSnapshot(key, entry) ?? this.#wrongAboutHistory(key, room);
      if (wrong !== undefined) return `of room ${key}, ${wrong}`;
      const wrongBoard = points === "deleted" ? points : this.#wrongPoints(points, room);
      if (wrongBoard !== undefined) return `the board of room ${key} is wrong: ${wrongBoard}`;
    }
    return undefined;
  }

  /** Checks that each edit of the log is counted once. An edit that the log lost may have been counted before. */
  #wrongPoints(counted: ReadonlyMap<string, number>, { records, lostRecords }: RoomTruth): string | undefined {
    const expected = this.#pointsOf(records.map(({ record }) => record));
    const lost = this.#pointsOf(lostRecords.map(({ record }) => record));
    const users = new Set([...counted.keys(), ...expected.keys()]);
    const isRight = [...users].every((user) => {
      const [points, least] = [counted.get(user) ?? 0, expected.get(user) ?? 0];
      return points >= least && points <= least + (lost.get(user) ?? 0);
    });
    return isRight ? undefined : `it has ${described(counted)}, and the log comes to ${described(expected)}, with ${described(lost)} lost`;
  }

  #pointsOf(records: readonly OwnersRecord[]): Map<string, number> {
    const points = new Map<string, number>();
    for (const record of records) {
      if (record.kind !== "edits") continue;
      for (const { client, payload } of record.edits.edits) {
        const user = record.users.get(client)!;
        points.set(user, (points.get(user) ?? 0) + pointsOfEdit(payload, this.#scoring));
      }
    }
    return points;
  }
}

function described(points: ReadonlyMap<string, number>): string {
  return JSON.stringify([...points].sort(([a], [b]) => (a < b ? -1 : 1)));
}
