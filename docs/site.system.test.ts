/** The documentation site as a local system serves it, in a window and on a phone. `npm run build:docs` builds it. */

import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

import type { Browser, Page } from "playwright-core";
import { createServer } from "vite";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";

import { accessibilityViolations } from "../test/system/accessibility.ts";
import { DemoSystem, FIRST_START_MS_MAX, openBrowser } from "../test/system/browser.ts";
import { eventually } from "../test/system/eventually.ts";

/** Parts of VitePress itself violate these rules: buttons in sidebar groups, and key names in the search button. */
const RULES_OF_VITEPRESS = ["nested-interactive", "label-content-name-mismatch"];

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
  for (const path of ["", "guide/first-week.html", "HTTP.html", "SETTINGS.html", "sdk/@coroom/client.html"]) {
    await page.goto(`${system.url}/docs/${path}`);
    expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), path).toBeLessThanOrEqual(0);
  }
  for (const path of ["", "guide/thirty-minutes.html", "sdk/@coroom/client/leaderboard.html"])
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      await page.goto(`${system.url}/docs/${path}`);
      expect(await accessibilityViolations(page, { except: RULES_OF_VITEPRESS }), `${path} ${colorScheme}`).toEqual([]);
    }
  await page.goto(`${system.url}/docs/guide/first-day.html`);
  await page.locator(".vp-doc a", { hasText: "Leaving y-websocket" }).click();
  await eventually("the page is open", () => page.url() === `${system.url}/docs/leaving-y-websocket.html`);
  await page.locator("#local-search button").click();
  await page.locator("#localsearch-input").fill("fencing");
  await page.locator(".results a", { hasText: "Glossary" }).first().click();
  await eventually("the glossary is open", () => page.url().startsWith(`${system.url}/docs/GLOSSARY.html`));
  await page.locator("#local-search button").click();
  await page.locator("#localsearch-input").fill("forgetIndexedDbStore");
  await page.locator(".results a", { hasText: "@coroom/client/indexeddb" }).first().click();
  await eventually("the reference is open", () => page.url().includes("/docs/sdk/@coroom/client/indexeddb.html"));
  expect(errors).toEqual([]);
  await context.close();
});

test("[SITE6] the page of the first guide, as it is written there, joins two people", async () => {
  const guide = readFileSync("docs/guide/thirty-minutes.md", "utf8");
  const codeOf = (language: string): string => guide.split(`\`\`\`${language}\n`)[1]!.split("```")[0]!;
  const root = resolve("docs/.vitepress/cache/guide"); // In the repository, so that the page finds its packages.
  mkdirSync(root, { recursive: true });
  onTestFinished(() => rmSync(root, { recursive: true }));
  writeFileSync(join(root, "index.html"), codeOf("html"));
  writeFileSync(join(root, "style.css"), codeOf("css"));
  writeFileSync(join(root, "main.tsx"), codeOf("tsx").replace("ws://127.0.0.1:8080", system.url.replace("http", "ws")));
  const server = { port: 0, host: "127.0.0.1", proxy: { "/demo": system.url } };
  const vite = await createServer({ root, configFile: false, logLevel: "error", cacheDir: join(root, "vite"), server });
  onTestFinished(() => vite.close());
  await vite.listen();

  const warnings: string[] = [];
  const open = async (user: string): Promise<Page> => {
    const page = await browser.newPage();
    onTestFinished(() => page.close());
    page.on("console", (message) => message.type() === "warning" && warnings.push(message.text()));
    await page.goto(`${vite.resolvedUrls!.local[0]!}?user=${user}`);
    return page;
  };
  const [ada, ben] = await Promise.all([open("ada"), open("ben")]);
  await eventually("both are here", async () => /ada.*ben|ben.*ada/.test(await ben.innerText("p")), FIRST_START_MS_MAX);
  await ada.locator(".tiptap").pressSequentially("Hello from the guide");
  await eventually("ben sees it", async () => /Hello from the guide/.test(await ben.innerText(".tiptap")));
  await eventually("the caret has a name", async () => (await ben.locator(".collaboration-carets__label").innerText()) === "ada");
  await eventually("it is saved", async () => (await ada.innerText("p")).endsWith(": saved"));
  expect(warnings).toEqual([]); // Such as a colour that the editor does not accept.
});
