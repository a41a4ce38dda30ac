/**
 * Follows a partition of the log: reads all records, pauses, and reads again. Each read begins with the record that was
 * read last. A log that lost its end gives its numbers to other records, and a reader that uses only numbers would skip
 * them. For example, after [.., 7, 8] and a loss of 8, the next read finds another record 8, or none, and throws
 * `LogEndLost`.
 */

import { LogEndLost, placeOf, type ReadPosition, type RecordPlace, recordIdOf, type StoredRecord } from "../bus/record.ts";

/** `through`: the last stream sequence that was examined. A stream also holds messages that are not records of rooms. */
type LogBatch = { readonly records: readonly StoredRecord[]; readonly through: number; readonly isMore: boolean };

export type LogReads = {
  /** The stream, for errors. */
  readonly name: string;
  /** False: messages have no ids and may be removed at any time, so the last one is not read again. */
  readonly areRecords: boolean;
  /** The next records after a stream sequence. Any replica may answer, with fewer records than there are. */
  readonly read: (after: number) => Promise<LogBatch>;
  /** The stream sequence of the last record. */
  readonly end: () => Promise<number>;
  /** Waits until reading continues. */
  readonly rest: () => Promise<void>;
  /** Called after each record. Undefined, or a promise that lets sockets and timers run, if enough time has passed. */
  readonly yieldTime?: () => Promise<void> | undefined;
  readonly now: () => number;
};

/** Time after which a missing record counts as lost. A replica that lags, or a former leader, may lack it for a shorter time. */
const MISSING_MS_MAX = 5_000;

export async function* followRecords(reads: LogReads, from: ReadPosition, signal: AbortSignal): AsyncIterable<StoredRecord> {
  let { after, last } = from;
  if (last === undefined && after > 0 && (await reads.end()) < after) throw lost(reads, `ends before ${after}`);
  if (last !== undefined && last.streamSeq !== after) {
    await readFrom(reads, last, signal);
    last = undefined;
  }
  while (!signal.aborted) {
    const first = last === undefined ? await reads.read(after) : await readFrom(reads, last, signal);
    for (let batch: LogBatch | undefined = first; batch !== undefined; batch = batch.isMore ? await reads.read(after) : undefined) {
      for (const record of batch.records) {
        if (signal.aborted) return;
        yield record;
        const pause = reads.yieldTime?.();
        if (pause !== undefined) await pause;
      }
      const final = batch.records.at(-1);
      if (final !== undefined && reads.areRecords) last = placeOf(final);
      after = Math.max(after, batch.through);
    }
    await reads.rest();
  }
}

/** Reads the records after `last`. Throws LogEndLost if the log no longer has `last`. Undefined: aborted. */
async function readFrom(reads: LogReads, last: RecordPlace, signal: AbortSignal): Promise<LogBatch | undefined> {
  for (const since = reads.now(); !signal.aborted; await reads.rest()) {
    const { records, ...rest } = await reads.read(last.streamSeq - 1);
    const [found, ...behind] = records;
    if (found?.streamSeq === last.streamSeq && recordIdOf(found.bytes) === last.id) return { ...rest, records: behind };
    if (found?.streamSeq === last.streamSeq) throw lost(reads, `has another record in place of ${last.streamSeq}`);
    if (found !== undefined) throw lost(reads, `no longer has record ${last.streamSeq}`, false);
    if (reads.now() - since > MISSING_MS_MAX) throw lost(reads, `has no record at ${last.streamSeq} or after it`);
  }
  return undefined;
}

function lost({ name }: LogReads, what: string, isCertain = true): LogEndLost {
  const why = isCertain ? "it lost its end or was restored from an earlier copy" : "its room was deleted, or the log lost its end";
  return new LogEndLost(`the stream ${name} ${what}, which was read before: ${why}. It is read again from its beginning.`, isCertain);
}
