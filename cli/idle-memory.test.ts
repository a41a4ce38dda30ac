/** Memory goes back once a process is quiet, and only then. */

import { Registry } from "prom-client";
import { expect, test } from "vitest";

import { FakeClock } from "../shared/testing/fake-clock.ts";
import { giveBackIdleMemory, type Heap, v8Heap } from "./idle-memory.ts";

const MB = 1024 ** 2;
const LOOK_MS = 15_000;

function rig(idleMemoryMs = LOOK_MS) {
  const clock = new FakeClock();
  const registry = new Registry();
  const state = { busyShare: 0, heldMb: 100, usedMb: 60, liveMb: 40, collections: 0 };
  const heap: Heap = {
    busyShare: () => state.busyShare,
    bytes: () => ({ held: state.heldMb * MB, used: state.usedMb * MB }),
    collect: async () => {
      state.collections += 1;
      state.heldMb = state.liveMb;
    },
  };
  return { clock, registry, state, running: giveBackIdleMemory({ idleMemoryMs }, heap, { clock, registry }) };
}

test("[IDL1] a quiet process collects once, and again only when its heap has grown", async () => {
  const { clock, registry, state, running } = rig();
  await clock.advance(LOOK_MS - 1);
  expect(state.collections).toBe(0);
  await clock.advance(1 + 3 * LOOK_MS);
  expect(state.collections).toBe(1);
  state.heldMb += 4.9; // An eighth of 40 is worth it.
  await clock.advance(LOOK_MS);
  expect(state.collections).toBe(1);
  state.heldMb += 1;
  await clock.advance(LOOK_MS);
  expect(state.collections).toBe(2);
  expect(await registry.metrics()).toContain("coroom_idle_collection_seconds_count 2");
  state.heldMb = 8; // V8 has given back by itself.
  await clock.advance(LOOK_MS);
  state.heldMb = 9.9;
  await clock.advance(LOOK_MS);
  expect(state.collections).toBe(2);
  state.heldMb = 10;
  await clock.advance(LOOK_MS);
  expect(state.collections).toBe(3);
  await running.stop();
  state.heldMb += 100;
  await clock.advance(LOOK_MS);
  expect(state.collections).toBe(3);
});

test("[IDL2] nobody's work waits for it: not while there is any, and not for a heap that takes long", async () => {
  const { clock, state, running } = rig();
  state.busyShare = 0.2;
  await clock.advance(2 * LOOK_MS);
  expect(state.collections).toBe(0);
  state.busyShare = 0;
  state.usedMb = 97;
  await clock.advance(2 * LOOK_MS);
  expect(state.collections).toBe(0);
  state.usedMb = 96;
  await clock.advance(LOOK_MS);
  expect(state.collections).toBe(1);
  await running.stop();
});

test("[IDL3] it can be switched off", async () => {
  const { clock, state, running } = rig(0);
  await clock.advance(10 * LOOK_MS);
  expect(state.collections).toBe(0);
  await running.stop();
});

test("[IDL4] V8 gives back what nothing refers to", async () => {
  const heap = v8Heap();
  let garbage: unknown[] | undefined = Array.from({ length: 500_000 }, (_, index) => ({ index, text: `${index}` }));
  const before = heap.bytes();
  expect(garbage.length).toBe(500_000);
  garbage = undefined;
  await heap.collect();
  expect(before.used - heap.bytes().used).toBeGreaterThan(10 * MB);
  expect(heap.busyShare()).toBeGreaterThan(0);
});

test("[IDL5] V8 gives back pages too on which only a little is left", async () => {
  const heap = v8Heap();
  let all: unknown[] | undefined = Array.from({ length: 500_000 }, (_, index) => ({ index, text: `${index}` }));
  const before = heap.bytes();
  const left = all.filter((_, index) => index % 50 === 0); // A few on each page.
  all = undefined;
  await heap.collect();
  expect(before.held - heap.bytes().held).toBeGreaterThan(20 * MB);
  expect(left.length).toBe(10_000);
});
