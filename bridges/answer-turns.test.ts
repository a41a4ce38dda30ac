import { expect, test } from "vitest";

import type { TenantId } from "../shared/ids.ts";
import { FakeClock } from "../shared/testing/fake-clock.ts";
import { AnswerTurns } from "./answer-turns.ts";

const MIB = 1024 ** 2;

/** Clients whose answers are made at once, unless `isMade` is false. */
function rig(bytesMax: number) {
  const clock = new FakeClock(0);
  const turns = new AnswerTurns(bytesMax, clock);
  const begun: string[] = [];
  const closed: string[] = [];
  const add = (name: string, bytes: number, { tenant = "acme", user = name, isMade = true } = {}) => {
    const reader = {
      owner: { tenant: tenant as TenantId, user },
      isOpen: true,
      waitingBytes: 0,
      close: () => {
        closed.push(name);
        reader.isOpen = false;
      },
    };
    turns.add(reader, bytes, (sent) => {
      begun.push(name);
      if (!isMade) return;
      reader.waitingBytes = bytes;
      sent(bytes);
    });
    return reader;
  };
  return { clock, begun, closed, add };
}

test("[YAT1] the long answers of a user come one at a time, and short answers do not wait", () => {
  const { clock, begun, add } = rig(100 * MIB);
  const first = add("a1", MIB, { user: "ann" });
  add("a2", MIB, { user: "ann" });
  add("a3", MIB - 1, { user: "ann" });
  add("ben", MIB);
  add("namesake", MIB, { user: "ann", tenant: "other" });
  expect(begun).toEqual(["a1", "a3", "ben", "namesake"]);
  first.waitingBytes = MIB - 1; // Later messages.
  clock.turn(100);
  expect(begun).toEqual(["a1", "a3", "ben", "namesake", "a2"]);
});

test("[YAT2] all long answers share a limit, but an answer above it still has its turn, alone", () => {
  const { clock, begun, add } = rig(4 * MIB);
  const read = ["ann", "ben"].map((name) => add(name, 2 * MIB));
  const huge = add("huge", 10 * MIB);
  add("cleo", 2 * MIB);
  read[0]!.waitingBytes = 0;
  clock.turn(100);
  expect(begun, "the huge one is not overtaken").toEqual(["ann", "ben"]);
  read[1]!.waitingBytes = 0;
  clock.turn(100);
  expect(begun).toEqual(["ann", "ben", "huge"]);
  huge.waitingBytes = 0;
  clock.turn(100);
  expect(begun).toEqual(["ann", "ben", "huge", "cleo"]);
});

test("[YAT3] the next turn goes to the tenant with the fewest bytes, whoever came first", () => {
  const { clock, begun, add } = rig(4 * MIB);
  const [first] = ["e1", "e2"].map((name) => add(name, 2 * MIB, { tenant: "evil" }));
  add("e3", 2 * MIB, { tenant: "evil" });
  add("ann", 2 * MIB);
  first!.waitingBytes = 0;
  clock.turn(100);
  expect(begun).toEqual(["e1", "e2", "ann"]);
});

test("[YAT4] clients that do not read a long answer for 30 s are closed, but only while others wait", () => {
  const { clock, begun, closed, add } = rig(2 * MIB);
  const slow = add("slow", 2 * MIB);
  clock.turn(60_000);
  expect(closed).toEqual([]);
  add("ann", 2 * MIB);
  expect([begun, closed]).toEqual([["slow"], ["slow"]]);
  clock.turn(1_000);
  expect(begun, "the socket still has the answer").toEqual(["slow"]);
  slow.waitingBytes = 0;
  clock.turn(100);
  expect(begun).toEqual(["slow", "ann"]);
});

test("[YAT5] a client that leaves has no turn, and gives back the turn whose answer was not made", () => {
  const { clock, begun, add } = rig(2 * MIB);
  const first = add("first", 2 * MIB, { isMade: false });
  const second = add("second", 2 * MIB);
  add("third", 2 * MIB);
  second.isOpen = false;
  first.isOpen = false;
  clock.turn(100);
  expect(begun).toEqual(["first", "third"]);
});
