/**
 * Gives back the memory that a busy time left behind. V8 collects because something is allocated, so a process in which
 * little happens keeps its garbage and the young generation of its busiest moment. As G1 does for Java (JEP 346), a
 * process that has been quiet for a while collects, and once more when it was quiet for as long again.
 */

import { Session } from "node:inspector";
import { type EventLoopUtilization, performance } from "node:perf_hooks";
import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from "node:v8";

import { Histogram, type Registry } from "prom-client";

import type { Clock } from "../shared/clock.ts";
import { type Settings, type Values, wholeNumber } from "../shared/config.ts";
import type { Running } from "../shared/lifecycle.ts";

export const idleMemorySettings = {
  idleMemoryMs: {
    parse: wholeNumber,
    fallback: 15_000,
    meaning: "a process that had next to nothing to do for so many milliseconds gives back memory that it no longer needs; 0: never",
  },
} as const satisfies Settings;

/** What is asked of V8. */
export interface Heap {
  /** The share of the time since it was last asked in which the process had something to do, 0 to 1. */
  busyShare(): number;
  /** Of pages that V8 holds for what has lived a while, and of all objects, garbage that was not collected yet included. */
  bytes(): { readonly held: number; readonly used: number };
  /** Gives pages back that are only partly used, too. Stops the process for some milliseconds: about two for each MB that lives, four on a busy machine. */
  collect(): Promise<void>;
  /** Whether the young generation may become larger than it is, as it does by and by wherever anything outlives a collection. */
  letYoungGrow(mayGrow: boolean): void;
}

const BUSY_SHARE_MAX = 0.1;
/** How often a process is looked at; what comes to it all at once is not to wait for the end of the quiet. */
const LOOK_MS = 1_000;
const SUDDENLY_BUSY_SHARE = 0.5;
/** Less is not worth a stop. A stop takes as long as what lives, so what it gives back is in proportion to that. */
const GROWN_BYTES_MIN = 1024 ** 2;
const GROWN_SHARE_MIN = 1 / 16;
/** Garbage included. A stop for a larger heap could be felt, and a room server that stands still for half a second loses its rooms. */
const USED_BYTES_MAX = 96 * 1024 ** 2;
/** V8's names of where objects are made, which is not counted: a process that works takes again what it needs there. */
const YOUNG = new Set(["new_space", "new_large_object_space"]);
/** V8's own. */
const YOUNG_GROWTH_FACTOR = 2;

export function giveBackIdleMemory(
  { idleMemoryMs }: Values<typeof idleMemorySettings>,
  heap: Heap,
  { clock, registry }: { clock: Clock; registry: Registry },
): Running {
  if (idleMemoryMs === 0) return { stop: async () => {} };
  const seconds = new Histogram({
    name: "coroom_idle_collection_seconds",
    help: "How long the process stood still to give back memory while it had next to nothing to do",
    buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5],
    registers: [registry],
  });
  const lookMs = Math.min(idleMemoryMs, LOOK_MS);
  let heldAtLeast = 0;
  let isOneToFollow = false;
  let [lookedMs, busyMs] = [0, 0];
  let stopped = false;
  let cancel = (): void => {};
  const lookLater = (): void => void (cancel = clock.after(lookMs, look));
  const look = (): void => {
    const busyShare = heap.busyShare();
    if (busyShare >= SUDDENLY_BUSY_SHARE) heap.letYoungGrow(true);
    lookedMs += lookMs;
    busyMs += busyShare * lookMs;
    if (lookedMs < idleMemoryMs) return lookLater();
    const isQuiet = busyShare < SUDDENLY_BUSY_SHARE && busyMs / lookedMs < BUSY_SHARE_MAX;
    [lookedMs, busyMs] = [0, 0];
    void conclude(isQuiet);
  };
  const conclude = async (isQuiet: boolean): Promise<void> => {
    const { held, used } = heap.bytes();
    heldAtLeast = Math.min(heldAtLeast, held); // V8 gives back by itself as well.
    heap.letYoungGrow(!isQuiet);
    const hasGrown = held - heldAtLeast >= Math.max(GROWN_BYTES_MIN, heldAtLeast * GROWN_SHARE_MIN);
    if (isQuiet && (hasGrown || isOneToFollow) && used <= USED_BYTES_MAX) {
      isOneToFollow = hasGrown; // What was busy lets go of rooms and of what it remembered only by and by, and no growth shows that.
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
      const held = getHeapSpaceStatistics().reduce(
        (sum, { space_name, space_size }) => (YOUNG.has(space_name) ? sum : sum + space_size),
        0,
      );
      return { held, used };
    },
    collect: async () => {
      const session = new Session();
      session.connect();
      await new Promise<void>((resolve, reject) =>
        session.post("HeapProfiler.collectGarbage", (error) => (error === null ? resolve() : reject(error))),
      );
      session.disconnect();
    },
    // Read when V8 makes it larger. At the start V8 takes no less than the factor that it has by itself.
    letYoungGrow: (mayGrow) => setFlagsFromString(`--semi-space-growth-factor=${mayGrow ? YOUNG_GROWTH_FACTOR : 1}`),
  };
}
