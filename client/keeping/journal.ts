/**
 * Which of the edits that wait are kept on this device, and what has to be written so that exactly those are which
 * wait now. Goes by the edits themselves, not by what happened to them: whatever merges, cuts, numbers or settles
 * them, the next write puts it right. Rules JOU1 to JOU4.
 */

import type { KeptEdit, SentAs } from "./edit-store.ts";
import type { UnsentEdit } from "../room/waiting-edits.ts";

/** `sent`: with what each goes out as. `unsent`: in order. */
export type Pending = { readonly sent: readonly (readonly [UnsentEdit, SentAs])[]; readonly unsent: readonly UnsentEdit[] };

export type JournalEntry = Pick<UnsentEdit, "payload" | "made">;

type Row = { readonly place: number; isKept: boolean };

export class Journal {
  #rows = new Map<JournalEntry, Row>();
  /** Written perhaps, and no longer wanted. */
  #dropped = new Set<number>();
  #lastPlace = 0;

  /** What is kept already. */
  begin(edits: readonly (readonly [JournalEntry, number])[]): void {
    for (const [edit, place] of edits) {
      this.#rows.set(edit, { place, isKept: true });
      this.#lastPlace = Math.max(this.#lastPlace, place);
    }
  }

  /** A write that is not confirmed by `kept` is planned again, to the same places. */
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
      // Before others now: to a later place, and those after it too.
      const row = before !== undefined && before.place > last ? before : this.#newRow();
      rows.set(edit, row);
      keepAt(row, edit, undefined);
      last = row.place;
    }
    for (const [edit, { place }] of this.#rows) if (rows.get(edit)?.place !== place) this.#dropped.add(place);
    this.#rows = rows;
    return { put, drop: [...this.#dropped] };
  }

  /** What was planned last is written. */
  kept(): void {
    for (const row of this.#rows.values()) row.isKept = true;
    this.#dropped.clear();
  }

  /** Nothing of it may be there any more. */
  lost(): void {
    for (const row of this.#rows.values()) row.isKept = false;
  }

  #newRow(): Row {
    this.#lastPlace += 1;
    return { place: this.#lastPlace, isKept: false };
  }
}
