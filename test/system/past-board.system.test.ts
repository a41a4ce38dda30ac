/** A week that has ended: from the archive to the SDK and to the demo page in a real Chromium. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";

import { subjectsOf } from "../../shared/bus/subjects.ts";
import { parseRoomId, parseTenantId, roomKey, type UnixMillis } from "../../shared/ids.ts";
import { connectNats } from "../../shared/io/nats.ts";
import { leaderboardOf } from "../../client/boards/main.ts";
import { RoomConnection } from "../../client/index.ts";
import type { Engine } from "../../engines/engine.ts";
import { NOTHING_APPLIED } from "../../leaderboard/boards/board.ts";
import { windowAt } from "../../leaderboard/boards/windows.ts";
import { kvArchive } from "../../leaderboard/io/kv-archive.ts";
import { startTestNats } from "../contract/test-engines.ts";
import { DemoSystem, FIRST_START_MS_MAX, openBrowser, PATIENCE_MS, Visitor } from "./browser.ts";
import { eventually } from "./eventually.ts";

/** Pause after a refused read, within the rate of board reads. */
const BOARDS_BUSY_MS = 500;

let folder: string;
let nats: Engine;
let system: DemoSystem;
let browser: Browser;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "coroom-past-board-"));
  nats = await startTestNats({ dataDir: folder });
  [system, browser] = await Promise.all([DemoSystem.start({ NATS_URL: nats.url, ENVIRONMENT: "past" }), openBrowser()]);
}, FIRST_START_MS_MAX);

afterAll(async () => {
  await browser?.close();
  await system?.stop();
  await nats?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Archives last week's board of a room: twelve users, user 1 first. Returns the id of the week. */
async function archiveLastWeek(room: string): Promise<string> {
  const connection = await connectNats({ servers: nats.url, name: "test" });
  onTestFinished(() => connection.close());
  const { archive } = await kvArchive(connection, subjectsOf("past"), { replicas: 1, daysMax: 400 });
  const { start } = windowAt("week", Date.now() as UnixMillis);
  const week = windowAt("week", (start - 1) as UnixMillis);
  const standings = Array.from({ length: 12 }, (_, index) => ({ member: `user-${index + 1}`, score: 50 - index, reachedAt: index }));
  await archive.write(roomKey(parseTenantId("default")!, parseRoomId(room)!), week, {
    applied: NOTHING_APPLIED,
    boards: [{ role: "everyone", members: 12, points: 534, standings }],
  });
  return week.id;
}

async function tokenOf(room: string, user: string): Promise<string> {
  const response = await fetch(`${system.url}/demo/token?${new URLSearchParams({ room, user, name: user })}`);
  return ((await response.json()) as { token: string }).token;
}

test("[LIVE14] the SDK reads last week's board over HTTP, with the own place, and a window without points is empty", async () => {
  const room = new RoomConnection({ url: system.url, room: "past", token: () => tokenOf("past", "user-11") });
  onTestFinished(() => room.destroy());
  const id = await archiveLastWeek("past");
  room.send(Uint8Array.of(1, 1));
  const leaderboard = leaderboardOf(room);
  const readWeek = async (): Promise<boolean> => {
    const reading = await leaderboard.read({ window: "last-week" }).catch(() => sleep(BOARDS_BUSY_MS)); // The boards may not be counted yet.
    return reading?.members === 12;
  };
  await eventually("the week is read", readWeek, PATIENCE_MS);
  const reading = await leaderboard.read({ window: id, shown: 3 });
  expect(reading).toMatchObject({ windowId: id, isFinal: true, own: { rank: 11, score: 40 } });
  expect(reading.ranking).toEqual([1, 2, 3].map((rank) => ({ rank, user: `user-${rank}`, name: `user-${rank}`, score: 51 - rank })));
  expect(await leaderboard.read({ window: "last-month" })).toMatchObject({ windowId: "", ranking: [], isFinal: false });
  await expect(leaderboard.read({ window: "last-century" })).rejects.toThrow("a window is hour, day,");
});

test("[PAGE49] the page shows last week's board, and the present hour again", { timeout: 400_000 }, async () => {
  const room = "past page";
  await archiveLastWeek(room);
  const ada = await Visitor.open(browser, `${system.url}/?${new URLSearchParams({ room, name: "Ada" })}`);
  onTestFinished(() => ada.close());
  const names = (): Promise<string[]> => ada.page.locator("#board li .name").allTextContents();
  const choose = (label: string): Promise<void> => ada.page.getByRole("button", { name: label }).click();
  await choose("Last week");
  await eventually(
    "nothing was counted in the room",
    async () => (await ada.page.locator("#board-remark").innerText()) !== "Loading the ranking…",
  );
  await ada.types("a word, ", 60);
  await choose("Hour");
  await eventually("she is on the board of the hour", async () => (await names()).join() === "Ada");
  await choose("Last week");
  await eventually("six users of last week are shown", async () => (await names()).join() === "user-1,user-2,user-3,user-4,user-5,user-6");
  expect(await ada.page.getByRole("button", { name: "Last week" }).getAttribute("aria-pressed")).toBe("true");
  if (process.env["TEST_LOOK"] !== undefined) console.error(await ada.screenshot("PAGE49"));
  await choose("Hour");
  await eventually("the hour is live again", async () => (await names()).join() === "Ada");
});
