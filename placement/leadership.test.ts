import { expect, test } from "vitest";

import type { Millis } from "../shared/ids.ts";
import { Leadership } from "./leadership.ts";

const at = (ms: number) => ms as Millis;
const written = (revision: number) => ({ kind: "written", revision }) as const;

function leading(generation: number) {
  const leadership = new Leadership({ holder: "one", leaseMs: 1_000 });
  const lease = leadership.receiveRead({ holder: "", floor: generation }, 4, 0, at(0))!;
  leadership.receiveWritten(lease, written(5), at(0));
  return leadership;
}

test("[LEA1] a free lease is taken, with the generation that it contains", () => {
  const leadership = leading(12);
  expect([leadership.leads, leadership.generation]).toEqual([true, 12]);
  const first = new Leadership({ holder: "one", leaseMs: 1_000 });
  expect(first.receiveRead(undefined, 0, 0, at(0)), "no process has led yet").toEqual({ holder: "one", floor: 0 });
});

test("[LEA2] the lease of another process is not taken until it was unchanged for its whole length", () => {
  const leadership = new Leadership({ holder: "one", leaseMs: 1_000 });
  const others = { holder: "two", floor: 3 };
  expect(leadership.receiveRead(others, 4, 0, at(0))).toBeUndefined();
  expect(leadership.receiveRead(others, 5, 0, at(900))).toBeUndefined();
  expect(leadership.receiveRead(others, 5, 0, at(1_900))).toBeUndefined();
  expect(leadership.receiveRead(others, 5, 0, at(1_901))).toEqual({ holder: "one", floor: 3 });
});

test("[LEA3] a plan's generation is written into the lease over exactly the last written revision", () => {
  const leadership = leading(12);
  const renewal = leadership.renewal(13)!;
  expect(renewal).toEqual({ lease: { holder: "one", floor: 13 }, revision: 5 });
  leadership.receiveWritten(renewal.lease, written(6), at(100));
  expect([leadership.generation, leadership.renewalDue(at(300)), leadership.renewalDue(at(350))]).toEqual([13, false, true]);
});

test("[LEA4] a leader that was succeeded no longer leads", () => {
  const leadership = leading(12);
  leadership.receiveWritten(leadership.renewal(13)!.lease, { kind: "superseded" }, at(100));
  expect([leadership.leads, leadership.generation, leadership.renewal(14)]).toEqual([false, 0, undefined]);
});

test("[LEA5] a renewal never lowers the generation in the lease", () => {
  expect(leading(12).renewal(11)?.lease.floor).toBe(12);
});

test("[LEA6] after the bucket did not answer, a leader renews its lease before anything else", () => {
  const leadership = leading(12);
  expect(leadership.renewalDue(at(1))).toBe(false);
  leadership.receiveSilence();
  expect(leadership.renewalDue(at(1))).toBe(true);
});

test("[LEA7] time in which the lease could not be read does not count against its holder", () => {
  const leadership = new Leadership({ holder: "one", leaseMs: 1_000 });
  const others = { holder: "two", floor: 3 };
  expect(leadership.receiveRead(others, 4, 0, at(0))).toBeUndefined();
  leadership.receiveSilence();
  expect(leadership.receiveRead(others, 4, 0, at(5_000))).toBeUndefined();
  expect(leadership.receiveRead(others, 4, 0, at(6_001))).toEqual({ holder: "one", floor: 3 });
});
