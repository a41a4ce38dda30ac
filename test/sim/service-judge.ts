/**
 * Checks the promises of the document service and the leaderboard against the judge's log. Each trimmed record is
 * covered by a readable snapshot, each room keeps its last record, and the boards count each edit exactly once.
 */

import { type Checkpoint, isDeleted } from "../../shared/bus/checkpoint.ts";
import { type OwnersRecord } from "../../shared/bus/record.ts";
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
    const wrong = this.wrongAboutSnapshot(key, entry);
    if (wrong !== undefined) this.#judge.fail(`record ${last.streamSeq} is trimmed, and ${wrong}`, key);
  }

  /** Checks that the checkpoint's snapshot is readable, and has exactly the log's edits up to its seq. Undefined: it is correct. */
  wrongAboutSnapshot(key: RoomKey, { seq, snapshot }: Checkpoint): string | undefined {
    const state = this.#stores.snapshots.read(snapshot.object);
    if (state === undefined) return `the snapshot at seq ${seq} is not there`;
    const expected = this.#judge.room(key).order.slice(0, seq);
    const content = Buffer.concat(expected.map(({ payload }) => payload));
    return content.equals(contentOf(state)) ? undefined : `the snapshot at seq ${seq} is not what the log had up to there`;
  }

  /** Describes unfinished work of document services and leaderboards. Undefined: all state is correct. */
  unsettled(): string | undefined {
    for (const [key, room] of this.#judge.rooms) {
      const entry = this.#stores.checkpoints.entryAsOf(key, Number.POSITIVE_INFINITY).entry;
      const points = this.#stores.redis.pointsOf(key);
      if (room.isDeleted) {
        if (!isDeleted(entry) || entry.wiping === true)
          return `room ${key} is deleted, and its checkpoint does not record that nothing is left`;
        continue;
      }
      if (room.head === 0) continue;
      if (entry === undefined || isDeleted(entry)) return `room ${key} has edits and no checkpoint`;
      if (entry.seq !== room.head) return `the checkpoint of room ${key} is at seq ${entry.seq}, the log at ${room.head}`;
      const wrong = this.wrongAboutSnapshot(key, entry);
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
