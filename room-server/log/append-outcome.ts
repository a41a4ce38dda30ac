/** Decides whether a record was stored, from an answer of the log or from the room's last record. */

import { isAheadOfLog } from "../../shared/bus/checkpoint.ts";
import type { AppendOutcome, KnownCheckpoint, LastRecord, OutgoingRecord } from "../ports.ts";

/**
 * The outcome according to the room's last record, read after a wrong expected sequence or a connection loss. The last
 * record may be this one, sent before, or one of another owner. Undefined: it is still the expected one, so this record
 * was lost or is still on its way through the cluster. The outcome is also "fenced" if the log lost a later owner's
 * records and a checkpoint covers them.
 */
export function outcomeByLast(
  record: OutgoingRecord,
  last: LastRecord | undefined,
  checkpoint?: KnownCheckpoint,
): AppendOutcome | undefined {
  if (last !== undefined && last.record.id === record.id) return { kind: "appended", streamSeq: last.streamSeq };
  const isAsExpected = (last?.streamSeq ?? 0) === record.expectedStreamSeq && last?.record.id === record.expectedId;
  return isAsExpected && !isAheadOfLog(checkpoint, last) ? undefined : { kind: "fenced" };
}

/**
 * A sequence that is not above the expected one belongs to a log that was lost or rolled back. Then all known facts
 * about the room are invalid.
 */
export function outcomeOfAck(record: OutgoingRecord, streamSeq: number): AppendOutcome {
  return streamSeq > record.expectedStreamSeq ? { kind: "appended", streamSeq } : { kind: "fenced" };
}
