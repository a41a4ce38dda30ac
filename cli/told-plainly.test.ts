import { expect, test } from "vitest";

import { EngineError } from "../engines/engine-error.ts";
import { SettingError } from "../shared/config.ts";
import { StartError } from "../shared/start-error.ts";
import { toldPlainly } from "./told-plainly.ts";

test("[TOLD1] what was foreseen is told as it is, and nothing of its cause", () => {
  const cause = new Error("ECONNREFUSED");
  for (const error of [
    new SettingError("set it", { cause }),
    new StartError("start one", { cause }),
    new EngineError("port-in-use", "give another", { cause }),
  ])
    expect(toldPlainly(error)).toBe(error.message);
});

test("[TOLD2] of what nobody foresaw there is a stack", () => {
  expect(toldPlainly(new Error("why"))).toMatch(/why\n +at /);
  expect(toldPlainly("a word")).toBe("a word");
});
