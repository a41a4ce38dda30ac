import fc from "fast-check";
import { expect, test } from "vitest";
import * as Y from "yjs";

import { revertingEdit } from "./reverting.ts";

const AUTHOR = 4_000_000_000;

/** One change by one client to a document with several kinds of shared types. */
type TypedChange = { readonly who: number; readonly what: number; readonly place: number; readonly text: string };
const change: fc.Arbitrary<TypedChange> = fc.record({
  who: fc.nat(2),
  what: fc.nat(8),
  place: fc.nat(1_000),
  text: fc.string({ minLength: 1, maxLength: 5 }),
});

function act(doc: Y.Doc, { what, place, text }: TypedChange): void {
  const [prose, list, map, page] = [doc.getText("prose"), doc.getArray<unknown>("list"), doc.getMap("map"), doc.getXmlFragment("page")];
  const at = (length: number) => place % (length + 1);
  switch (what) {
    case 0:
    case 1:
      return prose.insert(at(prose.length), text);
    case 2:
      return prose.delete(at(prose.length), Math.min(3, prose.length - at(prose.length)));
    case 3:
      return list.insert(at(list.length), [text, place]);
    case 4:
      return list.delete(at(list.length), Math.min(2, list.length - at(list.length)));
    case 5:
      return void map.set(`key${place % 4}`, place % 3 === 0 ? new Y.Map([["inner", text]]) : text);
    case 6:
      return map.delete(`key${place % 4}`);
    case 7:
      return page.insert(at(page.length), [new Y.XmlElement("p")]);
    default:
      return doc.getText(`later${place % 2}`).insert(0, text);
  }
}

/** Applies the changes by three clients, which exchange their edits now and then. */
function written(changes: readonly TypedChange[], docs: readonly Y.Doc[]): Y.Doc {
  for (const one of changes) {
    act(docs[one.who]!, one);
    if (one.place % 3 === 0) for (const other of docs) Y.applyUpdate(other, Y.encodeStateAsUpdate(docs[one.who]!));
  }
  const all = new Y.Doc();
  for (const doc of docs) Y.applyUpdate(all, Y.encodeStateAsUpdate(doc));
  for (const doc of docs) Y.applyUpdate(doc, Y.encodeStateAsUpdate(all));
  return all;
}

function contentOf(doc: Y.Doc): unknown {
  const texts = ["prose", "later0", "later1"].map((name) => doc.getText(name).toString());
  return { texts, list: doc.getArray("list").toJSON(), map: doc.getMap("map").toJSON(), page: doc.getXmlFragment("page").toString() };
}

test("[RVT1] the edit restores the earlier content after any later changes", () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 40 }), fc.array(change, { maxLength: 40 }), (before, since) => {
      const docs = [1, 2, 3].map((id) => Object.assign(new Y.Doc(), { clientID: id }));
      const earlier = written(before, docs);
      const current = written(since, docs);
      const edit = revertingEdit(Y.encodeStateAsUpdate(current), Y.encodeStateAsUpdate(earlier), AUTHOR);
      if (edit.kind === "edit") Y.applyUpdate(current, edit.edit);
      expect(contentOf(current)).toEqual(contentOf(earlier));
      const again = revertingEdit(Y.encodeStateAsUpdate(current), Y.encodeStateAsUpdate(earlier), AUTHOR + 1);
      expect(again).toEqual({ kind: "unchanged" });
    }),
    { numRuns: 150 },
  );
});

test("[RVT2] text that is typed at the same time stays", () => {
  const doc = new Y.Doc();
  doc.getText("text").insert(0, "the old text");
  const earlier = Y.encodeStateAsUpdate(doc);
  doc.getText("text").delete(0, 12);
  doc.getText("text").insert(0, "new");
  const edit = revertingEdit(Y.encodeStateAsUpdate(doc), earlier, AUTHOR);
  doc.getText("text").insert(3, "!");
  if (edit.kind === "edit") Y.applyUpdate(doc, edit.edit);
  expect(doc.getText("text").toString()).toMatch(/^(?:!the old text|the old text!)$/);
});

test("[RVT3] an unchanged document needs no edit", () => {
  const doc = new Y.Doc();
  const empty = Y.encodeStateAsUpdate(doc);
  doc.getText("text").insert(0, "same");
  const state = Y.encodeStateAsUpdate(doc);
  expect([revertingEdit(state, state, AUTHOR), revertingEdit(empty, empty, AUTHOR)]).toEqual([
    { kind: "unchanged" },
    { kind: "unchanged" },
  ]);
});

test("[RVT5] a document that differs only in a format, an attribute, a nested value or the kind of a value is restored", () => {
  const written = (write: (doc: Y.Doc) => void): Y.Doc => {
    const doc = new Y.Doc();
    doc.getText("text").insert(0, "some words");
    doc.getXmlFragment("page").insert(0, [new Y.XmlElement("p")]);
    const list = new Y.Array<unknown>();
    list.push([1, new Y.Map([["a", new Uint8Array([1])]])]);
    doc.getMap("map").set("list", list);
    write(doc);
    return doc;
  };
  const page = (doc: Y.Doc) => doc.getXmlFragment("page");
  const list = (doc: Y.Doc) => doc.getMap<Y.Array<unknown>>("map").get("list")!;
  const changes: readonly ((doc: Y.Doc) => void)[] = [
    (doc) => doc.getText("text").format(0, 4, { bold: true }),
    (doc) => (page(doc).get(0) as Y.XmlElement).setAttribute("class", "x"),
    (doc) => doc.transact(() => (page(doc).delete(0, 1), page(doc).insert(0, [new Y.XmlElement("h")]))),
    (doc) => (list(doc).get(1) as Y.Map<unknown>).set("a", new Uint8Array([2])),
    (doc) => doc.transact(() => (list(doc).delete(0, 1), list(doc).insert(0, ["1"]))),
    (doc) => doc.transact(() => (list(doc).delete(0, 1), list(doc).push([1]))),
    (doc) => doc.getArray("new").push([null]),
  ];
  for (const change of changes) {
    const doc = written(() => undefined);
    const earlier = Y.encodeStateAsUpdate(doc);
    change(doc);
    const edit = revertingEdit(Y.encodeStateAsUpdate(doc), earlier, AUTHOR);
    expect(edit.kind).toBe("edit");
    if (edit.kind === "edit") Y.applyUpdate(doc, edit.edit);
    expect(revertingEdit(Y.encodeStateAsUpdate(doc), earlier, AUTHOR + 1)).toEqual({ kind: "unchanged" });
  }
});

test("[RVT4] an edit that clients would refuse is not made", () => {
  const doc = new Y.Doc();
  const map = doc.getMap("map");
  const setAll = (count: number): void =>
    doc.transact(() => {
      for (let key = 0; key < count; key++) map.set(`k${key}`, key);
    });
  setAll(50_001);
  const earlier = Y.encodeStateAsUpdate(doc);
  doc.transact(() => map.clear());
  expect(revertingEdit(Y.encodeStateAsUpdate(doc), earlier, AUTHOR)).toEqual({
    kind: "unfit",
    why: expect.stringContaining("50001 structs, more than 50000"),
  });
});
