import fc from "fast-check";
import { expect, test } from "vitest";
import {
  parseClientId,
  parseClientKey,
  parseRoomId,
  parseRoomKey,
  parseTenantId,
  roomKey,
  roomOf,
  tenantOf,
  type RoomId,
  type TenantId,
} from "./ids.ts";

const acme = "acme" as TenantId;

test("[IDS1] a room's key is two subject-safe tokens and gives the room back", () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1, maxLength: 128, unit: "grapheme" }), (text) => {
      const room = parseRoomId(text);
      if (room === undefined) return;
      const key = roomKey(acme, room);
      expect(key).toMatch(/^[A-Za-z0-9_-]+\.[A-Za-z0-9_=-]+$/);
      expect(parseRoomKey(key)).toBe(key);
      expect([tenantOf(key), roomOf(key)]).toEqual([acme, room]);
    }),
  );
});

test("[IDS2] different rooms have different keys", () => {
  const key = (room: string) => roomKey(acme, room as RoomId);
  expect(new Set([key("a.b"), key("a=2eb"), key("a/b"), key("a b"), key("a%2eb")]).size).toBe(5);
  expect(key("notes.draft*>")).toBe("acme.notes=2edraft=2a=3e");
});

test.each([
  ["bytes that are no UTF-8", "acme.=ff"],
  ["half of a character", "acme.a=c3"],
  ["a character that needs no escape", "acme.=61"],
  ["a control character", "acme.=00"],
  ["a room id that vanishes from a URL's path", "acme.=2e=2e"],
  ["a room id that is too long", `acme.${"x".repeat(129)}`],
])("[IDS4] a text that no room has as its key is refused: %s", (_, text) => {
  expect(parseRoomKey(text)).toBeUndefined();
});

test.each(["", "a\u0000b", "x".repeat(129), "\ud800", ".", ".."])("[IDS3] %j is no room id", (text) => {
  expect(parseRoomId(text)).toBeUndefined();
});

test("[IDS3] every room id can be put into a URL's path unchanged", () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1, maxLength: 4, unit: fc.constantFrom(".", "/", "%", "2", "e", "?", "#", "\\") }), (text) => {
      const room = parseRoomId(text);
      if (room === undefined) return;
      const { pathname } = new URL(`/v1/rooms/${encodeURIComponent(room)}/snapshot`, "http://h");
      expect(decodeURIComponent(pathname.split("/")[3]!)).toBe(room);
      expect(pathname.endsWith("/snapshot")).toBe(true);
    }),
  );
});

test("[IDS3] tenants and clients hold only URL-safe characters", () => {
  expect([parseTenantId("a.b"), parseTenantId(""), parseClientKey("short"), parseClientKey("has space here")]).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
  expect(parseClientKey("Zk3_-abcdefg")).toBe("Zk3_-abcdefg");
  expect(parseClientId("Zk3_-abcdefgHIJK")).toBe("Zk3_-abcdefgHIJK");
});
