/** A log and a stream of activities behind the leaderboard's ports. A test chooses the date of each record. */

import { encodeDeletedRecord, type ReadPosition, type StoredRecord } from "../../shared/bus/record.ts";
import { partitionOf } from "../../shared/bus/subjects.ts";
import type { RoomKey, UnixMillis } from "../../shared/ids.ts";
import type { Activity } from "../../shared/bus/activity.ts";
import { encodeJson } from "../../shared/bus/json-messages.ts";
import type { ActivityStream, CountedEditLog } from "../ports.ts";
import { recordOf } from "./records.ts";
import type { LoggedEdit, ReportedActivity } from "./reference-boards.ts";

const POLL_MS = 5;

/** Keeps all records for the reference, and delivers no forgotten record again. */
class MadeUpStream {
  readonly stored: StoredRecord[] = [];
  forgotten = 0;

  append(record: Omit<StoredRecord, "streamSeq">): void {
    this.stored.push({ ...record, streamSeq: this.stored.length + 1 });
  }

  async *follow(after: number, signal: AbortSignal): AsyncIterable<StoredRecord> {
    for (let next = Math.max(after, this.forgotten); !signal.aborted;) {
      if (next < this.stored.length) yield this.stored[next++]!;
      else await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }
}

export class FakeEditLog implements CountedEditLog {
  readonly #partitions: number;
  readonly #edits: readonly MadeUpStream[];
  readonly #activities: readonly MadeUpStream[];
  readonly #rooms = new Map<RoomKey, { edits: LoggedEdit[]; activities: ReportedActivity[] }>();

  constructor(partitions: number) {
    this.#partitions = partitions;
    this.#edits = Array.from({ length: partitions }, () => new MadeUpStream());
    this.#activities = Array.from({ length: partitions }, () => new MadeUpStream());
  }

  /** Edits committed together, at the first one's time. */
  append(room: RoomKey, edits: readonly LoggedEdit[]): void {
    const ofRoom = this.#ofRoom(room).edits;
    const { time } = edits[0]!;
    this.#edits[partitionOf(room, this.#partitions)]!.append({ room, time, bytes: recordOf(ofRoom.length + 1, edits) });
    ofRoom.push(...edits.map((edit) => ({ ...edit, time })));
  }

  /** Marks the room as deleted: nothing more is counted. */
  delete(room: RoomKey, time: UnixMillis): void {
    this.#edits[partitionOf(room, this.#partitions)]!.append({ room, time, bytes: encodeDeletedRecord({ id: "deletion.1", time }) });
  }

  addActivity(room: RoomKey, activity: Activity, time: UnixMillis): void {
    this.#activities[partitionOf(room, this.#partitions)]!.append({ room, time, bytes: encodeJson(activity) });
    this.#ofRoom(room).activities.push({ activity, time });
  }

  editsOf(room: RoomKey): readonly LoggedEdit[] {
    return this.doneIn(room).edits;
  }

  doneIn(room: RoomKey): { readonly edits: readonly LoggedEdit[]; readonly activities: readonly ReportedActivity[] } {
    return this.#ofRoom(room);
  }

  /** The stream sequence of the room's last activity. */
  lastActivity(room: RoomKey): number {
    return this.#activities[partitionOf(room, this.#partitions)]!.stored.findLast((stored) => stored.room === room)?.streamSeq ?? 0;
  }

  follow(partition: number, { after }: ReadPosition, signal: AbortSignal): AsyncIterable<StoredRecord> {
    return this.#edits[partition]!.follow(after, signal);
  }

  async end(partition: number): Promise<number> {
    return this.#edits[partition]!.stored.length;
  }

  /** Resolves after two polls: the stream is read in that time. */
  readNow(): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, 2 * POLL_MS));
  }

  get activities(): ActivityStream {
    return {
      follow: (partition, after, signal) => this.#activities[partition]!.follow(after, signal),
      end: async (partition) => this.#activities[partition]!.stored.length,
      last: async (partition) => this.#activities[partition]!.stored.length,
      readNow: () => this.readNow(),
      forgotten: async (partition) => this.#activities[partition]!.forgotten,
      forget: async (partition, through) =>
        void (this.#activities[partition]!.forgotten = Math.max(this.#activities[partition]!.forgotten, through)),
    };
  }

  #ofRoom(room: RoomKey): { edits: LoggedEdit[]; activities: ReportedActivity[] } {
    const known = this.#rooms.get(room) ?? { edits: [], activities: [] };
    this.#rooms.set(room, known);
    return known;
  }
}
