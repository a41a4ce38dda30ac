import { expect, test } from "vitest";

import { StartError } from "../shared/process/lifecycle.ts";
import { SettingError } from "../shared/settings/settings.ts";
import { EngineError } from "../engines/engine-error.ts";
import { describeFailure } from "./command-line.ts";

test("[TOLD1] an expected failure prints its message without its cause", () => {
  const cause = new Error("ECONNREFUSED");
  for (const error of [
    new SettingError("set it", { cause }),
    new StartError("start one", { cause }),
    new EngineError("port-in-use", "give another", { cause }),
  ])
    expect(describeFailure(error)).toBe(error.message);
});

test("[TOLD2] an unexpected failure prints a stack trace", () => {
  expect(describeFailure(new Error("why"))).toMatch(/why\n +at /);
  expect(describeFailure("a word")).toBe("a word");
});
