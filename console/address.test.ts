import { expect, test } from "vitest";

import { parseAddress, parseName, personIn, searchOf } from "./address.ts";

test("[PAGE1] an address names the room, the person and a reader", () => {
  expect(parseAddress("?room=notes%20of%20may&name=Ada&rights=read")).toEqual({ room: "notes of may", name: "Ada", rights: "read" });
});

test("[PAGE1] an empty address opens the welcome room without a name", () => {
  expect(parseAddress("")).toEqual({ room: "welcome", name: undefined, rights: undefined });
});

test.each([
  ["?room=%00%07", "welcome", "control characters only"],
  ["?room=a%0Ab", "a b", "a line break"],
  ["?room=%20%20", "welcome", "spaces"],
  ["?room=..", "welcome", "the parent folder"],
  [`?room=${"x".repeat(500)}`, "x".repeat(128), "too long"],
  [`?room=${"x".repeat(127)}%F0%9F%8C%B1`, `${"x".repeat(127)}\uFFFD`, "an emoji across the limit"],
])("[PAGE2] %s opens a room that exists: %s (%s)", (search, room) => {
  expect(parseAddress(search).room).toBe(room);
});

test("[PAGE2] parsing cuts a name to the characters that fit beside a face", () => {
  expect(parseName("  Ada \n Lovelace ")).toBe("Ada Lovelace");
  expect(parseName("Ada\u202e \u2066Lovelace"), "text after it keeps its direction").toBe("Ada Lovelace");
  expect(parseName("a".repeat(99))).toHaveLength(40);
  expect(parseName(" ")).toBeUndefined();
  expect([parseName("\u200b\u2060"), parseName("👩\u200d💻")]).toEqual([undefined, "👩\u200d💻"]);
  expect(["\u3164", "\u2800 \u115f"].map(parseName), "shown as nothing").toEqual([undefined, undefined]);
});

test("[PAGE3] an invitation link carries the room and no name", () => {
  const { room } = parseAddress("?room=a+%26+b&name=Ada");
  expect(searchOf({ room })).toBe("?room=a+%26+b");
  expect(parseAddress(searchOf({ room, name: "Grace & Co" }))).toEqual({ room: "a & b", name: "Grace & Co", rights: undefined });
});

test("[PAGE22] a reloaded page keeps its user id and name, and ignores any other history state", () => {
  expect(personIn({ user: "Ada", name: "Countess" })).toEqual({ user: "Ada", name: "Countess" });
  const others = [
    null,
    undefined,
    "Ada",
    {},
    { user: "Ada" },
    { user: 7, name: "Ada" },
    { user: "Ada", name: 7 },
    { user: " ", name: "Ada" },
  ];
  for (const state of others) expect(personIn(state)).toBeUndefined();
});
