/**
 * One reader of a busy room stops reading for 30 s. What it costs the gateway in memory, what the others notice, and
 * what becomes of the reader: Coroom closes it, and it comes back to the seq it holds; the relay, which is plain
 * publish and subscribe, leaves it a hole that it is not told of.
 *
 * The others' latencies are taken from the send to the receipt, in a stretch before and in the stretch meanwhile.
 */

import { setTimeout as sleep } from "node:timers/promises";

import { gatewaySettings } from "../gateway/config.ts";
import type { Experiment, ExperimentOptions, Outcome } from "./experiments.ts";
import type { Seat } from "./load/enter.ts";
import { Latencies } from "./load/latencies.ts";
import type { StalledReaderLoad, Stretch } from "./load/stalled-reader-load.ts";
import { Worker } from "./load/worker.ts";
import { residentBytesOf } from "./memory.ts";
import type { Figures } from "./report.ts";
import { startCoroom } from "./systems/coroom.ts";
import { startRelay } from "./systems/relay.ts";
import type { MeasuredSystem } from "./systems/system.ts";

const WRITERS = 4;
const EDITS_PER_SECOND = 200;
/** So much that the kernel's buffers between two processes are full within seconds. */
const EDIT_LETTERS = 8_192;
/** Young processes run slow code. */
const WARM_UP_MS = 6_000;
const BEFORE_MS = 15_000;
const STALLED_MS = 30_000;
const AFTER_MS = 2_000;
/** Of each stretch: too short for the reader to be closed. */
const SMALL_MS = 1_000;
const SAMPLE_MS = 200;
const NEVER = String(1e10);
/**
 * The reader is some 50 MB behind, more than the log is read for: a snapshot would be sent in its place, which this load
 * does not fetch. Most readers say nothing for longer than a client may. And a document that grows by 1.6 MB/s takes the
 * document service a core after a minute, to merge it and to write it anew every 5 s: the others would notice that.
 */
const SETTINGS = {
  LOG_READ_BYTES_MAX: String(256 * 1024 * 1024),
  SILENCE_MS_MAX: "600000",
  MERGE_EDITS_MAX: NEVER,
  MERGE_BYTES_MAX: NEVER,
  DOCUMENTS_BYTES_MAX: NEVER,
  SNAPSHOT_INTERVAL_MS_MIN: NEVER,
};

export const stalledReader: Experiment = {
  name: "stalled-reader",
  meaning: `a reader stops reading for 30 s in a room with ${EDITS_PER_SECOND} edits/s of ${EDIT_LETTERS / 1024} KB; the relay beside it`,
  clients: 24,
  smallClients: 6,
  run: async (options) => {
    const coroom = await measure(await startCoroom({ gateways: 1, small: options.small, settings: SETTINGS }), options, {
      mayMiss: false,
      waitingBytesMax: gatewaySettings.outboundBytesMax.fallback,
    });
    const relay = await measure(await startRelay(1), options, { mayMiss: true });
    return { figures: { coroom, relay } } satisfies Outcome;
  },
};

async function measure(
  system: MeasuredSystem,
  { clients, small, say }: ExperimentOptions,
  { mayMiss, waitingBytesMax }: { mayMiss: boolean; waitingBytesMax?: number },
): Promise<Figures> {
  const load = new Worker<StalledReaderLoad>("stalled-reader-load");
  const gateway = system.processes.find(({ role }) => role === "gateway")!.pid;
  try {
    const seats = await Promise.all(
      Array.from({ length: clients }, async (_, index): Promise<Seat> => ({
        gateway: system.gateways[0]!,
        room: "busy",
        token: await system.token(`member-${index}`),
        clientKey: `member-${index}`,
      })),
    );
    await load.call("open", {
      writers: seats.slice(0, WRITERS),
      readers: seats.slice(WRITERS),
      editsPerSecond: EDITS_PER_SECOND,
      editLetters: EDIT_LETTERS,
    });

    if (!small) await load.call("run", { ms: WARM_UP_MS, stalled: false });
    const before = await growthOf(gateway, load.call("run", { ms: small ? SMALL_MS : BEFORE_MS, stalled: false }));
    const stalled = await growthOf(gateway, load.call("run", { ms: small ? SMALL_MS : STALLED_MS, stalled: true }));
    await load.call("run", { ms: small ? SMALL_MS : AFTER_MS, stalled: false });
    const { closedWith, replayed, missed, comeBackMs } = await load.call("settle", { mayMiss });
    await load.call("close", undefined as never);
    say(
      `${system.name}: the reader was ${closedWith ?? "not closed"}, got ${replayed} edits on coming back and never ${missed}; the others have every seq in turn`,
    );
    return {
      ...figuresOf("before", before.value),
      ...figuresOf("while it stalls", stalled.value),
      "gateway's most growth before, MB": before.growth / 1e6,
      "gateway's most growth meanwhile, MB": stalled.growth / 1e6,
      ...(waitingBytesMax === undefined ? {} : { "may wait for the reader at most, MB": waitingBytesMax / 1e6 }),
      "sent to each meanwhile, MB": (stalled.value.edits * EDIT_LETTERS) / 1e6,
      "edits the reader never got": missed,
      "edits replayed to it": replayed,
      ...(Number.isNaN(comeBackMs) ? {} : { "from its close to being level, ms": comeBackMs }),
    };
  } finally {
    await load.end();
    await system.stop();
  }
}

function figuresOf(stretch: string, { others }: Stretch): Figures {
  const latencies = Latencies.fromPairs(others);
  return { [`others' p50 ${stretch}, ms`]: latencies.percentile(50), [`others' p99 ${stretch}, ms`]: latencies.percentile(99) };
}

/** How far a process's memory rose over where it was, at its highest. */
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
