import { expect, test } from "vitest";
import { applyUpdate, Doc } from "yjs";

import { keystroke, readKeystrokes } from "./keystroke.ts";

test("keystrokes are Yjs updates, and each writer's keystrokes spell the alphabet", () => {
  const doc = new Doc();
  for (let counter = 1; counter <= 27; counter++) for (const writer of [1, 300_000]) applyUpdate(doc, keystroke(writer, counter));

  const alphabet = "abcdefghijklmnopqrstuvwxyza";
  expect(doc.getText("text").toString()).toBe(alphabet + alphabet);
});

test("keystrokes are read from the update that a document emits for them", () => {
  const doc = new Doc();
  const read: unknown[] = [];
  doc.on("update", (update: Uint8Array) => read.push(...readKeystrokes(update)));
  for (let counter = 1; counter <= 2; counter++) for (const writer of [1, 300_000]) applyUpdate(doc, keystroke(writer, counter));

  expect(read).toEqual([1, 2].flatMap((counter) => [1, 300_000].map((writer) => ({ writer, counter, count: 1 }))));
});
