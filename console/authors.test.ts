import { expect, test } from "vitest";
import * as Y from "yjs";

import { Authors, writerOf } from "./authors.ts";

test("[PAGE6] a tab that writes on and on adds its name once", () => {
  const doc = new Y.Doc();
  const authors = new Authors(doc);
  let edits = 0;
  doc.on("update", () => edits++);
  for (let keystroke = 0; keystroke < 100; keystroke++) authors.introduce("Ada");
  expect(edits).toBe(1);
  expect(authors.names()).toEqual(["Ada"]);
});

test("[PAGE6] a reader who takes another name writes nothing", () => {
  const doc = new Y.Doc();
  const authors = new Authors(doc);
  authors.rename("Grace");
  expect(authors.names()).toEqual([]);
  authors.introduce("Grace");
  authors.rename("Hedy");
  expect(authors.names()).toEqual(["Hedy"]);
});

test("[PAGE6] somebody who comes back is one person", () => {
  const doc = new Y.Doc();
  new Authors(doc).introduce("Ada");
  const later = new Y.Doc();
  Y.applyUpdate(later, Y.encodeStateAsUpdate(doc));
  const authors = new Authors(later);
  authors.introduce("Ada");
  expect(authors.names()).toEqual(["Ada"]);
  expect(authors.nameOf(doc.clientID)).toBe("Ada");
});

test("[PAGE7] text that arrives names its writer; a deletion names nobody", () => {
  const ada = new Y.Doc();
  const grace = new Y.Doc();
  const writers: (number | undefined)[] = [];
  grace.getText("text").observe((_, transaction) => writers.push(writerOf(transaction)));
  ada.on("update", (update: Uint8Array) => Y.applyUpdate(grace, update));
  ada.getText("text").insert(0, "hello");
  ada.getText("text").delete(0, 2);
  expect(writers).toEqual([ada.clientID, undefined]);
});
