/** The experience of a user who follows README: two pages, one document, no lost edits. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { expect, onTestFinished, test } from "vitest";

import { roleSecrets } from "../../cli/secrets.ts";
import { startNatsServer } from "../../engines/nats-server.ts";
import { Cable } from "./browser-cable.ts";
import { DemoSystem, Visitor } from "./browser.ts";
import { DemoPage } from "./demo-page.ts";
import { eventually } from "./eventually.ts";
import { SlowLogProxy } from "./slow-log-proxy.ts";

const ADAS = "Ada writes from one end: the quick brown fox.\nAnd a second line of hers. ";
const GRACES = "Grace writes from the other: over the lazy dog.\nAnd her second line. ";

const demo = DemoPage.forThisFile();

test("[PAGE10] two users who type at the same time end with one saved text that contains both texts", async () => {
  const [ada, grace] = await Promise.all([demo.open("at once", "Ada"), demo.open("at once", "Grace")]);
  await Promise.all([ada.types(ADAS), grace.types(GRACES)]);
  await agreeAndAreSaved(ada, grace);

  expect(await ada.text()).toContain(ADAS.trim());
  expect(await ada.text()).toContain(GRACES.trim());
  for (const person of [ada, grace]) await seesNames(person, ["Ada", "Grace"]);
});

test("[PAGE10] a later visitor gets the complete text", async () => {
  const ada = await demo.open("late", "Ada");
  await ada.pastes(ADAS);
  await agreeAndAreSaved(ada);
  const late = await demo.open("late", "Hedy");
  await agreeAndAreSaved(ada, late);
  expect(await late.text()).toContain(ADAS.trim());
  await seesNames(late, ["Ada", "Hedy"]);
});

test("[PAGE11] a page that loses the network reports it, accepts edits, and recovers", async () => {
  const { cable, url } = await Cable.to(demo.system.url);
  onTestFinished(() => cable.stop());
  const [ada, grace] = await Promise.all([demo.open("offline", "Ada", { url }), demo.open("offline", "Grace")]);
  await ada.types("before; ");
  await agreeAndAreSaved(ada, grace);
  expect(
    await ada.page
      .getByRole("status")
      .filter({ has: ada.page.locator("#notice") })
      .count(),
    "where notices will be read out",
  ).toBe(1);

  cable.pull();
  await ada.types("typed on a train; ");
  await eventually("the page reports that it is offline", async () => (await ada.notice()).startsWith("You are offline."));
  await grace.types("typed at a desk; ");
  await eventually("and how much is kept", async () => /^Offline, \d+ edits? kept here$/.test(await ada.saveRemark()));
  const spoken = await changesWhile(ada, () => ada.types("still writing; "));
  expect(spoken, "read out while typing offline").toEqual([]);
  expect(await grace.text()).not.toContain("train");

  cable.plug();
  await agreeAndAreSaved(ada, grace);
  for (const typed of ["before; ", "typed on a train; ", "typed at a desk; "]) expect(await grace.text()).toContain(typed.trim());
  await eventually("the notice is gone", async () => (await ada.notice()) === "");
  await eventually(
    "the hidden status is Saved",
    async () =>
      (await ada.page
        .getByRole("status")
        .filter({ hasText: /^Saved$/ })
        .count()) === 1,
  );
});

test("[PAGE11] a page whose server is killed accepts edits, and recovers when the server returns", async () => {
  const [ada, grace] = await Promise.all([demo.open("killed", "Ada"), demo.open("killed", "Grace")]);
  await ada.types("before the kill; ");
  await agreeAndAreSaved(ada, grace);

  await demo.system.kill();
  await Promise.all([ada.types("ada in the dark; "), grace.types("grace in the dark; ")]);
  await eventually("the page reports that it is offline", async () => (await grace.notice()).startsWith("You are offline."));
  await demo.system.startAgain();

  await agreeAndAreSaved(ada, grace);
  for (const typed of ["before the kill;", "ada in the dark;", "grace in the dark;"]) expect(await grace.text()).toContain(typed);
});

test("[PAGE12] the link for a second person opens the same document under another name", async () => {
  const ada = await demo.open("second person", "Ada");
  await ada.types("come in; ");
  const [tab] = await Promise.all([
    ada.page.context().waitForEvent("page"),
    ada.page.getByRole("link", { name: "Open as a second person" }).click(),
  ]);
  const second = new Visitor(tab);
  await agreeAndAreSaved(ada, second);
  const name = await second.page.getByLabel("Your name").inputValue();
  expect(name).not.toBe("Ada");
  await second.types("thank you. ");
  await agreeAndAreSaved(ada, second);
  await seesNames(ada, ["Ada", name].sort());
});

test("[PAGE55] whoever opens the address of somebody's page is another person, and a reload keeps the person", async () => {
  const ada = await demo.open("address bar", "Countess"); // The page suggests no such name.
  const guest = await demo.openAddress(ada.page.url());
  await guest.types("Who am I?");
  await agreeAndAreSaved(ada, guest);
  const name = await guest.page.getByLabel("Your name").inputValue();
  expect(name).not.toBe("Countess");
  await ada.page.reload();
  await agreeAndAreSaved(ada, guest);
  await seesNames(guest, ["Countess", name].sort());
});

test("[PAGE13] a reader sees what others write, and cannot write", async () => {
  const ada = await demo.open("reading", "Ada");
  const reader = await demo.open("reading", "Hedy", { rights: "read" });
  await ada.types("for everybody to read. ");
  await agreeAndAreSaved(ada);
  await eventually("the reader has it", async () => (await reader.text()) === (await ada.text()));
  await eventually("the page reports read access", async () => (await reader.notice()).startsWith("You have read access only."));
  await eventually(
    "so does the remark, and the text takes nothing",
    async () =>
      (await reader.saveRemark()) === "Read only" && (await reader.page.locator(".cm-content").getAttribute("contenteditable")) === "false",
  );
});

test("[PAGE50] a reader reaches the document with the keyboard, and copies it where the browser does not allow clipboard access", async () => {
  const ada = await demo.open("copied", "Ada");
  await ada.types("Nothing is lost.");
  await agreeAndAreSaved(ada);
  const reader = await demo.open("copied", "Hedy", { rights: "read" });
  await eventually("the reader has it", async () => (await reader.text()).includes("Nothing is lost."));
  await reader.page.locator(".brand").focus();
  const hasFocus = (): Promise<boolean> => reader.page.locator(".cm-content").evaluate((content) => content === document.activeElement);
  for (let press = 0; press < 10 && !(await hasFocus()); press++) await reader.page.keyboard.press("Tab");
  expect(await hasFocus()).toBe(true);
  expect(await reader.page.locator(".cm-content").evaluate((content) => getComputedStyle(content).outlineStyle)).toBe("solid"); // No caret shows it.
  await reader.page.keyboard.press("Control+a");
  expect(await reader.page.evaluate(() => String(getSelection()))).toContain("Nothing is lost.");
});

test("[PAGE46] the open pages of a deleted document report it and keep the text for copying, and a reloaded page reports it too", async () => {
  const [ada, grace] = await Promise.all([demo.open("doomed", "Ada"), demo.open("doomed", "Grace")]);
  await ada.types("not for long");
  await agreeAndAreSaved(ada, grace);
  const { operatorSecret } = roleSecrets(join(demo.system.folder, "data"));
  const deletion = { method: "DELETE", headers: { authorization: `Bearer ${operatorSecret}` } };
  await eventually("it is deleted", async () => (await fetch(`${demo.system.url}/v1/rooms/doomed`, deletion)).ok);
  for (const person of [ada, grace]) {
    await eventually("the page reports the deletion", async () => (await person.notice()).startsWith("This document was deleted."));
    await eventually("the save remark is Deleted", async () => (await person.saveRemark()) === "Deleted");
    expect(await person.page.locator(".cm-content").getAttribute("contenteditable")).toBe("false");
    expect(await person.text()).toBe("not for long");
    expect(await person.page.getByRole("button", { name: "Copy my text" }).isVisible()).toBe(true);
  }
  await ada.page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await ada.page.getByRole("button", { name: "Copy my text" }).click();
  await ada.page.getByRole("button", { name: "Copied" }).waitFor();
  expect(await ada.page.evaluate(() => navigator.clipboard.readText())).toBe("not for long");
  await ada.page.getByRole("button", { name: "Copy my text" }).waitFor();
  await ada.page.reload();
  await eventually("the reloaded page reports the deletion", async () => (await ada.notice()).includes("its link no longer works"));
  await eventually("the board is empty", async () => (await ada.page.locator("#board-remark").innerText()) === "");
  expect(await ada.text()).toBe("");
});

test("[PAGE40] users type at the visible place in a text with mixed line ends, and a paste adds no other line ends", async () => {
  const token = await demoToken("line ends");
  const made = await fetch(`${demo.system.url}/v1/rooms/line%20ends/document`, {
    method: "PUT",
    headers: { "authorization": `Bearer ${token}`, "content-type": "text/plain" },
    body: "one\r\ntwo\r\nthree\rfour\n",
  });
  expect(made.status).toBe(201);
  const [ada, grace] = await Promise.all([demo.open("line ends", "Ada"), demo.open("line ends", "Grace")]);
  await ada.page.locator(".cm-content").press("Control+End");
  await ada.types("five");
  await agreeAndAreSaved(ada, grace);
  await ada.pastes("\r\nsix\rseven");
  await agreeAndAreSaved(ada, grace);
  await eventually("the server has it as they see it", async () => {
    const answer = await fetch(`${demo.system.url}/v1/rooms/line%20ends/text`, { headers: { authorization: `Bearer ${token}` } });
    return (await answer.text()) === "one\r\ntwo\r\nthree\rfour\nfive\nsix\nseven";
  });
  const content = ada.page.locator(".cm-content");
  for (const key of ["Control+Home", "End", "!", "ArrowRight", "2", "End", "ArrowRight", "Backspace"]) await content.press(key);
  await agreeAndAreSaved(ada, grace);
  await eventually("no text is inserted between the two characters of a line end", async () => {
    const answer = await fetch(`${demo.system.url}/v1/rooms/line%20ends/text`, { headers: { authorization: `Bearer ${token}` } });
    return (await answer.text()) === "one!\r\n2twothree\rfour\nfive\nsix\nseven";
  });
});

test("[PAGE14] while the log is held back the page reports it, then that nothing can be saved, and then recovers", async () => {
  const { proxy, slow } = await startWithSlowLog();
  const [ada, grace] = await Promise.all([demo.open("slow", "Ada", { url: slow.url }), demo.open("slow", "Grace", { url: slow.url })]);
  await ada.types("before; ");
  await agreeAndAreSaved(ada, grace);

  proxy.hold();
  await ada.types("meanwhile; ");
  await eventually("others see the unsaved text", async () => (await grace.text()).includes("meanwhile;"));
  expect(["Saving…", "Not saved"]).toContain(await ada.saveRemark());
  await eventually("the page reports that saving takes longer", async () =>
    (await ada.notice()).startsWith("Saving takes longer than usual."),
  );
  await eventually("the page reports that nothing can be saved", async () =>
    (await ada.notice()).startsWith("The server cannot save edits right now."),
  );
  await ada.types("refused; ");
  await eventually("and not that it is saving", async () => (await ada.saveRemark()) === "Not saved");

  proxy.release();
  await agreeAndAreSaved(ada, grace);
  for (const typed of ["before;", "meanwhile;", "refused;"]) expect(await grace.text()).toContain(typed);
  await eventually("the notice is gone", async () => (await ada.notice()) === "");
});

test("[DEM7] no page of a local system can be framed, also under an encoded path", async () => {
  for (const path of ["/", "/index.html", "/operations/", "/%6fperations/", "/operations%2findex.html"]) {
    const answer = await fetch(demo.system.url + path);
    expect([answer.status, answer.headers.get("content-security-policy")], path).toEqual([200, "frame-ancestors 'none'"]);
  }
});

/** Texts of status elements that change, which a screen reader reads out. */
async function changesWhile({ page }: Visitor, act: () => Promise<void>): Promise<string[]> {
  const changes = await page.evaluateHandle(() => {
    const texts: string[] = [];
    const observer = new MutationObserver((records) => texts.push(...records.map(({ target }) => target.textContent ?? "")));
    const what = { subtree: true, childList: true, characterData: true };
    for (const status of document.querySelectorAll("[role=status]")) observer.observe(status, what);
    return texts;
  });
  await act();
  return changes.jsonValue();
}

/** A token as the page requests it. */
async function demoToken(room: string): Promise<string> {
  const answer = await fetch(`${demo.system.url}/demo/token?${new URLSearchParams({ room, user: "backend", name: "Backend" })}`);
  return ((await answer.json()) as { token: string }).token;
}

/** A separate system for one test, whose log can be held. */
async function startWithSlowLog(): Promise<{ proxy: SlowLogProxy; slow: DemoSystem }> {
  const folder = mkdtempSync(join(tmpdir(), "coroom-slow-log-"));
  const nats = await startNatsServer({ dataDir: folder });
  const { proxy, url } = await SlowLogProxy.start(nats.url);
  const slow = await DemoSystem.start({ NATS_URL: url, REFUSING_AFTER_MS: "15000" });
  onTestFinished(async () => {
    await slow.stop();
    await proxy.stop();
    await nats.stop();
    rmSync(folder, { recursive: true });
  });
  return { proxy, slow };
}

async function agreeAndAreSaved(first: Visitor, ...others: Visitor[]): Promise<void> {
  const people = [first, ...others];
  await eventually("everybody has the same text, saved", async () => {
    const texts = await Promise.all(people.map((person) => person.text()));
    const remarks = await Promise.all(people.map((person) => person.saveRemark()));
    return texts.every((text) => text === texts[0]) && remarks.every((remark) => remark === "Saved");
  });
}

function seesNames(person: Visitor, names: readonly string[]): Promise<void> {
  return eventually(
    `${names.join(" and ")} are seen`,
    async () => (await person.page.locator("#people .name").allTextContents()).sort().join() === names.join(),
  );
}
