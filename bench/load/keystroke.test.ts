import { expect, test } from "vitest";
import { applyUpdate, Doc } from "yjs";

import { keystroke } from "./keystroke.ts";

test("keystrokes are Yjs updates, and each writer's keystrokes spell the alphabet", () => {
  const doc = new Doc();
  for (let counter = 1; counter <= 27; counter++) for (const writer of [1, 300_000]) applyUpdate(doc, keystroke(writer, counter));

  const alphabet = "abcdefghijklmnopqrstuvwxyza";
  expect(doc.getText("text").toString()).toBe(alphabet + alphabet);
});
