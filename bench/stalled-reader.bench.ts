/**
 * One reader of a busy room stops reading for 30 s. Measures the gateway's memory, the latencies of the other members,
 * and the reader's return: Coroom closes the reader, which catches up from its seq. The relay is plain publish and
 * subscribe, and its reader misses edits without noticing.
 *
 * The others' latencies run from the send to the receipt, in turns of three windows: the reader reads, stalls, and
 * catches up. Other work on the machine affects all three alike. Each window of all turns is shown as one.
 */

import { setTimeout as sleep } from "node:timers/promises";

import { Latencies } from "../cli/bench/latencies.ts";
import { gatewaySettings } from "../gateway/config.ts";
import type { Comparison, ComparisonOptions, ComparisonOutcome } from "./comparison.ts";
import type { BusyRoomLoad, BusyRoomFigures } from "./load/busy-room-load.ts";
import type { Seat } from "./load/enter.ts";
import type { StallFigures, StalledReaderLoad } from "./load/stalled-reader-load.ts";
import { Worker } from "./load/worker.ts";
import type { Figures } from "./report.ts";
import { residentBytesOf } from "./server-usage.ts";
import { startCoroom } from "./systems/coroom.ts";
import { startRelay } from "./systems/peers.ts";
import type { MeasuredSystem } from "./systems/system.ts";

const WRITERS = 4;
const EDITS_PER_SECOND = 200;
/** Large enough to fill the kernel's buffers between two processes within seconds. */
const EDIT_LETTERS = 8_192;
/** New processes run slowly. */
const WARM_UP_MS = 6_000;
const TURNS = 3;
const READS_MS = 15_000;
const STALLED_MS = 30_000;
const BACK_MS = 5_000;
/** Length of each window with `--small`: too short for the gateway to close the reader. */
const SMALL_MS = 1_000;
const SAMPLE_MS = 200;
const NEVER = String(1e10);
/**
 * In each turn the reader falls some 50 MB behind. With the default limit on reading the log Coroom would send a
 * snapshot, which this load does not fetch. Most readers send nothing for longer than a client may. A document that
 * grows by 1.6 MB/s would soon take the document service a core to merge and to write every 5 s, and the others would
 * notice.
 */
const SETTINGS = {
  LOG_READ_BYTES_MAX: String(256 * 1024 * 1024),
  SILENCE_MS_MAX: "600000",
  MERGE_EDITS_MAX: NEVER,
  MERGE_BYTES_MAX: NEVER,
  DOCUMENTS_BYTES_MAX: NEVER,
  SNAPSHOT_INTERVAL_MS_MIN: NEVER,
};

export const stalledReader: Comparison = {
  name: "stalled-reader",
  summary: `a reader stops reading for 30 s in a room with ${EDITS_PER_SECOND} edits/s of ${EDIT_LETTERS / 1024} KB; with the relay`,
  clients: 24,
  smallClients: 6,
  run: async (options) => {
    const coroom = await measure(await startCoroom({ gateways: 1, small: options.small, settings: SETTINGS }), options, {
      mayMiss: false,
      waitingBytesMax: gatewaySettings.outboundBytesMax.fallback,
    });
    const relay = await measure(await startRelay(1), options, { mayMiss: true });
    return { figures: { coroom, relay } } satisfies ComparisonOutcome;
  },
};

async function measure(
  system: MeasuredSystem,
  { clients, small, print }: ComparisonOptions,
  { mayMiss, waitingBytesMax }: { mayMiss: boolean; waitingBytesMax?: number },
): Promise<Figures> {
  const [others, reader] = [new Worker<BusyRoomLoad>("busy-room-load"), new Worker<StalledReaderLoad>("stalled-reader-load")];
  const gateway = system.processes.find(({ role }) => role === "gateway")!.pid;
  const measured = async (ms: number) => growthOf(gateway, others.call("run", { ms: small ? SMALL_MS : ms }));
  const windows = { reads: new Windows(), stalls: new Windows(), back: new Windows() };
  const stalls: StallFigures[] = [];
  try {
    const seats = await Promise.all(
      Array.from({ length: clients }, async (_, index): Promise<Seat> => ({
        gateway: system.gateways[0]!,
        room: "busy",
        token: await system.token(`member-${index}`),
        clientKey: `member-${index}`,
      })),
    );
    await reader.call("open", seats.at(-1)!);
    await others.call("open", {
      writers: seats.slice(0, WRITERS),
      readers: seats.slice(WRITERS, -1),
      editsPerSecond: EDITS_PER_SECOND,
      editLetters: EDIT_LETTERS,
    });
    if (!small) await measured(WARM_UP_MS);
    for (let turn = 1; turn <= (small ? 1 : TURNS); turn++) {
      windows.reads.add(await measured(READS_MS));
      await reader.call("stop", undefined as never);
      windows.stalls.add(await measured(STALLED_MS));
      await reader.call("resume", undefined as never);
      const back = await measured(BACK_MS);
      windows.back.add(back);
      stalls.push(await reader.call("level", { seq: back.value.head, mayMiss }));
      const { closedWith, replayed, missed } = stalls.at(-1)!;
      if (!small && !mayMiss && closedWith === undefined)
        throw new Error("the gateway did not close the reader: it did not fall far enough behind");
      const p99s = [windows.reads, windows.stalls, windows.back].map((window) => window.p99s.at(-1)!.toFixed(1));
      print(
        `${system.name} ${turn}: the others' p99 ${p99s.join(", ")} ms; the reader was ${closedWith ?? "not closed"}, replayed ${replayed} edits and missed ${missed}`,
      );
    }
    await Promise.all([others.call("close", undefined as never), reader.call("close", undefined as never)]);
    print(`${system.name}: the others received every seq in order`);
    return {
      ...windows.reads.figures("while it reads"),
      ...windows.stalls.figures("while it stalls"),
      ...windows.back.figures("as it catches up"),
      "turns' median p99, stalls to reads": medianOf(windows.stalls.p99s) / medianOf(windows.reads.p99s),
      "turns' median p99, catches up to reads": medianOf(windows.back.p99s) / medianOf(windows.reads.p99s),
      ...(waitingBytesMax === undefined ? {} : { "most that may wait for the reader, MB": waitingBytesMax / 1e6 }),
      "sent to each while it stalls, MB": (windows.stalls.edits * EDIT_LETTERS) / 1e6 / stalls.length,
      "edits the reader missed": sum(stalls.map(({ missed }) => missed)),
      "edits replayed to it": sum(stalls.map(({ replayed }) => replayed)),
      ...comeBackFigure(stalls.map(({ comeBackMs }) => comeBackMs)),
    };
  } finally {
    await Promise.all([others.end(), reader.end()]);
    await system.stop();
  }
}

function comeBackFigure(times: readonly number[]): Figures {
  const took = times.filter((ms) => !Number.isNaN(ms));
  return took.length === 0 ? {} : { "longest time from its close to its catch-up, ms": Math.max(...took) };
}

/** For an odd number of values. */
function medianOf(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[(numbers.length - 1) / 2]!;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

/** The same window over all turns. */
class Windows {
  readonly #latencies = new Latencies();
  /** One per turn: a disturbance of one turn changes their median little. */
  readonly p99s: number[] = [];
  #loopDelayMs = 0;
  #growth = 0;
  edits = 0;

  add({ value, growth }: { readonly value: BusyRoomFigures; readonly growth: number }): void {
    const latencies = Latencies.fromPairs(value.latencies);
    this.#latencies.add(latencies);
    this.p99s.push(latencies.percentile(99));
    this.#loopDelayMs = Math.max(this.#loopDelayMs, value.loopDelayMs);
    this.#growth = Math.max(this.#growth, growth);
    this.edits += value.edits;
  }

  figures(when: string): Figures {
    return {
      [`others' p50 ${when}, ms`]: this.#latencies.percentile(50),
      [`others' p99 ${when}, ms`]: this.#latencies.percentile(99),
      [`load's own lateness ${when}, p99 ms`]: this.#loopDelayMs,
      [`gateway's most growth ${when}, MB`]: this.#growth / 1e6,
    };
  }
}

/** How far a process's memory rose above its value at the start. */
async function growthOf<Value>(pid: number, running: Promise<Value>): Promise<{ value: Value; growth: number }> {
  const before = residentBytesOf(pid);
  let highest = before;
  let over = false;
  const sampling = (async () => {
    while (!over) {
      highest = Math.max(highest, residentBytesOf(pid));
      await sleep(SAMPLE_MS);
    }
  })();
  try {
    return { value: await running, growth: highest - before };
  } finally {
    over = true;
    await sampling;
  }
}
