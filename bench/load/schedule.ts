/** When each of many typists strikes a key: drawn from the seed, so that every run of a phase sends the same edits. */

import { Prng } from "../../shared/prng.ts";

export type Stroke<Writer> = { readonly dueMs: number; readonly writer: Writer };

/** In order of time. A writer's pauses lie between half and one and a half times their mean. */
export function typingSchedule<Writer>(
  writers: readonly Writer[],
  options: { editsPerSecond: number; durationMs: number; seed: number },
): Stroke<Writer>[] {
  const prng = new Prng(options.seed);
  const meanMs = 1000 / options.editsPerSecond;
  const strokes: Stroke<Writer>[] = [];
  for (const writer of writers) {
    for (let dueMs = prng.unit() * meanMs; dueMs < options.durationMs; dueMs += meanMs * (0.5 + prng.unit()))
      strokes.push({ dueMs, writer });
  }
  return strokes.sort((a, b) => a.dueMs - b.dueMs);
}
