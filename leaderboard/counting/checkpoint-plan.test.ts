import { expect, test } from "vitest";

import type { Millis } from "../../shared/ids.ts";
import { Coverage } from "./checkpoint-plan.ts";

const at = (ms: number) => ms as Millis;

test("[COV1] the first uncovered entry stays the first until a checkpoint covers it", () => {
  const coverage = new Coverage();
  coverage.receiveEntry(7, at(100));
  coverage.receiveEntry(9, at(200));
  expect([coverage.from, coverage.since]).toEqual([7, 100]);
  coverage.beginCheckpoint();
  coverage.endCheckpoint();
  expect(coverage.from).toBeUndefined();
});

test("[COV2] a checkpoint does not cover what arrives while it is written", () => {
  const coverage = new Coverage();
  coverage.receiveEntry(7, at(100));
  coverage.beginCheckpoint();
  coverage.receiveEntry(8, at(300));
  expect(coverage.from).toBe(7);
  coverage.endCheckpoint();
  expect([coverage.from, coverage.since]).toEqual([8, 300]);
});

test("[COV3] a checkpoint that fails covers nothing", () => {
  const coverage = new Coverage();
  coverage.receiveEntry(7, at(100));
  coverage.beginCheckpoint();
  coverage.receiveEntry(8, at(300));
  coverage.beginCheckpoint();
  expect(coverage.from).toBe(7);
});
