import { expect, test } from "vitest";

import type { UnixMillis } from "../../shared/ids.ts";
import { CheckpointFloor, CountingProgress } from "./progress.ts";

const date = (ms: number) => ms as UnixMillis;

test("[HEAD1] everything before the question is counted once both streams are counted up to their ends at the question", () => {
  const progress = new CountingProgress({ edits: 3, activities: 0 }, date(50));
  progress.aimAt({ edits: 5, activities: 2 }, date(100));
  progress.aimAt({ edits: 9, activities: 9 }, date(200)); // One question at a time.
  progress.receiveEntry("edits", 7);
  expect([progress.receiveCounted(progress.received), progress.through, progress.hasCaughtUp]).toEqual([false, 50, false]);
  progress.receiveEntry("activities", 2);
  expect([progress.receiveCounted(progress.received), progress.through, progress.hasCaughtUp]).toEqual([true, 100, true]);
});

test("[HEAD2] catching up is reported once, and never without a question", () => {
  const progress = new CountingProgress({ edits: 0, activities: 0 }, date(0));
  expect(progress.receiveCounted({ edits: 9, activities: 9 })).toBe(false);
  progress.aimAt({ edits: 0, activities: 0 }, date(10));
  expect(progress.receiveCounted({ edits: 0, activities: 0 })).toBe(true);
  progress.aimAt({ edits: 1, activities: 0 }, date(20));
  expect(progress.receiveCounted({ edits: 1, activities: 0 })).toBe(false);
  expect(progress.through).toBe(20);
});

test("[HEAD3] progress does not wait for entries that were removed before they were read", () => {
  const progress = new CountingProgress({ edits: 0, activities: 0 }, date(0));
  progress.aimAt({ edits: 2, activities: 7 }, date(100));
  progress.aimAt({ edits: 3, activities: 4 }, date(200));
  expect(progress.receiveCounted({ edits: 2, activities: 3 })).toBe(false);
  expect([progress.receiveCounted({ edits: 2, activities: 4 }), progress.through]).toEqual([true, 100]);
});

test("[HEAD4] a pass continues from the later of two known dates", () => {
  const progress = new CountingProgress({ edits: 0, activities: 0 }, date(50));
  progress.resume({ through: date(20) });
  expect(progress.through).toBe(50);
  progress.resume({ through: date(70) });
  expect(progress.through).toBe(70);
});

test("[HEAD5] the floor rises only to what checkpoints covered when a sentinel was sent that Redis kept, and not after a loss", () => {
  const floor = new CheckpointFloor({ edits: 3, sentinel: undefined });
  const send = (): void => {
    floor.requestSentinel({ kind: "heartbeat" });
    floor.beginSentinel();
  };
  const receive = (kind: "kept" | "doubtful"): number => {
    floor.receiveBeat({ kind, sentinel: { service: "s", number: 1 } });
    return floor.floor.edits;
  };
  floor.cover({ edits: 7, activities: 0 });
  send();
  expect(receive("doubtful"), "Redis was unreachable in between").toBe(3);
  send();
  expect(receive("kept")).toBe(7);
  floor.cover({ edits: 9, activities: 0 });
  send();
  floor.reset(); // A checkpoint below the floor is lost.
  expect(receive("kept")).toBe(0);
});
