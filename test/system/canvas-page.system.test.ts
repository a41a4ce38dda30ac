/**
 * Mouse and keyboard on the canvas of the demo page, in a real browser: the text of notes, the focus, and the visible
 * area.
 */

import { expect, test } from "vitest";

import type { Visitor } from "./browser.ts";
import { DemoPage } from "./demo-page.ts";
import { eventually } from "./eventually.ts";

const demo = DemoPage.forThisFile({ viewport: { width: 1440, height: 860 } });

test("[PAGE23] a double click on a note opens its text, and a double click on a word selects the word", async () => {
  const ada = await demo.open("double click", "Ada");
  await writeNote(ada, "Call the printers");
  const note = ada.page.locator(".shape");
  await note.dblclick({ position: { x: 100, y: 100 } });
  await ada.page.keyboard.press("End");
  await ada.page.keyboard.type(" today");
  await note.locator(".words").dblclick({ position: { x: 24, y: 20 } });
  await ada.page.keyboard.type("Ring");
  await ada.page.keyboard.press("Escape");
  await eventually("it is there", async () => (await note.innerText()) === "Ring the printers today");
});

test("[PAGE23] a drag continues outside the canvas", async () => {
  const ada = await demo.open("far", "Ada");
  await writeNote(ada, "Far away");
  const note = ada.page.locator(".shape");
  const { x, y } = (await note.boundingBox())!;
  await ada.page.mouse.move(x + 90, y + 100);
  await ada.page.mouse.down();
  await ada.page.mouse.move(5, y + 100);
  await ada.page.mouse.up();
  await eventually("the note lies where the hand went", async () => Math.abs((await note.boundingBox())!.x - (5 - 90)) < 4);
});

test("[PAGE24] a user who opens a note and closes it unchanged reverts nothing that another user wrote", async () => {
  const [ada, grace] = [await demo.open("note of two", "Ada"), await demo.open("note of two", "Grace")];
  await writeNote(ada, "Call the printers");
  const [adas, graces] = [ada.page.locator(".shape"), grace.page.locator(".shape")];
  await eventually("Grace has it", async () => (await graces.innerText()) === "Call the printers");
  await adas.focus();
  await ada.page.keyboard.press("Enter");
  await graces.focus();
  await grace.page.keyboard.press("Enter");
  await grace.page.keyboard.type("Write to them");
  await grace.page.keyboard.press("Escape");
  await eventually("Ada's page has Grace's text", async () => (await adas.getAttribute("aria-label"))!.endsWith("Write to them"));
  await ada.page.keyboard.press("Escape");
  await eventually("Ada sees it", async () => (await adas.innerText()) === "Write to them");
  expect(await graces.innerText()).toBe("Write to them");
});

test("[PAGE25] a key that focuses a note outside the visible area moves it into view, and pointers keep their positions", async () => {
  const [ada, grace] = [await demo.open("out of view", "Ada"), await demo.open("out of view", "Grace")];
  await writeNote(ada, "Far off");
  const note = ada.page.locator(".shape");
  const stage = (await ada.page.locator("#stage").boundingBox())!;
  await ada.page.mouse.move(stage.x + 20, stage.y + 20);
  for (let turn = 0; turn < 2; turn++) await ada.page.mouse.wheel(-600, 0);
  await eventually("it is out of view", async () => (await note.boundingBox())!.x > stage.x + stage.width);
  await ada.page.locator(".cm-content").focus();
  await ada.page.keyboard.press("Tab");
  await eventually("it has the focus", () => note.evaluate((shape) => shape === document.activeElement));
  await eventually("it is in view", async () => (await note.boundingBox())!.x + 180 <= stage.x + stage.width);
  expect(await ada.page.locator("#stage").evaluate(({ scrollLeft, scrollTop }) => [scrollLeft, scrollTop])).toEqual([0, 0]);
  const { x, y } = (await note.boundingBox())!;
  await ada.page.mouse.move(x + 30, y + 40);
  const [graces, pointer] = [grace.page.locator(".shape"), grace.page.locator(".pointer")];
  await eventually("Grace sees Ada's pointer on it", async () => {
    const [there, points] = [(await graces.boundingBox())!, await pointer.boundingBox()];
    return points !== null && Math.hypot(points.x - there.x - 30, points.y - there.y - 40) < 4;
  });
});

test("[PAGE51] a note that another user removes while its text is written disappears without an error, and the page goes on", async () => {
  const [ada, grace] = [await demo.open("removed", "Ada"), await demo.open("removed", "Grace")];
  const errors: string[] = [];
  ada.page.on("pageerror", ({ message }) => errors.push(message));
  ada.page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  await writeNote(ada, "Call the printers");
  await eventually("Grace has it", async () => (await grace.page.locator(".shape").count()) === 1);
  await ada.page.locator(".shape").focus();
  await ada.page.keyboard.press("Enter");
  await ada.page.keyboard.type("Call them");
  await grace.page.locator(".shape").focus();
  await grace.page.keyboard.press("Delete");
  await eventually("it is gone", async () => (await ada.page.locator(".shape").count()) === 0);
  await grace.types("and so on");
  await eventually("the next edit arrives", async () => (await ada.text()).includes("and so on"));
  await writeNote(ada, "Another");
  expect(errors).toEqual([]);
});

test("[PAGE52] keys of the browser and the system move and remove no note", async () => {
  const ada = await demo.open("other keys", "Ada");
  await writeNote(ada, "Stays");
  const note = ada.page.locator(".shape");
  const before = await note.getAttribute("style");
  for (const key of ["Alt+ArrowLeft", "Control+ArrowRight", "Meta+ArrowUp", "Control+Enter"]) {
    const isTaken = await note.evaluate((shape, pressed) => {
      const [modifier, name] = pressed.split("+") as [string, string];
      const event = new KeyboardEvent("keydown", {
        key: name,
        altKey: modifier === "Alt",
        ctrlKey: modifier === "Control",
        metaKey: modifier === "Meta",
        bubbles: true,
        cancelable: true,
      });
      return !shape.dispatchEvent(event);
    }, key);
    expect([key, isTaken]).toEqual([key, false]);
  }
  expect(await note.getAttribute("style")).toBe(before);
});

test("[PAGE28] a screen reader gets a note as a group with its text, and as a text field while it is edited", async () => {
  const ada = await demo.open("told", "Ada");
  await writeNote(ada, "Call the printers");
  const note = ada.page.getByRole("group", { name: "note: Call the printers" });
  await note.focus();
  expect(await note.getByRole("textbox").count()).toBe(0);
  await ada.page.keyboard.press("Enter");
  await eventually("it is a field", () => note.getByRole("textbox", { name: "Text" }).isVisible());
});

test("[PAGE42] a note has a border and a pressed button is marked when the system forces its colours", async () => {
  const ada = await demo.open("forced", "Ada");
  await writeNote(ada, "Seen");
  await ada.page.emulateMedia({ forcedColors: "active" });
  const styleOf = (selector: string, property: string): Promise<string> =>
    ada.page.locator(selector).evaluate((part, name) => getComputedStyle(part).getPropertyValue(name), property);
  await eventually("the note has an edge", async () => (await styleOf(".shape.note", "border-top-style")) === "solid");
  await eventually(
    "the pressed button is marked",
    async () => (await styleOf('.segments [aria-pressed="true"]', "outline-style")) === "solid",
  );
});

test("[PAGE31] the keyboard alone creates, moves, deletes and restores a note, and the focus is always visible", async () => {
  const ada = await demo.open("keys", "Ada");
  const { page } = ada;
  const shapes = page.locator(".shape");
  const hasFocus = (what: string): Promise<boolean> =>
    page.evaluate((selector) => document.activeElement?.matches(selector) === true, what);
  await page.locator("#add-note").focus();
  await page.keyboard.press("Enter");
  await page.keyboard.type("Call the printers");
  await page.keyboard.press("Escape");
  await eventually("the note has the focus", () => hasFocus(".shape.note"));
  const before = (await shapes.boundingBox())!;
  await page.keyboard.press("ArrowRight");
  await eventually("it has moved", async () => (await shapes.boundingBox())!.x > before.x);
  await page.keyboard.press("Delete");
  await eventually("it is gone, and the canvas has the focus", async () => (await shapes.count()) === 0 && hasFocus("#stage"));
  await page.keyboard.press("Control+z");
  await eventually("it is back", async () => (await shapes.count()) === 1 && (await shapes.innerText()) === "Call the printers");
  await page.keyboard.press("Control+Shift+z");
  await eventually("it is gone again", async () => (await shapes.count()) === 0);
  await page.locator("#add-rectangle").focus();
  await page.keyboard.press("Enter");
  await eventually("the added shape has the focus", () => hasFocus(".shape.rectangle"));
  await page.keyboard.press("Control+z");
  await eventually("it is undone, and the canvas has the focus", async () => (await shapes.count()) === 0 && hasFocus("#stage"));
  await page.keyboard.press("Control+Shift+z");
  await eventually("it is back", async () => (await shapes.count()) === 1);
});

test("[PAGE32] the Remove button deletes the shape that was selected last, and is disabled without a selection", async () => {
  const ada = await demo.open("hand", "Ada");
  await writeNote(ada, "Call the printers");
  const [note, remove] = [ada.page.locator(".shape"), ada.page.getByRole("button", { name: "Remove", exact: true })];
  const { x, y } = (await ada.page.locator("#stage").boundingBox())!;
  await ada.page.mouse.click(x + 20, y + 20);
  await eventually("nothing is chosen", () => remove.isDisabled());
  await note.click();
  await remove.click();
  await eventually("it is gone", async () => (await note.count()) === 0 && remove.isDisabled());
});

test("[PAGE29] a visitor who opens a canvas sees its content, wherever the content lies", async () => {
  const ada = await demo.open("elsewhere", "Ada");
  const stage = (await ada.page.locator("#stage").boundingBox())!;
  await ada.page.mouse.move(stage.x + 20, stage.y + 20);
  for (let turn = 0; turn < 3; turn++) await ada.page.mouse.wheel(900, 0);
  await writeNote(ada, "Far off");
  await eventually("it is saved", async () => (await ada.saveRemark()) === "Saved");
  const late = await demo.open("elsewhere", "Hedy");
  await eventually("somebody later has it in view", async () => {
    const place = (await late.page.locator(".shape").count()) === 0 ? null : await late.page.locator(".shape").boundingBox();
    return place !== null && place.x >= stage.x && place.x + place.width <= stage.x + stage.width;
  });
});

async function writeNote({ page }: Visitor, text: string): Promise<void> {
  await page.locator("#add-note").click();
  await page.keyboard.type(text);
  await page.keyboard.press("Escape");
  await eventually("it is written", async () => (await page.locator(".shape").innerText()) === text);
}
