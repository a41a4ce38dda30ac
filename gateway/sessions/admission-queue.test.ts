import fc from "fast-check";
import { expect, test } from "vitest";

import type { Millis } from "../../shared/ids.ts";
import { AdmissionQueue } from "./admission-queue.ts";

const at = (ms: number): Millis => ms as Millis;

test("[ADM1] the queue admits a burst at once, queues as many connections as fit, and rejects the rest", () => {
  const queue = new AdmissionQueue<number>({ connectsPerSecondMax: 40, connectQueueMax: 3, connectQueueBytesMax: 410 }, at(0));
  expect([1, 2, 3, 4, 5, 6, 7].map((connection) => queue.receiveConnection(connection, at(0)))).toEqual([
    "admitted",
    "admitted",
    "queued",
    "queued",
    "queued",
    "rejected",
    "rejected",
  ]);
});

test("[ADM2] queued connections are admitted at the rate, in the order of arrival, and no new one passes them", () => {
  const queue = new AdmissionQueue<number>({ connectsPerSecondMax: 20, connectQueueMax: 10, connectQueueBytesMax: 410 }, at(0));
  for (const connection of [0, 1, 2, 3, 4]) queue.receiveConnection(connection, at(0));
  expect(queue.admitDue(at(49))).toEqual([]);
  expect(queue.receiveConnection(9, at(50))).toBe("queued");
  expect(queue.admitDue(at(50))).toEqual([{ connection: 1, waitedMs: 50, frames: [] }]);
  queue.remove(2);
  expect([100, 150, 200].flatMap((ms) => queue.admitDue(at(ms))).map(({ connection }) => connection)).toEqual([3, 4, 9]);
  expect(queue.size).toBe(0);
});

test("[ADM3] in any second the queue admits at most the rate and a twentieth of it, whenever connections arrive", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(40), { minLength: 1, maxLength: 200 }), (pauses) => {
      const queue = new AdmissionQueue<number>({ connectsPerSecondMax: 40, connectQueueMax: 20, connectQueueBytesMax: 410 }, at(0));
      const entered: number[] = [];
      let now = 0;
      pauses.forEach((pause, connection) => {
        now += pause;
        entered.push(...queue.admitDue(at(now)).map(() => now));
        if (queue.receiveConnection(connection, at(now)) === "admitted") entered.push(now);
        expect(queue.size).toBeLessThanOrEqual(20);
      });
      entered.forEach((from, index) => expect(entered.slice(index).filter((ms) => ms < from + 1_000).length).toBeLessThanOrEqual(42));
    }),
  );
});

test("[LOB4] an empty frame takes space as well, and the space of a removed connection is free again", () => {
  const queue = new AdmissionQueue<number>({ connectsPerSecondMax: 1, connectQueueMax: 2, connectQueueBytesMax: 410 }, at(0));
  expect([1, 2, 3].map((connection) => queue.receiveConnection(connection, at(0)))).toEqual(["admitted", "queued", "queued"]);
  const send = (connection: number) => queue.receiveFrame(connection, new Uint8Array(0));
  expect([2, 2, 2, 2].map(send)).toEqual(["kept", "kept", "rejected", "not-queued"]);
  expect([3, 3].map(send)).toEqual(["kept", "kept"]);
  queue.remove(3);
  queue.receiveConnection(4, at(0));
  expect([4, 4, 4].map(send)).toEqual(["kept", "kept", "rejected"]);
});
