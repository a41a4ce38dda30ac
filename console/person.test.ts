import { expect, test } from "vitest";

import { colourOf, friendlyName, initialsOf } from "./person.ts";

test("[PAGE4] a new person's name is none of those already here", () => {
  const taken = new Set<string>();
  for (let person = 0; person < 30; person++) {
    const name = friendlyName(0.5, taken);
    expect(taken).not.toContain(name);
    taken.add(name);
  }
});

test("[PAGE4] when every name is taken, people share one", () => {
  const taken = new Set(Array.from({ length: 1000 }, (_, index) => friendlyName(index / 1000)));
  expect(taken).toContain(friendlyName(0.999, taken));
});

test("[PAGE5] a name has one colour, for everybody who sees it", () => {
  expect(colourOf("Ada")).toBe(colourOf("Ada"));
  for (const name of ["Ada", "Grace", "", "李雷", "🌱"]) expect([0, 1, 2, 3, 4, 5, 6, 7]).toContain(colourOf(name));
});

test.each([
  ["Ada", "A"],
  ["ada lovelace", "AL"],
  ["Jean-Luc de la Tour", "JT"],
  ["🌱 garden", "🌱G"],
  ["-", ""],
])("[PAGE5] the initials of %s are %s", (name, initials) => {
  expect(initialsOf(name)).toBe(initials);
});
