/** A quiet process returns memory, and a busy process does not. */

import { once } from "node:events";
import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
import { Worker } from "node:worker_threads";

import { Registry } from "prom-client";
import { expect, test } from "vitest";

import { FakeClock } from "../shared/testing/fake-clock.ts";
import { growthPercent, releaseIdleMemory, type Heap, v8Heap } from "./idle-memory.ts";

const MB = 1024 ** 2;
const LOOK_MS = 15_000;

function rig(idleMemoryMs = LOOK_MS) {
  const clock = new FakeClock();
  const registry = new Registry();
  const state = { busyShare: 0, heldMb: 100, lastLiveMb: 60, usedMb: 90, liveMb: 40, collections: 0, youngMayGrow: true };
  const heap: Heap = {
    busyShare: () => state.busyShare,
    bytes: () => ({ held: state.heldMb * MB, live: state.lastLiveMb * MB, used: state.usedMb * MB }),
    collect: async () => {
      state.collections += 1;
      state.heldMb = state.liveMb;
    },
    setGrowth: (mayGrow) => void (state.youngMayGrow = mayGrow),
  };
  return { clock, registry, state, running: releaseIdleMemory({ idleMemoryMs }, heap, { clock, registry }) };
}

test("[IDL1] a quiet process collects twice, and again only when its heap has grown", async () => {
  const { clock, registry, state, running } = rig();
  await clock.advance(LOOK_MS - 1);
  expect(state.collections).toBe(0);
  await clock.advance(1);
  expect(state.collections).toBe(1);
  await clock.advance(3 * LOOK_MS);
  expect(state.collections).toBe(2);
  state.heldMb += 2.4; // Growth of a sixteenth of 40 starts a collection.
  await clock.advance(LOOK_MS);
  expect(state.collections).toBe(2);
  state.heldMb += 1;
  await clock.advance(3 * LOOK_MS);
  expect(state.collections).toBe(4);
  expect(await registry.metrics()).toContain("coroom_idle_collection_seconds_count 4");
  state.heldMb = 8; // V8 has returned memory by itself.
  await clock.advance(LOOK_MS);
  state.heldMb = 8.9;
  await clock.advance(LOOK_MS);
  expect(state.collections).toBe(4);
  state.heldMb = 9;
  await clock.advance(LOOK_MS);
  expect(state.collections).toBe(5);
  await running.stop();
  await clock.advance(LOOK_MS);
  expect(state.collections).toBe(5);
});

test("[IDL9] memory that is released after a collection is collected at the next quiet check", async () => {
  const { clock, state, running } = rig();
  await clock.advance(LOOK_MS);
  state.busyShare = 0.2;
  await clock.advance(2 * LOOK_MS);
  expect(state.collections).toBe(1);
  state.busyShare = 0;
  state.liveMb = 30;
  await clock.advance(LOOK_MS);
  expect([state.collections, state.heldMb]).toEqual([2, 30]);
  await running.stop();
});

test("[IDL2] a collection never delays work: none runs in a busy process or for a large heap", async () => {
  const { clock, state, running } = rig();
  state.busyShare = 0.2;
  await clock.advance(2 * LOOK_MS);
  expect(state.collections).toBe(0);
  state.busyShare = 0;
  state.lastLiveMb = 97;
  await clock.advance(2 * LOOK_MS);
  expect(state.collections).toBe(0);
  Object.assign(state, { lastLiveMb: 20, usedMb: 121 });
  await clock.advance(2 * LOOK_MS);
  expect(state.collections, "objects since the last full collection may be live").toBe(0);
  Object.assign(state, { lastLiveMb: 96, usedMb: 120 });
  await clock.advance(LOOK_MS);
  expect(state.collections).toBe(1);
  await running.stop();
});

test("[IDL8] a burst at the end of a quiet interval prevents the collection and allows the young generation to grow", async () => {
  const { clock, state, running } = rig();
  await clock.advance(LOOK_MS - 1_000);
  state.busyShare = 1;
  await clock.advance(1_000);
  expect([state.collections, state.youngMayGrow]).toEqual([0, true]);
  await running.stop();
});

test("[IDL3] the setting 0 disables collections", async () => {
  const { clock, state, running } = rig(0);
  await clock.advance(10 * LOOK_MS);
  expect(state.collections).toBe(0);
  await running.stop();
});

test("[IDL4] V8 returns the memory of unreferenced objects", async () => {
  const heap = v8Heap();
  let garbage: unknown[] | undefined = Array.from({ length: 500_000 }, (_, index) => ({ index, text: `${index}` }));
  const before = heap.bytes().used;
  expect(garbage.length).toBe(500_000);
  garbage = undefined;
  await heap.collect();
  expect(before - heap.bytes().live).toBeGreaterThan(10 * MB);
  expect(heap.busyShare()).toBeGreaterThan(0);
});

test("[IDL5] V8 also returns pages that hold only a few objects", async () => {
  const heap = v8Heap();
  let all: unknown[] | undefined = Array.from({ length: 500_000 }, (_, index) => ({ index, text: `${index}` }));
  const before = heap.bytes();
  const left = all.filter((_, index) => index % 50 === 0); // A few objects remain on each page.
  all = undefined;
  await heap.collect();
  expect(before.held - heap.bytes().held).toBeGreaterThan(10 * MB); // `gc()` returns 3.5.
  expect(left.length).toBe(10_000);
});

test("[IDL6] the young generation may grow only while the process is busy", async () => {
  const { clock, state, running } = rig();
  await clock.advance(LOOK_MS);
  expect(state.youngMayGrow).toBe(false);
  state.busyShare = 0.2;
  await clock.advance(LOOK_MS);
  expect(state.youngMayGrow).toBe(true);
  state.busyShare = 0;
  await clock.advance(LOOK_MS);
  expect(state.youngMayGrow).toBe(false);
  state.busyShare = 0.5; // A burst of this size allows growth immediately.
  await clock.advance(1_000);
  expect(state.youngMayGrow).toBe(true);
  await running.stop();
});

test("[IDL7] V8 enlarges the young generation only while its growth is allowed", async () => {
  const heap = v8Heap();
  const youngBytes = (): number => getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space")!.space_size;
  const outlive = (): void => {
    const kept: string[][] = [];
    for (let index = 0; index < 200_000; index++) kept[index % 20_000] = [`${index}`];
    expect(kept.length).toBe(20_000);
  };
  heap.setGrowth(false);
  await heap.collect();
  for (let round = 0; round < 10; round++) outlive();
  expect(youngBytes()).toBeLessThanOrEqual(2 * MB); // The two semi-spaces with which V8 starts.
  heap.setGrowth(true);
  for (let round = 0; round < 10; round++) outlive();
  expect(youngBytes()).toBeGreaterThan(3 * MB);
});

test("[IDL10] a small heap grows by 48 MiB, but at most to 2.5 times, before V8 collects all of it; V8 decides for a large one", () => {
  expect(growthPercent(12 * MB)).toBe(150);
  expect(growthPercent(48 * MB)).toBe(100);
  expect(growthPercent(96 * MB)).toBe(50);
  expect(growthPercent(97 * MB)).toBe(0);
});

test("[IDL11] V8 obeys a change of the growth while it runs", async () => {
  /** Full collections of a thread with 15 MB of live objects that replaces objects which are already old. */
  const fullCollections = async (percent: number): Promise<number> => {
    setFlagsFromString(`--heap-growing-percent=${percent}`);
    const [count] = (await once(new Worker(AGEING, { eval: true }), "message")) as [number];
    return count;
  };
  const [often, seldom] = [await fullCollections(50), await fullCollections(300)];
  setFlagsFromString("--heap-growing-percent=0");
  expect(seldom).toBeGreaterThan(0);
  expect(often).toBeGreaterThan(seldom);
});

const AGEING = `
  const { constants, PerformanceObserver } = require("node:perf_hooks");
  const { setImmediate } = require("node:timers/promises");
  const { parentPort } = require("node:worker_threads");
  let full = 0;
  new PerformanceObserver((list) => {
    for (const { detail } of list.getEntries()) if (detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR) full += 1;
  }).observe({ entryTypes: ["gc"] });
  (async () => {
    const old = [];
    for (let index = 0; index < 1_000_000; index++) {
      old[index % 100_000] = { index, text: "edit " + index, more: [index, index + 1, index + 2] };
      if (index % 20_000 === 0) await setImmediate();
    }
    await setImmediate();
    parentPort.postMessage(full);
  })();
`;
