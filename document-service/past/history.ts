/**
 * What is kept of a room's past beside its log, and what of it leads to which moment. Two kinds of objects: *versions*,
 * the document's state as it was at a seq, and *segments*, the records that were trimmed from the log, whole and in
 * order. A state at any seq between is the version before it with the edits up to it. One entry in the store names them
 * all, and is replaced by revision: an object that no entry names is nobody's.
 *
 * A segment takes up the ones before it while they are small: however long somebody types, there are few.
 */

import { z } from "zod";

import type { Epoch, Seq, UnixMillis } from "../../shared/ids.ts";

const seq = z
  .int()
  .nonnegative()
  .transform((number) => number as Seq);
const time = z.number().transform((number) => number as UnixMillis);
const object = z.object({ object: z.string(), bytes: z.int().nonnegative(), sha256: z.string() });

/** `name`: somebody gave it one; it stays until somebody takes it away. `time`: when it was made, by the service's date. */
const Version = object.extend({
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
/** `time`: by the log's clock. Records of owners alone have no seq: then `lastSeq` is the one before `firstSeq`. */
const Segment = object.extend({ firstSeq: seq, lastSeq: seq, firstTime: time, lastTime: time });
/**
 * Both from the oldest on. `deleted`: the room is, and what is named still is to be removed; nothing is added any
 * more. `through`: the stream sequence up to which the room's records went into segments, whether those are kept
 * still or not.
 */
export const History = z.object({
  versions: z.array(Version),
  segments: z.array(Segment),
  through: z.int().nonnegative(),
  deleted: z.literal(true).optional(),
});

export type Version = z.output<typeof Version>;
export type Segment = z.output<typeof Segment>;
export type History = z.output<typeof History>;

export const NO_HISTORY: History = { versions: [], segments: [], through: 0 };

export type HistoryPolicy = {
  /** 0: no history is kept. */
  readonly historyMsMax: number;
  readonly historyBytesMax: number;
  readonly historyVersionMsMin: number;
  readonly historyVersionEditsMax: number;
  readonly historyVersionsMax: number;
  readonly historyNamedMax: number;
  readonly historySegmentBytesMax: number;
  readonly historySegmentMsMin: number;
};

/** `versionedMs`: for how long there has been the newest version; where there is none, for how long the room has been looked at. */
export function isVersionDue(
  { versions }: History,
  now: { readonly seq: Seq; readonly versionedMs: number },
  policy: HistoryPolicy,
): boolean {
  const edits = now.seq - (versions.at(-1)?.seq ?? 0);
  if (policy.historyMsMax === 0 || edits <= 0) return false;
  return edits >= policy.historyVersionEditsMax || now.versionedMs >= policy.historyVersionMsMin;
}

/** A segment spans no more of the time for which it is kept than this: as a whole it goes so much later than its oldest edit could. */
const SPANS_PER_RETENTION = 10;

/** The last segments that a new one takes up. Each takes up no more than twice its own, so a record is rewritten a few times only. */
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

export function withVersion(history: History, version: Version): History {
  return { ...history, versions: [...history.versions, version].sort((a, b) => a.seq - b.seq || a.time - b.time) };
}

/** What a state is made of: a version, or nothing, and the edits after it: in these segments, and then in the log. */
export type Reading = { readonly base: Version | undefined; readonly segments: readonly Segment[] };

/** The ways to a seq, the shortest first: each lacks nothing that should be in segments. */
export function waysTo({ versions, segments }: History, target: Seq): readonly Reading[] {
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

/** The first seq from which on every seq can be read, if the log has what follows. Undefined: nothing is kept yet. */
export function readableFrom({ versions, segments }: History): Seq | undefined {
  const [first] = segments;
  if (first === undefined) return versions[0]?.seq;
  let from = first.firstSeq <= 1 ? (0 as Seq) : versions.find(({ seq }) => seq >= first.firstSeq - 1)?.seq;
  segments.forEach(({ firstSeq }, index) => {
    const before = segments[index - 1];
    if (before !== undefined && firstSeq > before.lastSeq + 1) from = versions.find(({ seq }) => seq >= firstSeq - 1)?.seq;
  });
  return from;
}

/**
 * What is kept at this date. Named versions stay. Of the rest, what is older than may be goes, then the oldest while
 * there are too many bytes: segments with the versions before their end, and where none is left versions alone, but for
 * the newest: without it the next would be due at once.
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

/** Past the limit every second unnamed version of the older half goes: the past becomes coarser, never shorter. */
function thinned(versions: readonly Version[], max: number): Version[] {
  const unnamed = versions.filter(({ name }) => name === undefined);
  if (unnamed.length <= max) return [...versions];
  const gone = new Set(unnamed.slice(0, unnamed.length >> 1).filter((_, index) => index % 2 === 1));
  return versions.filter((version) => !gone.has(version));
}
