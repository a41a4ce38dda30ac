import { expect, test } from "vitest";

import { type ClientId, type Epoch, type RoomKey, type Seq, START } from "../../shared/ids.ts";
import { Seats } from "./seats.ts";

const ROOM = "acme.notes" as RoomKey;
const CLIENT = "client0000000001" as ClientId;
const BEHIND = { epoch: 1 as Epoch, seq: 7 as Seq };

/** A room in which there is room for everybody, but for what is said here. */
function answer(
  position: typeof BEHIND | typeof START,
  { isFull = false, isFullHere = false, isOverBudget = false, isKnown = false, lines = 0, isFullFor }: Partial<RoomNow> = {},
): string {
  const seats = new Seats({
    quotas: { isRoomFull: () => isFull, isRoomFullHere: () => isFullHere, isOverBudget: () => isOverBudget },
    presence: { knows: () => isKnown, isFullFor: () => isFullFor },
    linesOf: () => lines,
  });
  return seats.limitOf(ROOM, { client: CLIENT, position }) ?? "come in";
}

type RoomNow = {
  isFull: boolean;
  isFullHere: boolean;
  isOverBudget: boolean;
  isKnown: boolean;
  lines: number;
  isFullFor: boolean | undefined;
};

test("[SEAT1] anybody comes into a room that is not full, and nobody new into one that is", () => {
  expect([answer(START), answer(BEHIND), answer(START, { isFull: true })]).toEqual(["come in", "come in", "room"]);
});

test("[SEAT2] whoever the room's presence knows comes again to a full room, however new it says it is, over three lines of a gateway", () => {
  const known = { isFull: true, isFullHere: true, isKnown: true };
  expect([0, 2, 3].map((lines) => answer(START, { ...known, lines }))).toEqual(["come in", "come in", "room"]);
  expect(answer(BEHIND, { ...known, lines: 3 }), "a position helps no further").toBe("room");
});

test("[SEAT3] whoever is not known has a seat by its position, while this gateway alone has not as many as may be in the room", () => {
  expect([answer(BEHIND, { isFull: true }), answer(BEHIND, { isFull: true, isFullHere: true })]).toEqual(["come in", "room"]);
});

test("[SEAT4] a room that is held back takes nobody new: as its presence says, or where that is not followed as its room server does", () => {
  expect([answer(START, { isFullFor: true }), answer(BEHIND, { isFullFor: true })]).toEqual(["room-budget", "room-budget"]);
  expect(answer(START, { isFullFor: false, isOverBudget: true }), "its presence knows better").toBe("come in");
  expect([answer(START, { isOverBudget: true }), answer(BEHIND, { isOverBudget: true })]).toEqual(["room-budget", "come in"]);
});

test("[SEAT5] who has a seat in a full room is kept out all the same while the room is held back from it", () => {
  expect(answer(BEHIND, { isFull: true, isFullFor: true })).toBe("room-budget");
});
