import { expect, test } from "vitest";

import type { Millis, RoomKey } from "../../shared/ids.ts";
import { WatchedBoards } from "./watched-boards.ts";

const [A, B] = ["acme.a", "acme.b"] as RoomKey[] as [RoomKey, RoomKey];
const at = (ms: number) => ms as Millis;
const UNTIL = at(10_000);

function begin() {
  const watched = new WatchedBoards({ boardPushMs: 500, boardWatchesMax: 100 });
  const take = (now: number, countMax = 9) => {
    const { due, again } = watched.take(at(now), countMax);
    for (const room of due) room.pushedAt = at(now);
    return { due: due.map(({ room }) => room), again: again.map(({ room }) => room) };
  };
  return { watched, take };
}

test("[WATCH1] a changed room with several watched boards is due once per interval", () => {
  const { watched, take } = begin();
  for (const kind of ["day", "week", "all"] as const) watched.add(A, "everyone", kind, UNTIL);
  expect(take(0)).toEqual({ due: [A], again: [] });
  watched.receiveChange(A);
  watched.receiveChange(A);
  expect(take(499)).toEqual({ due: [], again: [] });
  expect(take(500)).toEqual({ due: [A], again: [] });
  expect(take(1_500)).toEqual({ due: [], again: [] });
});

test("[WATCH2] no more rooms are taken than may be published at a time; the others are taken next", () => {
  const { watched, take } = begin();
  for (const room of [A, B]) watched.add(room, "everyone", "day", UNTIL);
  expect([take(0, 1).due, take(0, 1).due, take(0, 1).due]).toEqual([[A], [B], []]);
});

test("[WATCH3] a new watcher within the interval receives the last state again, and a room that is being published waits", () => {
  const { watched, take } = begin();
  const board = watched.add(A, "everyone", "day", UNTIL);
  take(0);
  watched.receiveChange(A);
  watched.publishAgain(A, board);
  expect(take(100)).toEqual({ due: [], again: [A] });
  expect(take(200)).toEqual({ due: [], again: [] });
  expect(take(500)).toEqual({ due: [A], again: [] });
});

test("[WATCH4] an unwatched board is removed, and its room with the last board", () => {
  const { watched } = begin();
  watched.add(A, "everyone", "day", at(100));
  watched.add(A, "everyone", "week", UNTIL);
  const look = { counted: () => "elsewhere" as const, windowIdOf: () => "" };
  watched.sweep(at(200), look);
  expect([watched.size, [...watched.rooms]]).toEqual([1, [A]]);
  watched.sweep(at(20_000), look);
  expect([watched.size, [...watched.rooms]]).toEqual([0, []]);
});
