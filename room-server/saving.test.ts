import { expect, test } from "vitest";

import { decideSaving, showsTentative } from "./saving.ts";

const options = { savingAfterMs: 100, refusingAfterMs: 10_000 };

test("[SAV1] a room is saved while no edit waits for longer than it should", () => {
  expect(decideSaving(undefined, options)).toBe("saved");
  expect(decideSaving(100, options)).toBe("saved");
});

test("[SAV2] it is saving from then on, and its unacked edits are shown", () => {
  expect(decideSaving(101, options)).toBe("saving");
  expect(decideSaving(10_000, options)).toBe("saving");
  expect(showsTentative("saved")).toBe(false);
  expect(showsTentative("saving")).toBe(true);
});

test("[SAV3] it refuses new edits once one has waited too long", () => {
  expect(decideSaving(10_001, options)).toBe("refusing");
  expect(showsTentative("refusing")).toBe(true);
});
