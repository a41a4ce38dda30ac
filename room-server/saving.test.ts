import { expect, test } from "vitest";

import { decideSaving, showsTentative } from "./saving.ts";

const options = { savingAfterMs: 100, refusingAfterMs: 10_000 };

test("[SAV1] a room is saved while no append takes longer than it should", () => {
  expect(decideSaving("saved", { appendMs: 0, oldestMs: 0 }, options)).toBe("saved");
  expect(decideSaving("saved", { appendMs: 100, oldestMs: 190 }, options)).toBe("saved");
});

test("[SAV2] it is saving from then on, and its unacked edits are shown", () => {
  expect(decideSaving("saved", { appendMs: 101, oldestMs: 101 }, options)).toBe("saving");
  expect(decideSaving("saving", { appendMs: 10_000, oldestMs: 10_000 }, options)).toBe("saving");
  expect(showsTentative("saved")).toBe(false);
  expect(showsTentative("saving")).toBe(true);
});

test("[SAV3] it refuses new edits once an append has taken too long", () => {
  expect(decideSaving("saving", { appendMs: 10_001, oldestMs: 10_001 }, options)).toBe("refusing");
  expect(showsTentative("refusing")).toBe(true);
});

test("[SAV4] slow appends one after the other are one spell: it is over when no edit has waited for long", () => {
  expect(decideSaving("refusing", { appendMs: 0, oldestMs: 9_000 }, options)).toBe("saving");
  expect(decideSaving("saving", { appendMs: 0, oldestMs: 101 }, options)).toBe("saving");
  expect(decideSaving("saving", { appendMs: 0, oldestMs: 100 }, options)).toBe("saved");
});
