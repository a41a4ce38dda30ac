import { expect, test } from "vitest";
import * as Y from "yjs";

import { editText, type EditedText, namedTypesIn, type TextEdits } from "./text-edits.ts";

const stateOf = (written: string): Uint8Array => {
  const doc = new Y.Doc();
  doc.getText("text").insert(0, written);
  return Y.encodeStateAsUpdate(doc);
};
const edits = (given: Partial<TextEdits>): TextEdits => ({ key: "k", replacements: [], append: "", ...given });
const after = (state: Uint8Array | undefined, edited: EditedText): Uint8Array => {
  if (edited.kind !== "edited") throw new Error(edited.kind);
  return state === undefined ? edited.update : Y.mergeUpdates([state, edited.update]);
};
const textIn = (state: Uint8Array): string => {
  const doc = new Y.Doc();
  Y.applyUpdate(doc, state);
  return doc.getText("text").toString();
};

test("[MCP1] replacements and an appended text become one update that makes them", () => {
  const state = stateOf("The cat sat.");
  const edited = editText(
    state,
    "text",
    edits({
      replacements: [
        { find: "cat", replace: "dog" },
        { find: "dog sat", replace: "dog ran" },
      ],
      append: " End",
    }),
  );
  expect(edited).toMatchObject({ kind: "edited", text: "The dog ran. End" });
  expect(textIn(after(state, edited))).toBe("The dog ran. End");
  expect(textIn(after(undefined, editText(undefined, "text", edits({ append: "first" }))))).toBe("first");
});

test("[MCP2] a passage must occur exactly once, and a text must exist in a document that has other types", () => {
  const state = stateOf("one two one");
  expect(editText(state, "text", edits({ replacements: [{ find: "one", replace: "" }] }))).toEqual({
    kind: "not-once",
    find: "one",
    times: 2,
  });
  expect(editText(state, "text", edits({ replacements: [{ find: "six", replace: "" }] }))).toEqual({
    kind: "not-once",
    find: "six",
    times: 0,
  });
  expect(editText(state, "body", edits({ append: "x" }))).toEqual({
    kind: "no-such-text",
    types: [{ name: "text", kind: "text" }],
  });
});

test("[MCP7] a list, a map and the rich text of an editor are never edited as a text", () => {
  const doc = new Y.Doc();
  doc.getXmlFragment("default").insert(0, [new Y.XmlElement("paragraph")]);
  doc.getArray("list").insert(0, [1]);
  doc.getMap("map").set("a", 1);
  const types = [
    { name: "default", kind: "xml" },
    { name: "list", kind: "array" },
    { name: "map", kind: "map" },
  ];
  const state = Y.encodeStateAsUpdate(doc);
  for (const { name } of types) expect(editText(state, name, edits({ append: "x" }))).toEqual({ kind: "no-such-text", types });
  expect(namedTypesIn(state)).toEqual(types);
});

test("[MCP3] a repeated call makes the same bytes, or finds its edit in the document, whatever others typed since", () => {
  const state = stateOf("a");
  const call = edits({ append: "b" });
  const first = editText(state, "text", call);
  expect(editText(state, "text", call)).toEqual(first);
  const doc = new Y.Doc();
  Y.applyUpdate(doc, after(state, first));
  doc.getText("text").insert(0, "z");
  const later = Y.encodeStateAsUpdate(doc);
  expect(editText(later, "text", call)).toEqual({ kind: "repeated", text: "zab" });
  expect(editText(later, "text", { ...call, key: "other" })).toMatchObject({ kind: "edited", text: "zabb" });
});

test("[MCP6] a repeated call that only deletes is recognised, and an update has no other deletions of the document", () => {
  const doc = new Y.Doc();
  const text = doc.getText("text");
  for (let word = 0; word < 500; word++) {
    text.insert(0, "x ");
    text.delete(0, 1);
  }
  text.insert(0, "keep drop ");
  const state = Y.encodeStateAsUpdate(doc);
  const call = edits({ replacements: [{ find: " drop", replace: "" }] });
  const edited = editText(state, "text", call);
  expect(textIn(after(state, edited)).startsWith("keep ")).toBe(true);
  expect(editText(after(state, edited), "text", call)).toMatchObject({ kind: "repeated" });
  expect((edited as EditedText & { kind: "edited" }).update.byteLength).toBeLessThan(100);
});
