import { expect, test } from "vitest";
import * as Y from "yjs";

import { checkedEdit, type DocumentContent, contentJson, diffOf, editOf, textOf } from "./content.ts";
import { EMPTY_STATE, mergeEdits } from "./merge.ts";

function stateOf(write: (doc: Y.Doc) => void): Uint8Array {
  const doc = new Y.Doc();
  write(doc);
  return Y.encodeStateAsUpdate(doc);
}

const json = (bytes: Uint8Array): unknown => JSON.parse(new TextDecoder().decode(bytes));
const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

const MIXED = stateOf((doc) => {
  doc.getText("body").insert(0, "Grüße", { bold: true });
  doc.getArray("list").push([1, "two", { three: [3] }]);
  doc.getMap("meta").set("title", "Plan");
  doc.getXmlFragment("page").insert(0, [new Y.XmlElement("p")]);
  doc.getText("gone").insert(0, "x");
  doc.getText("gone").delete(0, 1);
});

test("[CTN1] a shared type is read as the kind that its content implies, with its values", () => {
  expect(json(contentJson(MIXED, []))).toEqual({
    types: {
      body: { kind: "text", value: "Grüße" },
      list: { kind: "array", value: [1, "two", { three: [3] }] },
      meta: { kind: "map", value: { title: "Plan" } },
      page: { kind: "xml", value: "<p></p>" },
      gone: { kind: "empty", value: null },
    },
  });
});

test("[CTN2] a shared type that is requested as a kind is read as that kind, even when it is empty", () => {
  expect(
    json(
      contentJson(MIXED, [
        { name: "gone", kind: "text" },
        { name: "none", kind: "array" },
      ]),
    ),
  ).toEqual({ types: { gone: { kind: "text", value: "" }, none: { kind: "array", value: [] } } });
});

test("[CTN3] a document's only text needs no name; several texts need one, and a wrong name is answered with the right ones", () => {
  const single = stateOf((doc) => doc.getText("body").insert(0, "one"));
  expect(textOf(single, undefined)).toMatchObject({ kind: "text" });
  expect(textOf(MIXED, undefined)).toEqual({ kind: "no-such-text", names: ["body", "gone", "page"] });
  expect(textOf(MIXED, "meta")).toEqual({ kind: "no-such-text", names: ["body", "gone", "page"] });
  const found = textOf(MIXED, "body");
  expect(found.kind === "text" && text(found.text)).toBe("Grüße");
});

test("[CTN4] a diff holds what the client lacks and nothing else; bytes that are no state vector are reported as such", () => {
  const before = new Y.Doc();
  before.getText("body").insert(0, "a".repeat(1_000));
  const after = mergeEdits(Y.encodeStateAsUpdate(before), [stateOf((doc) => doc.getText("body").insert(0, "new"))]).state;
  const diff = diffOf(after, Y.encodeStateVector(before));
  expect(diff.kind === "diff" && diff.edit.byteLength).toBeLessThan(100);
  if (diff.kind === "diff") Y.applyUpdate(before, diff.edit);
  expect(before.getText("body").toString()).toContain("new");
  expect(diffOf(after, Uint8Array.of(255, 255, 255))).toEqual({ kind: "bad-vector" });
});

test("[CTN5] an edit is accepted if Yjs can read it and it is not empty", () => {
  const doc = new Y.Doc();
  const edits: Uint8Array[] = [];
  doc.on("update", (edit: Uint8Array) => edits.push(edit));
  doc.getText("body").insert(0, "a");
  doc.getText("body").insert(1, "b");
  expect(checkedEdit(edits[1]!).kind, "it builds on another").toBe("edit");
  for (const bad of [EMPTY_STATE, new Uint8Array(), Uint8Array.of(1, 2, 3), new TextEncoder().encode("hello")])
    expect(checkedEdit(bad).kind).toBe("bad-content");
});

test("[CTN6] content becomes one edit that reads back unchanged, and the same content always becomes the same bytes", () => {
  const content: DocumentContent = {
    types: {
      body: { kind: "text", value: "Hello" },
      list: { kind: "array", value: [1, { a: [true, null] }] },
      meta: { kind: "map", value: { title: "T", tags: ["x"] } },
    },
  };
  const made = editOf(content);
  expect(made).toEqual(editOf(content));
  expect(made.kind === "edit" && json(contentJson(made.edit, []))).toEqual(content);
  const nested = new Y.Doc();
  if (made.kind === "edit") Y.applyUpdate(nested, made.edit);
  expect(nested.getMap("meta").get("tags"), "to be edited apart").toBeInstanceOf(Y.Array);
  expect(editOf({ types: {} }).kind).toBe("bad-content");
});

test("[CTN16] a BigInt, which JSON does not have, is read as the string of its digits", () => {
  const state = stateOf((doc) => doc.getMap("meta").set("views", [9_007_199_254_740_993n]));
  expect(json(contentJson(state, []))).toEqual({ types: { meta: { kind: "map", value: { views: ["9007199254740993"] } } } });
});

test("[CTN18] bytes, which JSON does not have, are read as base64", () => {
  const state = stateOf((doc) => {
    doc.getMap("meta").set("icon", new Uint8Array([0, 1, 254, 255]));
    doc.getArray("list").insert(0, [{ bytes: [new Uint8Array()] }]);
  });
  expect(json(contentJson(state, []))).toEqual({
    types: { list: { kind: "array", value: [{ bytes: [""] }] }, meta: { kind: "map", value: { icon: "AAH+/w==" } } },
  });
});

/** XML in which a link is cut into pieces, and each piece repeats its address twice. */
function repeatingXml(address: string, pieces: number): Uint8Array {
  return stateOf((doc) => {
    const link = new Y.XmlText();
    doc.getXmlFragment("page").insert(0, [link]);
    link.insert(0, "ab".repeat(pieces), { link: { href: address }, mark: { href: address } });
    doc.transact(() => {
      for (let piece = 0; piece < pieces; piece++) link.format(2 * piece, 1, { bold: true });
    });
  });
}

test("[CTN17] a short document whose XML or JSON would be very long is refused, not written", () => {
  for (const [character, pieces] of [
    ["x", 700],
    ["\u6f22", 240], // Has 24 million characters, and 72 MB.
  ] as const) {
    const state = repeatingXml(character.repeat(50_000), pieces);
    expect(state.byteLength).toBeLessThan(350_000);
    expect(() => textOf(state, undefined)).toThrow("longer than");
    expect(() => contentJson(state, [])).toThrow("longer than");
  }
});
