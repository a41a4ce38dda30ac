/**
 * The operations console in a real Chromium, on a Coroom of several processes. With TEST_PICTURE=docs/operations.png
 * the test stores a picture of the page: rooms in a wide window, and charts on a phone in dark mode.
 */

import type { Browser, BrowserContextOptions, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";

import type { ServerId, UnixMillis } from "../../shared/ids.ts";
import { makeOperatorPass } from "../../shared/io/operator-pass.ts";
import { makeToken } from "../../cli/token.ts";
import { shortName } from "../../console/operations/format.ts";
import { accessibilityViolations } from "./accessibility.ts";
import { openBrowser, PATIENCE_MS } from "./browser.ts";
import { SystemCluster } from "./cluster.ts";
import { eventually } from "./eventually.ts";
import { processOf, serverOf } from "./owner.ts";
import { insertion, Person } from "./person.ts";

const WINDOW = { width: 1180, height: 740 };
const PHONE: BrowserContextOptions = { viewport: { width: 370, height: WINDOW.height }, colorScheme: "dark" };
/** Long limits: beside a browser and several processes on one machine no server counts as dead, and nothing is shed. */
const UNHURRIED = {
  HEARTBEAT_MS: "500",
  SERVER_SILENCE_MS_MAX: "5000",
  SHED_DELAY_MS_MIN: "60000",
  SHED_NATS_LAG_MS_MIN: "60000",
  SHARE_DELAY_MS_MIN: "60000",
  GATEWAY_SILENCE_MS_MAX: "30000",
  FLAT_PARTICIPANTS_MAX: "4",
  FLAT_AGAIN_PARTICIPANTS: "3",
  MODE_MS_MIN: "100",
};
const NAMES = ["Ada", "Shafi", "Grace", "Hedy", "Radia"];

let cluster: SystemCluster;
let browser: Browser;
beforeAll(async () => {
  [cluster, browser] = await Promise.all([
    SystemCluster.start({ gateways: 2, roomServers: 2, settings: { ...UNHURRIED, CONTROL_LOOP_MS: "3600000" } }),
    openBrowser(),
  ]);
});
afterAll(async () => {
  await browser.close();
  await cluster.stop();
});

const operatorsPass = () => makeOperatorPass(cluster.operatorSecret, (Date.now() + 3_600_000) as UnixMillis);
const tokenWith = (rights: readonly string[]) =>
  makeToken({ room: ["*"], user: "boss", name: "", rights, tenant: "default", ttl: 3_600 }, cluster.internalSecret);

async function open(pass: string, options: BrowserContextOptions = { viewport: WINDOW }, hash = ""): Promise<Page> {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(PATIENCE_MS);
  onTestFinished(() => context.close());
  const page = await context.newPage();
  await page.goto(`${cluster.gateways[0]!.httpUrl}/operations${hash}`);
  await page.getByLabel("Pass or token").fill(pass);
  await page.getByRole("button", { name: "Sign in" }).click();
  return page;
}

/** People in a room, the first of whom has sent an edit. */
async function occupy(room: string, names: readonly string[]): Promise<Person[]> {
  const people = await Promise.all(
    names.map((name, index) => Person.enter(cluster, cluster.gateways[index % 2]!, room, name, { merging: false })),
  );
  people[0]!.type(insertion("one."));
  await people[0]!.untilSaved();
  onTestFinished(() => people.forEach((person) => person.leave()));
  return people;
}

const rowOf = (page: Page, room: string) => page.locator("#rooms tr", { has: page.getByRole("button", { name: room, exact: true }) });
const serverShown = async (page: Page, room: string): Promise<string> =>
  (await rowOf(page, room).locator("td").last().getAttribute("title")) ?? "";
const verdict = (page: Page) => page.locator("#verdict").innerText();
const hasFocus = (place: Locator): Promise<boolean> => place.evaluate((found) => found === document.activeElement);
const confirm = (page: Page) => page.locator("#confirm");

test("[OPG1] an operator sees the overall status, the servers, gateways and rooms, and the members of a room", async () => {
  await occupy("launch plan", ["Ada", "Grace"]);
  const page = await open(operatorsPass());
  await eventually("all is well", async () =>
    (await verdict(page)).startsWith(
      [
        "All is well",
        "2 of 2 gateways ready",
        "2 room servers",
        "1 placement leader",
        "1 document service",
        "no leaderboard",
        "2 connections",
      ].join("\n"),
    ),
  );
  await eventually("the room is listed", async () => (await rowOf(page, "launch plan").innerText()).includes("flat"));
  expect(await page.locator("#servers li").count()).toBe(2);
  await eventually("the page is live", async () => (await page.locator("#reach").innerText()) === "Live");
  await page.getByRole("button", { name: "launch plan", exact: true }).click();
  await eventually(
    "both are there",
    async () =>
      (await page.locator("#members .who").allInnerTexts())
        .map((text) => text.slice(0, 3))
        .sort()
        .join() === "Ada,Gra",
  );
  await eventually("the facts of the room are shown", async () => (await page.locator("#room-facts").innerText()).includes("epoch"));
  await page.locator("#room-facts dd").first().selectText();
  for (let round = 0; round < 2; round++) await page.waitForResponse(/\/rooms\/launch%20plan\/members/);
  expect(await page.evaluate(() => String(getSelection())), "text stays selected while the page polls").toBe("default");
  expect(page.url()).not.toContain("operator.");
});

test("[OPG2] an operator moves a room, sees it on its new server, and sees the move among the events", async () => {
  const [ada] = await occupy("moved", ["Ada"]);
  const page = await open(operatorsPass());
  await eventually("the room is listed", async () => (await serverShown(page, "moved")) !== "");
  const from = await serverShown(page, "moved");
  await page.getByRole("button", { name: "moved", exact: true }).click();
  await page.getByRole("button", { name: "Move…" }).click();
  expect(await confirm(page).innerText()).toContain("nobody is disconnected and nothing is lost");
  await page.getByRole("button", { name: "Move it" }).click();
  await eventually("the page reports the move", async () =>
    (await page.locator("#confirm-outcome").innerText()).startsWith("The room moved from"),
  );
  await page.getByRole("button", { name: "Close" }).last().click();
  await eventually("the list shows it there", async () => ![from, ""].includes(await serverShown(page, "moved")));
  await eventually(
    "the move is listed among the events",
    async () => (await page.locator("#events").textContent())?.includes("moved handed over") === true,
  );
  ada!.type(insertion("two."));
  await ada!.untilSaved();
});

test("[OPG3] the mode change of a room that grew is listed with its cause, and a member is made read-only and released again", async () => {
  await occupy("all hands", NAMES.slice(0, 1));
  await occupy("all hands", NAMES.slice(1));
  const page = await open(operatorsPass());
  await eventually(
    "the mode change is listed",
    async () => (await page.locator("#events").textContent())?.includes("all hands: flat → hierarchical") === true,
  );
  expect(await page.locator("#events li", { hasText: "all hands: flat" }).innerText()).toMatch(
    /\d participants; (?:the room grew|set by a new owner)/,
  ); // The second cause if they joined before the owner had collected the members.
  await page.getByRole("button", { name: "all hands", exact: true }).click();
  await page.getByRole("button", { name: "Read only… Shafi" }).click();
  expect(await accessibilityViolations(page), "dialog").toEqual([]);
  await page.getByRole("button", { name: "Make read-only", exact: true }).click();
  await eventually("it is done", async () => (await page.locator("#confirm-outcome").innerText()).includes("can only read"));
  await page.locator("#confirm-no").click();
  await page.locator("#room-close").click();
  await eventually("it is listed", async () => (await page.locator("#bans").innerText()).includes("read-only in default / all hands"));
  for (const colorScheme of ["dark", "light"] as const) {
    await page.emulateMedia({ colorScheme });
    expect(await accessibilityViolations(page), colorScheme).toEqual([]);
  }
  expect(await page.getByRole("heading", { level: 2 }).first().getAttribute("id")).toBe("verdict-title");
  const picture = process.env["TEST_PICTURE"];
  if (picture !== undefined) await keepPicture(page, picture, await furnish());
  await page.getByRole("button", { name: "Lift the restriction of Shafi" }).click();
  await page.getByRole("button", { name: "Lift it" }).click();
  await eventually("it is lifted", async () => (await page.locator("#confirm-outcome").innerText()) === "The restriction is lifted.");
});

test("[OPG4] a search narrows the list of rooms, and the list has several pages", async () => {
  await Promise.all(Array.from({ length: 27 }, (_, index) => occupy(`page ${String(index).padStart(2, "0")}`, ["Ada"])));
  const page = await open(operatorsPass());
  await page.getByLabel("Part of a room’s name").fill("PAGE ");
  await eventually("only matching rooms are counted", async () => (await page.locator("#rooms-count").innerText()) === "27");
  await eventually("the first page is full", async () => (await page.locator("#rooms tr").count()) === 25);
  await page.getByRole("button", { name: "Next" }).press("Enter");
  await eventually("the rest is on the next", async () => (await page.locator("#rooms tr").count()) === 2);
  await eventually("Next is disabled and has passed the focus on", () => hasFocus(page.getByRole("button", { name: "Previous" })));
  await page.getByLabel("Part of a room’s name").fill("none is called so");
  await eventually(
    "the page reports that no room matches",
    async () => (await page.locator("#rooms-empty").innerText()) === "No open room matches the search.",
  );
});

test("[OPG5] a token without the right is refused with the required claim, and an administrator's token shows rooms but no servers", async () => {
  await occupy("for administrators", ["Ada"]);
  const page = await open(await tokenWith(["read", "write"]));
  await eventually("the page names the required claim", async () =>
    (await page.locator("#sign-in-problem").innerText()).includes("whose claim `rights` contains `admin`"),
  );
  expect(await accessibilityViolations(page)).toEqual([]);
  expect(await page.locator("#operations").isVisible()).toBe(false);
  await page.getByLabel("Pass or token").fill(await tokenWith(["read", "admin"]));
  await page.getByRole("button", { name: "Sign in" }).click();
  await eventually("the rooms are listed", async () => (await rowOf(page, "for administrators").count()) === 1);
  await eventually("servers are not", async () =>
    (await page.locator("#servers-empty").innerText()).startsWith("Servers are shown to operators only"),
  );
  expect(await page.getByRole("button", { name: "Drain" }).count()).toBe(0);
  await page.reload();
  await eventually("it is still signed in", async () => (await rowOf(page, "for administrators").count()) === 1);
});

test("[OPG6] the page reports an unreachable gateway and keeps its content, and no other page may frame it", async () => {
  await occupy("kept", ["Ada"]);
  const page = await open(operatorsPass());
  await eventually("the room is listed", async () => (await rowOf(page, "kept").count()) === 1);
  await page.context().setOffline(true);
  await eventually("the page names the time of the last answer", async () =>
    /^No answer since \d\d:\d\d:\d\d$/.test(await page.locator("#reach").innerText()),
  );
  expect(await rowOf(page, "kept").count()).toBe(1);
  await page.context().setOffline(false);
  await eventually("it is back", async () => (await page.locator("#reach").innerText()) === "Live");
  const answer = await fetch(`${cluster.gateways[0]!.httpUrl}/operations/`);
  expect([answer.status, answer.headers.get("content-security-policy")]).toEqual([200, "frame-ancestors 'none'"]);
});

test("[OPG7] a drained server hands over its rooms, and the page reports when it can be stopped", async () => {
  await occupy("drained", ["Ada"]);
  const page = await open(operatorsPass());
  await eventually("the room is listed", async () => (await serverShown(page, "drained")) !== "");
  const server = await serverShown(page, "drained");
  await page.getByRole("button", { name: `Drain ${server}` }).click();
  await page.getByRole("button", { name: "Drain it" }).click();
  await eventually("the drain has begun", async () =>
    (await page.locator("#confirm-outcome").innerText()).includes("is handing over its rooms"),
  );
  await page.locator("#confirm-no").click();
  await eventually("it can be stopped", async () => /Needs attention[^]*is drained\. You can stop it\./.test(await verdict(page)));
  await eventually("the room is elsewhere", async () => ![server, ""].includes(await serverShown(page, "drained")));
  const process = cluster.roomServers.find((each) => serverOf(each) === server) ?? processOf(cluster, server as never);
  await process!.restart();
});

test("[OPG8] on a phone a long room name hides neither participants, mode nor server of any room, and each tab fits", async () => {
  const name = `a name that is far longer than a phone is wide ${"and longer ".repeat(4)}`.trim();
  await occupy(name, NAMES);
  const page = await open(operatorsPass(), PHONE);
  await eventually(
    "it is listed with the longer mode",
    async () => (await rowOf(page, name).count()) === 1 && (await rowOf(page, name).innerText()).includes("hierarchical"),
  );
  for (const cell of await rowOf(page, name).locator("td:not(.wide)").all()) {
    const box = (await cell.boundingBox())!;
    expect(box.x + box.width).toBeLessThanOrEqual(PHONE.viewport!.width);
  }
  await page.setViewportSize({ width: 320, height: 640 });
  for (const tab of ["Overview", "Charts", "Events"]) {
    await page.getByRole("link", { name: tab }).click();
    expect(await accessibilityViolations(page), tab).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth), tab).toBe(320);
  }
  await page.emulateMedia({ forcedColors: "active" });
  const outlineOf = (link: string): Promise<string> =>
    page.getByRole("link", { name: link }).evaluate((tab) => getComputedStyle(tab).outlineStyle);
  await page.mouse.click(5, 5); // The focus has an outline too.
  expect([await outlineOf("Events"), await outlineOf("Charts")], "the current tab is marked").toEqual(["solid", "none"]);
});

test("[OPG9] a killed room server is named in the verdict and among the events, with the rooms that others took over", async () => {
  const [ada] = await occupy("bereft", ["Ada"]);
  const page = await open(operatorsPass());
  await eventually("the room is listed", async () => (await serverShown(page, "bereft")) !== "");
  const server = await serverShown(page, "bereft");
  const process = processOf(cluster, server as ServerId)!;
  await process.kill();
  ada!.type(insertion("two."));
  await ada!.untilSaved();
  await eventually("the verdict names it", async () =>
    (await verdict(page)).includes(`Room server ${shortName(server)} stopped sending heartbeats`),
  );
  const takeover = new RegExp(`took over \\d+ rooms? from ${shortName(server)}`);
  await eventually("the takeover is listed among the events", async () => takeover.test(await page.locator("#events").innerText()));
  await process.startAgain();
});

test("[OPG10] a failure of NATS is reported as a failure of NATS and not of a server, and the report ends when NATS returns", async () => {
  const [ada] = await occupy("waiting for NATS", ["Ada"]);
  const page = await open(operatorsPass());
  await eventually("both servers are listed", async () => (await page.locator("#servers li").count()) === 2);
  cluster.nats.kill("SIGKILL");
  await cluster.nats.exited;
  const seen = new Set<string>();
  await eventually("the failure of NATS is reported", async () => {
    seen.add(await verdict(page));
    return [...seen].at(-1)!.includes("This gateway does not reach NATS");
  });
  expect([...seen].filter((verdictText) => verdictText.includes("No room server sends heartbeats"))).toEqual([]);
  expect(await page.locator("#servers li").count()).toBeGreaterThan(0);
  await cluster.nats.restart();
  await eventually("the failure is no longer reported", async () => !(await verdict(page)).includes("reach NATS"));
  ada!.type(insertion("two."));
  await ada!.untilSaved();
});

test("[OPG11] charts show what the processes measure, and the address keeps tab, range, process and room for a colleague", async () => {
  const [ada] = await occupy("measured", NAMES);
  const typing = setInterval(() => ada!.type(insertion("word ")), 200);
  onTestFinished(() => clearInterval(typing));
  const page = await open(operatorsPass());
  const refusals: string[] = [];
  page.on("console", (message) => void (message.text().includes("Content Security Policy") && refusals.push(message.text())));
  await page.getByRole("link", { name: "Charts" }).click();
  const figures = (title: string) =>
    page
      .locator(".chart", { has: page.getByRole("heading", { name: title, exact: true }) })
      .locator(".chart-legend")
      .innerText();
  await eventually("people are counted", async () => /participants\s*[1-9]/.test(await figures("Connections")));
  await eventually("the latency of edits is measured", async () => /p99\s*[\d.]+ m?s/.test(await figures("Save and propagation")));
  expect(await page.locator(".chart canvas").count()).toBeGreaterThan(5);
  await page.getByRole("button", { name: "5 min", exact: true }).click();
  const process = (await page.locator("#charts-process option", { hasText: "Room server" }).first().getAttribute("value"))!;
  await page.locator("#charts-process").selectOption(process);
  await eventually(
    "charts of gateways are gone",
    async () => (await page.locator(".chart", { hasText: "NATS round trip" }).isVisible()) === false,
  );
  await page.getByRole("link", { name: "Overview" }).click();
  await page.getByRole("button", { name: "measured", exact: true }).click();
  await eventually("the room has a chart", async () => /participants\s*5/.test(await page.locator("#room-chart").innerText()));
  expect(await accessibilityViolations(page)).toEqual([]);
  expect(await page.getByRole("img", { name: /^Size and edits: participants from 5 to 5/ }).count()).toBe(1);
  await page.getByLabel("Part of a member’s name").fill("sha");
  await eventually("only one member is listed", async () => (await page.locator("#members .who").allInnerTexts()).join() === "Shafi");
  expect(refusals).toEqual([]);
  const { hash } = new URL(page.url());
  expect(Object.fromEntries(new URLSearchParams(hash.slice(1)))).toEqual({ minutes: "5", process, tenant: "default", room: "measured" });
  const colleague = await open(operatorsPass(), {}, hash);
  await eventually("a colleague sees the same room", async () => (await colleague.locator("#room-title").innerText()) === "measured");
  await colleague.locator("#room-close").click();
  await eventually("the address names no room", () => new URL(colleague.url()).hash === `#minutes=5&process=${process}`);
  await colleague.goBack();
  await eventually("Back opens the room again", async () => (await colleague.locator("#room-title").isVisible()) === true);
});

test("[OPG12] the late result of an action is not shown as the result of another one", async () => {
  await occupy("two actions", ["Ada", "Grace"]);
  const page = await open(operatorsPass());
  let answer = (): void => {};
  const isReleased = new Promise<void>((resolve) => (answer = resolve));
  await page.route("**/v1/admin/kick", async (route) => {
    await isReleased;
    await route.fulfill({ json: { kicked: 1 } });
  });
  await page.getByRole("button", { name: "two actions", exact: true }).click();
  await page.getByRole("button", { name: "Kick… Ada" }).click();
  await page.getByRole("button", { name: "Kick", exact: true }).press("Enter");
  await eventually("it waits", async () => (await page.locator("#confirm-outcome").innerText()) === "Working…");
  expect(await page.locator("#confirm-outcome").evaluate((text) => text === document.activeElement), "the focus stays in the dialog").toBe(
    true,
  );
  await page.locator("#confirm-no").click();
  await page.getByRole("button", { name: "Kick… Grace" }).click();
  const [next] = [page.waitForResponse(/\/v1\/admin\/kick/).then(() => page.waitForResponse(/\/v1\/admin\/rooms\?/))];
  answer();
  await next;
  expect(await confirm(page).innerText()).toMatch(/^Kick Grace\?/);
  expect(await page.locator("#confirm-outcome").innerText()).toBe("");
  expect(await page.getByRole("button", { name: "Kick", exact: true }).isEnabled()).toBe(true);
});

test("[OPG13] a gateway that accepts requests and does not answer them is reported before further requests have waited too", async () => {
  await occupy("hung", ["Ada"]);
  const page = await open(operatorsPass(), { viewport: WINDOW }, "#tab=charts");
  await eventually("the page is live", async () => (await page.locator("#reach").innerText()) === "Live");
  const asked: string[] = [];
  await page.route("**/v1/admin/**", (route) => {
    const { pathname } = new URL(route.request().url());
    if (asked.length > 0 || pathname.endsWith("/fleet")) asked.push(pathname); // From the next round on.
  });
  await eventually("the page names the time of the last answer", async () =>
    (await page.locator("#reach").innerText()).startsWith("No answer since"),
  );
  expect(asked.filter((path) => path.endsWith("/vitals") || path.endsWith("/bans"))).toEqual([]);
});

test("[OPG14] a search in the events sends no request for each letter, and the address contains it", async () => {
  await occupy("searched", ["Ada"]);
  const page = await open(operatorsPass());
  await page.getByRole("button", { name: "All", exact: true }).click();
  const rows = page.locator("#events li");
  await eventually("events are listed", async () => (await rows.filter({ hasText: "searched" }).count()) > 0);
  const asked: string[] = [];
  page.on("request", (request) => request.url().includes("/v1/admin/fleet") && asked.push(request.url()));
  await page.getByLabel("Search events").pressSequentially("searched by each of its letters");
  await eventually("no event matches", async () => (await page.locator("#events-empty").innerText()) === "No event matches the search.");
  expect(asked.length).toBeLessThan("searched by each of its letters".length / 2);
  expect(new URLSearchParams(new URL(page.url()).hash.slice(1)).get("find")).toBe("searched by each of its letters");
});

test("[OPG15] an operator whose pass expires is asked for another one, and then sees the same room again", async () => {
  await occupy("kept open", ["Ada"]);
  const page = await open(operatorsPass());
  await page.getByRole("button", { name: "kept open", exact: true }).click();
  await eventually("the room is open", async () => (await page.locator("#members .who").allInnerTexts()).join() === "Ada");
  const { hash } = new URL(page.url());
  await page.route("**/v1/admin/rooms?**", (route) =>
    route.fulfill({ status: 401, json: { error: "unauthorized", message: "The pass has expired." } }),
  );
  await eventually("a new pass is asked for", async () => (await page.locator("#sign-in-problem").innerText()) === "The pass has expired.");
  await page.unroute("**/v1/admin/rooms?**");
  await page.getByLabel("Pass or token").fill(operatorsPass());
  await page.getByRole("button", { name: "Sign in" }).click();
  await eventually("the room is open again", () => page.locator("#room-title").isVisible());
  expect([await page.locator("#room-title").innerText(), new URL(page.url()).hash]).toEqual(["kept open", hash]);
});

test("[OPG16] an operator without a mouse kicks a member and lifts a restriction, and the focus stays in the list", async () => {
  await occupy("by keyboard", ["Ada", "Grace", "Hedy"]);
  const page = await open(operatorsPass());
  const { keyboard } = page;
  await eventually("the focus has left the hidden form", () => hasFocus(page.locator("#operations")));
  const opener = page.getByRole("button", { name: "by keyboard", exact: true });
  await opener.press("Enter");
  const members = page.locator("#members li");
  await eventually("the members are listed", async () => (await members.count()) === 3);
  await members.first().getByRole("button", { name: "Kick…" }).press("Enter");
  for (const key of ["Tab", "Enter"]) await keyboard.press(key); // From Cancel to Kick.
  await eventually("the member is gone", async () => (await members.count()) === 2);
  await keyboard.press("Escape");
  await eventually("the focus is on the member who was next", () => hasFocus(members.first().getByRole("button").first()));
  for (const key of ["Enter", "Tab", "Enter"]) await keyboard.press(key); // Read only.
  await eventually("it is done", async () => (await page.locator("#confirm-outcome").innerText()).includes("can only read"));
  for (const key of ["Escape", "Escape"]) await keyboard.press(key);
  await eventually("the focus is on the room", () => hasFocus(opener));
  const lift = page.getByRole("button", { name: /^Lift the restriction/ });
  const bansAsked = () => page.waitForRequest("**/v1/admin/bans");
  await bansAsked(); // The next regular request is five rounds later.
  await lift.press("Enter");
  await keyboard.press("Tab");
  const rounds: string[] = [];
  page.on("request", (asked) => asked.url().endsWith("/fleet") && rounds.push(asked.url()));
  await Promise.all([bansAsked(), keyboard.press("Enter")]);
  expect(rounds.length, "rounds until the bans are requested").toBeLessThanOrEqual(2);
  await eventually("it is lifted", async () => (await page.locator("#confirm-outcome").innerText()) === "The restriction is lifted.");
  await keyboard.press("Escape");
  await eventually("nothing is left to lift", async () => (await lift.count()) === 0);
  await eventually("the focus is on the heading", () => hasFocus(page.getByRole("heading", { name: "Bans and restrictions" })));
});

/** Rooms with people who type, for the picture. The returned function ends the typing. */
async function furnish(): Promise<() => void> {
  const rooms: [string, number][] = [
    ["Launch plan", 4],
    ["Design review", 3],
    ["Sprint board", 3],
    ["Onboarding", 2],
    ["Release notes", 2],
    ["Budget 2027", 1],
    ["Reading list", 1],
  ];
  const people = (await Promise.all(rooms.map(([room, size]) => occupy(room, NAMES.slice(0, size))))).flat();
  const typing = setInterval(
    () => people.forEach((person, index) => Math.random() < 1 / (1 + (index % 5)) && person.type(insertion("a few words "))),
    400,
  );
  return () => clearInterval(typing);
}

async function keepPicture(page: Page, path: string, end: () => void): Promise<void> {
  const phone = await open(operatorsPass(), PHONE, "#tab=charts&minutes=5");
  await eventually("the phone has charts", async () => (await phone.locator(".chart canvas").count()) > 0);
  await eventually("all rooms are listed", async () => (await page.locator("#rooms tr", { hasText: "Reading list" }).count()) > 0);
  await page.waitForTimeout(8_000); // Rates cover the last few seconds.
  end();
  const pictures = await Promise.all([page, phone].map(async (each) => (await each.screenshot()).toString("base64")));
  const frame = await page.context().newPage();
  await frame.setViewportSize({ width: WINDOW.width + 370 + 84, height: WINDOW.height + 60 });
  await frame.setContent(
    `<body style="margin:30px;display:flex;gap:24px;background:#d7d9e0">${pictures.map((picture) => `<img style="border-radius:10px" src="data:image/png;base64,${picture}">`).join("")}</body>`,
  );
  await frame.screenshot({ path });
}
