/**
 * A board from the keystroke to another user's screen: the SDK, gateways, the log, the leaderboard and Redis, as
 * `coroom start` runs them.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";

import { type Board, leaderboardOf } from "../../client/boards/main.ts";
import { RoomConnection } from "../../client/index.ts";
import type { Engine } from "../../engines/engine.ts";
import { startTestRedis } from "../contract/test-engines.ts";
import { DemoSystem, FIRST_START_MS_MAX, PATIENCE_MS } from "./browser.ts";
import { eventually } from "./eventually.ts";

let folder: string;
let redis: Engine;
let system: DemoSystem;
let here: RoomConnection[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "coroom-live-board-"));
  redis = await startTestRedis({ dataDir: folder });
  // Presence earns no points, because the duration of a test varies.
  system = await DemoSystem.start({ REDIS_URL: redis.url, BOARD_CHECKPOINT_MS_MAX: "500", BOARD_SESSION_POINTS: "0" });
}, FIRST_START_MS_MAX);

afterEach(() => {
  for (const room of here) room.destroy();
  here = [];
});

afterAll(async () => {
  await system?.stop();
  await redis?.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function tokenOf(room: string, user: string, name: string): Promise<string> {
  const response = await fetch(`${system.url}/demo/token?${new URLSearchParams({ room, user, name })}`);
  return ((await response.json()) as { token: string }).token;
}

function enter(room: string, user: string, name: string): RoomConnection {
  const connection = new RoomConnection({ url: system.url, room, token: () => tokenOf(room, user, name) });
  here.push(connection);
  return connection;
}

/** Sends this many edits, which earn one point each. */
async function edits(room: RoomConnection, count: number): Promise<void> {
  for (let edit = 0; edit < count; edit++) room.send(Uint8Array.of(1, edit));
  await eventually("all is saved", () => room.synced && room.saved);
}

const placesOf = (board: Board): string[] => board.ranking.map(({ rank, name, score }) => `${rank} ${name} ${score}`);
const shows = (board: Board, ...places: string[]): Promise<void> =>
  eventually(`the board shows ${places.join(", ")}`, () => board.state === "live" && placesOf(board).join() === places.join(), PATIENCE_MS);

test("[LIVE13] edits of one user change another user's board, with names and own ranks, and a later user sees it immediately", async () => {
  const [ada, grace] = [enter("moving", "u-ada", "Ada"), enter("moving", "u-grace", "Grace")];
  const boards = [ada, grace].map((room) => leaderboardOf(room).subscribe({ window: "year", shown: 5 }));
  await shows(boards[0]!);
  await edits(ada, 3);
  for (const board of boards) await shows(board, "1 Ada 3");
  await edits(grace, 5);
  for (const board of boards) await shows(board, "1 Grace 5", "2 Ada 3");
  await eventually("each user receives the own rank", () => boards[0]!.own?.rank === 2 && boards[1]!.own?.rank === 1);

  const late = leaderboardOf(enter("moving", "u-late", "Late")).subscribe({ window: "all" });
  await shows(late, "1 Grace 5", "2 Ada 3");
  await expect.poll(() => [late.own, late.members], { timeout: 60_000 }).toEqual([{ rank: 0, score: 0 }, 2]); // Sent after the list.
  const mine = await fetch(`${system.url}/v1/rooms/moving/leaderboard/me?window=year`, {
    headers: { authorization: `Bearer ${await tokenOf("moving", "u-ada", "Ada")}` },
  });
  expect(await mine.json()).toMatchObject({
    own: { user: "u-ada", rank: 2, score: 3 },
    neighbours: [
      { user: "u-grace", name: "Grace" },
      { user: "u-ada", name: "Ada" },
    ],
  });
});

test("[LIVE11] without Redis the board is behind and edits continue; when Redis returns empty, the board is rebuilt", async () => {
  const ada = enter("behind", "u-ada", "Ada");
  const board = leaderboardOf(ada).subscribe({ window: "all" });
  await edits(ada, 2);
  await shows(board, "1 Ada 2");
  const { saving } = ada;

  redis.kill("SIGKILL");
  await eventually("the board is behind", () => board.state === "behind");
  await edits(ada, 2);
  await eventually("edits are saved as they were", () => ada.saving === saving);
  expect(placesOf(board)).toEqual(["1 Ada 2"]);
  await redis.exited;
  rmSync(join(folder, "appendonlydir"), { recursive: true, force: true });
  await redis.restart();
  await shows(board, "1 Ada 4");
});

test("[LIVE12] after the complete system was killed, a watched board returns", async () => {
  const ada = enter("killed", "u-ada", "Ada");
  const board = leaderboardOf(ada).subscribe({ window: "all" });
  await edits(ada, 2);
  await shows(board, "1 Ada 2");
  await system.kill();
  await eventually("the connection is lost", () => board.state === "waiting");
  await system.startAgain();
  await shows(board, "1 Ada 2");
  await edits(ada, 1);
  await shows(board, "1 Ada 3");
});
