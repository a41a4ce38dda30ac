/** Types a recorded session into a room. Each author is a separate person, and all type at the same time. */

import { setTimeout as sleep } from "node:timers/promises";

import type { Person } from "./person.ts";
import type { RecordedTrace } from "./traces.ts";

export type ReplayRate = { readonly editsPerTurn: number; readonly pauseMs: number; readonly unsavedMax: number };

/** `editsPerTurn` of each author go out every `pauseMs`; more wait while one has over `unsavedMax` unsaved. Asked anew each turn. */
export async function replay(trace: RecordedTrace, people: readonly Person[], pace: () => ReplayRate): Promise<void> {
  await Promise.all(
    trace.editsByAuthor.map(async (edits, author) => {
      const person = people[author]!;
      for (let next = 0; next < edits.length;) {
        const { editsPerTurn, pauseMs, unsavedMax } = pace();
        await sleep(pauseMs);
        if (person.room.unsavedEdits > unsavedMax) continue;
        for (const edit of edits.slice(next, next + editsPerTurn)) person.type(edit);
        next += editsPerTurn;
      }
    }),
  );
}
