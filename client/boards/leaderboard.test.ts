/** Boards from the application's view, on a model server. */

import { expect, test } from "vitest";

import type { RoomId, Seq, UserId } from "../../shared/ids.ts";
import type { BoardFrame } from "../../shared/wire/frames.ts";
import { RoomConnection } from "../room/room-connection-host.ts";
import { ClientFakeClock } from "../testing/fake-clock.ts";
import { ModelServer } from "../testing/model-server.ts";
import { type Board, leaderboardOf } from "./main.ts";

const serverOn = (): ModelServer => new ModelServer(new ClientFakeClock(), { faults: { delayMsMax: 5 } });
const appOn = (server: ModelServer, seed = 1): RoomConnection =>
  new RoomConnection({ url: "ws://h", token: "t", room: "notes" as RoomId }, server.world(seed));
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
  server.receivedFrames.flatMap((frame) => (frame.type === "watch-board" ? [`${frame.role} ${frame.window} ${frame.shown}`] : []));

/** The text of each change that the board announced. */
function record(board: Board): string[] {
  const changes: string[] = [];
  board.on("change", ({ state, ranking, own }) =>
    changes.push(
      `${state}: ${ranking.map(({ rank, name, score }) => `${rank} ${name} ${score}`).join(", ")}${own === undefined ? "" : `; own ${own.rank}`}`,
    ),
  );
  return changes;
}

test("[LBO1] the client requests a board once it has joined, and keeps it up to date", async () => {
  const server = serverOn();
  const board = leaderboardOf(appOn(server)).subscribe({ window: "hour", shown: 2 });
  const changes = record(board);
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
  expect(changes).toEqual(["live: 1 Ann 9, 2 bob 4", "live: 1 Ann 9, 2 bob 4; own 3"]);
  expect([board.windowId, board.members, board.seq]).toEqual(["2026-07-01T12", 3, 5]);
});

test("[LBO13] a ranking that names this user changes together with the own place, and is announced once", async () => {
  const server = serverOn();
  const app = appOn(server);
  const changes = record(leaderboardOf(app).subscribe({ window: "hour", shown: 1 }));
  await server.clock.advance(1_000);
  const { user } = app.participants.get(app.client!)!;
  const own = { type: "own-rank", channel: 1, role: "everyone", window: "hour" } as const;
  server.send(boardOf([["bob", 4]], { members: 2 }));
  server.send({ ...own, rank: 2, score: 1 });
  server.send(boardOf([[user, 9]], { members: 2 }));
  server.send({ ...own, rank: 1, score: 9 });
  await server.clock.advance(100);
  expect(changes).toEqual(["live: 1 bob 4", "live: 1 bob 4; own 2", `live: 1 ${user} 9; own 1`]);
});

test("[LBO2] a view is not notified when nothing that it shows has changed", async () => {
  const server = serverOn();
  const changes = record(leaderboardOf(appOn(server)).subscribe({ window: "hour", shown: 1 }));
  await server.clock.advance(1_000);
  for (const score of [4, 5, 6])
    server.send(
      boardOf([
        ["ann", 9],
        ["bob", score],
      ]),
    );
  await server.clock.advance(100);
  expect(changes).toEqual(["live: 1 Ann 9"]);
});

test("[LBO7] a view is notified when only the number of users with points changes", async () => {
  const server = serverOn();
  const board = leaderboardOf(appOn(server)).subscribe({ window: "hour", shown: 1 });
  const members: number[] = [];
  board.on("change", () => members.push(board.members));
  await server.clock.advance(1_000);
  for (const count of [1, 2, 2]) server.send(boardOf([["ann", 9]], { members: count }));
  await server.clock.advance(100);
  expect(members).toEqual([1, 2]);
});

test("[LBO8] a board that is first watched after the room is joined is requested at once, and again after a reconnect", async () => {
  const server = serverOn();
  const app = appOn(server);
  await server.clock.advance(1_000);
  const board = leaderboardOf(app).subscribe({ window: "hour" });
  await server.clock.advance(100);
  server.send(boardOf([["ann", 9]]));
  await server.clock.advance(100);
  expect([asked(server), board.state]).toEqual([["everyone hour 10"], "live"]);
  server.cut();
  await server.clock.advance(10_000);
  expect(asked(server)).toEqual(["everyone hour 10", "everyone hour 10"]);
});

test("[LBO3] the client requests its boards again after a reconnect or a move to another gateway; views keep what they showed", async () => {
  const server = serverOn();
  const board = leaderboardOf(appOn(server)).subscribe({ window: "hour" });
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

test("[LBO4] views of one board share one request, as long as the longest view needs; the last view to close ends it", async () => {
  const server = serverOn();
  const leaderboard = leaderboardOf(appOn(server));
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
  expect(long.ranking.map(({ name }) => name)).toEqual(["Ann", "bob"]); // The list is known already.
  long.unsubscribe();
  short.unsubscribe();
  short.unsubscribe();
  await server.clock.advance(100);
  expect(asked(server)).toEqual(["everyone hour 1", "everyone hour 5", "everyone hour 1", "everyone hour 0"]);
  const changes = record(long);
  server.send(boardOf([["bob", 99]]));
  await server.clock.advance(100);
  expect(changes).toEqual([]);
});

test("[LBO5] a board is identified by window and role, and an invalid board is the application's error", async () => {
  const server = serverOn();
  const leaderboard = leaderboardOf(appOn(server));
  const [hour, editors] = [leaderboard.subscribe({ window: "hour" }), leaderboard.subscribe({ window: "hour", role: "editors" })];
  await server.clock.advance(1_000);
  server.send(boardOf([["ann", 9]]));
  server.send(boardOf([["bob", 1]], { role: "editors" }));
  await server.clock.advance(100);
  expect([hour.ranking[0]?.user, editors.ranking[0]?.user]).toEqual(["ann", "bob"]);
  expect(() => leaderboard.subscribe({ window: "fortnight" as "day" })).toThrow(/window must be one of/);
  expect(() => leaderboard.subscribe({ shown: 0 })).toThrow(/whole number/);
});

test("[LBO6] a new view of a known board receives it once; no view is notified after the room ends", async () => {
  const server = serverOn();
  const room = appOn(server);
  const leaderboard = leaderboardOf(room);
  const first = record(leaderboard.subscribe({ window: "hour" }));
  await server.clock.advance(1_000);
  server.send(boardOf([["ann", 9]]));
  await server.clock.advance(100);
  const later = leaderboard.subscribe({ window: "hour" });
  const changes = record(later);
  const gone = leaderboard.subscribe({ window: "hour" });
  const changesOfClosedView = record(gone);
  gone.unsubscribe();
  await server.clock.advance(1_000);
  expect([later.ranking.length, changes, changesOfClosedView]).toEqual([1, ["live: 1 Ann 9"], []]);
  room.destroy();
  await server.clock.advance(1_000);
  expect([first, changes]).toEqual([["live: 1 Ann 9"], ["live: 1 Ann 9"]]);
});
