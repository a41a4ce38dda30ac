import { expect, test } from "vitest";

import { inStep } from "./in-step.ts";

test("[STEP1] what is due within the same quarter of a second is done together, and never early", () => {
  expect([4_751, 4_900, 5_000].map(inStep)).toEqual([5_000, 5_000, 5_000]);
  expect(inStep(5_001)).toBe(5_250);
});
