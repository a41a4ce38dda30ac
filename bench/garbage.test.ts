import { expect, test } from "vitest";

import { garbagePerSecond } from "./garbage.ts";

const START = "[7:0x5a]       40 ms: Scavenge 4.0 (9.0) -> 3.0 (9.0) MB, 1.1 / 0.0 ms  (average mu = 1.000, current mu = 1.000) task;\n";
const OTHER_THREAD = "[7:0x6b]     1500 ms: Scavenge 90.0 (99.0) -> 10.0 (99.0) MB, 1.1 / 0.0 ms  allocation failure;\n";
const PART = [
  "[7:0x5a]     1000 ms: Scavenge 60.0 (90.0) -> 50.0 (90.0) MB, 1.1 / 0.0 ms  allocation failure;",
  OTHER_THREAD.trimEnd(),
  "[7:0x5a]     2000 ms: Mark-Compact (reduce) 65.0 (90.5) -> 20.0 (70.0) MB, 9.1 / 0.0 ms  (+ 20.1 ms in 8 steps) finalize;",
  "a line of the log",
  "[7:0x5a]     3000 ms: Scavenge 25.0 (70.0) -> 21.0 (70.0) MB, 1.1 / 0.0 ms  allocation failure;",
].join("\n");

test("[ECO2] garbage is what the main thread's heap grew by between collections", () => {
  expect(garbagePerSecond(START + PART, START.length)).toBe((20 * 1024 ** 2) / 2);
  expect(garbagePerSecond(START + OTHER_THREAD, START.length)).toBeNaN();
});
