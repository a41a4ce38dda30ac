/** The browser for browser tests starts, and its pages show text. */

import { chromium } from "playwright-core";
import { expect, test } from "vitest";
import { findChromium } from "./browsers.ts";

test("a page draws its text with an installed font", { timeout: 600_000 }, async () => {
  const { path, env } = await findChromium();
  const browser = await chromium.launch({ executablePath: path, env: { ...process.env, ...env }, args: ["--no-sandbox"] });
  const page = await browser.newPage();
  const inked = await page.evaluate(() => {
    const canvas = document.createElement("canvas").getContext("2d");
    if (canvas === null) return 0;
    canvas.font = "40px sans-serif";
    canvas.fillText("Coroom", 0, 60);
    return canvas.getImageData(0, 0, 300, 100).data.filter((value) => value > 0).length;
  });
  await browser.close();
  expect(inked).toBeGreaterThan(500);
});
