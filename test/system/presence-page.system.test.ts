/**
 * Other people on the demo page, as each person sees them: carets in the text, pointers and shapes on the canvas, and
 * the list of people.
 */

import type { Locator } from "playwright-core";
import { expect, onTestFinished, test } from "vitest";

import { COLOURS, colourOf } from "../../console/person.ts";
import { accessibilityViolations } from "./accessibility.ts";
import { Cable } from "./browser-cable.ts";
import type { Visitor } from "./browser.ts";
import { DemoPage } from "./demo-page.ts";
import { eventually } from "./eventually.ts";

const WINDOW = { width: 1440, height: 860 };

const demo = DemoPage.forThisFile({ viewport: WINDOW });

test("[PAGE15] each user sees the other's caret and selection in the text, with the right name", async () => {
  const [ada, grace] = [await demo.open("carets", "Ada"), await demo.open("carets", "Grace")];
  await ada.types("The quick brown fox.");
  await eventually("Grace sees Ada's caret", async () => (await caretsSeenBy(grace)).join() === "Ada");
  for (let key = 0; key < 4; key++) await ada.page.keyboard.press("Shift+ArrowLeft");
  await eventually(
    "Grace sees Ada's selection",
    async () => (await grace.page.locator(".cm-ySelection").allTextContents()).join("") === "fox.",
  );
  await grace.types("Hello. ");
  await eventually("Ada sees Grace's", async () => (await caretsSeenBy(ada)).join() === "Grace");
});

test("[PAGE48] the name at a caret disappears when the caret rests, and returns when it moves", async () => {
  const [ada, grace] = [await demo.open("resting", "Ada"), await demo.open("resting", "Grace")];
  await grace.types("Hello.");
  const resting = () =>
    ada.page.locator(".cm-ySelectionInfo").evaluateAll((flags) => flags.map((flag) => getComputedStyle(flag).visibility).join());
  await eventually("the name is shown", async () => (await resting()) === "visible");
  await eventually("the name is hidden", async () => (await resting()) === "hidden");
  await grace.types(" Again.");
  await eventually("the name is shown again", async () => (await resting()) === "visible");
});

test("[PAGE44] the flag of a long name stays within the editor, and a selection over several lines moves no text", async () => {
  const name = "Maximiliane-Alexandra Hohenlohe-Langen";
  const [ada, long] = [await demo.open("flags", "Ada"), await demo.open("flags", name)];
  await ada.pastes(`${"long words at the end of a line ".repeat(2)}\nA line between.\n${"and so on ".repeat(40)}`);
  await eventually("both have it", async () => (await long.text()) === (await ada.text()));
  const between = ada.page.locator(".cm-line").nth(1);
  const before = await between.evaluate((line) => getComputedStyle(line).marginInline);
  await long.page.locator(".cm-content").press("Control+Home");
  const [flag, paper] = [ada.page.locator(".cm-ySelectionInfo"), ada.page.locator(".cm-scroller")];
  for (let words = 0; words < 8; words++) {
    await long.page.keyboard.press("Control+ArrowRight");
    await long.page.waitForTimeout(100); // Time in which some positions of the flag are seen. The exact position of the caret does not matter.
    await eventually("its flag hangs over no edge", async () => {
      const [inner, outer] = [await flag.boundingBox({ timeout: 1_000 }).catch(() => null), (await paper.boundingBox())!];
      return inner !== null && inner.x >= outer.x && inner.x + inner.width <= outer.x + outer.width + 1;
    });
  }
  await long.page.keyboard.press("Control+Shift+End");
  await eventually(
    "the line between is selected",
    async () => (await between.getAttribute("class"))?.includes("cm-yLineSelection") === true,
  );
  expect(await between.evaluate((line) => getComputedStyle(line).marginInline)).toBe(before);
});

test("[PAGE45] a line that begins in Hebrew or Arabic runs from right to left, its neighbours do not", async () => {
  const ada = await demo.open("directions", "Ada");
  await ada.types("# Plan\nשלום, Ada\n12. مرحبا\nAda שלום");
  const directions = () => ada.page.locator(".cm-line").evaluateAll((lines) => lines.map((line) => getComputedStyle(line).direction));
  await eventually("each has its own", async () => (await directions()).join() === "ltr,rtl,rtl,ltr");
  const grace = await demo.open("directions", "Grace");
  await grace.page.locator(".cm-content").press("Control+Home");
  await grace.page.keyboard.press("ArrowDown");
  await grace.page.keyboard.press("Home");
  await eventually("another's name before it changes nothing", async () => (await caretsSeenBy(ada)).join() === "Grace");
  expect((await directions()).join()).toBe("ltr,rtl,rtl,ltr");
});

test("[PAGE54] Hebrew notes and long Hebrew names run from right to left, and their beginning is visible", async () => {
  const name = "שלום עולם זה שם ארוך מאוד של אדם אחד בחדר";
  const { page } = await demo.open(`${name} ${name}`, name);
  await page.setViewportSize({ width: 700, height: 800 });
  await page.locator("[data-part=canvas]").click();
  await page.locator("#add-note").click();
  await page.keyboard.type("שלום!");
  await page.keyboard.press("Escape");
  /** The boxes of the first and the last letter, and of the element. */
  const boxes = (selector: string) =>
    page
      .locator(selector)
      .first()
      .evaluate((element) => {
        const [text, range] = [element.firstChild!, document.createRange()];
        const boxOf = (from: number): { left: number; right: number } => {
          range.setStart(text, from);
          range.setEnd(text, from + 1);
          const { left, right } = range.getBoundingClientRect();
          return { left, right };
        };
        const { left, right } = element.getBoundingClientRect();
        return { first: boxOf(0), last: boxOf(text.textContent!.length - 1), whole: { left, right } };
      });
  const note = await boxes(".shape .words");
  expect(note.last.right, "the exclamation mark is at the end").toBeLessThanOrEqual(note.first.left);
  await page.getByRole("button", { name: "Details" }).click();
  for (const selector of ["#room", "#people .name"]) {
    const { first, whole } = await boxes(selector);
    expect([selector, first.left >= whole.left - 1 && first.right <= whole.right + 1]).toEqual([selector, true]);
  }
});

test("[PAGE27] the page runs only its own scripts, and still shows carets and shapes", async () => {
  const [ada, grace] = [await demo.open("policy", "Ada"), await demo.open("policy", "Grace")];
  const refused: string[] = [];
  ada.page.on("console", (message) => {
    if (message.text().includes("Content Security Policy")) refused.push(message.text());
  });
  await grace.types("Hello.");
  await grace.page.locator("#add-note").click();
  await eventually("Ada sees Grace's caret, in her colour", async () =>
    isShadeOf(
      COLOURS[colourOf("Grace")]!,
      await ada.page
        .locator(".cm-ySelectionCaret")
        .evaluateAll((carets) => carets.map((caret) => (caret as HTMLElement).style.backgroundColor).join()),
    ),
  );
  await eventually("and the note", async () => (await ada.page.locator(".shape").count()) === 1);
  expect(refused).toEqual([]);
  await ada.page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "document.title = 'taken over'";
    document.head.append(script);
  });
  await eventually("the browser reports the refused script", () => refused.length === 1);
  expect(await ada.page.title()).toBe("policy · Coroom");
});

/** Each caret has a slightly different shade of its name's colour. */
function isShadeOf(colour: string, rgb: string): boolean {
  const channels = [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16));
  const drawn = [...rgb.matchAll(/\d+/g)].map(Number);
  return drawn.length === 3 && drawn.every((channel, index) => Math.abs(channel - channels[index]!) <= 7);
}

test("[PAGE15] a user whose page is closed or disconnected disappears from the text, the canvas and the list", async () => {
  const { cable, url } = await Cable.to(demo.system.url);
  onTestFinished(() => cable.stop());
  const [ada, grace, hedy] = [
    await demo.open("closed", "Ada"),
    await demo.open("closed", "Grace"),
    await demo.open("closed", "Hedy", { url }),
  ];
  for (const person of [grace, hedy]) {
    await person.types("here. ");
    await pointAt(person, 100, 100);
  }
  await eventually(
    "all three are here",
    async () => (await namesSeenBy(ada)).join() === "Ada,Grace,Hedy" && (await pointersSeenBy(ada)).sort().join() === "Grace,Hedy",
  );
  await demo.close(grace);
  await eventually(
    "Grace has gone",
    async () =>
      (await namesSeenBy(ada)).join() === "Ada,Hedy" &&
      (await pointersSeenBy(ada)).join() === "Hedy" &&
      !(await caretsSeenBy(ada)).includes("Grace"),
  );
  cable.pull();
  await eventually("Hedy has gone", async () => (await namesSeenBy(ada)).join() === "Ada");
  await eventually("a disconnected page lists nobody", async () => (await namesSeenBy(hedy)).join() === "");
  cable.plug();
  await eventually(
    "and is back",
    async () => (await namesSeenBy(hedy)).join() === "Ada,Hedy" && (await namesSeenBy(ada)).join() === "Ada,Hedy",
  );
});

test("[PAGE16] pointers appear at their places on the canvas at every zoom, and disappear when they leave it", async () => {
  const [ada, grace] = [await demo.open("pointers", "Ada"), await demo.open("pointers", "Grace")];
  await pointAt(grace, 240, 180);
  const pointer = pointerOf(ada, "Grace");
  await eventually("Ada sees Grace's pointer there", async () => isNear(await placeOn(ada, pointer), { x: 240, y: 180 }));
  await ada.page.locator("#zoom-out").click();
  await ada.page.locator("#zoom-out").click();
  await eventually("further in, for it is further away", async () => {
    const { x, y } = await placeOn(ada, pointer);
    const { width, height } = await sizeOfStage(ada);
    return isNear({ x, y }, { x: width / 2 + (240 - width / 2) / 1.25 ** 2, y: height / 2 + (180 - height / 2) / 1.25 ** 2 });
  });
  await grace.page.mouse.move(5, 5);
  await eventually("it goes when it leaves the canvas", async () => (await pointersSeenBy(ada)).length === 0);
});

test("[PAGE58] a long name at a pointer is cut, and does not cover the canvas", async () => {
  const [ada, long] = [await demo.open("long-pointer", "Ada"), await demo.open("long-pointer", "W".repeat(40))];
  const stage = (await long.page.locator(".stage").boundingBox())!;
  await eventually("Ada sees the pointer", async () => {
    await long.page.mouse.move(stage.x + 60, stage.y + 100);
    await long.page.mouse.move(stage.x + 61, stage.y + 100);
    return (await pointersSeenBy(ada)).join() === "W".repeat(40);
  });
  const label = ada.page.locator(".pointer-name");
  expect((await label.boundingBox())!.width).toBeLessThanOrEqual(224);
  expect(await label.evaluate((element) => getComputedStyle(element).textOverflow)).toBe("ellipsis");
});

test("[PAGE17] others see a shape move while it is dragged, and it stays where it was dropped", async () => {
  const [ada, grace] = [await demo.open("shapes", "Ada"), await demo.open("shapes", "Grace")];
  await ada.page.locator("#add-note").click();
  await ada.page.keyboard.type("Call the printers");
  await ada.page.locator("#zoom").click();
  const [adas, graces] = [ada.page.locator(".shape"), grace.page.locator(".shape")];
  await eventually("Grace has the note", async () => (await graces.count()) === 1);
  const before = await graces.boundingBox();
  const { x, y, width, height } = (await adas.boundingBox())!;
  await ada.page.mouse.move(x + width / 2, y + height - 20);
  await ada.page.mouse.down();
  await ada.page.mouse.move(x + width / 2 + 60, y + height + 20, { steps: 8 });
  await eventually(
    "Grace sees it move in Ada's hand",
    async () => (await graces.getAttribute("data-holder")) === "Ada" && (await graces.boundingBox())!.x > before!.x + 50,
  );
  expect(await grace.text(), "nothing else changed").toBe(await ada.text());
  await ada.page.mouse.up();
  await eventually(
    "the shape is released and stays",
    async () =>
      (await graces.getAttribute("data-holder")) === null &&
      isNear((await graces.boundingBox())!, { x: before!.x + 60, y: before!.y + 40 }),
  );
  await eventually(
    "the text of the note is present",
    async () => (await graces.innerText()) === "Call the printers" && (await ada.saveRemark()) === "Saved",
  );
  const late = await demo.open("shapes", "Hedy");
  await eventually("somebody later has it too", async () => (await late.page.locator(".shape").innerText()) === "Call the printers");
});

test("[PAGE17] the keyboard alone moves and deletes a shape", async () => {
  const [ada, grace] = [await demo.open("keys", "Ada"), await demo.open("keys", "Grace")];
  await ada.page.locator("#add-rectangle").click();
  const [adas, graces] = [ada.page.locator(".shape"), grace.page.locator(".shape")];
  await eventually("Grace has it", async () => (await graces.count()) === 1);
  const before = (await graces.boundingBox())!;
  await adas.focus();
  for (let key = 0; key < 3; key++) await ada.page.keyboard.press("ArrowRight");
  await eventually("it has moved", async () => isNear((await graces.boundingBox())!, { x: before.x + 30, y: before.y }));
  await ada.page.keyboard.press("Delete");
  await eventually("it is gone", async () => (await graces.count()) === 0);
});

test("[PAGE18] a new name appears for everybody immediately, in the list and at the caret", async () => {
  const [ada, grace] = [await demo.open("names", "Ada"), await demo.open("names", "Grace")];
  await ada.types("x");
  await ada.page.getByLabel("Your name").fill("Augusta");
  await ada.page.keyboard.press("Enter");
  await ada.types("y");
  await eventually(
    "Grace sees it",
    async () => (await namesSeenBy(grace)).join() === "Augusta,Grace" && (await caretsSeenBy(grace)).join() === "Augusta",
  );
});

test("[PAGE19] bots join, move and type, the page stays accessible, and their text disappears when they leave", async () => {
  const ada = await demo.open("bots", "Ada");
  await ada.page.getByRole("button", { name: "10 bots" }).click();
  await eventually("ten bots are here", async () => (await countSeenBy(ada)) === "You and 10 bots");
  await eventually("most of them point", async () => (await pointersSeenBy(ada)).length >= 8);
  await eventually("one of them types", async () => (await ada.text()).length > 5);
  expect((await caretsSeenBy(ada)).every((name) => name.endsWith("(bot)"))).toBe(true);
  await ada.page.getByRole("button", { name: "Note" }).click();
  for (const colorScheme of ["light", "dark"] as const) {
    await ada.page.emulateMedia({ colorScheme });
    expect(await accessibilityViolations(ada.page), colorScheme).toEqual([]);
  }
  await ada.page.setViewportSize({ width: 320, height: 640 }); // The least width without sideways scrolling.
  await ada.page.getByRole("button", { name: "Canvas" }).click();
  expect(await accessibilityViolations(ada.page), "canvas on a phone").toEqual([]);
  await ada.page.getByRole("button", { name: "Details" }).click();
  expect(await accessibilityViolations(ada.page), "details on a phone").toEqual([]);
  expect(await ada.page.evaluate(() => document.documentElement.scrollWidth)).toBe(320);
  await ada.page.keyboard.press("Escape");
  await ada.page.setViewportSize(WINDOW);
  await ada.page.getByRole("button", { name: "Remove bots" }).press("Enter");
  await eventually(
    "Ada is alone, with an empty page",
    async () => (await countSeenBy(ada)) === "Only you" && (await pointersSeenBy(ada)).length === 0,
  );
  await eventually("the text of the bots is removed", async () => (await ada.text()) === "");
  expect(await ada.page.evaluate(() => document.activeElement?.textContent)).toBe("10 bots"); // Not lost with the hidden button.
});

async function namesSeenBy({ page }: Visitor): Promise<string[]> {
  return (await page.locator("#people .name").allTextContents()).sort();
}

function countSeenBy({ page }: Visitor): Promise<string> {
  return page.locator("#people-count").innerText();
}

function caretsSeenBy({ page }: Visitor): Promise<string[]> {
  return page.locator(".cm-ySelectionInfo").allTextContents();
}

function pointersSeenBy({ page }: Visitor): Promise<string[]> {
  return page.locator(".pointer-name").allTextContents();
}

function pointerOf({ page }: Visitor, name: string): Locator {
  return page.locator(".pointer", { hasText: name });
}

/** Pixels from the corner of the canvas. */
async function pointAt({ page }: Visitor, x: number, y: number): Promise<void> {
  const stage = (await page.locator("#stage").boundingBox())!;
  await page.mouse.move(stage.x + x, stage.y + y, { steps: 3 });
}

async function placeOn({ page }: Visitor, thing: Locator): Promise<{ x: number; y: number }> {
  const [stage, place] = [await page.locator("#stage").boundingBox(), await thing.boundingBox()];
  return { x: (place?.x ?? -1e9) - stage!.x, y: (place?.y ?? -1e9) - stage!.y };
}

async function sizeOfStage({ page }: Visitor): Promise<{ width: number; height: number }> {
  return (await page.locator("#stage").boundingBox())!;
}

function isNear(a: { x: number; y: number }, b: { x: number; y: number }): boolean {
  return Math.hypot(a.x - b.x, a.y - b.y) < 4;
}
