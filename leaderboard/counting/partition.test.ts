import { expect, test } from "vitest";

import type { UnixMillis } from "../../shared/ids.ts";
import { CountedPartition } from "./partition.ts";

const SENTINEL = { service: "s", number: 4 };
const ended = (reason: string, hasCaughtUp = false) => ({
  kind: "pass-ended" as const,
  pass: { reason, hasCaughtUp, through: 50 as UnixMillis },
});

function begin() {
  const partition = new CountedPartition();
  expect(partition.receiveInput({ kind: "lease-taken", facts: { floor: 7, said: SENTINEL } })).toEqual([
    { kind: "begin-pass", floor: { edits: 7, sentinel: SENTINEL }, through: 0, reason: "lease" },
  ]);
  return partition;
}

test("[PART1] after a failed pass the next one begins at the newest floor, after a delay that doubles", () => {
  const partition = begin();
  partition.receiveInput({ kind: "floor-raised", floor: { edits: 9, sentinel: SENTINEL } });
  expect(partition.receiveInput(ended("stale"))).toEqual([{ kind: "wait", ms: 250 }]);
  expect(partition.receiveInput({ kind: "tick" })).toEqual([
    { kind: "begin-pass", floor: { edits: 9, sentinel: SENTINEL }, through: 50, reason: "stale" },
  ]);
  expect(partition.receiveInput(ended("failed"))).toEqual([{ kind: "wait", ms: 500 }]);
});

test("[PART2] a pass that had caught up resets the delay, and the delay is at most four seconds", () => {
  const partition = begin();
  const delays = Array.from({ length: 8 }, () => {
    const [effect] = partition.receiveInput(ended("failed"));
    partition.receiveInput({ kind: "tick" });
    return effect?.kind === "wait" ? effect.ms : undefined;
  });
  expect(delays.slice(-2)).toEqual([4_000, 4_000]);
  expect(partition.receiveInput(ended("stale", true))).toEqual([{ kind: "wait", ms: 250 }]);
});

test("[PART3] a leaderboard that stops saves checkpoints, and then releases the lease with their floor", () => {
  const partition = begin();
  expect(partition.receiveInput({ kind: "stop" })).toEqual([{ kind: "stop-pass" }]);
  expect(partition.receiveInput(ended("lease"))).toEqual([{ kind: "drain-pass" }]);
  partition.receiveInput({ kind: "floor-raised", floor: { edits: 12, sentinel: SENTINEL } });
  expect(partition.receiveInput({ kind: "drained" })).toEqual([{ kind: "leave", facts: { floor: 12, said: SENTINEL } }]);
});

test("[PART4] a lost lease leaves the partition without saving, and a wait for the next pass is called off", () => {
  const counting = begin();
  counting.receiveInput({ kind: "lease-lost" });
  expect(counting.receiveInput(ended("lease")).map(({ kind }) => kind)).toEqual(["leave"]);
  const waiting = begin();
  waiting.receiveInput(ended("failed"));
  expect(waiting.receiveInput({ kind: "lease-lost" }).map(({ kind }) => kind)).toEqual(["leave"]);
  expect(waiting.receiveInput({ kind: "tick" })).toEqual([]);
});
