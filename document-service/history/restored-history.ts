/** Reads the names and bytes of a room's objects, and makes the history entry that names them again after it was lost or rolled back. */

import { headOf, type StoredRecord } from "../../shared/bus/record.ts";
import type { Epoch, Seq, UnixMillis } from "../../shared/ids.ts";
import type { Digest, StoredHistory } from "../ports.ts";
import { type DocumentVersion, type History, objectsOf, type Segment } from "./history.ts";
import { decodeSegment, type LoggedEdits, seqsOf } from "./segments.ts";

/** A room's objects in either store. */
export type RoomObjects = { readonly snapshots: readonly string[]; readonly history: readonly string[] };
/** A segment in the store, whether or not an entry names it. */
export type FoundSegment = { readonly object: string; readonly bytes: Uint8Array; readonly records: readonly StoredRecord[] };
export type FoundObject = { readonly object: string; readonly bytes: Uint8Array };

export function segmentNames({ history }: RoomObjects): readonly string[] {
  return history.filter((name) => name.includes("/edits-"));
}

/** Undefined: the object is missing, damaged or empty. */
export function foundSegment(object: string, bytes: Uint8Array | undefined): FoundSegment | undefined {
  const records = bytes && decodeSegment(bytes);
  return bytes === undefined || records === undefined || records.length === 0 ? undefined : { object, bytes, records };
}

/**
 * A state's name is `{room}/{epoch}-{seq}-…` or `{room}/version-{epoch}-{seq}-…`. Undefined: the object is no state.
 */
export function stateOfName(object: string): { readonly epoch: Epoch; readonly seq: Seq } | undefined {
  const [, epoch, seq] = /\/(?:version-)?(\d+)-(\d+)-/.exec(object) ?? [];
  return epoch === undefined || seq === undefined ? undefined : { epoch: Number(epoch) as Epoch, seq: Number(seq) as Seq };
}

/** Snapshots and versions, the newest first. */
export function stateNames({ snapshots, history }: RoomObjects): readonly StateName[] {
  const states = [
    ...snapshots.map((object) => ({ store: "snapshots" as const, object })),
    ...history.map((object) => ({ store: "history" as const, object })),
  ].flatMap((name) => {
    const at = stateOfName(name.object);
    return at === undefined ? [] : [{ ...name, ...at }];
  });
  return states.sort((a, b) => b.seq - a.seq || b.epoch - a.epoch);
}
export type StateName = { readonly store: "snapshots" | "history"; readonly object: string; readonly epoch: Epoch; readonly seq: Seq };

/** The last seq that the entry names. */
export function lastNamedSeq({ segments, versions }: History): number {
  return Math.max(segments.at(-1)?.lastSeq ?? 0, versions.at(-1)?.seq ?? 0);
}

/** 0: there are no edits. */
export function headOfEdits(edits: readonly LoggedEdits[]): number {
  return highest(edits, ({ record }) => headOf(record));
}
export function lastStreamSeq(records: readonly StoredRecord[]): number {
  return highest(records, ({ streamSeq }) => streamSeq);
}
export function archivedThrough(found: readonly FoundSegment[]): number {
  return highest(found, ({ records }) => lastStreamSeq(records));
}

/** 0: there are no items. A room may have more records than a call such as `Math.max` accepts as arguments. */
export function highest<Item>(items: readonly Item[], numberOf: (item: Item) => number): number {
  return items.reduce((most, item) => Math.max(most, numberOf(item)), 0);
}

/** All found edits after a seq. If two objects have different edits for one seq, the document includes both. */
export function editsAfter(
  seq: Seq,
  top: Seq,
  edits: readonly LoggedEdits[],
): { readonly payloads: Uint8Array[]; readonly missing: number } {
  const payloads: Uint8Array[] = [];
  const found = new Set<number>();
  for (const { record } of edits) {
    for (const [index, { payload }] of record.edits.edits.entries()) {
      if (record.edits.firstSeq + index <= seq) continue;
      found.add(record.edits.firstSeq + index);
      payloads.push(payload);
    }
  }
  return { payloads, missing: top - seq - found.size };
}

/** Whether the entry names exactly the objects that are there. */
export function namesExactly({ history, revision }: StoredHistory, names: readonly string[]): boolean {
  const named = new Set(objectsOf(history));
  return names.length === 0 || (revision > 0 && named.size === names.length && names.every((name) => named.has(name)));
}

/**
 * The entry that names every segment and version that is there, because a sweep would remove an unnamed object. Names
 * that people gave are lost if the entry is lost. A version gets the age of the segment around its seq. Without such a
 * segment it counts as new, so that it is kept for the full time.
 */
export function restoredHistory(
  before: History,
  found: { readonly segments: readonly FoundSegment[]; readonly versions: readonly FoundObject[] },
  digest: Digest,
  date: UnixMillis,
): History {
  const segments = withoutContained(found.segments.flatMap(({ object, bytes, records }) => segmentOf(object, bytes, records, digest)));
  const versions = found.versions.flatMap(({ object, bytes }): DocumentVersion[] => {
    const known = before.versions.find((version) => version.object === object);
    const at = stateOfName(object);
    if (known !== undefined || at === undefined) return known === undefined ? [] : [known];
    const around = segments.findLast(({ firstSeq, lastSeq }) => firstSeq <= at.seq && lastSeq >= at.seq);
    const id = object.slice(object.lastIndexOf("/") + 1);
    return [{ object, id, bytes: bytes.byteLength, sha256: digest(bytes), ...at, time: around?.lastTime ?? date }];
  });
  return {
    versions: versions.sort((a, b) => a.seq - b.seq),
    segments,
    through: Math.max(before.through, archivedThrough(found.segments)),
  };
}

/** Empty if the records hold no edits. */
function segmentOf(object: string, bytes: Uint8Array, records: readonly StoredRecord[], digest: Digest): Segment[] {
  const [seqs, first, last] = [seqsOf(records), records[0], records.at(-1)];
  return seqs === undefined || first === undefined || last === undefined
    ? []
    : [{ object, bytes: bytes.byteLength, sha256: digest(bytes), ...seqs, firstTime: first.time, lastTime: last.time }];
}

/** A segment that a later one contains may still be in the store. */
function withoutContained(segments: readonly Segment[]): Segment[] {
  const sorted = segments.toSorted((a, b) => a.firstSeq - b.firstSeq || b.lastSeq - a.lastSeq);
  return sorted.filter(({ lastSeq }, index) => !sorted.slice(0, index).some((before) => before.lastSeq >= lastSeq));
}
