import { expect, test } from "vitest";

import { displayText, escapedMarks } from "./display-text.ts";

test.each([
  ["Ann\r\nroot: admin", "Ann root: admin", "line break"],
  ["Ann\u009b31m", "Ann 31m", "command to a terminal"],
  ["Ann\u2028Bob\u2029", "Ann Bob", "separators"],
  ["\u202enna", "nna", "override of the direction"],
  ["Ann \u2066", "Ann", "isolate without an end"],
  ["\u0007\n", "", "nothing else"],
  ["👩\u200d💻 \u05d3\u05d5\u05d3\u200f!", "👩\u200d💻 \u05d3\u05d5\u05d3\u200f!", "emoji and right-to-left text"],
])("[DTX1] %j is displayed as %j (%s)", (text, displayed) => {
  expect(displayText(text)).toBe(displayed);
});

test("[DTX2] marks of lines and directions, and characters without a form, are shown by their numbers, and JSON keeps its values", () => {
  expect(escapedMarks("room=\u202eabc\u2066 \u05d3\u200f\n")).toBe("room=\\u202eabc\\u2066 \u05d3\u200f\n");
  expect(escapedMarks("no\u00adtes\u200b 👩\u200d💻")).toBe("no\\u00adtes\\u200b 👩\u200d💻");
  const names = { room: "a\u2028b\u202ec" };
  expect(JSON.parse(escapedMarks(JSON.stringify(names, null, 2)))).toEqual(names);
});
