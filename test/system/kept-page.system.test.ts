/** Text that is typed offline survives the closing of its page: the reloaded page shows the text, and sends it once. */

import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";

import { DemoSystem, FIRST_START_MS_MAX, openBrowser, Visitor, WITHOUT_ANIMATIONS } from "./browser.ts";
import { eventually } from "./eventually.ts";
import { NetworkSwitch } from "./network-switch.ts";

let system: DemoSystem;
let browser: Browser;
let contexts: BrowserContext[] = [];

beforeAll(async () => {
  [system, browser] = await Promise.all([DemoSystem.start(), openBrowser()]);
}, FIRST_START_MS_MAX);

afterEach(async () => {
  await Promise.all(contexts.map((context) => context.close()));
  contexts = [];
});

afterAll(async () => {
  await browser?.close();
  await system?.stop();
});

test("[PAGE33] text typed offline is present after the page is reloaded offline, and reaches others once", async () => {
  const device = await newDevice();
  const network = await NetworkSwitch.of(device);
  const ada = await openIn(device, "kept", "Ada");
  await ada.types("before; ");
  await isSaved(ada);

  await network.off();
  await ada.types("on a train; ");
  await eventually("the page reports that it is offline and stores edits on the device", async () =>
    (await ada.notice()).includes("kept on this device"),
  );
  await ada.page.reload(); // The browser asks for no confirmation, because nothing would be lost.
  await eventually("the text is there, without a connection", async () => (await ada.text()) === "before; on a train; ");
  await ada.page.keyboard.press("Control+End");
  await ada.types("in a tunnel; ");
  await mayLeave(ada);
  await ada.page.reload();
  await eventually("all of it", async () => (await ada.text()) === "before; on a train; in a tunnel; ");
  await sees("the page reports the stored edits", ada, async () => /^Offline, \d+ edits? kept here$/.test(await ada.saveRemark()));

  await network.on();
  await isSaved(ada);
  const grace = await openIn(await newDevice(), "kept", "Grace");
  await eventually("Grace has it, once", async () => (await grace.text()) === "before; on a train; in a tunnel; ");
  expect(await ada.text()).toBe(await grace.text());
});

test("[PAGE33] two tabs of one browser each keep what was typed in them, and a later tab has the text of both", async () => {
  const device = await newDevice();
  const network = await NetworkSwitch.of(device);
  const [left, right] = [await openIn(device, "tabs", "Ada"), await openIn(device, "tabs", "Ada")];
  await left.types("both. ");
  await isSaved(left);
  await eventually("the other tab has it", async () => (await right.text()) === "both. ");
  await isSaved(right);
  await network.off();
  await left.types("left ");
  await right.page.keyboard.press("Control+End");
  await right.types("right ");
  for (const tab of [left, right]) {
    await sees("the page is offline and stores edits", tab, async () => (await tab.notice()).includes("kept on this device"));
    await mayLeave(tab);
  }
  await Promise.all([left.page.close(), right.page.close()]);

  const after = await openIn(device, "tabs", "Ada");
  await eventually("the text of both tabs is present once", async () => {
    const text = await after.text();
    return ["both. ", "left ", "right "].every((typed) => text.split(typed).length === 2);
  });
  await network.on();
  await isSaved(after);
  const grace = await openIn(await newDevice(), "tabs", "Grace");
  await eventually("Grace has the same", async () => (await grace.text()) === (await after.text()));
});

test("[PAGE35] text typed offline under one name is present under another name, and for a visitor without a name", async () => {
  const device = await newDevice();
  const network = await NetworkSwitch.of(device);
  const ada = await openIn(device, "renamed", "Ada");
  await ada.types("before; ");
  await isSaved(ada);
  await network.off();
  await ada.page.getByLabel("Your name").fill("Bob");
  await ada.page.keyboard.press("Enter");
  await ada.types("under another name; ");
  await mayLeave(ada);
  await ada.page.reload();
  await sees("it is there after loading again", ada, async () => (await ada.text()) === "before; under another name; ");
  await sees("so is the name", ada, async () => (await ada.page.getByLabel("Your name").inputValue()) === "Bob");
  await ada.page.close();

  const plain = await openIn(device, "renamed", undefined);
  await sees(
    "the text is present for a visitor without a name",
    plain,
    async () => (await plain.text()) === "before; under another name; ",
  );
  await network.on();
  await isSaved(plain);
  const grace = await openIn(await newDevice(), "renamed", "Grace");
  await eventually("Grace has it, once", async () => (await grace.text()) === "before; under another name; ");
});

test("[PAGE34] a document stored from a lost log is merged with the document of the new log, and no text is doubled", async () => {
  const [device, room] = [await newDevice(), `wiped-${Date.now()}`]; // A retry has a room of its own.
  const ada = await openIn(device, room, "Ada");
  await ada.types("old ");
  await isSaved(ada);
  await eventually("the device has it as well", async () => (await keptSeq(ada.page)) === Number(await ada.page.textContent("#seq")));
  await ada.page.close();
  await system.startAnew();

  const grace = await openIn(await newDevice(), room, "Grace");
  await grace.types("new ");
  await isSaved(grace);
  const again = await openIn(device, room, "Ada");
  await isSaved(again);
  for (const [name, person] of [
    ["Ada", again],
    ["Grace", grace],
  ] as const) {
    await sees(`${name} has both, once`, person, async () => {
      const text = await person.text();
      return text.split("old ").length === 2 && text.split("new ").length === 2;
    });
  }
  await eventually("both have the same", async () => (await again.text()) === (await grace.text()));
});

async function newDevice(): Promise<BrowserContext> {
  const context = await browser.newContext(WITHOUT_ANIMATIONS);
  contexts.push(context);
  return context;
}

async function openIn(context: BrowserContext, room: string, name: string | undefined): Promise<Visitor> {
  const visitor = new Visitor(await context.newPage());
  await visitor.page.goto(`${system.url}/?${new URLSearchParams({ room, ...(name === undefined ? {} : { name }) })}`);
  await eventually("the document is open", async () => (await visitor.saveRemark()) !== "Opening…");
  return visitor;
}

/** If the expectation fails, reports the content of the page. */
async function sees(what: string, visitor: Visitor, isSeen: () => Promise<boolean>): Promise<void> {
  await eventually(what, isSeen).catch(async (cause: unknown) => {
    throw new Error(`${what}: there is "${await visitor.text()}", "${await visitor.saveRemark()}", "${await visitor.notice()}"`, { cause });
  });
}

async function isSaved(visitor: Visitor): Promise<void> {
  await eventually("it is saved", async () => (await visitor.saveRemark()) === "Saved");
}

/** Without this, the browser would ask for confirmation. */
async function mayLeave(visitor: Visitor): Promise<void> {
  await eventually("nothing is lost by leaving", () =>
    visitor.page.evaluate(() => dispatchEvent(new Event("beforeunload", { cancelable: true }))),
  );
}

/** The last seq of the document on the device. The page stores server data a moment after its arrival. */
async function keptSeq(page: Page): Promise<number> {
  return page.evaluate(async () => {
    const done = <Result>(request: IDBRequest<Result>): Promise<Result> =>
      new Promise((resolve, reject) => {
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error);
      });
    const [database] = await indexedDB.databases();
    const db = await done(indexedDB.open(database!.name!));
    const heads = await done<{ position: { seq: number } }[]>(db.transaction("heads").objectStore("heads").getAll());
    db.close();
    return heads[0]?.position.seq ?? 0;
  });
}
