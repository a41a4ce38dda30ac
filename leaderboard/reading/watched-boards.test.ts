import { expect, test } from "vitest";

import type { Millis, RoomKey } from "../../shared/ids.ts";
import { WatchedBoards } from "./watched-boards.ts";

const [A, B] = ["acme.a", "acme.b"] as RoomKey[] as [RoomKey, RoomKey];
const at = (ms: number) => ms as Millis;
const UNTIL = at(10_000);

function begin() {
  const watched = new WatchedBoards({ boardPushMs: 500 });
  const take = (now: number, countMax = 9) => {
    const { due, anew } = watched.take(at(now), countMax);
    for (const room of due) room.pushedAt = at(now);
    return { due: due.map(({ room }) => room), anew: anew.map(({ room }) => room) };
  };
  return { watched, take };
}

test("[WATCH1] a room is due when it changed, once in the interval, however many of its boards are looked at", () => {
  const { watched, take } = begin();
  for (const kind of ["day", "week", "all"] as const) watched.add(A, "everyone", kind, UNTIL);
  expect(take(0)).toEqual({ due: [A], anew: [] });
  watched.receiveChange(A);
  watched.receiveChange(A);
  expect(take(499)).toEqual({ due: [], anew: [] });
  expect(take(500)).toEqual({ due: [A], anew: [] });
  expect(take(1_500)).toEqual({ due: [], anew: [] });
});

test("[WATCH2] no more are taken at a time than may be told of at a time; the others are taken next", () => {
  const { watched, take } = begin();
  for (const room of [A, B]) watched.add(room, "everyone", "day", UNTIL);
  expect([take(0, 1).due, take(0, 1).due, take(0, 1).due]).toEqual([[A], [B], []]);
});

test("[WATCH3] who is new within the interval is told again what was told, and a room that is being told of waits", () => {
  const { watched, take } = begin();
  const board = watched.add(A, "everyone", "day", UNTIL);
  take(0);
  watched.receiveChange(A);
  watched.sayAnew(A, board);
  expect(take(100)).toEqual({ due: [], anew: [A] });
  expect(take(200)).toEqual({ due: [], anew: [] });
  expect(take(500)).toEqual({ due: [A], anew: [] });
});

test("[WATCH4] a board that nobody looks at any more goes, and its room with the last", () => {
  const { watched } = begin();
  watched.add(A, "everyone", "day", at(100));
  watched.add(A, "everyone", "week", UNTIL);
  const look = { counted: () => "elsewhere" as const, windowIdOf: () => "" };
  watched.sweep(at(200), look);
  expect([watched.size, [...watched.rooms]]).toEqual([1, [A]]);
  watched.sweep(at(20_000), look);
  expect([watched.size, [...watched.rooms]]).toEqual([0, []]);
});
