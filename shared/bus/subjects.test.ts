import fc from "fast-check";
import { expect, test } from "vitest";

import { type GatewayId, parseRoomId, roomKey, type RoomKey, type ServerId, type TenantId } from "../ids.ts";
import { partitionOf, roomOfSubject, subjectsOf } from "./subjects.ts";

const subjects = subjectsOf("staging-2");
const gateway = "g1" as GatewayId;
const room = fc
  .tuple(fc.constantFrom("acme", "t-1", "_"), fc.string({ minLength: 1, maxLength: 128, unit: "grapheme" }))
  .filter(([, name]) => parseRoomId(name) !== undefined)
  .map(([tenant, name]) => roomKey(tenant as TenantId, parseRoomId(name)!));

test("[SUB1] the room can be parsed from each of its subjects", () => {
  fc.assert(
    fc.property(room, (key) => {
      for (const subject of [
        subjects.toOwner(key),
        subjects.editsOut(key),
        subjects.toGateway(gateway, key),
        subjects.log(3, key),
        subjects.boards(key),
      ]) {
        expect(roomOfSubject(subject)).toBe(key);
      }
    }),
  );
});

test("[SUB2] a room's name never adds a wildcard, a dot or a space to a subject", () => {
  fc.assert(
    fc.property(room, (key) => {
      expect(subjects.toOwner(key)).toMatch(/^staging-2\.owner\.[A-Za-z0-9_-]+\.[A-Za-z0-9_=-]+$/);
    }),
  );
});

test("[SUB3] each subject that is published for a room matches a subscription", () => {
  const key = "acme.notes=2edraft" as RoomKey;
  const server = "s1" as ServerId;
  expect(matches(subjects.allToGateway(gateway), subjects.toGateway(gateway, key))).toBe(true);
  expect(matches(subjects.allToGateway("g2" as GatewayId), subjects.toGateway(gateway, key))).toBe(false);
  expect(matches(subjects.logOfPartition(7), subjects.log(7, key))).toBe(true);
  expect(matches(subjects.logOfPartition(7), subjects.log(71, key))).toBe(false);
  expect(matches(subjects.allAppended(server), subjects.appended(server, "t0ken"))).toBe(true);
});

test("[SUB4] a stored record is republished on the subject to which the room's gateways subscribe", () => {
  const key = "acme.notes=2edraft" as RoomKey;
  const [tenant, name] = key.split(".");
  expect(subjects.logRepublished.replace("{{wildcard(1)}}", tenant!).replace("{{wildcard(2)}}", name!)).toBe(subjects.editsOut(key));
});

test.each([
  "",
  "owner",
  "staging.owner.acme",
  "staging.owner.ac me.notes",
  "staging.owner.acme.*",
  "staging.owner.acme.>",
  "staging.owner.acme.",
])("[SUB5] %j does not end with a valid room", (subject) => {
  const found = roomOfSubject(subject);
  expect(found === undefined || !subjects.toOwner(found).startsWith(subject)).toBe(true);
});

test("[SUB6] rooms spread evenly over the partitions even if their names are similar", () => {
  const families: readonly ((index: number) => string)[] = [
    (index) => `acme.doc-${index}`,
    (index) => `acme.${String(index).padStart(8, "0")}`,
    (index) => `tenant-${index}.main`,
    (index) => `acme.${(Math.imul(index, 2_654_435_761) >>> 0).toString(16)}`,
  ];
  for (const family of families) {
    for (const partitions of [2, 3, 8, 16, 31]) {
      const counts = Array.from({ length: partitions }, () => 0);
      for (let index = 0; index < 8_192; index++) counts[partitionOf(family(index) as RoomKey, partitions)]! += 1;
      const fair = 8_192 / partitions;
      expect(Math.max(...counts) / fair, `${family(0)} over ${partitions}`).toBeLessThan(1.25);
      expect(Math.min(...counts) / fair, `${family(0)} over ${partitions}`).toBeGreaterThan(0.75);
    }
  }
});

test("[SUB7] a room's partition stays the same for the life of a deployment", () => {
  // Never change these values: rooms would be searched in partitions that do not have their edits.
  const pinned = { "acme.notes": 880, "acme.notes=2edraft": 437, "t-1.=ce=b1": 6, "_.a": 939 };
  expect(Object.fromEntries(Object.keys(pinned).map((key) => [key, partitionOf(key as RoomKey, 1_000)]))).toEqual(pinned);
});

/** NATS's own rule for one-token wildcards. */
function matches(pattern: string, subject: string): boolean {
  const [patterns, tokens] = [pattern.split("."), subject.split(".")];
  return patterns.length === tokens.length && patterns.every((part, index) => part === "*" || part === tokens[index]);
}
