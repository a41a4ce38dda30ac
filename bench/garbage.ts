/** The garbage of a Node process, from the collections that `--trace-gc` writes into its log. */

/** Sizes in MB: of the heap's objects before and after. `at`: milliseconds since the start of the process. */
type Collection = { readonly at: number; readonly before: number; readonly after: number };

/** A process has one heap for each of its threads. The first one that collects is the main thread's. */
const LINE = /^\[\d+:(0x[0-9a-f]+)\]\s+(\d+) ms: .*? ([\d.]+) \([\d.]+\) -> ([\d.]+) \([\d.]+\) MB/gm;
const BYTES_PER_MB = 1024 ** 2;

/**
 * Bytes per second that the main thread allocates, between the first and the last collection in a part of the log.
 * `from`: the length of the log at the beginning of the part. NaN: fewer than two collections.
 */
export function garbagePerSecond(log: string, from: number): number {
  const all = [...log.matchAll(LINE)];
  const main = all[0]?.[1];
  const collections = all
    .filter(({ index, 1: heap }) => index >= from && heap === main)
    .map(([, , at, before, after]): Collection => ({ at: Number(at), before: Number(before), after: Number(after) }));
  const allocated = collections.slice(1).reduce((sum, { before }, index) => sum + before - collections[index]!.after, 0);
  const ms = (collections.at(-1)?.at ?? 0) - (collections[0]?.at ?? 0);
  return (BYTES_PER_MB * allocated) / (ms / 1_000);
}
