/** Types a recorded session into a room. Each author is a separate person, and all type at the same time. */

import { setTimeout as sleep } from "node:timers/promises";

import type { Person } from "./person.ts";
import type { RecordedTrace } from "./traces.ts";

type ReplayRate = { readonly editsPerTurn: number; readonly pauseMs: number; readonly unsavedMax: number };

/**
 * Sends `editsPerTurn` edits of each author every `pauseMs`, and pauses an author who has more than `unsavedMax`
 * unsaved edits. The rate is read before each turn.
 */
export async function replay(trace: RecordedTrace, people: readonly Person[], rate: () => ReplayRate): Promise<void> {
  await Promise.all(
    trace.editsByAuthor.map(async (edits, author) => {
      const person = people[author]!;
      for (let next = 0; next < edits.length;) {
        const { editsPerTurn, pauseMs, unsavedMax } = rate();
        await sleep(pauseMs);
        if (person.room.unsavedEdits > unsavedMax) continue;
        for (const edit of edits.slice(next, next + editsPerTurn)) person.type(edit);
        next += editsPerTurn;
      }
    }),
  );
}
