import { expect, test } from "vitest";
import { isAtLeast, parseVersion } from "./binaries.ts";

test("the version of each engine is parsed from its output", () => {
  expect(parseVersion("nats-server: v2.15.1\n")).toEqual([2, 15, 1]);
  expect(parseVersion("Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64")).toEqual([7, 0, 15]);
  expect(parseVersion("Chromium 147.0.7727.55 built on Debian")).toEqual([147, 0, 7727]);
  expect(parseVersion("nats-server: v2.12")).toEqual([2, 12, 0]);
  expect(parseVersion("command not found")).toBeUndefined();
});

test("versions compare by number, place by place", () => {
  expect(isAtLeast([2, 10, 0], [2, 10, 0])).toBe(true);
  expect(isAtLeast([2, 9, 25], [2, 10, 0])).toBe(false);
  expect(isAtLeast([2, 11, 0], [2, 10, 5])).toBe(true);
  expect(isAtLeast([3, 0, 0], [2, 10, 5])).toBe(true);
});
