import { readFileSync } from "node:fs";

import { expect, test } from "vitest";

import { caretOf, COLOURS, colourOf, friendlyName, initialsOf, newPerson } from "./person.ts";

test("[PAGE4] a new person gets a name that is unused in the room", () => {
  const taken = new Set<string>();
  for (let person = 0; person < 30; person++) {
    const name = friendlyName(0.5, taken);
    expect(taken).not.toContain(name);
    taken.add(name);
  }
});

test("[PAGE4] people share a name when all names are taken", () => {
  const taken = new Set(Array.from({ length: 1000 }, (_, index) => friendlyName(index / 1000)));
  expect(taken).toContain(friendlyName(0.999, taken));
});

test("[PAGE56] two people with the same suggested name are two users, and a name of the address is also the user id", () => {
  const [one, other] = [newPerson(undefined, 0.501), newPerson(undefined, 0.502)];
  expect(one.name).toBe(other.name);
  expect(one.user).not.toBe(other.user);
  expect(newPerson("Ada", 0.5)).toEqual({ user: "Ada", name: "Ada" });
});

test("[PAGE5] a name has the same colour for everybody", () => {
  expect(colourOf("Ada")).toBe(colourOf("Ada"));
  for (const name of ["Ada", "Grace", "", "李雷", "🌱"]) expect([0, 1, 2, 3, 4, 5, 6, 7]).toContain(colourOf(name));
});

test("[PAGE5] a caret has the colour of its owner on the page", () => {
  const css = readFileSync(new URL("./styles/people.css", import.meta.url), "utf8");
  expect([...css.matchAll(/--person-\d: (#[0-9a-f]{6});/g)].map(([, colour]) => colour)).toEqual([...COLOURS]);
  const channels = (colour: string): number[] => [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16));
  for (const name of ["Ada", "Augusta", "李雷"]) {
    const [shown, drawn] = [channels(COLOURS[colourOf(name)]!), channels(caretOf(name).color)];
    for (const [index, channel] of drawn.entries()) expect(Math.abs(channel - shown[index]!)).toBeLessThanOrEqual(7);
  }
});

test("[PAGE57] white initials and a caret on the dark paper have enough contrast in each colour", () => {
  const luminance = (colour: string): number => {
    const [red, green, blue] = [1, 3, 5].map((at) => {
      const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
  };
  const dark = readFileSync(new URL("./styles/tokens.css", import.meta.url), "utf8")
    .match(/--paper: (#[0-9a-f]{6});/g)![1]!
    .slice(-8, -1);
  for (const colour of COLOURS) {
    expect(1.05 / (luminance(colour) + 0.05), colour).toBeGreaterThanOrEqual(5);
    expect((luminance(colour) + 0.05) / (luminance(dark) + 0.05), colour).toBeGreaterThanOrEqual(3);
  }
});

test("[PAGE5] people of the same colour have carets of slightly different shades", () => {
  const names = Array.from({ length: 40 }, (_, index) => `Person ${index}`);
  expect(new Set(names.map((name) => caretOf(name).color)).size).toBe(names.length);
  expect(caretOf("Ada", 1).color).not.toBe(caretOf("Ada", 2).color);
});

test.each([
  ["Ada", "Ad"],
  ["alan", "Al"],
  ["Ada 2 (bot)", "A2"],
  ["X", "X"],
  ["ada lovelace", "AL"],
  ["Jean-Luc de la Tour", "JT"],
  ["🌱 garden", "🌱G"],
  ["Ada (bot)", "Ad"],
  ["-", ""],
])("[PAGE5] the initials of %s are %s", (name, initials) => {
  expect(initialsOf(name)).toBe(initials);
});
