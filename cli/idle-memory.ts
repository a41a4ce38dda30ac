/**
 * Gives back the memory that a busy time left behind. V8 collects because something is allocated, so a process in which
 * little happens keeps its garbage and the young generation of its busiest moment. As G1 does for Java (JEP 346), a
 * process that has been quiet for a while collects once.
 */

import { type EventLoopUtilization, performance } from "node:perf_hooks";
import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

import { Histogram, type Registry } from "prom-client";

import type { Clock } from "../shared/clock.ts";
import { type Settings, type Values, wholeNumber } from "../shared/config.ts";
import type { Running } from "../shared/lifecycle.ts";

export const idleMemorySettings = {
  idleMemoryMs: { parse: wholeNumber, fallback: 15_000, meaning: "a process that had next to nothing to do for so many milliseconds gives back memory that it no longer needs; 0: never" },
} as const satisfies Settings;

/** What is asked of V8. */
export interface Heap {
  /** The share of the time since it was last asked in which the process had something to do, 0 to 1. */
  busyShare(): number;
  /** Of pages that V8 holds, and of objects in them, garbage that was not collected yet included. */
  bytes(): { readonly held: number; readonly used: number };
  /** Stops the process for some milliseconds: about one for each MB that lives. */
  collect(): void;
}

const BUSY_SHARE_MAX = 0.1;
/** Less is not worth a stop. */
const GROWN_BYTES_MIN = 8 * 1024 ** 2;
/** Garbage included. A stop for a larger heap could be felt, and a room server that stands still for half a second loses its rooms. */
const USED_BYTES_MAX = 192 * 1024 ** 2;

export function giveBackIdleMemory({ idleMemoryMs }: Values<typeof idleMemorySettings>, heap: Heap, { clock, registry }: { clock: Clock; registry: Registry }): Running {
  if (idleMemoryMs === 0) return { stop: async () => {} };
  const seconds = new Histogram({ name: "coroom_idle_collection_seconds", help: "How long the process stood still to give back memory while it had next to nothing to do", buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5], registers: [registry] });
  let heldAtLeast = 0;
  let cancel = (): void => {};
  const look = (): void => {
    const { held, used } = heap.bytes();
    heldAtLeast = Math.min(heldAtLeast, held); // V8 gives back by itself as well.
    if (heap.busyShare() < BUSY_SHARE_MAX && held - heldAtLeast >= GROWN_BYTES_MIN && used <= USED_BYTES_MAX) {
      const end = seconds.startTimer();
      heap.collect();
      end();
      heldAtLeast = heap.bytes().held;
    }
    cancel = clock.after(idleMemoryMs, look);
  };
  cancel = clock.after(idleMemoryMs, look);
  return { stop: async () => cancel() };
}

export function v8Heap(): Heap {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  let before: EventLoopUtilization = performance.eventLoopUtilization();
  return {
    busyShare: () => {
      const now = performance.eventLoopUtilization();
      const { utilization } = performance.eventLoopUtilization(now, before);
      before = now;
      return utilization;
    },
    bytes: () => {
      const { total_heap_size: held, used_heap_size: used } = getHeapStatistics();
      return { held, used };
    },
    collect,
  };
}
