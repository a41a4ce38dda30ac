/**
 * The stored history of a room in addition to its log, and how the state at a moment is read from it. There are two
 * kinds of objects. A *version* is the document's state at a seq. A *segment* holds records that were trimmed from the
 * log, complete and in order. A state at a seq between versions is the version before it with the edits up to it. One
 * entry in the store names all objects and is replaced by revision. An object that no entry names is an orphan.
 *
 * A new segment absorbs the segments before it while they are small, so even a long history has few segments.
 */

import { z } from "zod";

import type { Epoch, Seq, UnixMillis } from "../../shared/ids.ts";

const seq = z
  .int()
  .nonnegative()
  .transform((number) => number as Seq);
const time = z.number().transform((number) => number as UnixMillis);
const object = z.object({ object: z.string(), bytes: z.int().nonnegative(), sha256: z.string() });

/**
 * `name`: given by a person; a named version stays until a person removes it. `time`: the service's date when the
 * version was made.
 */
const DocumentVersion = object.extend({
  id: z.string(),
  epoch: z
    .int()
    .positive()
    .transform((number) => number as Epoch),
  seq,
  time,
  name: z.string().optional(),
  leftOut: z.int().nonnegative().optional(),
});
/** `time`: by the log's clock. Records without edits have no seq; `lastSeq` is then the seq before `firstSeq`. */
const Segment = object.extend({ firstSeq: seq, lastSeq: seq, firstTime: time, lastTime: time });
/**
 * Both lists begin with the oldest. `deleted`: the room is deleted, named objects are still to be removed, and nothing
 * is added. `through`: the stream sequence up to which records went into segments, even if those are removed by now.
 */
export const History = z.object({
  versions: z.array(DocumentVersion),
  segments: z.array(Segment),
  through: z.int().nonnegative(),
  deleted: z.literal(true).optional(),
});

export type DocumentVersion = z.output<typeof DocumentVersion>;
export type Segment = z.output<typeof Segment>;
export type History = z.output<typeof History>;

export const NO_HISTORY: History = { versions: [], segments: [], through: 0 };

export type HistoryPolicy = {
  /** 0 keeps no history. */
  readonly historyMsMax: number;
  readonly historyBytesMax: number;
  readonly historyVersionMsMin: number;
  readonly historyVersionEditsMax: number;
  readonly historyVersionsMax: number;
  readonly historyNamedMax: number;
  readonly historySegmentBytesMax: number;
  readonly historySegmentMsMin: number;
};

/** `versionedMs`: the age of the newest version; without a version, the time since the room was opened here. */
export function isVersionDue(
  { versions }: History,
  now: { readonly seq: Seq; readonly versionedMs: number },
  policy: HistoryPolicy,
): boolean {
  const edits = now.seq - (versions.at(-1)?.seq ?? 0);
  if (policy.historyMsMax === 0 || edits <= 0) return false;
  return edits >= policy.historyVersionEditsMax || now.versionedMs >= policy.historyVersionMsMin;
}

/**
 * A segment spans at most this fraction of the retention time. A segment is removed as a whole, so its oldest edit is
 * kept longer by up to this time.
 */
const SPANS_PER_RETENTION = 10;

/**
 * The last segments that a new one absorbs. Each step absorbs at most twice the bytes so far, so a record is rewritten
 * only a few times.
 */
export function segmentsToTakeUp(
  { segments }: History,
  { bytes, time }: { readonly bytes: number; readonly time: UnixMillis },
  { historySegmentBytesMax, historyMsMax }: HistoryPolicy,
): readonly Segment[] {
  let [first, sum] = [segments.length, bytes];
  const fits = (before: Segment) =>
    before.bytes <= 2 * sum &&
    before.bytes + sum <= historySegmentBytesMax &&
    time - before.firstTime <= historyMsMax / SPANS_PER_RETENTION;
  for (let before = segments[first - 1]; before !== undefined && fits(before); before = segments[first - 1]) {
    first -= 1;
    sum += before.bytes;
  }
  return segments.slice(first);
}

export function withVersion(history: History, version: DocumentVersion): History {
  return { ...history, versions: [...history.versions, version].sort((a, b) => a.seq - b.seq || a.time - b.time) };
}

export function objectsOf({ versions, segments }: History): string[] {
  return [...versions, ...segments].map(({ object }) => object);
}

export function bytesOfHistory({ versions, segments }: History): number {
  return [...versions, ...segments].reduce((sum, { bytes }) => sum + bytes, 0);
}

/** The parts of a state: a version or none, then the edits after it in these segments, and then in the log. */
export type HistoryPath = { readonly base: DocumentVersion | undefined; readonly segments: readonly Segment[] };

/** The paths to a seq, the shortest first. No path lacks an edit that should be in segments. */
export function pathsTo({ versions, segments }: History, target: Seq): readonly HistoryPath[] {
  const bases = [...versions.filter(({ seq }) => seq <= target).reverse(), undefined];
  return bases.flatMap((base) => {
    const needed = base?.seq === target ? [] : segments.filter(({ firstSeq, lastSeq }) => lastSeq > (base?.seq ?? 0) && firstSeq <= target);
    let reached = base?.seq ?? 0;
    for (const { firstSeq, lastSeq } of needed) {
      if (firstSeq > reached + 1) return [];
      reached = Math.max(reached, lastSeq) as Seq;
    }
    return [{ base, segments: needed }];
  });
}

/**
 * The first seq from which every later seq can be read, if the log has the rest. Undefined: only what the log contains.
 * In a young room the log contains everything, and the first named version must not hide what is before it.
 */
export function readableFrom({ versions, segments, through }: History): Seq | undefined {
  const [first] = segments;
  if (first === undefined) return through === 0 ? undefined : versions[0]?.seq;
  let from = first.firstSeq <= 1 ? (0 as Seq) : versions.find(({ seq }) => seq >= first.firstSeq - 1)?.seq;
  segments.forEach(({ firstSeq }, index) => {
    const before = segments[index - 1];
    if (before !== undefined && firstSeq > before.lastSeq + 1) from = versions.find(({ seq }) => seq >= firstSeq - 1)?.seq;
  });
  return from;
}

/**
 * The parts of the history that are kept at this date. Named versions are always kept. First, everything older than the
 * maximum age is dropped. Then, while there are too many bytes, the oldest part is dropped: a segment with the versions
 * before its end, and after the last segment single versions. The newest version is kept, because without it the next
 * one would be due at once.
 */
export function retained(
  history: History,
  now: UnixMillis,
  policy: HistoryPolicy,
): { readonly history: History; readonly dropped: readonly string[] } {
  const since = now - policy.historyMsMax;
  let segments = history.segments.filter(({ lastTime }) => lastTime >= since);
  const bytesOf = (objects: readonly { bytes: number }[]) => objects.reduce((sum, { bytes }) => sum + bytes, 0);
  const versionsFrom = (from: number) => history.versions.filter((version) => version.name !== undefined || version.time >= from);
  let versions = versionsFrom(since);
  for (let [first] = segments; first !== undefined && bytesOf(segments) + bytesOf(versions) > policy.historyBytesMax; [first] = segments) {
    segments = segments.slice(1);
    versions = versionsFrom(first.lastTime);
  }
  while (bytesOf(segments) + bytesOf(versions) > policy.historyBytesMax) {
    const oldest = versions.slice(0, -1).find(({ name }) => name === undefined);
    if (oldest === undefined) break;
    versions = versions.filter((version) => version !== oldest);
  }
  versions = thinned(versions, policy.historyVersionsMax);
  const kept = new Set([...versions, ...segments].map(({ object }) => object));
  return {
    history: { ...history, versions, segments },
    dropped: [...history.versions, ...history.segments].flatMap(({ object }) => (kept.has(object) ? [] : [object])),
  };
}

/** Above the limit, every second unnamed version of the older half is dropped. So the history becomes coarser but not shorter. */
function thinned(versions: readonly DocumentVersion[], max: number): DocumentVersion[] {
  const unnamed = versions.filter(({ name }) => name === undefined);
  if (unnamed.length <= max) return [...versions];
  const gone = new Set(unnamed.slice(0, unnamed.length >> 1).filter((_, index) => index % 2 === 1));
  return versions.filter((version) => !gone.has(version));
}
