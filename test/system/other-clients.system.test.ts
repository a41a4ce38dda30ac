/** Pages with the unmodified providers of y-websocket and Hocuspocus in Chromium, on a system started with both roles. */

import { randomBytes } from "node:crypto";
import { resolve } from "node:path";

import { SignJWT } from "jose";
import type { Browser, Page } from "playwright-core";
import { createServer, type ViteDevServer } from "vite";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";

import { claimPort } from "../../engines/free-port.ts";
import { DemoSystem, FIRST_START_MS_MAX, openBrowser } from "./browser.ts";
import { eventually } from "./eventually.ts";

const ROLES = "engines,placement,room-server,document-service,leaderboard,gateway,y-websocket,hocuspocus";
const secret = randomBytes(32).toString("hex");
let bridge: string;
let system: DemoSystem;
let browser: Browser;
let site: ViteDevServer;

beforeAll(async () => {
  const port = String(await claimPort(0, "127.0.0.1", "port"));
  bridge = `ws://127.0.0.1:${port}`;
  [system, browser] = await Promise.all([DemoSystem.start({ JWT_SECRET: secret, ROLES, Y_PORT: port }), openBrowser()]);
  site = await createServer({
    root: resolve("test/system/other-clients-page"),
    configFile: false,
    logLevel: "error",
    cacheDir: resolve(system.folder, "vite"),
    resolve: { dedupe: ["yjs", "y-protocols"] },
    server: { host: "127.0.0.1", port: 0, fs: { allow: [resolve(".")] } },
  });
  await site.listen();
}, FIRST_START_MS_MAX);
afterAll(async () => {
  await site?.close();
  await browser?.close();
  await system?.stop();
});

type Facts = { readonly text: string; readonly synced: boolean; readonly unsynced: number; readonly names: readonly string[] };

async function open(client: "hocuspocus" | "y-websocket", room: string): Promise<Page> {
  const token = await new SignJWT({ rooms: [room], rights: ["read", "write"] })
    .setProtectedHeader({ alg: "HS256" })
    .setSubject(client)
    .setExpirationTime("1h")
    .sign(new TextEncoder().encode(secret));
  const context = await browser.newContext();
  onTestFinished(() => context.close());
  const page = await context.newPage();
  await page.goto(`${site.resolvedUrls!.local[0]}?${new URLSearchParams({ client, url: bridge, room, token })}`);
  return page;
}

async function factsOf(page: Page): Promise<Facts> {
  const shown = await page.locator("pre").innerText();
  return shown === "" ? { text: "", synced: false, unsynced: 0, names: [] } : (JSON.parse(shown) as Facts);
}

test("[YUC6] pages of Hocuspocus and y-websocket write in one room, see each other, and have all saved", async () => {
  const [hocuspocus, yWebsocket] = [await open("hocuspocus", "pages"), await open("y-websocket", "pages")];
  const both = (): Promise<Facts[]> => Promise.all([hocuspocus, yWebsocket].map(factsOf));
  await eventually("both are synced", async () => (await both()).every(({ synced }) => synced));
  await hocuspocus.evaluate(`write("from Hocuspocus. ")`);
  await eventually("y-websocket has it", async () => (await factsOf(yWebsocket)).text === "from Hocuspocus. ");
  await yWebsocket.evaluate(`write("from y-websocket.")`);
  const all = { text: "from Hocuspocus. from y-websocket.", synced: true, unsynced: 0, names: ["hocuspocus", "y-websocket"] };
  await eventually("both have all", async () => (await both()).every((facts) => JSON.stringify(facts) === JSON.stringify(all)));
  expect(await both()).toEqual([all, all]);
});
