/**
 * Gives back the memory that a busy time left behind. V8 collects because something is allocated, so a process in which
 * little happens keeps its garbage and the young generation of its busiest moment. As G1 does for Java (JEP 346), a
 * process that has been quiet for a while collects once.
 */

import { Session } from "node:inspector";
import { type EventLoopUtilization, performance } from "node:perf_hooks";
import { getHeapSpaceStatistics, getHeapStatistics } from "node:v8";

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
  /** Of pages that V8 holds for what has lived a while, and of all objects, garbage that was not collected yet included. */
  bytes(): { readonly held: number; readonly used: number };
  /** Gives pages back that are only partly used, too. Stops the process for some milliseconds: about two for each MB that lives, four on a busy machine. */
  collect(): Promise<void>;
}

const BUSY_SHARE_MAX = 0.1;
/** Less is not worth a stop. A stop takes as long as what lives, so what it gives back is in proportion to that. */
const GROWN_BYTES_MIN = 2 * 1024 ** 2;
const GROWN_SHARE_MIN = 1 / 8;
/** Garbage included. A stop for a larger heap could be felt, and a room server that stands still for half a second loses its rooms. */
const USED_BYTES_MAX = 96 * 1024 ** 2;
/** V8's names of where objects are made. What it gives back there it takes again within minutes. */
const YOUNG = new Set(["new_space", "new_large_object_space"]);

export function giveBackIdleMemory({ idleMemoryMs }: Values<typeof idleMemorySettings>, heap: Heap, { clock, registry }: { clock: Clock; registry: Registry }): Running {
  if (idleMemoryMs === 0) return { stop: async () => {} };
  const seconds = new Histogram({ name: "coroom_idle_collection_seconds", help: "How long the process stood still to give back memory while it had next to nothing to do", buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5], registers: [registry] });
  let heldAtLeast = 0;
  let stopped = false;
  let cancel = (): void => {};
  const lookLater = (): void => void (cancel = clock.after(idleMemoryMs, () => void look()));
  const look = async (): Promise<void> => {
    const { held, used } = heap.bytes();
    heldAtLeast = Math.min(heldAtLeast, held); // V8 gives back by itself as well.
    if (heap.busyShare() < BUSY_SHARE_MAX && held - heldAtLeast >= Math.max(GROWN_BYTES_MIN, heldAtLeast * GROWN_SHARE_MIN) && used <= USED_BYTES_MAX) {
      const end = seconds.startTimer();
      await heap.collect();
      end();
      heldAtLeast = heap.bytes().held;
    }
    if (!stopped) lookLater();
  };
  lookLater();
  return {
    stop: async () => {
      stopped = true;
      cancel();
    },
  };
}

/**
 * `gc()` leaves objects where they lie, and so nearly all pages; and it leaves the young generation as it is in a process
 * that makes more than 1 MB of garbage a second, as heartbeats of thousands do. What V8 does where memory is low does
 * neither, and the inspector is Node's only way to ask for it.
 */
export function v8Heap(): Heap {
  let before: EventLoopUtilization = performance.eventLoopUtilization();
  return {
    busyShare: () => {
      const now = performance.eventLoopUtilization();
      const { utilization } = performance.eventLoopUtilization(now, before);
      before = now;
      return utilization;
    },
    bytes: () => {
      const { used_heap_size: used } = getHeapStatistics();
      const held = getHeapSpaceStatistics().reduce((sum, { space_name, space_size }) => (YOUNG.has(space_name) ? sum : sum + space_size), 0);
      return { held, used };
    },
    collect: async () => {
      const session = new Session();
      session.connect();
      await new Promise<void>((resolve, reject) => session.post("HeapProfiler.collectGarbage", (error) => (error === null ? resolve() : reject(error))));
      session.disconnect();
    },
  };
}
