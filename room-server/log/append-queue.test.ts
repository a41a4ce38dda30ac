import fc from "fast-check";
import { expect, test } from "vitest";

import { AppendQueue } from "./append-queue.ts";

test("[APQ1] while few appends are in flight, each is sent at once and alone", () => {
  const queue = new AppendQueue<number>(2);
  expect([queue.add(1), queue.add(2)]).toEqual([[1], [2]]);
  queue.remove(1);
  expect([queue.takeTurn(), queue.add(3)]).toEqual([[], [3]]);
});

test("[APQ2] further appends wait until those in flight are answered, and are then sent together", () => {
  const queue = new AppendQueue<number>(2);
  expect([1, 2, 3, 4].map((append) => queue.add(append))).toEqual([[1], [2], [], []]);
  queue.remove(2);
  expect([queue.takeTurn(), queue.add(5)]).toEqual([[], []]);
  queue.remove(1);
  expect(queue.takeTurn()).toEqual([3, 4, 5]);
  for (const append of [3, 4, 5]) {
    queue.remove(append);
    expect(queue.add(append + 3), "a record after the answer waits for the other answers").toEqual([]);
  }
  expect(queue.takeTurn()).toEqual([6, 7, 8]);
});

test("[APQ3] appends that wait are sent although those in flight are not answered, and one that was abandoned is not sent", () => {
  const queue = new AppendQueue<number>(1);
  for (const append of [1, 2, 3]) queue.add(append);
  queue.remove(2);
  expect([queue.takeTurn(), queue.takeWaiting(), queue.takeWaiting()]).toEqual([[], [3], []]);
});

test("[APQ4] whatever is answered or abandoned, each append is sent exactly once, and none waits when nothing is in flight", () => {
  fc.assert(
    fc.property(
      fc.nat(3),
      fc.array(fc.record({ removed: fc.option(fc.nat(9)), taken: fc.boolean() }), { maxLength: 50 }),
      (aloneMax, steps) => {
        const queue = new AppendQueue<number>(aloneMax + 1);
        const [sent, open] = [new Set<number>(), new Set<number>()];
        const send = (batch: readonly number[]): void => {
          for (const append of batch) {
            expect(sent.has(append) || !open.has(append), "sent twice, or after it was abandoned").toBe(false);
            sent.add(append);
          }
        };
        const remove = (append: number): void => {
          open.delete(append);
          queue.remove(append);
          send(queue.takeTurn());
        };
        for (const [index, { removed, taken }] of steps.entries()) {
          open.add(index);
          send(queue.add(index));
          if (removed !== null) remove(index - removed);
          if (taken) send(queue.takeWaiting());
        }
        while (open.size > 0) {
          const inFlight = [...open].filter((append) => sent.has(append));
          expect(inFlight, "something is in flight").not.toEqual([]);
          remove(inFlight[0]!);
        }
      },
    ),
  );
});

test("[APQ5] a batch has at most 500 appends, and the others are sent in the next one", () => {
  const queue = new AppendQueue<number>(1);
  for (let append = 0; append <= 501; append++) queue.add(append);
  expect([queue.takeWaiting().length, queue.takeWaiting()]).toEqual([500, [501]]);
});

test("[APQ6] after a lost connection nothing waits, and the next append is sent at once", () => {
  const queue = new AppendQueue<number>(1);
  for (const append of [1, 2]) queue.add(append);
  queue.clear();
  expect([queue.takeWaiting(), queue.add(3)]).toEqual([[], [3]]);
});
