/**
 * Brings one room back from what is left of it, with no service running: snapshots, versions, the segments of its
 * history, its log. Objects say by their names what they hold, so that they help even where all that named them is lost.
 * What cannot be had is counted and said; everything that can is in the document.
 */

import { type Checkpoint, isDeleted } from "../../shared/bus/checkpoint.ts";
import { NO_EPOCHS, withEpoch, withRecords } from "../../shared/bus/epoch-history.ts";
import { epochOf, headOf } from "../../shared/bus/record.ts";
import type { StoredRecord } from "../../shared/bus/stored-record.ts";
import type { Epoch, RoomKey, Seq, UnixMillis } from "../../shared/ids.ts";
import type { Segment, Version } from "./history.ts";
import { EMPTY_STATE } from "../merge.ts";
import type { Checkpoints, Digest, EditLog, Histories, Merging, ObjectStore, Unread } from "../ports.ts";
import { decodeSegment, seqsOf, type Taken, takenFrom } from "./segments.ts";
import { readVerified, writeVerified } from "../verified-write-host.ts";

export type RestorePorts = {
  readonly log: EditLog;
  readonly checkpoints: Checkpoints;
  readonly snapshots: ObjectStore;
  readonly histories: Histories;
  readonly history: ObjectStore;
  readonly merging: Merging;
  readonly digest: Digest;
};
export type RestoreDeps = { readonly newName: () => string; readonly wallNow: () => UnixMillis };
/** The room's objects in either store. */
export type RoomObjects = { readonly snapshots: readonly string[]; readonly history: readonly string[] };
export type RestoredRoom =
  /** Its checkpoint and the snapshot that it names are there; or it has never had any, and its log tells all. */
  | { readonly kind: "whole" }
  /** Made anew of what was left. `missing`: edits that nothing has. */
  | { readonly kind: "rebuilt"; readonly seq: Seq; readonly missing: number }
  /** For good: what a backup brought back of it is removed once a document service runs. */
  | { readonly kind: "deleted" }
  | { readonly kind: "superseded" };

const REASONS: Readonly<Record<Unread, string>> = {
  overran: " in time: raise COROOM_MERGE_MS_MAX",
  busy: ", for its thread died: give this command more memory",
  unreadable: ": Yjs does not take its edits",
};

type State = { readonly state: Uint8Array; readonly epoch: Epoch; readonly seq: Seq };
type Archived = { readonly object: string; readonly bytes: Uint8Array; readonly records: readonly StoredRecord[] };
/** `told`: the last seq of which the entry of the room's history speaks. */
type Left = { readonly objects: RoomObjects; readonly archived: readonly Archived[]; readonly told: number };
/** The newest state that is left, and the edits of which some may be behind it. */
type Reach = { readonly base: State; readonly taken: readonly Taken[]; readonly top: Seq; readonly streamSeq: number };

/** The entry of its history comes last: as long as there is no checkpoint of it, that entry alone may tell how far the room was. */
export async function restoreRoom(room: RoomKey, objects: RoomObjects, ports: RestorePorts, deps: RestoreDeps): Promise<RestoredRoom> {
  const { checkpoint, revision } = await ports.checkpoints.read(room);
  if (isDeleted(checkpoint)) return { kind: "deleted" };
  const { history } = await ports.histories.read(room);
  if ((await ports.log.end(room)).kind === "deleted" || history.deleted === true) {
    await ports.checkpoints.write(room, { deleted: true, time: deps.wallNow(), wiping: true }, revision);
    return { kind: "deleted" };
  }
  const archived = await readArchived(objects.history, ports);
  const told = Math.max(history.segments.at(-1)?.lastSeq ?? 0, history.versions.at(-1)?.seq ?? 0);
  const left = { objects, archived, told };
  const restored: RestoredRoom = (await isWhole(checkpoint, left, ports))
    ? { kind: "whole" }
    : await writeAnew(room, { checkpoint, revision }, await reachOf(room, checkpoint, left, ports), ports, deps);
  await restoreHistory(room, objects.history, archived, ports, deps);
  return restored;
}

async function isWhole(checkpoint: Checkpoint | undefined, { objects, archived, told }: Left, ports: RestorePorts): Promise<boolean> {
  if (checkpoint === undefined) return objects.snapshots.length === 0 && archived.length === 0 && told === 0;
  return (await readVerified(ports.snapshots, ports.digest, checkpoint.snapshot)) !== undefined;
}

/**
 * Where something goes further than the checkpoint, the checkpoint's place in the log does not go with it: whoever read on
 * from there would find edits that are covered, and take them for a hole. Then all that the log has is taken in.
 */
async function reachOf(room: RoomKey, checkpoint: Checkpoint | undefined, left: Left, ports: RestorePorts): Promise<Reach> {
  const { objects, archived, told } = left;
  const base = await newestState([...objects.snapshots, ...objects.history], ports);
  const kept = archived.flatMap(({ records }) => takenFrom(records));
  const ahead = Math.max(base.seq, told, highest(kept, headOfTaken));
  const place = ahead > (checkpoint?.seq ?? 0) ? undefined : checkpoint?.streamSeq;
  const logged = await recordsOf(ports.log, room, place);
  const taken = [...kept, ...takenFrom(logged)];
  return {
    base,
    taken,
    top: Math.max(checkpoint?.seq ?? 0, ahead, highest(taken, headOfTaken)) as Seq,
    streamSeq: place ?? Math.max(1, checkpoint?.streamSeq ?? 0, highest(logged, streamSeqOf), throughOf(archived)),
  };
}

async function writeAnew(
  room: RoomKey,
  { checkpoint, revision }: { readonly checkpoint: Checkpoint | undefined; readonly revision: number },
  { base, taken, top, streamSeq }: Reach,
  ports: RestorePorts,
  deps: RestoreDeps,
): Promise<RestoredRoom> {
  const { payloads, missing } = after(base.seq, top, taken);
  const merged = await ports.merging.merge(base.state, payloads);
  if (typeof merged === "string") throw new Error(`the document of room ${room} could not be merged${REASONS[merged]}`);

  const epoch = Math.max(
    1,
    checkpoint?.epoch ?? 0,
    base.epoch,
    highest(taken, ({ record }) => epochOf(record)),
  ) as Epoch;
  const snapshot = await writeVerified(ports.snapshots, ports.digest, `${room}/${epoch}-${top}-${deps.newName()}`, merged.state);
  if (snapshot === undefined) throw new Error(`a snapshot of room ${room} reads back other than it was written: look into the store`);
  const leftOut = (checkpoint?.leftOut ?? 0) + missing + merged.refused;
  const inOrder = taken.map(({ record }) => record).sort((a, b) => a.edits.firstSeq - b.edits.firstSeq);
  const epochs = withRecords(checkpoint?.epochs ?? NO_EPOCHS, inOrder);
  const made: Checkpoint = {
    epoch,
    seq: top,
    streamSeq,
    time: deps.wallNow(),
    epochs: withEpoch(epochs, epoch, top),
    clients: checkpoint?.clients ?? [],
    ...(leftOut > 0 ? { leftOut } : {}),
    snapshot,
  };
  const write = await ports.checkpoints.write(room, made, revision);
  return write.kind === "written" ? { kind: "rebuilt", seq: top, missing } : { kind: "superseded" };
}

/**
 * Names every segment and version that is there, where the entry does not name just these: what it does not name would be
 * removed as nobody's. Names that people gave are lost where the entry is. A version is as old as the segment that it
 * lies in; one without is taken for new, so that it is kept for as long as any.
 */
async function restoreHistory(
  room: RoomKey,
  names: readonly string[],
  archived: readonly Archived[],
  { histories, history: store, digest }: RestorePorts,
  { wallNow }: Pick<RestoreDeps, "wallNow">,
): Promise<void> {
  const { history, revision } = await histories.read(room);
  const named = new Set([...history.versions, ...history.segments].map(({ object }) => object));
  const fits = named.size === names.length && names.every((name) => named.has(name));
  if (names.length === 0 || (revision > 0 && fits)) return;
  const found = archived.flatMap(({ object, bytes, records }): Segment[] => {
    const [seqs, first, last] = [seqsOf(records), records[0], records.at(-1)];
    return seqs === undefined || first === undefined || last === undefined
      ? []
      : [{ object, bytes: bytes.byteLength, sha256: digest(bytes), ...seqs, firstTime: first.time, lastTime: last.time }];
  });
  const segments = withoutTakenUp(found);
  const versions: Version[] = [];
  for (const object of names) {
    const at = stateNamed(object);
    const bytes = at === undefined ? undefined : await store.read(object);
    const before = segments.findLast(({ firstSeq, lastSeq }) => at !== undefined && firstSeq <= at.seq && lastSeq >= at.seq);
    if (at !== undefined && bytes !== undefined) {
      const known = history.versions.find((version) => version.object === object);
      versions.push(
        known ?? {
          object,
          id: object.slice(object.lastIndexOf("/") + 1),
          bytes: bytes.byteLength,
          sha256: digest(bytes),
          ...at,
          time: before?.lastTime ?? wallNow(),
        },
      );
    }
  }
  const through = Math.max(history.through, throughOf(archived));
  await histories.write(room, { versions: versions.sort((a, b) => a.seq - b.seq), segments, through }, revision);
}

function headOfTaken({ record }: Taken): Seq {
  return headOf(record);
}

function throughOf(archived: readonly Archived[]): number {
  return highest(archived, ({ records }) => highest(records, streamSeqOf));
}

function streamSeqOf({ streamSeq }: StoredRecord): number {
  return streamSeq;
}

/** 0 of none. A room may have more records than a call, such as of `Math.max`, takes arguments. */
function highest<Item>(items: readonly Item[], numberOf: (item: Item) => number): number {
  return items.reduce((most, item) => Math.max(most, numberOf(item)), 0);
}

/** One that a later one has taken up may be there still. */
function withoutTakenUp(segments: readonly Segment[]): Segment[] {
  const sorted = segments.toSorted((a, b) => a.firstSeq - b.firstSeq || b.lastSeq - a.lastSeq);
  return sorted.filter(({ lastSeq }, index) => !sorted.slice(0, index).some((before) => before.lastSeq >= lastSeq));
}

async function readArchived(names: readonly string[], { history }: RestorePorts): Promise<Archived[]> {
  const archived: Archived[] = [];
  for (const object of names.filter((name) => name.includes("/edits-"))) {
    const bytes = await history.read(object);
    const records = bytes === undefined ? undefined : decodeSegment(bytes);
    if (bytes !== undefined && records !== undefined && records.length > 0) archived.push({ object, bytes, records });
  }
  return archived;
}

/** The newest that can be read as a document; nothing where none can. */
async function newestState(names: readonly string[], { snapshots, history, merging }: RestorePorts): Promise<State> {
  const states = names.flatMap((object) => {
    const at = stateNamed(object);
    return at === undefined ? [] : [{ object, ...at }];
  });
  for (const { object, epoch, seq } of states.sort((a, b) => b.seq - a.seq || b.epoch - a.epoch)) {
    const state = await (object.includes("/version-") ? history : snapshots).read(object);
    if (state !== undefined && (await isDocument(object, state, merging))) return { state, epoch, seq };
  }
  return { state: EMPTY_STATE, epoch: 0 as Epoch, seq: 0 as Seq };
}

/** False: damaged, and an older one may do. Throws where that cannot be told. */
async function isDocument(object: string, state: Uint8Array, merging: Merging): Promise<boolean> {
  const read = await merging.merge(state, []);
  if (read === "overran" || read === "busy") {
    throw new Error(`whether ${object} is whole cannot be told${REASONS[read]}; or, where it is damaged, remove it from its store`);
  }
  return read !== "unreadable";
}

/** `{room}/{epoch}-{seq}-…`, or `{room}/version-{epoch}-{seq}-…`. */
function stateNamed(object: string): { epoch: Epoch; seq: Seq } | undefined {
  const [, epoch, seq] = /\/(?:version-)?(\d+)-(\d+)-/.exec(object) ?? [];
  return epoch === undefined || seq === undefined ? undefined : { epoch: Number(epoch) as Epoch, seq: Number(seq) as Seq };
}

/** `through` undefined: all there are. */
async function recordsOf(log: EditLog, room: RoomKey, through: number | undefined): Promise<StoredRecord[]> {
  const records: StoredRecord[] = [];
  for await (const record of log.read(room, 0, through ?? Number.MAX_SAFE_INTEGER)) {
    records.push({ ...record, bytes: record.bytes.slice() });
  }
  return records;
}

/** Whatever anybody has of a seq: should two have different edits of one, the document takes both. */
function after(seq: Seq, top: Seq, taken: readonly Taken[]): { payloads: Uint8Array[]; missing: number } {
  const payloads: Uint8Array[] = [];
  const found = new Set<number>();
  for (const { record } of taken) {
    for (const [index, { payload }] of record.edits.edits.entries()) {
      if (record.edits.firstSeq + index <= seq) continue;
      found.add(record.edits.firstSeq + index);
      payloads.push(payload);
    }
  }
  return { payloads, missing: top - seq - found.size };
}
