/**
 * The demo page in a real Chromium, on a system started with `coroom start`. A visitor is one page in its own browser
 * context, like a user on another computer.
 */

import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

import { chromium, type Browser, type BrowserContextOptions, type Page } from "playwright-core";

import { NODE_FLAGS } from "../../cli/node-flags.ts";
import { type ChildProcessHandle, spawnChild } from "../../engines/child.ts";
import { findChromium } from "../../engines/browsers.ts";
import { claimPort } from "../../engines/free-port.ts";
import { eventually } from "./eventually.ts";

/** The first start on a machine may download the engines. */
export const FIRST_START_MS_MAX = 600_000;
/** Maximum duration of one browser step, on a slow machine. */
export const PATIENCE_MS = 120_000;
const STOP_PATIENCE_MS = 15_000;
const CHROMIUM_FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** For tests that observe no animation. Without a GPU, animations are most of the work of drawing. */
export const WITHOUT_ANIMATIONS: BrowserContextOptions = { reducedMotion: "reduce" };

export async function openBrowser(): Promise<Browser> {
  const { path, env } = await findChromium();
  return chromium.launch({ executablePath: path, env: { ...process.env, ...env }, args: CHROMIUM_FLAGS, timeout: PATIENCE_MS });
}

/** `coroom start` with its own data. After a kill it restarts on the same port with the same data. */
export class DemoSystem {
  readonly folder: string;
  readonly url: string;
  readonly #start: () => Promise<{ url: string; child: ChildProcessHandle }>;
  #child: ChildProcessHandle;

  private constructor(
    folder: string,
    start: () => Promise<{ url: string; child: ChildProcessHandle }>,
    { url, child }: { url: string; child: ChildProcessHandle },
  ) {
    this.folder = folder;
    this.url = url;
    this.#start = start;
    this.#child = child;
  }

  /** `settings`: environment variables without their prefix. */
  static async start(settings: Readonly<Record<string, string>> = {}): Promise<DemoSystem> {
    const folder = mkdtempSync(join(tmpdir(), "coroom-demo-"));
    const port = await claimPort(0, "127.0.0.1", "port"); // Chosen here, so that a restarted system keeps its port.
    const start = () => startIn(folder, { ...settings, PORT: String(port), DATA_DIR: join(folder, "data") });
    return new DemoSystem(folder, start, await start());
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#child.exited;
  }

  async startAgain(): Promise<void> {
    this.#child = (await this.#start()).child;
  }

  /** Restarts on the same port without any data. */
  async startAnew(): Promise<void> {
    await this.#child.stop(STOP_PATIENCE_MS);
    rmSync(join(this.folder, "data"), { recursive: true });
    await this.startAgain();
  }

  async stop(): Promise<void> {
    await this.#child.stop(STOP_PATIENCE_MS);
    rmSync(this.folder, { recursive: true });
  }
}

/** A user at the demo page: what the user does, and what the page shows. */
export class Visitor {
  readonly page: Page;

  constructor(page: Page) {
    page.setDefaultTimeout(PATIENCE_MS);
    this.page = page;
  }

  static async open(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<Visitor> {
    const context = await browser.newContext(options);
    const visitor = new Visitor(await context.newPage());
    await visitor.page.goto(url);
    await eventually("the document is open", async () => (await visitor.saveRemark()) !== "Opening…");
    return visitor;
  }

  /** Types key by key at the caret. */
  async types(text: string, keyMs = 15): Promise<void> {
    await this.page.locator(".cm-content").focus();
    await this.page.keyboard.type(text, { delay: keyMs });
  }

  /** Pastes from the clipboard at the caret. */
  async pastes(text: string): Promise<void> {
    await this.page.locator(".cm-content").evaluate((editor, pasted) => {
      const clipboardData = new DataTransfer();
      clipboardData.setData("text/plain", pasted);
      editor.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
    }, text);
  }

  /** The text of the document, without other users' carets in it. */
  text(): Promise<string> {
    return this.page.locator(".cm-line").evaluateAll((lines) => {
      const written = lines.map((line) => line.cloneNode(true) as Element);
      for (const line of written) for (const drawn of line.querySelectorAll(".cm-ySelectionCaret, .cm-placeholder")) drawn.remove();
      return written.map((line) => line.textContent).join("\n");
    });
  }

  saveRemark(): Promise<string> {
    return this.page.locator("#save").innerText();
  }

  async notice(): Promise<string> {
    const notice = this.page.locator("#notice");
    return (await notice.isVisible()) ? notice.innerText() : "";
  }

  /** Stores a picture for people who investigate a failure. */
  async screenshot(name: string): Promise<string> {
    const path = join(tmpdir(), "coroom-screenshots", `${name.replace(/\W+/g, "-")}.png`);
    await this.page.screenshot({ path });
    return path;
  }

  async close(): Promise<void> {
    await this.page.context().close();
  }
}

async function startIn(folder: string, settings: Readonly<Record<string, string>>): Promise<{ url: string; child: ChildProcessHandle }> {
  const before = readyLines(folder).length;
  const child = await spawnChild({
    path: process.execPath,
    args: [...NODE_FLAGS, resolve("dist/cli/main.js"), "start"],
    env: Object.fromEntries(Object.entries(settings).map(([name, value]) => [`COROOM_${name}`, value])),
    cwd: resolve("."),
    logFile: logFileIn(folder),
  });
  let exited = false;
  void child.exited.then(() => (exited = true));
  await eventually("coroom start is ready", () => exited || readyLines(folder).length > before, FIRST_START_MS_MAX);
  const url = readyLines(folder).at(-1);
  if (exited || url === undefined) throw new Error(`coroom start ended before it was ready:\n${logIn(folder)}`);
  return { url, child };
}

function readyLines(folder: string): string[] {
  return [...logIn(folder).matchAll(/^coroom ready (http:\S+)$/gm)].map(([, url]) => url!);
}

function logIn(folder: string): string {
  return existsSync(logFileIn(folder)) ? readFileSync(logFileIn(folder), "utf8") : "";
}

function logFileIn(folder: string): string {
  return join(folder, "start.log");
}
