import { expect, test } from "vitest";

import { endOfTurn } from "./end-of-turn.ts";

test("what waits for the end of a turn runs in its order with nothing between, and what it leads to runs in the next", async () => {
  const ran: string[] = [];
  const later = endOfTurn();
  for (const name of ["one", "two", "three"]) {
    later(() => {
      ran.push(name);
      queueMicrotask(() => ran.push(`after ${name}`));
      if (name === "one") later(() => ran.push("next turn"));
    });
  }
  expect(ran).toEqual([]);
  await new Promise(setImmediate);
  expect(ran).toEqual(["one", "two", "three", "after one", "after two", "after three"]);
  await new Promise(setImmediate);
  expect(ran.at(-1)).toBe("next turn");
});
