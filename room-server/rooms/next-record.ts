/** Edits that were taken, as the record of the log that gives them their seqs. */

import { editsBytesOf, encodeEditsRecord, type RecordStamp } from "../../shared/bus/record.ts";
import type { ClientId, Epoch, Millis, Seq, UserId } from "../../shared/ids.ts";
import type { CommittedEdits } from "../../shared/wire/frames.ts";
import type { BacklogRecord } from "./backlog.ts";
import type { UnackedEdit } from "./group-commit.ts";

/** `forBacklog`: as the backlog takes it, once the log has it. */
export type NextRecord = {
  readonly id: string;
  readonly bytes: Uint8Array;
  readonly committed: CommittedEdits;
  readonly forBacklog: BacklogRecord;
};

export function nextRecord(taken: readonly UnackedEdit[], at: { epoch: Epoch; head: Seq; stamp: RecordStamp; now: Millis }): NextRecord {
  const { epoch, head, stamp, now } = at;
  const firstSeq = (head + 1) as Seq;
  const users = new Map<ClientId, UserId>();
  const edits = taken.map(({ author, counter, parentSeq, payload }, index) => {
    users.set(author.client, author.user);
    // A parent can only come before its edit; a writer that says otherwise has seen a log that is no more.
    return { client: author.client, counter, parentSeq: Math.min(parentSeq, firstSeq + index - 1) as Seq, payload };
  });
  const committed: CommittedEdits = { epoch, firstSeq, edits };
  const bytes = encodeEditsRecord({ ...stamp, users, edits: committed });
  const lastSeq = (firstSeq + edits.length - 1) as Seq;
  return { id: stamp.id, bytes, committed, forBacklog: { firstSeq, lastSeq, since: now, bytes: editsBytesOf(bytes) } };
}
