import { expect, test } from "vitest";
import * as Y from "yjs";

import { Prng } from "../../shared/collections/prng.ts";
import { Typist } from "./typist.ts";

test("[BOT2] the typist writes whole phrases and removes only its own text", () => {
  const text = new Y.Doc().getText("text");
  text.insert(0, "Ours. ");
  const typist = new Typist(text, new Prng(3), 0);
  const lengths: number[] = [];
  for (let now = 0; now < 300_000; now += 50) {
    typist.step(now);
    if (now === 20_000) text.insert(text.length - 1, "ours too");
    lengths.push(text.length);
  }
  expect(Math.max(...lengths)).toBeGreaterThan(30);
  expect(Math.max(...lengths)).toBeLessThan(60);
  typist.undoAll();
  expect(text.toString()).toBe("Ours. ours too");
});
