/** Objects of a history before they are written: their names, their bytes, and the entry that names them afterwards. */

import { assert } from "../../shared/assert.ts";
import type { StoredRecord } from "../../shared/bus/record.ts";
import type { RoomKey, Seq, UnixMillis } from "../../shared/ids.ts";
import type { Written } from "../verified-write-host.ts";
import { type DocumentVersion, type History, type Segment, withVersion } from "./history.ts";
import type { CurrentDocument } from "./history-messages.ts";
import { encodeSegment, seqsOf } from "./segments.ts";

/** An earlier segment that a new one contains. */
export type ReadSegment = { readonly segment: Segment; readonly records: readonly StoredRecord[] };
/** `through`: the stream sequence of the segment's last record. */
export type ObjectDraft =
  | { readonly kind: "version"; readonly version: Omit<DocumentVersion, keyof Written> }
  | {
      readonly kind: "segment";
      readonly segment: Omit<Segment, keyof Written>;
      readonly replaced: readonly string[];
      readonly through: number;
    };
export type DraftedObject = { readonly object: string; readonly bytes: Uint8Array; readonly draft: ObjectDraft };

/** `name`: no other object ever has it. */
export function draftSegment(
  room: RoomKey,
  name: string,
  {
    history,
    earlier,
    fresh,
  }: { readonly history: History; readonly earlier: readonly ReadSegment[]; readonly fresh: readonly StoredRecord[] },
): DraftedObject {
  const records = [...earlier.flatMap((segment) => segment.records), ...fresh];
  const [first, last] = [records[0], records.at(-1)];
  assert(first !== undefined && last !== undefined, "a segment has records");
  const { firstSeq, lastSeq } = seqsOf(records) ?? noSeqs(history);
  return {
    object: `${room}/edits-${firstSeq}-${lastSeq}-${name}`,
    bytes: encodeSegment(room, records),
    draft: {
      kind: "segment",
      segment: { firstSeq, lastSeq, firstTime: first.time, lastTime: last.time },
      replaced: earlier.map(({ segment }) => segment.object),
      through: last.streamSeq,
    },
  };
}

/** `id`: no other object ever has it. `name`: given by a person; undefined: the version has none. */
export function draftVersion(
  room: RoomKey,
  { id, name, time }: { readonly id: string; readonly name: string | undefined; readonly time: UnixMillis },
  { state, applied, leftOut }: CurrentDocument,
): DraftedObject {
  const { epoch, seq } = applied;
  const version = { id, epoch, seq, time, ...(name === undefined ? {} : { name }), ...(leftOut > 0 ? { leftOut } : {}) };
  return { object: `${room}/version-${epoch}-${seq}-${id}`, bytes: state, draft: { kind: "version", version } };
}

/** The entry that names the written object. */
export function entryNaming(history: History, draft: ObjectDraft, written: Written): History {
  if (draft.kind === "version") return withVersion(history, { ...written, ...draft.version });
  const rest = history.segments.filter(({ object }) => !draft.replaced.includes(object));
  return { ...history, segments: [...rest, { ...written, ...draft.segment }], through: draft.through };
}

/** The seq range of a segment whose records contain no edits. */
function noSeqs({ segments }: History): { firstSeq: Seq; lastSeq: Seq } {
  const lastSeq = segments.at(-1)?.lastSeq ?? (0 as Seq);
  return { firstSeq: (lastSeq + 1) as Seq, lastSeq };
}
