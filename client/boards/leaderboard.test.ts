/** Boards as an application sees them, on a model server. */

import { expect, test } from "vitest";

import type { RoomId, Seq, UserId } from "../../shared/ids.ts";
import type { BoardFrame } from "../../shared/wire/frames.ts";
import type { Board } from "./leaderboard.ts";
import { RoomHost } from "../room/room-host.ts";
import { FakeClock } from "../testing/fake-clock.ts";
import { ModelServer } from "../testing/model-server.ts";

const serverOn = (): ModelServer => new ModelServer(new FakeClock(), { faults: { delayMsMax: 5 } });
const appOn = (server: ModelServer, seed = 1): RoomHost =>
  new RoomHost({ url: "ws://h", token: "t", room: "notes" as RoomId }, server.world(seed));
const boardOf = (ranking: [string, number][], change: Partial<BoardFrame> = {}): BoardFrame => ({
  type: "board",
  channel: 1,
  role: "everyone",
  window: "hour",
  state: "live",
  windowId: "2026-07-01T12",
  epoch: 1,
  seq: 5 as Seq,
  members: ranking.length,
  ranking: ranking.map(([user, score]) => ({ user: user as UserId, name: user === "ann" ? "Ann" : "", score })),
  ...change,
});
const asked = (server: ModelServer): string[] =>
  server.heard.flatMap((frame) => (frame.type === "watch-board" ? [`${frame.role} ${frame.window} ${frame.shown}`] : []));

/** What each change showed. */
function record(board: Board): string[] {
  const told: string[] = [];
  board.on("change", ({ state, ranking, own }) =>
    told.push(
      `${state}: ${ranking.map(({ rank, name, score }) => `${rank} ${name} ${score}`).join(", ")}${own === undefined ? "" : `; own ${own.rank}`}`,
    ),
  );
  return told;
}

test("[LBO1] a board is asked for once joined, and goes along", async () => {
  const server = serverOn();
  const board = appOn(server).leaderboard.subscribe({ window: "hour", shown: 2 });
  const told = record(board);
  await server.clock.advance(1_000);
  expect([asked(server), board.state]).toEqual([["everyone hour 2"], "waiting"]);
  server.send(
    boardOf([
      ["ann", 9],
      ["bob", 4],
      ["cy", 1],
    ]),
  );
  server.send({ type: "own-rank", channel: 1, role: "everyone", window: "hour", rank: 3, score: 1 });
  await server.clock.advance(100);
  expect(told).toEqual(["live: 1 Ann 9, 2 bob 4", "live: 1 Ann 9, 2 bob 4; own 3"]);
  expect([board.windowId, board.members, board.seq]).toEqual(["2026-07-01T12", 3, 5]);
});

test("[LBO2] nothing is told where nothing of what is shown changed", async () => {
  const server = serverOn();
  const told = record(appOn(server).leaderboard.subscribe({ window: "hour", shown: 1 }));
  await server.clock.advance(1_000);
  for (const score of [4, 5, 6])
    server.send(
      boardOf([
        ["ann", 9],
        ["bob", score],
      ]),
    );
  await server.clock.advance(100);
  expect(told).toEqual(["live: 1 Ann 9"]);
});

test("[LBO3] after a lost line, and on another gateway, boards are asked for again; what was shown stays", async () => {
  const server = serverOn();
  const board = appOn(server).leaderboard.subscribe({ window: "hour" });
  await server.clock.advance(1_000);
  server.send(boardOf([["ann", 9]]));
  await server.clock.advance(100);
  server.cut();
  await server.clock.advance(10);
  expect([board.state, board.ranking.length]).toEqual(["waiting", 1]);
  await server.clock.advance(10_000);
  server.send(boardOf([], { state: "behind", windowId: "" }));
  await server.clock.advance(100);
  expect([board.state, board.ranking.length]).toEqual(["behind", 1]);
  server.send({ type: "going-away", reconnectAfterMs: 10 });
  await server.clock.advance(5_000);
  expect(asked(server)).toEqual(["everyone hour 10", "everyone hour 10", "everyone hour 10"]);
});

test("[LBO4] several views of one board share it, at the length that the longest needs; the last one out ends it", async () => {
  const server = serverOn();
  const { leaderboard } = appOn(server);
  await server.clock.advance(1_000);
  const short = leaderboard.subscribe({ window: "hour", shown: 1 });
  await server.clock.advance(100);
  server.send(
    boardOf([
      ["ann", 9],
      ["bob", 4],
    ]),
  );
  await server.clock.advance(100);
  const long = leaderboard.subscribe({ window: "hour", shown: 5 });
  expect(long.ranking.map(({ name }) => name)).toEqual(["Ann", "bob"]); // Known already.
  long.unsubscribe();
  short.unsubscribe();
  short.unsubscribe();
  await server.clock.advance(100);
  expect(asked(server)).toEqual(["everyone hour 1", "everyone hour 5", "everyone hour 1", "everyone hour 0"]);
  const told = record(long);
  server.send(boardOf([["bob", 99]]));
  await server.clock.advance(100);
  expect(told).toEqual([]);
});

test("[LBO5] boards are told apart by window and role, and what makes no board is the application's mistake", async () => {
  const server = serverOn();
  const { leaderboard } = appOn(server);
  const [hour, editors] = [leaderboard.subscribe({ window: "hour" }), leaderboard.subscribe({ window: "hour", role: "editors" })];
  await server.clock.advance(1_000);
  server.send(boardOf([["ann", 9]]));
  server.send(boardOf([["bob", 1]], { role: "editors" }));
  await server.clock.advance(100);
  expect([hour.ranking[0]?.user, editors.ranking[0]?.user]).toEqual(["ann", "bob"]);
  expect(() => leaderboard.subscribe({ window: "fortnight" as "day" })).toThrow(/a window is/);
  expect(() => leaderboard.subscribe({ shown: 0 })).toThrow(/whole number/);
});

test("[LBO6] who subscribes to a board that is known hears of it too, once; after the room's end nobody hears anything", async () => {
  const server = serverOn();
  const room = appOn(server);
  const { leaderboard } = room;
  const first = record(leaderboard.subscribe({ window: "hour" }));
  await server.clock.advance(1_000);
  server.send(boardOf([["ann", 9]]));
  await server.clock.advance(100);
  const later = leaderboard.subscribe({ window: "hour" });
  const told = record(later);
  const gone = leaderboard.subscribe({ window: "hour" });
  const untold = record(gone);
  gone.unsubscribe();
  await server.clock.advance(1_000);
  expect([later.ranking.length, told, untold]).toEqual([1, ["live: 1 Ann 9"], []]);
  room.destroy();
  await server.clock.advance(1_000);
  expect([first, told]).toEqual([["live: 1 Ann 9"], ["live: 1 Ann 9"]]);
});
