/** A React page under StrictMode in real browsers, on a whole system. */

import { randomBytes } from "node:crypto";
import { resolve } from "node:path";

import { SignJWT } from "jose";
import type { Browser, Page } from "playwright-core";
import { createServer, type ViteDevServer } from "vite";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";

import { DemoSystem, FIRST_START_MS_MAX, openBrowser } from "../test/system/browser.ts";
import { eventually } from "../test/system/eventually.ts";

const secret = randomBytes(32).toString("hex");
let system: DemoSystem;
let browser: Browser;
let site: ViteDevServer;

beforeAll(async () => {
  [system, browser] = await Promise.all([DemoSystem.start({ JWT_SECRET: secret, BOARD_TOTALS_MS: "500" }), openBrowser()]);
  site = await createServer({
    root: resolve("react/testing/page"),
    configFile: false,
    logLevel: "error",
    cacheDir: resolve(system.folder, "vite"),
    resolve: {
      alias: [
        { find: /^@coroom\/client$/, replacement: resolve("client/index.ts") },
        { find: /^@coroom\/client\/leaderboard$/, replacement: resolve("client/boards/main.ts") },
      ],
      dedupe: ["yjs", "react"],
    },
    server: { host: "127.0.0.1", port: 0, fs: { allow: [resolve(".")] } },
  });
  await site.listen();
}, FIRST_START_MS_MAX);
afterAll(async () => {
  await site?.close();
  await browser?.close();
  await system?.stop();
});

type Facts = {
  status: string;
  saved: boolean;
  names: string[];
  content: string;
  moods: string[];
  state: string;
  error: string;
  versions: string[];
};

class Person {
  readonly page: Page;

  private constructor(page: Page) {
    this.page = page;
  }

  /** `people`: the page also shows the people of the tenant. */
  static async open(room: string, name: string, { people = false } = {}): Promise<Person> {
    const token = await new SignJWT({ name, rooms: [room], rights: ["read", "write", ...(people ? ["boards"] : [])] })
      .setProtectedHeader({ alg: "HS256" })
      .setSubject(name.toLowerCase())
      .setExpirationTime("1h")
      .sign(new TextEncoder().encode(secret));
    const context = await browser.newContext();
    onTestFinished(() => context.close());
    const page = await context.newPage();
    const query = new URLSearchParams({ url: system.url.replace("http", "ws"), room, token, ...(people ? { people: "" } : {}) });
    await page.goto(`${site.resolvedUrls!.local[0]}?${query}`);
    return new Person(page);
  }

  async facts(): Promise<Facts> {
    return JSON.parse(await this.page.locator("pre").innerText()) as Facts;
  }

  /** Types at the end of the text. */
  async types(text: string): Promise<void> {
    await this.page.locator("textarea").focus();
    await this.page.keyboard.press("Control+End");
    await this.page.keyboard.type(text, { delay: 10 });
  }

  clicks(id: string): Promise<void> {
    return this.page.locator(`#${id}`).click();
  }
}

test("[HOOK10] two pages under StrictMode converge, see each other once, and store and restore a version", async () => {
  const room = `notes ${randomBytes(4).toString("hex")}`; // A repetition after a failure uses another room.
  const [ada, grace] = await Promise.all([Person.open(room, "Ada"), Person.open(room, "Grace")]);
  const both = async (is: (facts: Facts) => boolean): Promise<boolean> => is(await ada.facts()) && is(await grace.facts());
  await eventually("both are there once", () => both(({ names }) => names.join() === "Ada,Grace"));
  await Promise.all([ada.types("abc"), grace.types("xyz")]);
  await eventually("both texts are saved", () => both(({ content, saved }) => content.length === 6 && saved));
  const { content } = await ada.facts();
  expect([(await grace.facts()).content, content.replace(/[xyz]/g, ""), content.replace(/[abc]/g, "")]).toEqual([content, "abc", "xyz"]);

  await ada.clicks("mood");
  await eventually("grace sees ada's mood", async () => (await grace.facts()).moods.join() === "calm");

  await ada.clicks("save");
  await eventually("the version is listed", async () => (await ada.facts()).versions.includes("first"));
  await grace.types("!");
  await eventually("ada sees it", async () => (await ada.facts()).content === `${content}!`);
  await ada.clicks("restore");
  await eventually("both have the version", async () => {
    expect((await ada.facts()).error).toBe("");
    return both((facts) => facts.content === content);
  });

  await ada.page.context().close();
  await eventually("ada is gone", async () => (await grace.facts()).names.join() === "Grace");
});

test("[HOOK20] a page of another origin keeps the tenant's people up to date by ETag, and not while it is hidden", async () => {
  const room = `people ${randomBytes(4).toString("hex")}`;
  const viewer = await Person.open(room, "Viewer", { people: true });
  const answers: number[] = [];
  viewer.page.on("response", (response) => {
    if (response.request().method() === "GET" && response.url().includes("/v1/leaderboard/people")) answers.push(response.status());
  });
  const shown = (): Promise<string> => viewer.page.locator("#people").innerText();
  const author = await Person.open(room, `Author ${room}`);
  await author.types("abc");
  await eventually("the author is shown", async () => (await shown()).startsWith("live ") && (await shown()).includes(`Author ${room}`));
  answers.length = 0;
  await eventually("the unchanged board is answered with 304", () => answers.includes(304));

  const become = (state: "hidden" | "visible"): Promise<void> =>
    viewer.page.evaluate((to) => {
      Object.defineProperty(document, "visibilityState", { configurable: true, get: () => to });
      document.dispatchEvent(new Event("visibilitychange"));
    }, state);
  await become("hidden");
  await viewer.page.waitForLoadState("networkidle"); // A request may have been on its way.
  const before = answers.length;
  const others = await Person.open(room, "Other", { people: true });
  let polls = 0;
  others.page.on("response", (response) => (polls += response.url().includes("/v1/leaderboard/people") ? 1 : 0));
  await eventually("a visible page has polled several times", () => polls >= 6);
  expect(answers.length - before, "requests of the hidden page").toBeLessThanOrEqual(1);
  await become("visible");
  await eventually("it polls again", () => answers.length >= before + 2);
});
