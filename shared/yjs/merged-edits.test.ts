import { expect, test } from "vitest";
import * as Y from "yjs";

import { checkUpdate } from "./checked-update.ts";
import { mergedEdits } from "./merged-edits.ts";

const [LOW, HIGH, UNKNOWN] = [1, 5, 9];

function written(client: number, words: string, after: Uint8Array = Uint8Array.of(0, 0)): Uint8Array {
  const doc = new Y.Doc();
  Y.applyUpdate(doc, after);
  doc.clientID = client;
  const before = Y.encodeStateVector(doc);
  doc.getText("t").insert(doc.getText("t").length, words);
  return Y.encodeStateAsUpdate(doc, before);
}

function textOf(update: Uint8Array): string {
  const doc = new Y.Doc();
  Y.applyUpdate(doc, update);
  return doc.getText("t").toJSON();
}

/** Both updates have one client and no deletions: one byte for the number of clients, and one for that of deletions. */
function oneAfterTheOther(first: Uint8Array, second: Uint8Array): Uint8Array {
  return Uint8Array.of(2, ...first.slice(1, -1), ...second.slice(1, -1), 0);
}

/** Letters in a type that does not exist. */
function waitingUpdate(client: number, letters: number): Uint8Array {
  const doc = new Y.Doc();
  doc.clientID = UNKNOWN;
  const nested = doc.getMap("m").set("k", new Y.Text());
  const before = Y.encodeStateVector(doc);
  doc.clientID = client;
  nested.insert(0, "w".repeat(letters));
  return Y.encodeStateAsUpdate(doc, before);
}

test("[YMG1] an edit with its clients in another order removes nothing of what others wrote, and keeps its own content", () => {
  const base = written(HIGH, "of others");
  /** In place of the four characters of HIGH there is nothing. */
  const nothing = Uint8Array.of(1, 1, HIGH, 0, 0, 4, 0);
  const hostile = oneAfterTheOther(written(LOW, "a"), nothing);
  expect(checkUpdate(hostile).kind).toBe("fit");
  expect(textOf(Y.mergeUpdates([base, hostile])), "what Yjs makes of it").not.toContain("of others");
  for (const merged of [mergedEdits(base, [hostile]), mergedEdits(mergedEdits(base, [hostile]), [written(LOW + 1, "more")])]) {
    expect(textOf(merged)).toContain("of others");
    expect(textOf(merged)).toMatch(/^a|a$/);
  }
});

test("[YMG2] an edit in another order keeps what waits for an edit that comes later", () => {
  const [first, second] = [written(LOW, "first "), written(LOW, "second ", written(LOW, "first "))];
  const disordered = oneAfterTheOther(second, written(HIGH, "high "));
  const early = mergedEdits(Uint8Array.of(0, 0), [disordered]);
  expect(textOf(early)).toBe("high ");
  expect(
    textOf(mergedEdits(early, [first]))
      .split(" ")
      .sort(),
  ).toEqual(["", "first", "high", "second"]);
});

test("[YMG3] the first of two edits at one place stays", () => {
  const base = written(HIGH, "of others");
  const other = written(HIGH, "replaced!");
  for (const edits of [[other], [written(LOW, "a"), other]]) expect(textOf(mergedEdits(base, edits))).toContain("of others");
  expect(textOf(mergedEdits(Uint8Array.of(0, 0), [base, other]))).toBe("of others");
});

test("[YMG4] an edit that contains what is known adds only what is new", () => {
  const base = written(HIGH, "of others");
  const more = written(HIGH, "!", base);
  const known = Y.mergeUpdates([base, more]);
  expect(textOf(mergedEdits(base, [known]))).toBe("of others!");
  expect(textOf(mergedEdits(base, [more, known, base]))).toBe("of others!");
});

test("[YMG5] content that waits takes no place from what others write there later", () => {
  const victim = written(HIGH, "typed");
  const waiting = waitingUpdate(HIGH, 5);
  expect(checkUpdate(waiting).kind).toBe("fit");
  const inTurn = [waiting, victim];
  expect(textOf(Y.mergeUpdates(inTurn)), "what Yjs makes of the bytes").toBe("");
  const nothing = Uint8Array.of(0, 0);
  for (const merged of [mergedEdits(nothing, inTurn), mergedEdits(mergedEdits(nothing, [waiting]), [victim])])
    expect(textOf(merged)).toBe("typed");
});
