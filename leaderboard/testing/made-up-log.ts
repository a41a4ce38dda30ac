/** A log whose records lie as far back in time as a test likes, behind the leaderboard's own port. */

import type { StoredRecord } from "../../shared/bus/stored-record.ts";
import { partitionOf } from "../../shared/bus/subjects.ts";
import type { RoomKey, UnixMillis } from "../../shared/ids.ts";
import type { EditLog } from "../ports.ts";
import { recordOf } from "./records.ts";
import type { LoggedEdit } from "./reference-boards.ts";

const POLL_MS = 5;

export class MadeUpLog implements EditLog {
  readonly #partitions: number;
  readonly #stored: StoredRecord[][];
  readonly #rooms = new Map<RoomKey, LoggedEdit[]>();

  constructor(partitions: number) {
    this.#partitions = partitions;
    this.#stored = Array.from({ length: partitions }, () => []);
  }

  /** Edits committed together, at the first one's time. */
  append(room: RoomKey, edits: readonly LoggedEdit[]): void {
    const ofRoom = this.#rooms.get(room) ?? [];
    this.#rooms.set(room, ofRoom);
    const time = edits[0]!.time;
    const ofPartition = this.#stored[partitionOf(room, this.#partitions)]!;
    ofPartition.push({ room, streamSeq: ofPartition.length + 1, time, bytes: recordOf(ofRoom.length + 1, edits) });
    ofRoom.push(...edits.map((edit) => ({ ...edit, time: time as UnixMillis })));
  }

  editsOf(room: RoomKey): readonly LoggedEdit[] {
    return this.#rooms.get(room) ?? [];
  }

  async *follow(partition: number, after: number, signal: AbortSignal): AsyncIterable<StoredRecord> {
    const stored = this.#stored[partition]!;
    for (let next = after; !signal.aborted; ) {
      if (next < stored.length) yield stored[next++]!;
      else await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  async end(partition: number): Promise<number> {
    return this.#stored[partition]!.length;
  }
}
