import fc from "fast-check";
import { expect, test } from "vitest";
import * as Y from "yjs";

import { conflictBomb } from "../shared/testing/yjs-bombs.ts";
import { isComplete } from "../shared/yjs/update-needs.ts";
import { ContentRuns, factsOf, SPANS_MAX } from "./update-facts.ts";

/** The updates of a document with this Yjs client id. */
function typed(client: number, base: readonly Uint8Array[], change: (text: Y.Text) => void): Uint8Array[] {
  const doc = new Y.Doc();
  doc.clientID = client;
  for (const update of base) Y.applyUpdate(doc, update);
  const updates: Uint8Array[] = [];
  doc.on("update", (update: Uint8Array) => void updates.push(update));
  change(doc.getText("t"));
  return updates;
}

const needsOf = (update: Uint8Array): unknown => {
  const facts = factsOf(update);
  return facts.kind === "fit" && Object.fromEntries(facts.needs);
};
const first = typed(7, [], (text) => text.insert(0, "ab"));

test("[YUF1] an update needs the content before it, beside it and that it deletes, but not its own content", () => {
  expect(needsOf(first[0]!)).toEqual({});
  const [second, deletion] = typed(7, first, (text) => {
    text.insert(2, "c");
    text.delete(0, 1);
  });
  expect(needsOf(second!)).toEqual({ 7: 2 });
  expect(needsOf(deletion!)).toEqual({ 7: 1 });
  expect(needsOf(typed(8, first, (text) => text.insert(1, "x"))[0]!)).toEqual({ 7: 2 });
  expect(needsOf(Y.mergeUpdates([first[0]!, second!]))).toEqual({});
});

test("[YUF2] an update with a gap needs the content that is missing in it", () => {
  const [a, b, c] = typed(7, [], (text) => {
    for (const letter of "abc") text.insert(text.length, letter);
  });
  const facts = factsOf(Y.mergeUpdates([a!, c!]));
  if (facts.kind === "unfit") throw new Error(facts.why);
  expect(Object.fromEntries(facts.needs)).toEqual({ 7: 2 });
  expect(facts.runs).toEqual([
    { client: 7, start: 0, end: 1 },
    { client: 7, start: 2, end: 3 },
  ]);
  expect([0, 1, 2].map((clock) => isComplete(facts.needs, () => clock))).toEqual([false, false, true]);
  expect(needsOf(b!)).toEqual({ 7: 1 });
});

test("[YUF3] an update that no document of the room accepts is unfit", () => {
  for (const update of [conflictBomb(1_500), first[0]!.slice(0, -1)]) expect(factsOf(update).kind).toBe("unfit");
});

test("[YUF4] the content of a room contains exactly the runs that were added, and its clock ends before the first hole", () => {
  const runs = fc.array(fc.record({ client: fc.constantFrom(1, 2), start: fc.nat(30), length: fc.integer({ min: 1, max: 8 }) }));
  fc.assert(
    fc.property(runs, (added) => {
      const content = new ContentRuns();
      const held = new Set<string>();
      for (const { client, start, length } of added) {
        content.add({ client, start, end: start + length });
        for (let clock = start; clock < start + length; clock++) held.add(`${client} ${clock}`);
      }
      const wrong: object[] = []; // One comparison for each run would take seconds.
      for (const client of [1, 2]) {
        let hole = 0;
        while (held.has(`${client} ${hole}`)) hole += 1;
        expect(content.clocks.get(client) ?? 0).toBe(hole);
        for (let start = 0; start < 40; start++)
          for (let end = start + 1, has = true; end <= 40; end++) {
            has &&= held.has(`${client} ${end - 1}`);
            if (content.has({ client, start, end }) !== has) wrong.push({ client, start, end });
          }
      }
      expect(wrong).toEqual([]);
    }),
    { numRuns: 200 },
  );
});

test("[YUF5] above the maximum number of runs behind a hole a further run is not counted, and the others go on", () => {
  const content = new ContentRuns();
  const startOf = (run: number): number => 10_000 - 10 * run;
  const has = (run: number): boolean => content.has({ client: 7, start: startOf(run), end: startOf(run) + 1 });
  for (let run = 0; run <= SPANS_MAX; run++) content.add({ client: 7, start: startOf(run), end: startOf(run) + 1 });
  expect([has(0), has(SPANS_MAX - 1), has(SPANS_MAX)]).toEqual([true, true, false]);
  content.add({ client: 7, start: startOf(1) + 1, end: startOf(0) });
  content.add({ client: 7, start: startOf(SPANS_MAX), end: startOf(SPANS_MAX) + 1 });
  expect(has(SPANS_MAX), "two of them became one").toBe(true);
  content.add({ client: 8, start: 5, end: 6 });
  content.add({ client: 7, start: 0, end: 10_000 });
  expect(Object.fromEntries(content.clocks)).toEqual({ 7: 10_001 });
  expect(content.has({ client: 8, start: 5, end: 6 }), "each client has a limit of its own").toBe(true);
});
