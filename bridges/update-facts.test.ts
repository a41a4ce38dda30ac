import { expect, test } from "vitest";
import * as Y from "yjs";

import { conflictBomb } from "../shared/testing/yjs-bombs.ts";
import { isComplete } from "../shared/yjs/update-needs.ts";
import { factsOf } from "./update-facts.ts";

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
