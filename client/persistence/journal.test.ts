import fc from "fast-check";
import { expect, test } from "vitest";

import type { ClientKey, Seq } from "../../shared/ids.ts";
import type { KeptEdit, SentAs } from "./edit-store.ts";
import { Journal, type JournalEntry, inherit } from "./journal.ts";

const KEY = "key-of-a-page" as ClientKey;
const edit = (value: number): JournalEntry => ({ payload: new Uint8Array([value]), made: 1 });
const as = (counter: number, clientKey = KEY): SentAs => ({ clientKey, counter, parentSeq: 0 as Seq });
const kept = (place: number, value: number, sent?: SentAs): KeptEdit => ({ place, ...edit(value), sent });

test("[JOU1] the plan writes new edits, deletes settled ones and leaves the rest", () => {
  const [a, b, c] = [edit(1), edit(2), edit(3)];
  const journal = new Journal();
  expect(journal.plan({ sent: [], unsent: [a, b] })).toEqual({ put: [kept(1, 1), kept(2, 2)], drop: [] });
  journal.kept();
  expect(journal.plan({ sent: [[edit(1), as(1)]], unsent: [b, c] })).toEqual({ put: [kept(3, 1, as(1)), kept(4, 3)], drop: [1] });
  journal.kept();
  expect(journal.plan({ sent: [], unsent: [] }).drop.toSorted()).toEqual([2, 3, 4]);
});

test("[JOU2] a write with unknown outcome is planned again, to the same places", () => {
  const [a, b] = [edit(1), edit(2)];
  const journal = new Journal();
  journal.plan({ sent: [], unsent: [a] });
  expect(journal.plan({ sent: [], unsent: [a, b] }).put).toEqual([kept(1, 1), kept(2, 2)]);
  expect(journal.plan({ sent: [], unsent: [b] })).toEqual({ put: [kept(2, 2)], drop: [1] });
  expect(journal.plan({ sent: [], unsent: [] }).drop).toEqual([1, 2]);
});

test("[JOU3] after any writes, stored or lost, the store holds exactly the unsettled edits, in order", () => {
  const pool = Array.from({ length: 12 }, (_, value) => edit(value));
  const step = fc.record({ unsent: fc.shuffledSubarray(pool), isKept: fc.boolean(), isWritten: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 12 }), (steps) => {
      const journal = new Journal();
      const rows = new Map<number, KeptEdit>();
      for (const { unsent, isKept, isWritten } of [...steps, { ...steps.at(-1)!, isKept: true, isWritten: true }]) {
        const { put, drop } = journal.plan({ sent: [], unsent });
        if (isWritten || isKept) {
          for (const place of drop) rows.delete(place);
          for (const row of put) rows.set(row.place, row);
        }
        if (isKept) journal.kept(); // Otherwise the write may have happened without a report.
      }
      const inOrder = [...rows.values()].sort((a, b) => a.place - b.place).map(({ payload }) => payload[0]);
      expect(inOrder).toEqual(steps.at(-1)!.unsent.map(({ payload }) => payload[0]));
    }),
  );
});

test("[INH1] recovered edits that were sent are grouped by client key in counter order; unsent edits keep their own order", () => {
  const other = "key-of-another" as ClientKey;
  const { numberings, unsent } = inherit([kept(5, 9), kept(1, 2, as(8)), kept(2, 1, as(7)), kept(3, 4, as(3, other)), kept(4, 8)]);
  expect(numberings.map(({ clientKey, sent }) => [clientKey, ...sent.map(({ counter, payload }) => `${counter}:${payload}`)])).toEqual([
    [KEY, "7:1", "8:2"],
    [other, "3:4"],
  ]);
  expect(unsent.map(({ payload }) => `${payload}`)).toEqual(["8", "9"]);
});

test("[INH2] an edit that is stored twice is recovered once, and the next write deletes the copy", () => {
  const { numberings, unsent, places } = inherit([kept(1, 1, as(1)), kept(2, 1, as(1))]);
  expect(numberings.map(({ sent }) => sent.length)).toEqual([1]);
  const journal = new Journal();
  journal.begin(places);
  const { sent } = numberings[0]!;
  expect(journal.plan({ sent: [[sent[0]!, as(1)]], unsent })).toEqual({ put: [], drop: [2] });
});

test("[INH3] a gap in the counters separates the edits: those on either side were never sent together", () => {
  expect(inherit([kept(1, 1, as(1)), kept(2, 3, as(3))]).numberings.map(({ sent }) => sent.map(({ counter }) => counter))).toEqual([
    [1],
    [3],
  ]);
});
