/**
 * The demo page for the tests of one file. All tests share one system and one browser; visitors leave after each test.
 */

import type { Browser, BrowserContextOptions } from "playwright-core";
import { afterAll, afterEach, beforeAll } from "vitest";

import { DemoSystem, FIRST_START_MS_MAX, openBrowser, Visitor, WITHOUT_ANIMATIONS } from "./browser.ts";

/** `url`: address of another system, or of a cable to this one. */
type Visit = { readonly url?: string; readonly rights?: string };

/** Long limits: with several pages on a busy machine, the system is slow and would shed presence. These tests do not test shedding. */
const UNDISTURBED = {
  SHED_DELAY_MS_MIN: "60000",
  SHED_NATS_LAG_MS_MIN: "60000",
  SHARE_DELAY_MS_MIN: "60000",
  GATEWAY_SILENCE_MS_MAX: "30000",
};

export class DemoPage {
  readonly #context: BrowserContextOptions;
  #system: DemoSystem | undefined;
  #browser: Browser | undefined;
  #here: Visitor[] = [];

  private constructor(context: BrowserContextOptions) {
    this.#context = context;
  }

  /** Call once per file, outside of the tests. The pages of a failed test are stored as pictures. */
  static forThisFile(context: BrowserContextOptions = {}): DemoPage {
    const demo = new DemoPage({ ...WITHOUT_ANIMATIONS, ...context });
    beforeAll(async () => {
      [demo.#system, demo.#browser] = await Promise.all([DemoSystem.start(UNDISTURBED), openBrowser()]);
    }, FIRST_START_MS_MAX);
    afterEach(({ task }) => demo.#endVisits(task.name, task.result?.state === "fail" || process.env["TEST_LOOK"] !== undefined));
    afterAll(async () => {
      await demo.#browser?.close();
      await demo.#system?.stop();
    });
    return demo;
  }

  get system(): DemoSystem {
    return this.#system!;
  }

  open(room: string, name: string, { url = this.system.url, ...more }: Visit = {}): Promise<Visitor> {
    return this.openAddress(`${url}/?${new URLSearchParams({ room, name, ...more })}`);
  }

  async openAddress(url: string): Promise<Visitor> {
    const visitor = await Visitor.open(this.#browser!, url, this.#context);
    this.#here.push(visitor);
    return visitor;
  }

  async close(visitor: Visitor): Promise<void> {
    this.#here = this.#here.filter((other) => other !== visitor);
    await visitor.close();
  }

  async #endVisits(test: string, isLookedAt: boolean): Promise<void> {
    if (isLookedAt)
      for (const [index, visitor] of this.#here.entries())
        console.error(`what person ${index + 1} saw: ${await visitor.screenshot(`${test} ${index + 1}`)}`);
    await Promise.all(this.#here.map((visitor) => visitor.close()));
    this.#here = [];
  }
}
