/**
 * What earlier pages left behind, as a page takes it over: what they sent goes out again as it was, one numbering
 * after the other; what they never sent, as edits of this page. New edits never take an inherited numbering: a page
 * that is thought gone may have used more of it than was kept. Rules INH1 to INH3.
 */

import type { ClientKey } from "../../shared/ids.ts";
import type { KeptEdit } from "./edit-store.ts";
import type { JournalEntry } from "./journal.ts";
import type { SentEdit, UnsentEdit } from "../room/waiting-edits.ts";

/** Edits sent under one client key; their counters follow each other, and all before them are committed. */
export type Numbering = { readonly clientKey: ClientKey; readonly sent: readonly SentEdit[] };

export type Inheritance = {
  readonly numberings: readonly Numbering[];
  readonly unsent: readonly UnsentEdit[];
  /** Where each of them is kept on this device. */
  readonly places: readonly (readonly [JournalEntry, number])[];
};

export function inherit(kept: readonly KeptEdit[]): Inheritance {
  const unsent: UnsentEdit[] = [];
  const places: [JournalEntry, number][] = [];
  const byKey = new Map<ClientKey, Map<number, SentEdit>>();
  for (const { place, payload, made, sent } of [...kept].sort((a, b) => a.place - b.place)) {
    const edit = { payload, made };
    if (sent === undefined) {
      unsent.push(edit);
      places.push([edit, place]);
      continue;
    }
    const { clientKey, client, counter, parentSeq } = sent;
    const sentEdit: SentEdit = { ...edit, client, counter, parentSeq };
    const numbered = byKey.get(clientKey) ?? new Map<number, SentEdit>();
    byKey.set(clientKey, numbered);
    if (!numbered.has(counter)) numbered.set(counter, sentEdit);
    places.push([sentEdit, place]); // One that is there twice is dropped with the next write.
  }
  const numberings = [...byKey].flatMap(([clientKey, numbered]) => runsOf([...numbered.values()]).map((sent) => ({ clientKey, sent })));
  return { numberings, unsent, places };
}

function runsOf(edits: readonly SentEdit[]): SentEdit[][] {
  const runs: SentEdit[][] = [];
  for (const edit of [...edits].sort((a, b) => a.counter - b.counter)) {
    const run = runs.at(-1);
    if (run !== undefined && run.at(-1)!.counter + 1 === edit.counter) run.push(edit);
    else runs.push([edit]);
  }
  return runs;
}
