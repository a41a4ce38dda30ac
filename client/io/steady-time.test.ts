import { expect, test } from "vitest";
import { SteadyTime } from "./system.ts";

test("a clock that is set back continues from where it was, and jumps ahead are passed on", () => {
  const time = new SteadyTime();
  expect([1_000, 1_010, 400, 410, 900, 5_000].map((system) => time.at(system))).toEqual([1_000, 1_010, 1_010, 1_020, 1_510, 5_610]);
});
