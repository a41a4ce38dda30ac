/**
 * Reads a part of the log once for many rooms that are about to be trimmed. Whoever asks the log for one room's records
 * has its server look through all that stands between them: for rooms that are busy at the same time that is the same
 * stretch again for each, and grows with rooms times edits. One pass over the stretch grows with the edits.
 */

import type { StoredRecord } from "../../shared/bus/stored-record.ts";
import type { RoomKey } from "../../shared/ids.ts";
import type { Log } from "../../shared/log.ts";
import { unlessMistake } from "../../shared/pause.ts";
import type { DocumentServiceMetrics } from "../metrics.ts";
import type { EditLog } from "../ports.ts";

/**
 * The room's records in `after < streamSeq <= through`, about so many behind `from`. Between `after` and `from` few are left
 * of an earlier time, or none: they are worth no pass.
 */
export type RoomRange = {
  readonly room: RoomKey;
  readonly after: number;
  readonly from: number;
  readonly through: number;
  readonly records: number;
};
/**
 * `ends`: of each room that took part the last record that was read, or that it was not come to. Of all others
 * nothing was read. `isCut`: there was more than memory for it.
 */
export type ReadAhead = { readonly ends: ReadonlyMap<RoomKey, number | "next-round">; readonly isCut: boolean };
/** `trimReadOverlapMin`: what it costs to be sent a record and to decode it, in records that the server only looks at (ADR 20). */
export type ReadAheadOptions = { readonly trimReadOverlapMin: number; readonly trimReadBytesMax: number };

/** In a block of the log that a room has no record in the server looks at none; so many stand before one of a room's at the most. */
const LOOKS_BEFORE_RECORD_MAX = 1_000;
/** What a record takes in memory beside its bytes. */
const RECORD_OVERHEAD_BYTES = 512;

type Held = RoomRange & { readonly held: StoredRecord[] };

export class ReadAheadHost {
  /** As the rooms read it: what was read ahead comes from memory. */
  readonly log: EditLog;
  readonly #partition: number;
  readonly #options: ReadAheadOptions;
  readonly #deps: { readonly log: Log; readonly metrics: DocumentServiceMetrics };
  readonly #held = new Map<RoomKey, Held>();

  constructor(partition: number, log: EditLog, options: ReadAheadOptions, deps: { log: Log; metrics: DocumentServiceMetrics }) {
    this.log = { ...log, read: (room, after, through) => this.#read(log, room, after, through) };
    this.#partition = partition;
    this.#options = options;
    this.#deps = deps;
  }

  /** For the rooms for which one pass costs less than to read each by itself. Takes the place of what was read before. */
  async read(ranges: readonly RoomRange[], signal: AbortSignal): Promise<ReadAhead> {
    this.#held.clear();
    for (const range of worthOnePass(ranges, this.#options.trimReadOverlapMin)) this.#held.set(range.room, { ...range, held: [] });
    if (this.#held.size === 0) return { ends: new Map(), isCut: false };
    let outcome: "whole" | "cut" | "failed" = "failed";
    try {
      outcome = (await this.#pass(signal)) ? "whole" : "cut";
    } catch (cause) {
      unlessMistake(cause);
      this.#deps.log.warn({ partition: this.#partition, cause }, "the log was not read ahead for trimming; each room is read by itself");
      this.#held.clear();
    }
    this.#deps.metrics.trimPasses.inc({ outcome });
    return { ends: this.#ends(), isCut: outcome === "cut" };
  }

  /** It is trimmed, or is not going to be. */
  forget(room: RoomKey): void {
    this.#held.delete(room);
  }

  /** Whether all there is was read. */
  async #pass(signal: AbortSignal): Promise<boolean> {
    const ranges = [...this.#held.values()];
    const from = ranges.reduce((first, range) => Math.min(first, range.from), Number.POSITIVE_INFINITY);
    const through = ranges.reduce((last, range) => Math.max(last, range.through), 0);
    let bytes = 0;
    for await (const record of this.log.readAll(this.#partition, from, through)) {
      if (bytes >= this.#options.trimReadBytesMax || signal.aborted) return false;
      const range = this.#held.get(record.room);
      if (range === undefined || record.streamSeq <= range.from || record.streamSeq > range.through) continue;
      range.held.push({ ...record, bytes: record.bytes.slice() }); // It is a view of all that came with it.
      bytes += record.bytes.byteLength + RECORD_OVERHEAD_BYTES;
    }
    return true;
  }

  /**
   * The last that is read stays in the log. So a room of which there is one alone is read by itself: passes that are
   * cut might leave it where it is.
   */
  #ends(): ReadAhead["ends"] {
    const ends = new Map<RoomKey, number | "next-round">();
    for (const [room, { held }] of this.#held) {
      const last = held.at(-1);
      if (last === undefined) ends.set(room, "next-round");
      else if (held.length > 1) ends.set(room, last.streamSeq);
      if (last === undefined || held.length === 1) this.#held.delete(room);
    }
    return ends;
  }

  #read(log: EditLog, room: RoomKey, after: number, through: number): AsyncIterable<StoredRecord> {
    const range = this.#held.get(room);
    if (range === undefined || after < range.after || through !== range.held.at(-1)?.streamSeq) return log.read(room, after, through);
    return after < range.from ? behindEarlier(log, range, after) : only(range.held, after);
  }
}

/** What is left of an earlier time, and what was read ahead. Any replica may answer: one that shows the first of these has all before it. */
async function* behindEarlier(log: EditLog, { room, held }: Held, after: number): AsyncIterable<StoredRecord> {
  const first = held[0]?.streamSeq ?? 0;
  let read = after;
  for await (const record of log.read(room, after, first)) {
    read = record.streamSeq;
    if (read < first) yield record;
  }
  if (read < first)
    throw new Error(`the log does not show record ${first} of room ${room}, which is there: a replica lags, or it was lost`);
  yield* held;
}

async function* only(held: readonly StoredRecord[], after: number): AsyncIterable<StoredRecord> {
  yield* held.filter(({ streamSeq }) => streamSeq > after);
}

/** Those that begin last, as many as save the most: a pass begins where the first of them does. */
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
