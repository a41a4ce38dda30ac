import { Registry } from "prom-client";
import { expect, test } from "vitest";

import type { BoardUpdate } from "../../shared/bus/board-messages.ts";
import type { RoomKey } from "../../shared/ids.ts";
import { FakeClock } from "../../shared/testing/fake-clock.ts";
import type { BoardContents } from "../boards/board.ts";
import { WINDOW_KINDS } from "../boards/windows.ts";
import { LiveHost } from "./live-host.ts";
import type { Counted } from "./watched-boards.ts";
import { leaderboardMetrics } from "../metrics.ts";

const ROOM = "acme.notes" as RoomKey;
const PUSH_MS = 500;
const watch = (isNew: boolean, role = "everyone") => ({ room: ROOM, role, window: "day", isNew });

function begin() {
  const [clock, updates] = [new FakeClock(), [] as BoardUpdate[]];
  const world = { counted: "current" as Counted, score: 1, uncounted: 0, isAway: false, reads: 0 };
  const readNow = (): Promise<BoardContents> => {
    world.reads += 1;
    if (world.isAway) return Promise.reject(new Error("Redis is away"));
    return Promise.resolve({
      applied: undefined,
      hot: [{ member: "ann", score: world.score, reachedAt: 1 }],
      members: 1,
      points: world.score,
      bands: new Map(),
      isOrdered: false,
    });
  };
  let recent: Promise<BoardContents> | undefined;
  const reader = { readNow: () => (recent = readNow()), readRecent: () => recent ?? readNow(), ownPlaces: () => Promise.resolve([]) };
  const countNow = (): Promise<void> => {
    [world.score, world.uncounted] = [world.score + world.uncounted, 0];
    return Promise.resolve();
  };
  const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
  const options = {
    boardRoles: ["everyone" as const],
    boardWindows: WINDOW_KINDS,
    boardShownMax: 10,
    boardPushMs: PUSH_MS,
    boardWatchMs: 5_000,
    boardWatchesMax: 2,
    boardWritesMax: 4,
  };
  const ports = {
    reader,
    names: { namesOf: () => Promise.resolve(new Map()) },
    shown: { publish: (one: BoardUpdate) => void updates.push(one) },
  };
  const live = new LiveHost(ports, options, {
    clock,
    log,
    metrics: leaderboardMetrics(new Registry()),
    counted: () => world.counted,
    countNow,
  });
  const published = () => updates.splice(0).map((one) => (one.kind === "shown" ? one.ranking[0]![1] : one.kind));
  return { clock, world, live, updates, published };
}

test("[LIVE1] a new watcher receives the board though nothing changed, and a repeated watch does not", async () => {
  const { clock, live, published } = begin();
  live.receiveWatch(watch(true));
  await clock.advance(100);
  expect(published()).toEqual([1]);
  live.receiveWatch(watch(false));
  live.receiveChange(ROOM);
  await clock.advance(1_000);
  expect(published()).toEqual([]);
  live.receiveWatch(watch(true));
  await clock.advance(1_000);
  expect(published()).toEqual([1]);
});

test("[LIVE2] a board that changes all the time is published once in the push interval, including its last state", async () => {
  const { clock, world, live, published } = begin();
  live.receiveWatch(watch(true));
  for (let change = 0; change < 100; change++) {
    world.score += 1;
    live.receiveChange(ROOM);
    await clock.advance(20);
  }
  await clock.advance(PUSH_MS);
  const shown = published();
  expect(shown.length).toBeLessThanOrEqual(2_600 / PUSH_MS + 1);
  expect(shown.at(-1)).toBe(101);
});

test("[LIVE3] a board that falls behind is reported once, and is published again when it is current", async () => {
  const { clock, world, live, published } = begin();
  live.receiveWatch(watch(true));
  await clock.advance(600);
  world.counted = "behind";
  await clock.advance(3_000);
  world.counted = "current";
  await clock.advance(1_000);
  expect(published()).toEqual([1, "behind", 1]);
});

test("[LIVE4] a Redis that does not answer is asked once in the push interval, and makes the board behind", async () => {
  const { clock, world, live, published } = begin();
  live.receiveWatch(watch(true));
  await clock.advance(600);
  [world.isAway, world.reads] = [true, 0];
  live.receiveChange(ROOM);
  await clock.advance(2_000);
  expect(world.reads).toBeLessThanOrEqual(2_000 / PUSH_MS + 1);
  world.isAway = false;
  await clock.advance(1_000);
  expect(published()).toEqual([1, "behind", 1]);
});

test("[LIVE5] only the leaderboard that counts the room publishes it, and a successor publishes it immediately", async () => {
  const { clock, world, live, published } = begin();
  world.counted = "elsewhere";
  live.receiveWatch(watch(true));
  live.receiveWatch(watch(true, "editors"));
  await clock.advance(1_000);
  expect(published()).toEqual([]);
  world.counted = "current";
  await clock.advance(PUSH_MS + 100);
  expect(published()).toEqual([1]);
});

test("[LIVE6] an unknown board is reported as unavailable, and one over the maximum as behind; an unwatched board is forgotten", async () => {
  const { clock, live, published } = begin();
  live.receiveWatch(watch(true, "editors"));
  for (const window of ["hour", "week", "month"]) live.receiveWatch({ ...watch(true), window });
  expect(published()).toEqual(["unavailable", "behind"]);
  await clock.advance(6_000); // Longer than a watch is valid.
  published();
  live.receiveWatch({ ...watch(true), window: "month" });
  await clock.advance(100);
  expect(published()).toEqual([1]);
});

test("[LIVE7] entries that are not counted when a board is due are counted before it is published", async () => {
  const { clock, world, live, published } = begin();
  live.receiveWatch(watch(true));
  await clock.advance(100);
  published();
  live.receiveChange(ROOM);
  world.uncounted = 5;
  await clock.advance(PUSH_MS);
  expect(published()).toEqual([6]);
});

test("[LIVE8] a room's boards are published together, once in the push interval", async () => {
  const { clock, world, live, updates } = begin();
  live.receiveWatch(watch(true));
  live.receiveWatch({ ...watch(true), window: "week" });
  await clock.advance(PUSH_MS + 100);
  updates.splice(0);
  for (let change = 0; change < 20; change++) {
    world.score += 1;
    live.receiveChange(ROOM);
    await clock.advance(100);
    if (updates.length > 0) expect(updates.splice(0).map((one) => one.window)).toEqual(["day", "week"]);
  }
});

test("[LIVE9] a new watcher within the interval receives what the others received, and the next state with them", async () => {
  const { clock, world, live, published } = begin();
  live.receiveWatch(watch(true));
  await clock.advance(50);
  expect(published()).toEqual([1]);
  world.score = 2;
  live.receiveChange(ROOM);
  live.receiveWatch(watch(true));
  await clock.advance(50);
  expect(published()).toEqual([1]);
  await clock.advance(PUSH_MS);
  expect(published()).toEqual([2]);
});

test("[LIVE10] without watchers no timer runs, and the next watcher starts it again", async () => {
  const { clock, live, published } = begin();
  expect(clock.pending).toBe(0);
  live.receiveWatch(watch(true));
  await clock.advance(6_000);
  published();
  expect(clock.pending).toBe(0);
  live.receiveWatch(watch(true));
  await clock.advance(100);
  expect(published()).toEqual([1]);
  live.stop();
  expect(clock.pending).toBe(0);
});
