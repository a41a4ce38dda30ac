/**
 * The leaderboard on the demo page: typing in one page changes the board in the other. With TEST_PICTURE=docs/board.png
 * the test stores a picture of both pages side by side.
 */

import { expect, test } from "vitest";

import type { Visitor } from "./browser.ts";
import { DemoPage } from "./demo-page.ts";
import { eventually } from "./eventually.ts";

const WINDOW = { width: 1180, height: 760 };

const demo = DemoPage.forThisFile({ viewport: WINDOW, reducedMotion: "no-preference" }); // Rows move.

/** Names and scores, the highest score first. */
async function boardSeenBy(person: Visitor): Promise<{ name: string; score: number }[]> {
  const rows = person.page.locator("#board li");
  const [names, scores] = await Promise.all([rows.locator(".name").allTextContents(), rows.locator(".score").allTextContents()]);
  return names.map((name, index) => ({ name, score: Number(scores[index]) }));
}

/** Waits near the end of an hour, because a new hour begins with an empty board. */
function untilTheHourDoesNotEnd(): Promise<void> {
  return eventually("the hour does not end meanwhile", () => new Date().getUTCMinutes() < 57, 200_000);
}

const orderSeenBy = async (person: Visitor): Promise<string> => (await boardSeenBy(person)).map(({ name }) => name).join();
const scoreOf = async (person: Visitor, name: string): Promise<number> =>
  (await boardSeenBy(person)).find((row) => row.name === name)?.score ?? 0;

test("[PAGE36] a user who types rises on the other user's board, and a change of ranks moves the rows", { timeout: 400_000 }, async () => {
  await untilTheHourDoesNotEnd();
  const [ada, grace] = [await demo.open("active", "Ada"), await demo.open("active", "Grace")];
  await eventually("the board is empty", async () => (await ada.page.locator("#board-remark").innerText()) === "No edits this hour yet.");
  await ada.types("a word or two, ", 60);
  await eventually("Grace sees Ada on the board", async () => (await scoreOf(grace, "Ada")) > 0);
  const adas = await scoreOf(grace, "Ada");
  const [row] = await ada.page.locator("#board li", { hasText: "Ada" }).elementHandles();
  for (let round = 0; round < 30 && (await orderSeenBy(ada)) !== "Grace,Ada"; round++) await grace.types("and more of it ", 60);
  await eventually("Ada sees that Grace has passed her", async () => (await orderSeenBy(ada)) === "Grace,Ada");
  expect(await scoreOf(ada, "Grace")).toBeGreaterThanOrEqual(adas);
  expect(
    await row!.evaluate((element) => [element.isConnected, (element as HTMLElement).dataset["moved"]]),
    "it moved, and is the same element",
  ).toEqual([true, "down"]);
  expect(await ada.page.locator("#board li.self .note").innerText()).toBe("you");
  const picture = process.env["TEST_PICTURE"];
  await eventually("both are saved", async () =>
    (await Promise.all([ada, grace].map((person) => person.saveRemark()))).every((remark) => remark === "Saved"),
  );
  if (picture !== undefined) await keepSideBySide([ada, grace], picture);
});

async function keepSideBySide(people: readonly Visitor[], path: string): Promise<void> {
  const pictures = await Promise.all(
    people.map(async ({ page }) => {
      await page.locator("#board li").last().scrollIntoViewIfNeeded();
      return (await page.screenshot()).toString("base64");
    }),
  );
  const page = await people[0]!.page.context().newPage();
  await page.setViewportSize({ width: 40 + people.length * (WINDOW.width + 20), height: WINDOW.height + 60 });
  await page.setContent(
    `<body style="margin:30px;display:flex;gap:20px;background:#d7d9e0">${pictures.map((picture) => `<img style="border-radius:10px;box-shadow:0 6px 24px #0003" src="data:image/png;base64,${picture}">`).join("")}</body>`,
  );
  await page.screenshot({ path });
}

test("[PAGE37] each window has its own board, and a later visitor sees it immediately", { timeout: 400_000 }, async () => {
  await untilTheHourDoesNotEnd();
  const ada = await demo.open("windows", "Ada");
  await ada.types("a few words, ", 60);
  await eventually("she is on the board", async () => (await orderSeenBy(ada)) === "Ada");
  await ada.page.getByRole("button", { name: "All time" }).click();
  await eventually(
    "that one is chosen",
    async () => (await ada.page.getByRole("button", { name: "All time" }).getAttribute("aria-pressed")) === "true",
  );
  await eventually("and on the one of all time", async () => (await orderSeenBy(ada)) === "Ada");
  const late = await demo.open("windows", "Hedy");
  await eventually("a later visitor sees the board", async () => (await orderSeenBy(late)) === "Ada");
  const name = late.page.locator("#board .name");
  const before = await scoreOf(late, "Ada");
  await late.page.locator("#board-title").click(); // The editor, while it has the focus, takes the selection.
  await name.evaluate((shown) => getSelection()!.selectAllChildren(shown));
  await ada.types("and some more words, ", 60);
  await eventually("her score has grown", async () => (await scoreOf(late, "Ada")) > before);
  expect(await late.page.evaluate(() => String(getSelection())), "a name that is being copied stays selected").toBe("Ada");
});

test("[PAGE53] the board of the last week is read again, because another week takes its place", async () => {
  const ada = await demo.open("last week", "Ada");
  let [week, name] = ["2026-W47", "Grace"];
  await ada.page.clock.install();
  await ada.page.route("**/v1/rooms/*/leaderboard**", (route) => {
    const places = [{ rank: 1, user: name, name, score: 9 }];
    if (route.request().url().includes("/me?")) return route.fulfill({ status: 404, json: { error: "not-ranked" } });
    return route.fulfill({ json: { window: { id: week }, isArchived: true, asOf: { seq: 7 }, members: 1, ranking: places } });
  });
  await ada.page.getByRole("button", { name: "Last week" }).click();
  await eventually("the week is shown", async () => (await orderSeenBy(ada)) === "Grace");
  [week, name] = ["2026-W48", "Hedy"];
  await ada.page.clock.fastForward(60_000);
  await eventually("the next week has taken its place", async () => (await orderSeenBy(ada)) === "Hedy");
});
