/** What became of a record whose append the log did not simply confirm. Rules APO1 to APO3. */

import type { AppendOutcome, LastRecord, OutgoingRecord } from "../ports.ts";

/**
 * What the room's last record tells, looked at after the log said that it is another than expected, or after the line was
 * lost. It is this one, sent before, or another owner's. Or it is the expected one still, and this one has not come, or is
 * on its way through the cluster: undefined.
 */
export function outcomeByLast(record: OutgoingRecord, last: LastRecord | undefined): AppendOutcome | undefined {
  if (last !== undefined && last.record.id === record.id) return { kind: "appended", streamSeq: last.streamSeq };
  const isAsExpected = (last?.streamSeq ?? 0) === record.expectedStreamSeq && last?.record.id === record.expectedId;
  return isAsExpected ? undefined : { kind: "fenced" };
}

/** A sequence that does not lie behind the expected one is of a log that was lost or rolled back: then nothing known of the room holds. */
export function outcomeOfAck(record: OutgoingRecord, streamSeq: number): AppendOutcome {
  return streamSeq > record.expectedStreamSeq ? { kind: "appended", streamSeq } : { kind: "fenced" };
}
