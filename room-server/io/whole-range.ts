/**
 * A range of a room's log, whole. Any of the stream's replicas may answer, and one that is behind shows less, never
 * something else: the rest is read in a moment, or not at all. Whoever took less for all there is would go on with a
 * room without what its writers said last.
 */

import type { Clock } from "../../shared/clock.ts";
import { pause } from "../../shared/pause.ts";

const PAUSE_MS_MIN = 5;
/** Each twice as long as the one before: 1.3 s together. */
const PAUSES_MAX = 8;

/**
 * What stands in `after < streamSeq <= through`. `readOn`: all that a replica shows behind a record. `through`: the log
 * has that record, or one behind it. Throws when neither shows.
 */
export async function* wholeRange<Stored extends { readonly streamSeq: number }>(
  readOn: (after: number) => AsyncIterable<Stored>,
  after: number,
  through: number,
  clock: Clock,
): AsyncIterable<Stored> {
  let read = after;
  for (let pauses = 0; read < through; pauses++) {
    for await (const stored of readOn(read)) {
      read = stored.streamSeq;
      if (read <= through) yield stored;
      if (read >= through) return;
    }
    if (pauses === PAUSES_MAX)
      throw new Error(
        `the log shows nothing behind ${read}, and had something at ${through} or behind it: is a replica of its stream far behind?`,
      );
    await pause(clock, PAUSE_MS_MIN * 2 ** pauses);
  }
}
