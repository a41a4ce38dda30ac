import { existsSync } from "node:fs";

import { expect, test } from "vitest";

import { LONG_FILES } from "./longest-first.ts";

test("[ORDER1] each test file that begins first exists", () => {
  expect(LONG_FILES.filter((file) => !existsSync(file))).toEqual([]);
});
