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

/** The room's records in `after < streamSeq <= through`; about so many. */
export type RoomRange = { readonly room: RoomKey; readonly after: number; readonly through: number; readonly records: number };
/** `throughs`: of each room that was read ahead the last record. `isCut`: there was more than memory for it. */
/** `trimReadOverlapMin`: what it costs to be sent a record and to decode it, in records that the server only looks at (ADR 20). */
export type ReadAheadOptions = { readonly trimReadOverlapMin: number; readonly trimReadBytesMax: number };
export type ReadAhead = { readonly throughs: ReadonlyMap<RoomKey, number>; readonly isCut: boolean };

/** In a block of the log that a room has no record in the server looks at none; so many stand before one of a room's at the most. */
const LOOKS_BEFORE_RECORD_MAX = 1_000;
/** The last that is read stays in the log: with one alone, a pass that is cut would leave the room where it was. */
const RECORDS_MIN = 2;

export class ReadAheadHost {
  /** As the rooms read it: what was read ahead comes from memory. */
  readonly log: EditLog;
  readonly #partition: number;
  readonly #deps: { readonly log: Log; readonly metrics: DocumentServiceMetrics };
  readonly #options: ReadAheadOptions;
  readonly #held = new Map<RoomKey, RoomRange & { readonly held: StoredRecord[] }>();

  constructor(partition: number, log: EditLog, options: ReadAheadOptions, deps: { log: Log; metrics: DocumentServiceMetrics }) {
    this.log = { ...log, read: (room, after, through) => this.#heldOf(room, after, through) ?? log.read(room, after, through) };
    this.#partition = partition;
    this.#options = options;
    this.#deps = deps;
  }

  /** Of the rooms for which one pass costs less than to read each by itself. Takes the place of what was read before. */
  async read(ranges: readonly RoomRange[], signal: AbortSignal): Promise<ReadAhead> {
    this.#held.clear();
    for (const range of worthOnePass(ranges, this.#options.trimReadOverlapMin)) this.#held.set(range.room, { ...range, held: [] });
    if (this.#held.size === 0) return { throughs: new Map(), isCut: false };
    let outcome: "whole" | "cut" | "failed" = "failed";
    try {
      outcome = (await this.#pass(signal)) ? "whole" : "cut";
    } catch (cause) {
      unlessMistake(cause);
      this.#deps.log.warn({ partition: this.#partition, cause }, "the log was not read ahead for trimming; each room is read by itself");
      this.#held.clear();
    }
    this.#deps.metrics.trimPasses.inc({ outcome });
    return { throughs: this.#throughs(), isCut: outcome === "cut" };
  }

  /** It is trimmed, or is not going to be. */
  forget(room: RoomKey): void {
    this.#held.delete(room);
  }

  /** Whether all there is was read. */
  async #pass(signal: AbortSignal): Promise<boolean> {
    const ranges = [...this.#held.values()];
    const after = Math.min(...ranges.map((range) => range.after));
    const through = Math.max(...ranges.map((range) => range.through));
    let bytes = 0;
    for await (const record of this.log.readAll(this.#partition, after, through)) {
      if (bytes >= this.#options.trimReadBytesMax || signal.aborted) return false;
      const range = this.#held.get(record.room);
      if (range === undefined || record.streamSeq <= range.after || record.streamSeq > range.through) continue;
      range.held.push({ ...record, bytes: record.bytes.slice() }); // It is a view of all that came with it.
      bytes += record.bytes.byteLength;
    }
    return true;
  }

  #throughs(): ReadonlyMap<RoomKey, number> {
    const throughs = new Map<RoomKey, number>();
    for (const [room, { held }] of this.#held) {
      const last = held.at(-1);
      if (last === undefined || held.length < RECORDS_MIN) this.#held.delete(room);
      else throughs.set(room, last.streamSeq);
    }
    return throughs;
  }

  #heldOf(room: RoomKey, after: number, through: number): AsyncIterable<StoredRecord> | undefined {
    const range = this.#held.get(room);
    if (range === undefined || after < range.after || through !== range.held.at(-1)?.streamSeq) return undefined;
    return inOrder(range.held.filter(({ streamSeq }) => streamSeq > after));
  }
}

async function* inOrder(records: readonly StoredRecord[]): AsyncIterable<StoredRecord> {
  yield* records;
}

/** Those that begin last, as many as save the most: a pass begins where the first of them does. */
function worthOnePass(ranges: readonly RoomRange[], overlapMin: number): readonly RoomRange[] {
  const latestFirst = ranges.toSorted((a, b) => b.after - a.after);
  let [count, saved, alone, end] = [0, 0, 0, 0];
  latestFirst.forEach(({ after, through, records }, index) => {
    alone += Math.min(through - after, records * LOOKS_BEFORE_RECORD_MAX);
    end = Math.max(end, through);
    const more = alone - (end - after) * overlapMin;
    if (more > saved) [count, saved] = [index + 1, more];
  });
  return latestFirst.slice(0, count);
}
