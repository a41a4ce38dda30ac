/** The documentation site as a local system serves it, in a window and on a phone. `npm run build:docs` builds it. */

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

import { DemoSystem, FIRST_START_MS_MAX, openBrowser } from "../test/system/browser.ts";
import { eventually } from "../test/system/eventually.ts";

let system: DemoSystem;
let browser: Browser;
beforeAll(async () => {
  [system, browser] = await Promise.all([DemoSystem.start(), openBrowser()]);
}, FIRST_START_MS_MAX);
afterAll(async () => {
  await browser?.close();
  await system?.stop();
});

test("[SITE4] the site is served at /docs, cannot be framed, and describes itself to language models", async () => {
  const page = await fetch(`${system.url}/docs`); // Follows the redirect.
  expect([page.status, page.url, page.headers.get("content-security-policy")]).toEqual([
    200,
    `${system.url}/docs/`,
    "frame-ancestors 'none'",
  ]);
  const models = await (await fetch(`${system.url}/docs/llms.txt`)).text();
  const [, link] = /\[30 minutes[^\]]*\]\(([^)]+)\)/.exec(models)!;
  const written = await fetch(system.url + link!);
  expect([written.headers.get("content-type"), (await written.text()).split("\n")[0]]).toEqual([
    "text/markdown; charset=utf-8",
    "# 30 minutes: TipTap with React",
  ]);
});

test.each([
  ["window", 1280],
  ["phone", 390],
])("[SITE5] in a %s pages fit, search finds a page, and a file that a page names is a link", async (_, width) => {
  const context = await browser.newContext({ viewport: { width, height: 800 } });
  const page = await context.newPage();
  const errors: string[] = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  for (const path of ["", "guide/first-week.html", "HTTP.html", "SETTINGS.html"]) {
    await page.goto(`${system.url}/docs/${path}`);
    expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), path).toBeLessThanOrEqual(0);
  }
  await page.goto(`${system.url}/docs/guide/first-day.html`);
  await page.locator(".vp-doc a", { hasText: "Leaving y-websocket" }).click();
  await eventually("the page is open", () => page.url() === `${system.url}/docs/leaving-y-websocket.html`);
  await page.locator("#local-search button").click();
  await page.locator("#localsearch-input").fill("fencing");
  await page.locator(".results a", { hasText: "Glossary" }).first().click();
  await eventually("the glossary is open", () => page.url().startsWith(`${system.url}/docs/GLOSSARY.html`));
  expect(errors).toEqual([]);
  await context.close();
});
