import type { Participant } from "@coroom/client";
import { expect, test } from "vitest";

import { countRemark, inOrder, modeRemark, personOf } from "./people.ts";

const participant = (more: Partial<Participant>): Participant => ({
  client: "ann" as Participant["client"],
  user: "u" as Participant["user"],
  name: "Ann",
  role: "editor",
  canWrite: true,
  self: false,
  cursor: undefined,
  selection: undefined,
  viewport: undefined,
  fields: {},
  ...more,
});

test("[PAGE6] a person has the name chosen on the page, or else the name in the token", () => {
  expect(personOf(participant({ fields: { user: { name: " Anna \n" } } })).name).toBe("Anna");
  for (const user of [undefined, null, "Anna", { name: 7 }, { name: " " }])
    expect(personOf(participant({ fields: { user } })).name).toBe("Ann");
  expect(personOf(participant({ name: "" })).name).toBe("Somebody");
  expect(personOf(participant({ name: "x".repeat(200) })).name).toHaveLength(40);
});

test("[PAGE6] the order is: the reader, editors by name, bots, spectators", () => {
  const people = [
    ["d", "Dan", "spectator"],
    ["b", "Bob", "editor"],
    ["s", "Zoe", "editor"],
    ["a", "Ann", "editor"],
  ].map(([client, name, role]) =>
    personOf(
      participant({ client: client as Participant["client"], name: name!, role: role as Participant["role"], self: client === "s" }),
    ),
  );
  const bot = personOf(participant({ client: "bot" as Participant["client"], user: "bot-1" as Participant["user"], name: "Aaron" }));
  expect(inOrder([bot, ...people]).map(({ name }) => name)).toEqual(["Zoe", "Ann", "Bob", "Aaron", "Dan"]);
});

test("[PAGE6] a dragged shape is shown at its current position if that position is valid", () => {
  expect(personOf(participant({ fields: { holding: { shape: "a", place: { x: 1, y: 2 } } } })).holding).toEqual({
    shape: "a",
    place: { x: 1, y: 2 },
  });
  for (const holding of [
    null,
    1,
    { shape: "a" },
    { shape: 1, place: { x: 1, y: 2 } },
    { shape: "a", place: { x: Infinity, y: 0 } },
    { shape: "a", place: "here" },
  ]) {
    expect(personOf(participant({ fields: { holding } })).holding).toBeUndefined();
  }
});

test("[PAGE38] the number of people and the presence mode are shown as text", () => {
  const people = (count: number, bots = 0) => Array.from({ length: count + bots }, (_, index) => ({ bot: index >= count }));
  expect([people(0), people(1), people(2), people(1200)].map(countRemark)).toEqual(["–", "Only you", "2 people", "1,200 people"]);
  expect([people(1, 1), people(1, 300), people(2, 60)].map(countRemark)).toEqual([
    "You and 1 bot",
    "You and 300 bots",
    "2 people and 60 bots",
  ]);
  const mode = { mode: "flat", participants: 2, presencePerSecond: 30, shed: 0 } as const;
  expect([undefined, mode, { ...mode, mode: "hierarchical", shed: 2 } as const].map(modeRemark)).toEqual([
    "",
    "Presence is flat: every page receives all pointers, at most 30 updates a second per person.",
    "Presence is hierarchical: each page receives the pointers in its view, at most 30 updates a second per person, fewer under load.",
  ]);
  expect(modeRemark({ ...mode, presencePerSecond: 1, shed: 5 })).toContain("at most 1 update a second per person");
  expect([6, 8].map((shed) => modeRemark({ ...mode, presencePerSecond: 1, shed }))).toEqual([
    "Presence is flat: every page receives all pointers. The server is overloaded now: pointers move every two seconds. Edits are not affected.",
    "Presence is flat: every page receives all pointers. The server is overloaded now: pointers move every two seconds, and new people and bots wait. Edits are not affected.",
  ]);
});
