/**
 * Decides which rooms' log ranges are read in one pass before they are trimmed, and keeps the records that were read.
 * To read the records of one room, the log server goes through all records between them. For rooms that are busy at the
 * same time, this is the same part of the log again for each. So the cost of single reads grows with rooms times edits,
 * and the cost of one pass only with edits.
 */

import type { StoredRecord } from "../../shared/bus/record.ts";
import type { RoomKey } from "../../shared/ids.ts";

/**
 * The room's records in `after < streamSeq <= through`, about `records` of them after `from`. The few records between
 * `after` and `from` are left from an earlier run, and no pass reads them.
 */
export type RoomRange = {
  readonly room: RoomKey;
  readonly after: number;
  readonly from: number;
  readonly through: number;
  readonly records: number;
};
/** `ends`: for each room in the pass its last record that was read, or "next-round" if the pass did not reach the room. */
export type ReadAheadResult = { readonly ends: ReadonlyMap<RoomKey, number | "next-round">; readonly isCut: boolean };
/** `trimReadOverlapMin`: the cost to receive and decode a record, in records that the server only looks at (ADR 20). */
export type ReadAheadOptions = { readonly trimReadOverlapMin: number; readonly trimReadBytesMax: number };

/** The part of the log that a pass reads: `from < streamSeq <= through`. */
export type ReadAheadPass = { readonly from: number; readonly through: number };

/** The source of a room's records. "log-then-held": first the log through `firstHeld`, then `held`. */
type RecordSource =
  | { readonly kind: "log" }
  | { readonly kind: "held"; readonly held: readonly StoredRecord[] }
  | { readonly kind: "log-then-held"; readonly firstHeld: number; readonly held: readonly StoredRecord[] };

/**
 * Maximum number of records that the server examines per record of the room. It skips blocks of the log that have no
 * record of the room.
 */
const LOOKS_BEFORE_RECORD_MAX = 1_000;
/** Memory of a record in addition to its bytes. */
const RECORD_OVERHEAD_BYTES = 512;

type HeldRange = RoomRange & { readonly held: StoredRecord[] };

export class ReadAhead {
  readonly #options: ReadAheadOptions;
  readonly #held = new Map<RoomKey, HeldRange>();
  #heldBytes = 0;
  #isCut = false;

  constructor(options: ReadAheadOptions) {
    this.#options = options;
  }

  /** Drops the last pass. Returns the next one. Undefined: reading each room separately costs less. */
  plan(ranges: readonly RoomRange[]): ReadAheadPass | undefined {
    this.clear();
    for (const range of worthOnePass(ranges, this.#options.trimReadOverlapMin)) this.#held.set(range.room, { ...range, held: [] });
    const planned = [...this.#held.values()];
    if (planned.length === 0) return undefined;
    return {
      from: planned.reduce((first, range) => Math.min(first, range.from), Number.POSITIVE_INFINITY),
      through: planned.reduce((last, range) => Math.max(last, range.through), 0),
    };
  }

  /** False: memory is full, and the pass ends before this record. */
  receiveRecord(record: StoredRecord): boolean {
    this.#isCut ||= this.#heldBytes >= this.#options.trimReadBytesMax;
    if (this.#isCut) return false;
    const range = this.#held.get(record.room);
    if (range === undefined || record.streamSeq <= range.from || record.streamSeq > range.through) return true;
    range.held.push({ ...record, bytes: record.bytes.slice() }); // The bytes are a view of the whole batch.
    this.#heldBytes += record.bytes.byteLength + RECORD_OVERHEAD_BYTES;
    return true;
  }

  /** The pass ended early. */
  cut(): void {
    this.#isCut = true;
  }

  /**
   * The last record that is read stays in the log. So a room with only one record in the pass is read separately,
   * because passes that are cut might never advance it.
   */
  end(): ReadAheadResult {
    const ends = new Map<RoomKey, number | "next-round">();
    for (const [room, { held }] of this.#held) {
      const last = held.at(-1);
      if (last === undefined) ends.set(room, "next-round");
      else if (held.length > 1) ends.set(room, last.streamSeq);
      if (last === undefined || held.length === 1) this.#held.delete(room);
    }
    return { ends, isCut: this.#isCut };
  }

  clear(): void {
    this.#held.clear();
    this.#heldBytes = 0;
    this.#isCut = false;
  }

  /** The room is trimmed, or will not be. */
  forgetRoom(room: RoomKey): void {
    this.#held.delete(room);
  }

  /** The source of the room's records in `after < streamSeq <= through`. */
  sourceOf(room: RoomKey, after: number, through: number): RecordSource {
    const range = this.#held.get(room);
    if (range === undefined || after < range.after || through !== range.held.at(-1)?.streamSeq) return { kind: "log" };
    const { held } = range;
    return after < range.from
      ? { kind: "log-then-held", firstHeld: held[0]?.streamSeq ?? 0, held }
      : { kind: "held", held: held.filter(({ streamSeq }) => streamSeq > after) };
  }
}

/** The rooms that begin last, as many as save the most. A pass begins where the first of these rooms begins. */
function worthOnePass(ranges: readonly RoomRange[], overlapMin: number): readonly RoomRange[] {
  const latestFirst = ranges.toSorted((a, b) => b.from - a.from);
  let best = { rooms: 0, saved: 0 };
  let [costAlone, end] = [0, 0];
  for (const [index, { from, through, records }] of latestFirst.entries()) {
    costAlone += Math.min(through - from, records * LOOKS_BEFORE_RECORD_MAX);
    end = Math.max(end, through);
    const costOfPass = (end - from) * overlapMin;
    if (costAlone - costOfPass > best.saved) best = { rooms: index + 1, saved: costAlone - costOfPass };
  }
  return latestFirst.slice(0, best.rooms);
}
