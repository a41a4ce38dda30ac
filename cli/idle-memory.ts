/**
 * Lets the heap grow while the process is busy, and returns the memory afterwards. V8 collects only when the process
 * allocates, so a quiet process would keep its garbage and a large young generation. A process that was quiet for
 * `idleMemoryMs` collects garbage. It collects once more after the next quiet interval (as G1 does for Java, JEP 346).
 */

import { Session } from "node:inspector";
import { constants, type EventLoopUtilization, performance, type PerformanceEntry, PerformanceObserver } from "node:perf_hooks";
import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from "node:v8";

import { Histogram, type Registry } from "prom-client";

import type { Clock } from "../shared/time/clock.ts";
import type { Running } from "../shared/process/lifecycle.ts";
import type { StartConfig } from "./settings.ts";

/** The functions of V8 that this file needs. */
export interface Heap {
  /** Share of the time since the last call in which the event loop was busy, 0 to 1. */
  busyShare(): number;
  /**
   * `held`: bytes of V8's pages for old objects. `live`: bytes of the objects that survived the last full collection;
   * before the first one, of all objects. `used`: bytes of all objects, garbage since that collection included.
   */
  bytes(): { readonly held: number; readonly live: number; readonly used: number };
  /**
   * Also returns partly used pages. It stops the process for about 2 ms per MB of live objects, and 4 ms on a busy
   * machine.
   */
  collect(): Promise<void>;
  /**
   * Whether the young generation may grow whenever objects survive a collection, and the old one by `growthPercent`
   * before the next full collection. Otherwise the young one does not grow, and V8 chooses the growth of the old one.
   */
  setGrowth(mayGrow: boolean): void;
}

const BUSY_SHARE_MAX = 0.1;
/** Interval of the checks. A sudden burst must not wait until the end of the quiet interval. */
const LOOK_MS = 1_000;
const SUDDENLY_BUSY_SHARE = 0.5;
/**
 * Minimum growth that justifies a stop. The stop lasts in proportion to the live objects, so the limit is a share of
 * them.
 */
const GROWN_BYTES_MIN = 1024 ** 2;
const GROWN_SHARE_MIN = 1 / 16;
/** A collection of a larger heap could be noticed, and a room server that stops for 0.5 s loses its rooms. */
const LIVE_BYTES_MAX = 96 * 1024 ** 2;
/** Even if all of it is live, as after many rooms were opened, its collection takes less than 0.5 s on a busy machine. */
const USED_BYTES_MAX = 120 * 1024 ** 2;
/**
 * V8 alone marks a heap of 40 MB again after 10 MB of growth. With 50 rooms that was every 5 s, for 0.1 s of one core
 * (docs/PERFORMANCE.md).
 */
const OLD_GROWTH_BYTES = 48 * 1024 ** 2;
/** A heap may have become several times as large since the last full collection, and V8 takes the percentage of that. */
const GROWTH_PERCENT_MAX = 150;
/** V8's names of the young generation. It is not counted, because a busy process takes this memory again. */
const YOUNG = new Set(["new_space", "new_large_object_space"]);
/** V8's default. */
const YOUNG_GROWTH_FACTOR = 2;
const V8_DECIDES = 0;

export function releaseIdleMemory(
  { idleMemoryMs }: Pick<StartConfig, "idleMemoryMs">,
  heap: Heap,
  { clock, registry }: { clock: Clock; registry: Registry },
): Running {
  if (idleMemoryMs === 0) return { stop: async () => {} };
  const seconds = new Histogram({
    name: "coroom_idle_collection_seconds",
    help: "Seconds of a garbage collection that returns the unused memory of an idle process",
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
    if (busyShare >= SUDDENLY_BUSY_SHARE) heap.setGrowth(true);
    lookedMs += lookMs;
    busyMs += busyShare * lookMs;
    if (lookedMs < idleMemoryMs) return lookLater();
    const isQuiet = busyShare < SUDDENLY_BUSY_SHARE && busyMs / lookedMs < BUSY_SHARE_MAX;
    [lookedMs, busyMs] = [0, 0];
    void conclude(isQuiet);
  };
  const conclude = async (isQuiet: boolean): Promise<void> => {
    const { held, live, used } = heap.bytes();
    heldAtLeast = Math.min(heldAtLeast, held); // V8 also returns memory by itself.
    heap.setGrowth(!isQuiet);
    const hasGrown = held - heldAtLeast >= Math.max(GROWN_BYTES_MIN, heldAtLeast * GROWN_SHARE_MIN);
    const isSmall = live <= LIVE_BYTES_MAX && used <= USED_BYTES_MAX;
    if (isQuiet && (hasGrown || isOneToFollow) && isSmall) {
      isOneToFollow = hasGrown; // Rooms and caches are released gradually, and no growth of the heap shows that.
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
 * Uses the inspector, Node's only access to V8's low-memory collection. `gc()` does not move objects, so it returns few
 * pages. It also does not shrink the young generation when the process makes over 1 MB of garbage per second, as
 * thousands of heartbeats do.
 */
export function v8Heap(): Heap {
  let before: EventLoopUtilization = performance.eventLoopUtilization();
  let survived: number | undefined;
  const usedBytes = (): number => getHeapStatistics().used_heap_size;
  new PerformanceObserver((list) => {
    const entries = list.getEntries() as (PerformanceEntry & { readonly detail: { readonly kind: number } })[];
    if (entries.some(({ detail }) => detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR)) survived = usedBytes();
  }).observe({ entryTypes: ["gc"] });
  const liveBytes = (): number => survived ?? usedBytes();
  return {
    busyShare: () => {
      const now = performance.eventLoopUtilization();
      const { utilization } = performance.eventLoopUtilization(now, before);
      before = now;
      return utilization;
    },
    bytes: () => {
      const held = getHeapSpaceStatistics().reduce(
        (sum, { space_name, space_size }) => (YOUNG.has(space_name) ? sum : sum + space_size),
        0,
      );
      return { held, live: liveBytes(), used: usedBytes() };
    },
    collect: async () => {
      const session = new Session();
      session.connect();
      await new Promise<void>((resolve, reject) =>
        session.post("HeapProfiler.collectGarbage", (error) => (error === null ? resolve() : reject(error))),
      );
      session.disconnect();
      survived = usedBytes();
    },
    // V8 reads these flags when it enlarges the young generation, and at the end of each full collection. At the start
    // V8 accepts only its default growth of the young generation or more.
    setGrowth: (mayGrow) => {
      setFlagsFromString(`--semi-space-growth-factor=${mayGrow ? YOUNG_GROWTH_FACTOR : 1}`);
      setFlagsFromString(`--heap-growing-percent=${mayGrow ? growthPercent(liveBytes()) : V8_DECIDES}`);
    },
  };
}

/** Percent of its live bytes by which the heap of a busy process grows before V8 collects all of it. 0: V8 decides. */
export function growthPercent(liveBytes: number): number {
  if (liveBytes > LIVE_BYTES_MAX) return V8_DECIDES;
  return Math.min(GROWTH_PERCENT_MAX, Math.ceil((100 * OLD_GROWTH_BYTES) / liveBytes));
}
