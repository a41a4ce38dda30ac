/**
 * Compares the unacknowledged edits with the stored ones and plans what to write. It looks only at the edits, so after
 * any merge, cut, numbering or acknowledgement the next write makes the store correct. Rules JOU1 to JOU4.
 */

import type { ClientKey } from "../../shared/ids.ts";
import type { UnsentEdit, SentEdit } from "../room/unsent.ts";
import type { KeptEdit, SentAs } from "./edit-store.ts";

/** `sent`: each with the key and counter with which it was sent. `unsent`: in order. */
export type Pending = { readonly sent: readonly (readonly [UnsentEdit, SentAs])[]; readonly unsent: readonly UnsentEdit[] };

export type JournalEntry = Pick<UnsentEdit, "payload" | "made">;

type Row = { readonly place: number; isKept: boolean };

export class Journal {
  #rows = new Map<JournalEntry, Row>();
  /** Places that may have been written and are no longer needed. */
  #dropped = new Set<number>();
  #lastPlace = 0;

  /** The content that the store already has. */
  begin(edits: readonly (readonly [JournalEntry, number])[]): void {
    for (const [edit, place] of edits) {
      this.#rows.set(edit, { place, isKept: true });
      this.#lastPlace = Math.max(this.#lastPlace, place);
    }
  }

  /** A write that `kept` does not confirm is planned again, with the same places. */
  plan({ sent, unsent }: Pending): { put: readonly KeptEdit[]; drop: readonly number[] } {
    const rows = new Map<JournalEntry, Row>();
    const put: KeptEdit[] = [];
    const keepAt = (row: Row, { payload, made }: JournalEntry, sentAs: SentAs | undefined): void => {
      if (!row.isKept) put.push({ place: row.place, payload, made, sent: sentAs });
    };
    for (const [edit, sentAs] of sent) {
      const row = this.#rows.get(edit) ?? this.#newRow();
      rows.set(edit, row);
      keepAt(row, edit, sentAs);
    }
    let last = 0;
    for (const edit of unsent) {
      const before = this.#rows.get(edit);
      // The edit now comes after others, so it and all later edits get later places.
      const row = before !== undefined && before.place > last ? before : this.#newRow();
      rows.set(edit, row);
      keepAt(row, edit, undefined);
      last = row.place;
    }
    for (const [edit, { place }] of this.#rows) if (rows.get(edit)?.place !== place) this.#dropped.add(place);
    this.#rows = rows;
    return { put, drop: [...this.#dropped] };
  }

  /** The last plan is stored. */
  kept(): void {
    for (const row of this.#rows.values()) row.isKept = true;
    this.#dropped.clear();
  }

  /** The store may have lost everything. */
  lost(): void {
    for (const row of this.#rows.values()) row.isKept = false;
  }

  #newRow(): Row {
    this.#lastPlace += 1;
    return { place: this.#lastPlace, isKept: false };
  }
}

/** Edits sent with one client key. Their counters have no gap, and all earlier ones are committed. */
export type WriterEdits = { readonly clientKey: ClientKey; readonly sent: readonly SentEdit[] };

export type Inheritance = {
  readonly numberings: readonly WriterEdits[];
  readonly unsent: readonly UnsentEdit[];
  /** The place of each edit in the store. */
  readonly places: readonly (readonly [JournalEntry, number])[];
};

/**
 * Takes over the edits of earlier pages. Edits that were sent are sent again unchanged, one numbering after the other.
 * Edits that were never sent become edits of this page. A new edit never uses an inherited numbering, because the
 * earlier page may have used more counters than it stored. Rules INH1 to INH3.
 */
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
    places.push([sentEdit, place]); // Edits sent under one client key. Their counters have no hole, and all earlier ones are committed.
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
