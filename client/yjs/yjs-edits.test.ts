import fc from "fast-check";
import { expect, test } from "vitest";
import * as Y from "yjs";

import { clocksBefore, contentSince, missingUpdate, isEmptyUpdate, splitEdit, yjsEdits } from "./yjs-edits.ts";

function docWith(...texts: string[]): Y.Doc {
  const doc = new Y.Doc();
  for (const text of texts) doc.getText("t").insert(doc.getText("t").length, text);
  return doc;
}
const textOf = (...edits: Uint8Array[]): string => {
  const doc = new Y.Doc();
  for (const edit of edits) Y.applyUpdate(doc, edit);
  return doc.getText("t").toString();
};
const editsOf = (doc: Y.Doc, change: () => void): Uint8Array[] => {
  const edits: Uint8Array[] = [];
  const keep = (edit: Uint8Array): void => void edits.push(edit);
  doc.on("update", keep);
  change();
  doc.off("update", keep);
  return edits;
};

test("[YED1] merged edits have the same effect as the single edits", () => {
  const doc = new Y.Doc();
  const text = doc.getText("t");
  const edits = editsOf(doc, () => {
    for (const letter of "hello") text.insert(text.length, letter);
    text.delete(0, 1);
  });
  expect(edits).toHaveLength(6);
  expect(textOf(yjsEdits.merge(edits))).toBe("ello");
});

test("[YED2] a room may lack a whole document, a part, or nothing", () => {
  const doc = docWith("one ", "two ", "three, four, five, six ");
  const [room, more] = [Y.encodeStateAsUpdate(doc), editsOf(doc, () => doc.getText("t").insert(0, "zero "))];
  expect(textOf(missingUpdate([], doc)!)).toBe("zero one two three, four, five, six ");
  expect(textOf(room, missingUpdate([room], doc)!)).toBe("zero one two three, four, five, six ");
  expect(missingUpdate([room], doc)!.byteLength).toBeLessThan(room.byteLength);
  expect(missingUpdate([room, ...more], doc)).toBeUndefined();
  expect(missingUpdate([], new Y.Doc())).toBeUndefined();
});

test("[YED2] a room may lack a deletion, too", () => {
  const doc = docWith("one two");
  const room = Y.encodeStateAsUpdate(doc);
  doc.getText("t").delete(0, 4);
  expect(textOf(room, missingUpdate([room], doc)!)).toBe("two");
});

test("[YED2] content that the room has and the document has not is not missing", () => {
  const doc = docWith("one");
  const other = new Y.Doc();
  Y.applyUpdate(other, Y.encodeStateAsUpdate(doc));
  other.getText("t").delete(0, 1);
  other.getText("t").insert(0, "more ");
  expect(missingUpdate([Y.encodeStateAsUpdate(other)], doc)).toBeUndefined();
});

test("[YED3] a large edit is cut into pieces that fit and have the same effect in any order", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.constantFrom("insert", "delete", "map"), fc.nat(), fc.string({ minLength: 1, maxLength: 20 })), {
        minLength: 1,
        maxLength: 60,
      }),
      fc.integer({ min: 200, max: 600 }),
      fc.boolean(),
      (changes, bytesMax, reversed) => {
        const docs = [new Y.Doc(), new Y.Doc()];
        changes.forEach(([kind, at, value], index) => {
          const doc = docs[index % 2]!;
          const text = doc.getText("t");
          if (kind === "insert") text.insert(at % (text.length + 1), value);
          else if (kind === "map") doc.getMap("m").set(value, at);
          else if (text.length > 0) text.delete(at % text.length, 1);
          Y.applyUpdate(docs[(index + 1) % 2]!, Y.encodeStateAsUpdate(doc));
        });
        const complete = Y.encodeStateAsUpdate(docs[0]!);
        const pieces = splitEdit(complete, bytesMax)!;
        for (const piece of pieces) expect(piece.byteLength).toBeLessThanOrEqual(bytesMax);
        const rebuilt = new Y.Doc();
        for (const piece of reversed ? [...pieces].reverse() : pieces) Y.applyUpdate(rebuilt, piece);
        expect(Y.encodeStateAsUpdate(rebuilt)).toEqual(Y.encodeStateAsUpdate(replayed(complete)));
      },
    ),
    { numRuns: 200 },
  );
});

test("[YED3] an edit with a gap in it is cut as well", () => {
  const doc = new Y.Doc();
  const letters = editsOf(doc, () => [..."abcdefgh"].forEach((letter) => doc.getText("t").insert(0, letter)));
  const holed = Y.mergeUpdates([letters[0]!, ...letters.slice(3)]);
  expect(textOf(...splitEdit(holed, 120)!, letters[1]!, letters[2]!)).toBe("hgfedcba");
});

test("[YED3] a text or list inserted at once is cut too, and never inside a character", () => {
  const doc = docWith("before, behind");
  const known = Y.encodeStateAsUpdate(doc);
  const [text, list] = [doc.getText("t"), doc.getArray("list")];
  const edits = editsOf(doc, () => {
    text.insert(8, "grüße 🧑‍🚀 ".repeat(300));
    text.insert(text.length, "🧑".repeat(500));
    list.push(Array.from({ length: 400 }, (_, index) => ({ index })));
  });
  const pieces = edits.flatMap((edit) => splitEdit(edit, 500)!);
  expect(Math.max(...pieces.map(({ byteLength }) => byteLength))).toBeLessThanOrEqual(500);
  for (const order of [pieces, pieces.toReversed()]) {
    const rebuilt = new Y.Doc();
    for (const update of [known, ...order]) Y.applyUpdate(rebuilt, update);
    expect([rebuilt.getText("t").toString(), rebuilt.getArray("list").toJSON()]).toEqual([text.toString(), list.toJSON()]);
    expect(Y.encodeStateVector(rebuilt)).toEqual(Y.encodeStateVector(doc));
  }
});

test("[YED3] text typed meanwhile into the middle of a cut text stays where it was typed", () => {
  const doc = new Y.Doc();
  const [paste] = editsOf(doc, () => doc.getText("t").insert(0, "x".repeat(2_000)));
  const typed = editsOf(doc, () => doc.getText("t").insert(1_000, "HERE"));
  expect(textOf(...splitEdit(paste!, 300)!, ...typed)).toBe(doc.getText("t").toString());
});

test("[YED3] deletions are cut where needed: a long-lived document has more of them than fit", () => {
  const docs = [docWith("x".repeat(300)), docWith("y".repeat(300))];
  for (const doc of docs) for (let at = 0; at < 100; at++) doc.getText("t").delete(at, 1);
  const complete = Y.mergeUpdates(docs.map((doc) => Y.encodeStateAsUpdate(doc)));
  const pieces = splitEdit(complete, 200)!;
  expect(Math.max(...pieces.map(({ byteLength }) => byteLength))).toBeLessThanOrEqual(200);
  for (const order of [pieces, pieces.toReversed()]) {
    const rebuilt = new Y.Doc();
    for (const piece of order) Y.applyUpdate(rebuilt, piece);
    expect(Y.encodeStateAsUpdate(rebuilt)).toEqual(Y.encodeStateAsUpdate(replayed(complete)));
  }
});

test("[YED4] a single item that is too large cannot be cut", () => {
  const doc = new Y.Doc();
  doc.getArray("pictures").push([new Uint8Array(1_000)]);
  expect(splitEdit(Y.encodeStateAsUpdate(doc), 500)).toBeUndefined();
});

test("[YED5] a withheld edit can be made again from the document, at the document's present size", () => {
  const doc = docWith("before ");
  const known = Y.encodeStateAsUpdate(doc);
  const text = doc.getText("t");
  const withheld = editsOf(doc, () => text.insert(text.length, "x".repeat(10_000)));
  text.insert(text.length, " behind");
  expect(textOf(known, contentSince(clocksBefore(withheld), doc))).toBe(text.toString());
  text.delete("before ".length, 10_000);
  const anew = contentSince(clocksBefore(withheld), doc);
  expect(anew.byteLength).toBeLessThan(100);
  expect(textOf(known, anew)).toBe("before  behind");
});

function replayed(update: Uint8Array): Y.Doc {
  const doc = new Y.Doc();
  Y.applyUpdate(doc, update);
  return doc;
}

test("[YED6] a document without additions yields no difference; an update with content or deletions is not empty", () => {
  const doc = docWith("abc");
  expect(isEmptyUpdate(Y.encodeStateAsUpdate(new Y.Doc()))).toBe(true);
  expect(isEmptyUpdate(Y.encodeStateAsUpdate(doc, Y.encodeStateVector(doc)))).toBe(true);
  expect(editsOf(doc, () => doc.getText("t").insert(0, "x")).some(isEmptyUpdate)).toBe(false);
  expect(editsOf(doc, () => doc.getText("t").delete(0, 1)).some(isEmptyUpdate)).toBe(false);
});

test("[YED7] pending content is missing only from a room that has none", () => {
  const author = new Y.Doc();
  const [, pending] = editsOf(author, () => ["base", "more"].forEach((text) => author.getText("t").insert(0, text)));
  const doc = docWith("own");
  Y.applyUpdate(doc, pending!);
  const clientsIn = (update: Uint8Array): number[] => [...Y.parseUpdateMeta(update).from.keys()];
  expect(clientsIn(missingUpdate([], doc)!).toSorted()).toEqual([author.clientID, doc.clientID].toSorted());
  expect(clientsIn(missingUpdate([pending!], doc)!)).toEqual([doc.clientID]);
  expect(clientsIn(contentSince(new Map([[doc.clientID, 0]]), doc))).toEqual([doc.clientID]);
  expect(doc.store.pendingStructs, "the document keeps it").not.toBeNull();
});

test("[YED10] a single item that cannot be cut is a piece by itself, and the other pieces stay as small as asked", () => {
  const doc = docWith("x".repeat(2_000));
  doc.getMap("m").set("picture", new Uint8Array(1_000));
  doc.getMap("m").set("title", "notes");
  const complete = Y.encodeStateAsUpdate(doc);
  const pieces = splitEdit(complete, 500, 1_100)!;
  expect(pieces.filter(({ byteLength }) => byteLength > 500)).toHaveLength(1);
  expect(Math.max(...pieces.map(({ byteLength }) => byteLength))).toBeLessThanOrEqual(1_100);
  const rebuilt = new Y.Doc();
  for (const piece of pieces) Y.applyUpdate(rebuilt, piece);
  expect(Y.encodeStateAsUpdate(rebuilt)).toEqual(complete);
  expect(splitEdit(complete, 500, 1_000)).toBeUndefined();
});
