/** The board on the demo page: typing in one page moves it in the other. */

import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";

import { DemoSystem, FIRST_START_MS_MAX, openBrowser, Visitor } from "./browser.ts";
import { eventually } from "./eventually.ts";

const WINDOW = { width: 1440, height: 900 };

vi.setConfig({ testTimeout: 90_000 });

let system: DemoSystem;
let browser: Browser;
let here: Visitor[] = [];

beforeAll(async () => {
  [system, browser] = await Promise.all([DemoSystem.start(), openBrowser()]);
}, FIRST_START_MS_MAX);

afterEach(async ({ task }) => {
  for (const [index, person] of here.entries()) if (task.result?.state === "fail" || process.env["TEST_LOOK"] !== undefined) console.error(`what person ${index + 1} saw: ${await person.screenshot(`${task.name} ${index + 1}`)}`);
  await Promise.all(here.map((person) => person.close()));
  here = [];
});

afterAll(async () => {
  await browser?.close();
  await system?.stop();
});

async function open(room: string, name: string): Promise<Visitor> {
  const person = await Visitor.open(browser, `${system.url}/?${new URLSearchParams({ room, name })}`, { viewport: WINDOW });
  here.push(person);
  return person;
}

/** Names and scores, the first ahead. */
async function boardSeenBy(person: Visitor): Promise<{ name: string; score: number }[]> {
  const rows = person.page.locator("#board li");
  const [names, scores] = await Promise.all([rows.locator(".name").allTextContents(), rows.locator(".score").allTextContents()]);
  return names.map((name, index) => ({ name, score: Number(scores[index]) }));
}

const orderSeenBy = async (person: Visitor): Promise<string> => (await boardSeenBy(person)).map(({ name }) => name).join();
const scoreOf = async (person: Visitor, name: string): Promise<number> => (await boardSeenBy(person)).find((row) => row.name === name)?.score ?? 0;

test("[PAGE20] who types rises on the other's board, and whoever passes another is seen to", async () => {
  const [ada, grace] = [await open("active", "Ada"), await open("active", "Grace")];
  await eventually("nobody has done anything", async () => (await ada.page.locator("#board-remark").innerText()) === "Nobody has written anything this hour yet.");
  await ada.types("a word or two, ", 60);
  await eventually("Grace sees Ada on the board", async () => (await scoreOf(grace, "Ada")) > 0);
  const adas = await scoreOf(grace, "Ada");
  const [row] = await ada.page.locator("#board li", { hasText: "Ada" }).elementHandles();
  for (let round = 0; round < 30 && (await orderSeenBy(ada)) !== "Grace,Ada"; round++) await grace.types("and more of it ", 60);
  await eventually("Ada sees that Grace has passed her", async () => (await orderSeenBy(ada)) === "Grace,Ada");
  expect(await scoreOf(ada, "Grace")).toBeGreaterThanOrEqual(adas);
  expect(await row!.evaluate((element) => [element.isConnected, (element as HTMLElement).dataset["moved"]]), "it moved, and is the same element").toEqual([true, "down"]);
  expect(await ada.page.locator("#board li.self .note").innerText()).toBe("you");
});

test("[PAGE21] the board of another time is another board, and one who comes later sees it at once", async () => {
  const ada = await open("windows", "Ada");
  await ada.types("a few words, ", 60);
  await eventually("she is on the board", async () => (await orderSeenBy(ada)) === "Ada");
  await ada.page.getByRole("button", { name: "Ever" }).click();
  expect(await ada.page.getByRole("button", { name: "Ever" }).getAttribute("aria-pressed")).toBe("true");
  await eventually("and on the one of all time", async () => (await orderSeenBy(ada)) === "Ada");
  const late = await open("windows", "Hedy");
  await eventually("who comes later sees it", async () => (await orderSeenBy(late)) === "Ada");
});
