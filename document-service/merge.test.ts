import { expect, test } from "vitest";
import * as Y from "yjs";

import { conflictBomb, deletionBomb, HALF_UPDATES, NESTING_FUSE, nestingBomb } from "../shared/testing/yjs-bombs.ts";
import { EMPTY_STATE, mergeEdits } from "./merge.ts";

/** The edits of a writer who types these texts one after the other. */
function typed(...texts: readonly string[]): Uint8Array[] {
  const doc = new Y.Doc();
  const edits: Uint8Array[] = [];
  doc.on("update", (edit: Uint8Array) => edits.push(edit));
  for (const text of texts) doc.getText("text").insert(doc.getText("text").length, text);
  return edits;
}

function textOf(state: Uint8Array): string {
  const doc = new Y.Doc();
  Y.applyUpdate(doc, state);
  return doc.getText("text").toString();
}

test("[MRG1] edits merged in parts make the same document as edits merged at once", () => {
  const edits = typed("one", " two", " three", " four");
  const half = mergeEdits(EMPTY_STATE, edits.slice(0, 2));
  const whole = mergeEdits(half.state, edits.slice(2));
  expect(whole.refused).toBe(0);
  expect(textOf(whole.state)).toBe("one two three four");
  expect(mergeEdits(whole.state, edits).state).toEqual(whole.state); // A repeat changes nothing.
});

test("[MRG2] an edit that arrives before the edit it depends on is kept until that one arrives", () => {
  const [first, second] = typed("one", " two");
  const early = mergeEdits(EMPTY_STATE, [second!]);
  expect(textOf(early.state)).toBe("");
  expect(textOf(mergeEdits(early.state, [first!]).state)).toBe("one two");
});

test.each([
  ["text", new TextEncoder().encode(`{"op":"insert","at":3}`)],
  ["nothing", new Uint8Array()],
  ["the first half of an edit", typed("one")[0]!.slice(0, 6)],
  ["more structs than any array holds", Uint8Array.of(1, 255, 255, 255, 255, 255, 255, 255, 15, 1, 0)],
])("[MRG3] an edit that is no Yjs update is counted and left out, and all others are merged: %s", (_, bad) => {
  const [first, second, third] = typed("one", " two", " three");
  const { state, refused } = mergeEdits(EMPTY_STATE, [bad, first!, bad, second!, third!]);
  expect(refused).toBe(2);
  expect(textOf(state)).toBe("one two three");
});

test("[MRG3] other bytes that begin like an empty update count as refused, so that the log keeps them", () => {
  expect(mergeEdits(EMPTY_STATE, [Uint8Array.of(0, 0, 7, 8, 9), ...typed("one")])).toMatchObject({ refused: 1 });
  const [edit] = typed("one");
  const followed = mergeEdits(EMPTY_STATE, [Uint8Array.of(...edit!, 1)]);
  expect([followed.refused, textOf(followed.state)], "clients take it").toEqual([1, "one"]);
});

test("[MRG4] a state to which no edit is a Yjs update stays unchanged", () => {
  const bad = Array.from({ length: 1000 }, (_, index) => new TextEncoder().encode(`edit ${index}`));
  expect(mergeEdits(EMPTY_STATE, bad)).toEqual({ state: EMPTY_STATE, refused: 1000 });
});

test("[MRG5] empty updates count as refused while the document has no content, and not afterwards", () => {
  const nothing = Uint8Array.of(0, 0);
  expect(mergeEdits(EMPTY_STATE, [nothing, nothing])).toEqual({ state: EMPTY_STATE, refused: 2 });
  expect(mergeEdits(EMPTY_STATE, [nothing, new TextEncoder().encode("{}")])).toEqual({ state: EMPTY_STATE, refused: 2 });
  expect(mergeEdits(EMPTY_STATE, [nothing, ...typed("one")]).refused).toBe(0);
  expect(mergeEdits(mergeEdits(EMPTY_STATE, typed("one")).state, [nothing]).refused).toBe(0);
});

test("[MRG6] edits that harm Yjs are refused, and all others merged", () => {
  const [first, second] = typed("one", " two");
  const bombs = [conflictBomb(6_000), nestingBomb(5_000), deletionBomb(60_000)];
  const { state, refused } = mergeEdits(EMPTY_STATE, [first!, ...bombs, NESTING_FUSE, second!]);
  expect([textOf(state), refused]).toEqual(["one two", 3]);
});

test("[MRG7] of nesting that several edits build, the edit that exceeds the limit is refused", () => {
  const [first, second] = typed("one", " two");
  const levels = [0, 200, 400, 600].map((from) => nestingBomb(200, from));
  const merged = mergeEdits(EMPTY_STATE, [first!, ...levels, second!]);
  expect([textOf(merged.state), merged.refused]).toEqual(["one two", 1]);
  expect(textOf(mergeEdits(merged.state, [NESTING_FUSE]).state)).toBe("one two");
});

test.each(HALF_UPDATES)("[MRG8] an edit that Yjs applies only in part is refused, for any document: %s", (_, half) => {
  const [first, second] = typed("one", " two");
  const all = [first!, half, second!];
  expect([textOf(mergeEdits(EMPTY_STATE, all).state), mergeEdits(EMPTY_STATE, all).refused]).toEqual(["one two", 1]);
  const inTurn = all.reduce((state, edit) => mergeEdits(state, [edit]).state, EMPTY_STATE);
  expect(inTurn).toEqual(mergeEdits(EMPTY_STATE, all).state);
});
