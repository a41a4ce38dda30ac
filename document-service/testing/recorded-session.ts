/** Plays a recorded session into one room, which saves and trims on the way, and reads many of its seqs back. */

import * as Y from "yjs";
import { encodeEditsRecord, encodeEpochRecord, type StoredRecord } from "../../shared/bus/record.ts";
import type { ClientId, Epoch, Seq, UnixMillis, UserId } from "../../shared/ids.ts";
import { readTrace, TRACE_TEXT } from "../../test/system/traces.ts";
import { ROOM, RoomRun, type Stores } from "./one-room.ts";

/** Reads every `everySeqs` seqs, the seqs on both sides of each save, and the end. */
type RecordedSessionOptions = {
  readonly everySeqs: number;
  readonly savedEverySeqs: number;
  /** The beginning of the session. Default: the complete session. */
  readonly editsMax?: number;
  readonly versionEditsMax?: number;
  readonly segmentBytesMax?: number;
};
/** `counts`: numbers of the history's parts at the end. `wrong`: seqs whose text differs from the session's. */
type ReadBack = {
  readonly counts: { readonly texts: number; readonly versions: number; readonly segments: number; readonly trimmedRecords: number };
  readonly wrong: readonly number[];
};

export const KEEP_ALL = {
  mergeEditsMax: 100_000,
  mergeBytesMax: 100_000_000,
  historyMsMax: 1_000_000_000,
  historyBytesMax: 100_000_000,
  historyReadBytesMax: 100_000_000,
  historyVersionEditsMax: 5_000,
};
/** A record has between one and this many edits. */
const RECORD_EDITS_MAX = 7;
const START = 0 as UnixMillis;

export async function readBackSession(
  stores: Stores,
  {
    everySeqs,
    savedEverySeqs,
    editsMax = Infinity,
    versionEditsMax = KEEP_ALL.historyVersionEditsMax,
    segmentBytesMax = 150_000,
  }: RecordedSessionOptions,
): Promise<ReadBack> {
  const { edits, endText } = readTrace("friendsforever", editsMax);
  const run = new RoomRun(stores, { ...KEEP_ALL, historyVersionEditsMax: versionEditsMax, historySegmentBytesMax: segmentBytesMax });
  const reference = new Y.Doc();
  const texts = new Map<number, string>([[0, ""]]);
  let streamSeq = 1;
  await run.take({
    room: ROOM,
    streamSeq,
    time: START,
    bytes: encodeEpochRecord({ id: "owner", time: START, epoch: 1 as Epoch, head: 0 as Seq }),
  });
  for (let first = 0, size = 1; first < edits.length; first += size, size = 1 + (first % RECORD_EDITS_MAX)) {
    const group = edits.slice(first, first + size);
    for (const [index, { edit }] of group.entries()) {
      Y.applyUpdate(reference, edit);
      const seq = first + index + 1;
      if (seq % everySeqs === 0 || seq % savedEverySeqs < 2) texts.set(seq, reference.getText(TRACE_TEXT).toString());
    }
    const stored = recordOf(group, first, ++streamSeq);
    stores.log.push(stored);
    run.room.receiveRecord(stored);
    run.now = first as typeof run.now;
    if (first % savedEverySeqs < size) await run.saveAndTrim(first);
  }
  texts.set(edits.length, endText);
  await run.saveAndTrim(edits.length);

  const wrong: number[] = [];
  for (const [seq, text] of texts) if ((await textAt(run, seq as Seq)) !== text) wrong.push(seq);
  return {
    counts: {
      texts: texts.size,
      versions: stores.history.versions.length,
      segments: stores.history.segments.length,
      trimmedRecords: stores.trimmedBefore,
    },
    wrong,
  };
}

function recordOf(
  group: readonly { readonly author: number; readonly edit: Uint8Array }[],
  first: number,
  streamSeq: number,
): StoredRecord {
  const time = first as UnixMillis;
  const edits = group.map(({ author, edit }, index) => ({
    client: `author000000000${author}` as ClientId,
    counter: first + index + 1,
    parentSeq: first as Seq,
    payload: edit,
  }));
  const users = new Map(edits.map(({ client }) => [client, client as string as UserId]));
  return {
    room: ROOM,
    streamSeq,
    time,
    bytes: encodeEditsRecord({ id: `r${first}`, time, users, edits: { epoch: 1 as Epoch, firstSeq: (first + 1) as Seq, edits } }),
  };
}

async function textAt(run: RoomRun, seq: Seq): Promise<string> {
  const earlier = await run.room.historyReads.readAt({ seq });
  if (earlier.kind !== "state") return earlier.kind;
  const doc = new Y.Doc();
  Y.applyUpdate(doc, earlier.state);
  return doc.getText(TRACE_TEXT).toString();
}
