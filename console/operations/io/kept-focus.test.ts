// @vitest-environment happy-dom
/** The focus in lists and dialogs of the operations console, without a browser. */

import { beforeEach, expect, test } from "vitest";

import { keepFocus, openDialog } from "./kept-focus.ts";
import { keyedRows } from "./keyed-rows.ts";

const byId = (id: string): HTMLElement => document.getElementById(id)!;
const focused = (): string => document.activeElement?.textContent ?? "";

beforeEach(() => {
  document.body.innerHTML = `
    <style>[hidden] { display: none; }</style>
    <section><h2>Bans</h2><ul id="bans"></ul></section>
    <section><h2>Rooms</h2><button id="back">Previous</button><button id="on">Next</button></section>
    <dialog id="confirm"><h2>Lift it?</h2><button id="no">Cancel</button></dialog>`;
});

function bans(): (names: readonly string[]) => void {
  const made = (name: string): HTMLElement => {
    const row = document.createElement("li");
    row.innerHTML = `<button>${name}</button>`;
    return row;
  };
  return keyedRows<string>(
    byId("bans"),
    (name) => name,
    made,
    () => {},
  );
}

test.each([
  { had: "Ada", rows: ["Grace", "Hedy"], has: "Grace" },
  { had: "Hedy", rows: ["Ada", "Grace"], has: "Grace" },
  { had: "Ada", rows: [], has: "Bans" },
  { had: "Ada", rows: ["Hedy", "Grace", "Ada"], has: "Ada" },
])("[KFOC1] when the list of Ada, Grace and Hedy becomes $rows, the focus goes from $had to $has", ({ had, rows, has }) => {
  const show = bans();
  show(["Ada", "Grace", "Hedy"]);
  [...document.querySelectorAll("button")].find(({ textContent }) => textContent === had)!.focus();
  show(rows);
  expect(focused()).toBe(has);
});

test.each(["disabled", "hidden"] as const)("[KFOC1] a button that becomes %s passes the focus on within its section", (property) => {
  bans()(["Ada"]);
  byId("on").focus();
  const restoreFocus = keepFocus();
  (byId("on") as HTMLButtonElement)[property] = true;
  restoreFocus();
  expect(focused()).toBe("Previous");
});

test("[KFOC1] a focus that is not lost stays, and a page without a focus gets none", () => {
  const show = bans();
  show(["Ada", "Grace"]);
  show(["Grace"]);
  expect(document.activeElement).toBe(document.body);
  byId("on").focus();
  show([]);
  expect(focused()).toBe("Next");
});

test("[KFOC2] a dialog whose opener is gone returns the focus to the element after the opener", () => {
  const show = bans();
  show(["Ada", "Grace"]);
  byId("bans").querySelector("button")!.focus();
  const dialog = byId("confirm") as HTMLDialogElement;
  openDialog(dialog);
  byId("no").focus();
  show(["Grace"]);
  expect(focused(), "while the dialog is open").toBe("Cancel");
  byId("no").blur(); // As a browser does with the focus in a closed dialog.
  dialog.close();
  expect(focused()).toBe("Grace");
});
