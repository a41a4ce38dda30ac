// @vitest-environment happy-dom
/** The pages of the list of rooms, without a browser. */

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

import type { RoomPageAnswer } from "../answers.ts";
import { roomsView } from "./rooms-view.ts";

const INDEX = readFileSync("console/operations/index.html", "utf8");
const pageUntil = (next?: string): RoomPageAnswer => ({
  rooms: [],
  matching: 60,
  servers: 1,
  serversKnown: 1,
  ...(next === undefined ? {} : { next }),
});

test("[KFOC3] the pager and its focus follow the answered page, whatever is answered first", () => {
  document.body.innerHTML = /<body>([^]*)<\/body>/.exec(INDEX)![1]!;
  document.getElementById("operations")!.hidden = false;
  const rooms = roomsView(
    () => {},
    () => {},
  );
  const [back, on] = ["page-back", "page-on"].map((id) => document.getElementById(id) as HTMLButtonElement) as [
    HTMLButtonElement,
    HTMLButtonElement,
  ];
  const number = (): string => document.getElementById("page-number")!.textContent;
  const [first, last] = [pageUntil("m"), pageUntil()];
  rooms.show(first, false);
  on.focus();
  on.click();
  on.click(); // Before the answer.
  rooms.show(first, false);
  expect([number(), document.activeElement]).toEqual(["Page 1 of 3", on]);
  rooms.show(last, false);
  expect([number(), document.activeElement]).toEqual(["Page 2 of 3", back]);
  back.click();
  rooms.show(last, false);
  expect(document.activeElement).toBe(back);
  rooms.show({ ...first }, false);
  expect([number(), document.activeElement]).toEqual(["Page 1 of 3", on]);
});
