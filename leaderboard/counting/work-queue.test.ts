import { expect, test } from "vitest";

import { WorkQueue } from "./work-queue.ts";

test("[TURN1] each entry is started once, in order, up to the maximum at a time", () => {
  const started: number[] = [];
  const queue = new WorkQueue([1, 2, 3, 4, 5], 2);
  const advance = (): void => queue.advance((entry) => started.push(entry) > 0);
  advance();
  expect(started).toEqual([1, 2]);
  queue.finish(2);
  advance();
  expect([started, queue.has(1), queue.has(2), queue.isOver]).toEqual([[1, 2, 3], true, false, false]);
  for (const entry of [1, 3, 4, 5]) {
    queue.finish(entry);
    advance();
  }
  expect([started, queue.isOver]).toEqual([[1, 2, 3, 4, 5], true]);
});

test("[TURN2] an entry that ends at its start frees its place for the next entry", () => {
  const started: number[] = [];
  const queue = new WorkQueue([1, 2, 3], 1);
  queue.advance((entry) => started.push(entry) > 0 && entry === 3);
  expect([started, queue.has(3), queue.isOver]).toEqual([[1, 2, 3], true, false]);
  queue.finish(3);
  expect(queue.isOver).toBe(true);
  expect(new WorkQueue([], 3).isOver).toBe(true);
});
