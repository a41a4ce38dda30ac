import fc from "fast-check";
import { expect, test } from "vitest";
import * as Y from "yjs";

import { isEmptyUpdate } from "./empty-update.ts";

test.each<[string, number[]]>([
  ["no structs and no deletions", [0, 0]],
  ["a client without structs", [1, 0, 5, 0, 0]],
  ["a gap", [1, 1, 5, 0, 10, 3, 0]],
  ["a gap with flags", [1, 1, 5, 0, 0x2a, 3, 0]],
  ["a client without deletions", [0, 1, 5, 0]],
  ["a zero of two bytes", [0x80, 0, 0]],
])("[EMP1] an update of %s is empty, and Yjs applies it without a change", (_, bytes) => {
  const update = Uint8Array.from(bytes);
  expect(isEmptyUpdate(update)).toBe(true);
  const doc = new Y.Doc();
  doc.getText("t").insert(0, "unchanged");
  const before = Y.encodeStateAsUpdate(doc);
  Y.applyUpdate(doc, update);
  expect(Y.encodeStateAsUpdate(doc)).toEqual(before);
});

test.each<[string, number[]]>([
  ["no bytes", []],
  ["half an update", [0]],
  ["an update and more", [0, 0, 0]],
  ["more clients than bytes", [255, 255, 255, 255, 15]],
  ["a number without an end", [0, ...Array.from({ length: 20 }, () => 255)]],
])("[EMP2] %s is not an empty update", (_, bytes) => {
  expect(isEmptyUpdate(Uint8Array.from(bytes))).toBe(false);
});

test("[EMP4] an update that deletes nothing is empty: Yjs refuses it", () => {
  const update = Uint8Array.of(0, 1, 5, 1, 7, 0);
  expect(isEmptyUpdate(update)).toBe(true);
  expect(() => Y.applyUpdate(new Y.Doc(), update)).toThrow();
});

test("[EMP3] no update that changes a document is empty", () => {
  const step = fc.record({ at: fc.nat(20), count: fc.integer({ min: 1, max: 5 }), isDeletion: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 30 }), (steps) => {
      const doc = new Y.Doc();
      const updates: Uint8Array[] = [];
      doc.on("update", (update: Uint8Array) => updates.push(update));
      const text = doc.getText("t");
      for (const { at, count, isDeletion } of steps) {
        if (!isDeletion) text.insert(Math.min(at, text.length), "x".repeat(count));
        else if (at < text.length) text.delete(at, Math.min(count, text.length - at));
      }
      for (const update of updates) expect(isEmptyUpdate(update)).toBe(false);
    }),
  );
});
