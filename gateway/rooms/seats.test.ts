import { expect, test } from "vitest";

import { type ClientId, type Epoch, type RoomKey, type Seq, START } from "../../shared/ids.ts";
import { Seats } from "./seats.ts";

const ROOM = "acme.notes" as RoomKey;
const CLIENT = "client0000000001" as ClientId;
const BEHIND = { epoch: 1 as Epoch, seq: 7 as Seq };

/** A room without limits, except those given here. */
function answer(
  position: typeof BEHIND | typeof START,
  { isFull = false, isFullHere = false, isOverBudget = false, isKnown = false, connections = 0, isFullFor }: Partial<RoomNow> = {},
): string {
  const seats = new Seats({
    quotas: { isRoomFull: () => isFull, isRoomFullHere: () => isFullHere, isOverBudget: () => isOverBudget },
    presence: { knows: () => isKnown, isFullFor: () => isFullFor },
    connectionCountOf: () => connections,
  });
  return seats.limitOf(ROOM, { client: CLIENT, position }) ?? "come in";
}

type RoomNow = {
  isFull: boolean;
  isFullHere: boolean;
  isOverBudget: boolean;
  isKnown: boolean;
  connections: number;
  isFullFor: boolean | undefined;
};

test("[SEAT1] every client may join a room that is not full, and no new client a full one", () => {
  expect([answer(START), answer(BEHIND), answer(START, { isFull: true })]).toEqual(["come in", "come in", "room"]);
});

test("[SEAT2] a client that presence knows may join a full room again, with up to three connections a gateway", () => {
  const known = { isFull: true, isFullHere: true, isKnown: true };
  expect([0, 2, 3].map((connections) => answer(START, { ...known, connections }))).toEqual(["come in", "come in", "room"]);
  expect(answer(BEHIND, { ...known, connections: 3 }), "a position helps no further").toBe("room");
});

test("[SEAT3] an unknown client has a seat by its position, while this gateway has fewer members than the room's limit", () => {
  expect([answer(BEHIND, { isFull: true }), answer(BEHIND, { isFull: true, isFullHere: true })]).toEqual(["come in", "room"]);
});

test("[SEAT4] a room that is over its budget according to presence, or without presence to the room server, admits no new client", () => {
  expect([answer(START, { isFullFor: true }), answer(BEHIND, { isFullFor: true })]).toEqual(["room-budget", "room-budget"]);
  expect(answer(START, { isFullFor: false, isOverBudget: true }), "its presence knows better").toBe("come in");
  expect([answer(START, { isOverBudget: true }), answer(BEHIND, { isOverBudget: true })]).toEqual(["room-budget", "come in"]);
});

test("[SEAT5] a client with a seat in a full room is rejected while the room's presence reports that it is full for the client", () => {
  expect(answer(BEHIND, { isFull: true, isFullFor: true })).toBe("room-budget");
});
