/** A log, and a stream of activities, whose records lie as far back in time as a test likes, behind the leaderboard's own ports. */

import type { StoredRecord } from "../../shared/bus/record.ts";
import { partitionOf } from "../../shared/bus/subjects.ts";
import type { RoomKey, UnixMillis } from "../../shared/ids.ts";
import type { Activity } from "../../shared/bus/activity.ts";
import { encodeJson } from "../../shared/bus/json-messages.ts";
import { encodeDeletedRecord } from "../../shared/bus/record.ts";
import type { ActivityStream, CountedEditLog } from "../ports.ts";
import { recordOf } from "./records.ts";
import type { LoggedEdit, ReportedActivity } from "./reference-boards.ts";

const POLL_MS = 5;

/** Keeps everything, for the reference; of what is forgotten nothing is handed out again. */
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

export class MadeUpLog implements CountedEditLog {
  readonly #partitions: number;
  readonly #edits: readonly MadeUpStream[];
  readonly #told: readonly MadeUpStream[];
  readonly #rooms = new Map<RoomKey, { edits: LoggedEdit[]; activities: ReportedActivity[] }>();

  constructor(partitions: number) {
    this.#partitions = partitions;
    this.#edits = Array.from({ length: partitions }, () => new MadeUpStream());
    this.#told = Array.from({ length: partitions }, () => new MadeUpStream());
  }

  /** Edits committed together, at the first one's time. */
  append(room: RoomKey, edits: readonly LoggedEdit[]): void {
    const ofRoom = this.#ofRoom(room).edits;
    const time = edits[0]!.time;
    this.#edits[partitionOf(room, this.#partitions)]!.append({ room, time, bytes: recordOf(ofRoom.length + 1, edits) });
    ofRoom.push(...edits.map((edit) => ({ ...edit, time: time as UnixMillis })));
  }

  /** Nothing is counted of it any more. */
  delete(room: RoomKey, time: UnixMillis): void {
    this.#edits[partitionOf(room, this.#partitions)]!.append({ room, time, bytes: encodeDeletedRecord({ id: "deletion.1", time }) });
  }

  tell(room: RoomKey, activity: Activity, time: UnixMillis): void {
    this.#told[partitionOf(room, this.#partitions)]!.append({ room, time, bytes: encodeJson(activity) });
    this.#ofRoom(room).activities.push({ activity, time });
  }

  editsOf(room: RoomKey): readonly LoggedEdit[] {
    return this.doneIn(room).edits;
  }

  doneIn(room: RoomKey): { readonly edits: readonly LoggedEdit[]; readonly activities: readonly ReportedActivity[] } {
    return this.#ofRoom(room);
  }

  /** The stream sequence of the room's last activity. */
  lastTold(room: RoomKey): number {
    return this.#told[partitionOf(room, this.#partitions)]!.stored.findLast((stored) => stored.room === room)?.streamSeq ?? 0;
  }

  follow(partition: number, after: number, signal: AbortSignal): AsyncIterable<StoredRecord> {
    return this.#edits[partition]!.follow(after, signal);
  }

  async end(partition: number): Promise<number> {
    return this.#edits[partition]!.stored.length;
  }

  /** It is read again in a moment anyhow. */
  readNow(): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, 2 * POLL_MS));
  }

  get activities(): ActivityStream {
    return {
      follow: (partition, after, signal) => this.#told[partition]!.follow(after, signal),
      end: async (partition) => this.#told[partition]!.stored.length,
      last: async (partition) => this.#told[partition]!.stored.length,
      readNow: () => this.readNow(),
      forgotten: async (partition) => this.#told[partition]!.forgotten,
      forget: async (partition, through) => void (this.#told[partition]!.forgotten = Math.max(this.#told[partition]!.forgotten, through)),
    };
  }

  #ofRoom(room: RoomKey): { edits: LoggedEdit[]; activities: ReportedActivity[] } {
    const known = this.#rooms.get(room) ?? { edits: [], activities: [] };
    this.#rooms.set(room, known);
    return known;
  }
}
