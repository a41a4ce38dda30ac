/**
 * Many clients return to rooms of 8, each with a 100 KB document. In the cold case a client needs the complete
 * document. In the warm case it has a position from a few edits ago. A client is synced when it has joined and holds
 * everything up to the head that JOINED named. Time runs from the first socket until the last client is synced.
 *
 * A first cold round is not counted, except with `--small`: a new process spends more time on compiling than on
 * clients.
 *
 * The floor is one process that has every document encoded in memory and sends it over the socket. Coroom sends
 * everything older than a few edits as a snapshot over HTTP.
 */

import { setTimeout as sleep } from "node:timers/promises";
import * as Y from "yjs";

import { keystroke, TEXT } from "../cli/bench/keystroke.ts";
import { Latencies } from "../cli/bench/latencies.ts";
import type { Comparison, ComparisonOptions, ComparisonOutcome } from "./comparison.ts";
import type { ComeBackFigures, ComeBackLoad } from "./load/come-back-load.ts";
import type { Seat } from "./load/enter.ts";
import { Worker } from "./load/worker.ts";
import type { Figures } from "./report.ts";
import { cpuBetween, type CpuByRole, cpuByRole } from "./server-usage.ts";
import { PATIENT, startCoroom } from "./systems/coroom.ts";
import { startBare } from "./systems/peers.ts";
import type { MeasuredSystem } from "./systems/system.ts";

const ROOM_OF = 8;
const PARAGRAPHS = 20;
const PARAGRAPH_LETTERS = 5_000;
const MISSED_EDITS = 5;
const COLD_MS_MAX = 60_000;
/** Memory and log keep only these bytes: they contain the missed edits but not the complete document. */
const HISTORY = {
  BACKLOG_BYTES_MAX: "4096",
  LOG_READ_BYTES_MAX: "4096",
  SNAPSHOT_AGE_MS_MAX: "1000",
  SNAPSHOT_INTERVAL_MS_MIN: "1000",
  RECENT_BYTES_MAX: "4096",
};

/**
 * A gateway releases an empty room and shares a snapshot for one second. After this delay the counted clients find
 * neither.
 */
const APART_MS = 8_000;
/** On a busy machine the times become longer, but no gateway or room server rejects a join because it is late. */
const PATIENCE = { JOIN_MS_MAX: PATIENT.JOIN_MS_MAX, SHARE_DELAY_MS_MIN: PATIENT.SHARE_DELAY_MS_MIN };

export const comeBack: Comparison = {
  name: "come-back",
  summary: `all clients return at once to rooms of ${ROOM_OF} with a 100 KB document, cold and ${MISSED_EDITS} edits behind; with a bare server that caches documents`,
  clients: 2_000,
  smallClients: 40,
  run: async (options) => {
    const coroom = await measure(await startCoroom({ gateways: 1, small: options.small, settings: { ...HISTORY, ...PATIENCE } }), options, {
      snapshots: true,
    });
    const cached = await measure(await startBare("cached"), options, { snapshots: false });
    return { figures: { coroom, cached } } satisfies ComparisonOutcome;
  },
};

async function measure(
  system: MeasuredSystem,
  { clients, small, print }: ComparisonOptions,
  { snapshots }: { snapshots: boolean },
): Promise<Figures> {
  const load = new Worker<ComeBackLoad>("come-back-load");
  try {
    const rooms = Math.ceil(clients / ROOM_OF);
    const seatOf = async (index: number, who: string): Promise<Seat> => ({
      gateway: system.gateways[0]!,
      room: `back-${index % rooms}`,
      token: await system.token(`${who}-${index}`),
      clientKey: `${who}-${index}`,
    });
    const seats = await Promise.all(Array.from({ length: clients }, (_, index) => seatOf(index, "returner")));
    const writers = await Promise.all(Array.from({ length: rooms }, (_, index) => seatOf(index, "writer")));
    const typists = await Promise.all(Array.from({ length: rooms }, (_, index) => seatOf(index, "typist")));

    const written = await load.call("write", { seats: writers, positions: {}, edits: documentEdits() });
    if (snapshots) await untilCold(load, writers);
    if (!small) await warmUp(load, seats);
    const coldCpu = cpuOf(system, load);
    const cold = await load.call("comeBack", { seats, positions: {}, missed: 0 });
    const coldFigures = figuresOf("cold", cold, clients, coldCpu());
    check(cold, rooms, { snapshots: snapshots ? clients : 0 });

    await load.call("write", {
      seats: typists,
      positions: written,
      edits: Array.from({ length: MISSED_EDITS }, (_, index) => keystroke(7, index + 1)),
    });
    const warmCpu = cpuOf(system, load);
    const warm = await load.call("comeBack", { seats, positions: written, missed: MISSED_EDITS });
    const warmFigures = figuresOf("warm", warm, clients, warmCpu());
    if (warm.snapshots > 0) throw new Error(`${warm.snapshots} warm clients were redirected to a snapshot`);
    print(`${system.name}: ${clients} returned cold and warm; every document is complete, every missed edit arrived once`);
    return { ...coldFigures, ...warmFigures };
  } finally {
    await load.end();
    await system.stop();
  }
}

async function warmUp(load: Worker<ComeBackLoad>, seats: readonly Seat[]): Promise<void> {
  await load.call("comeBack", { seats, positions: {}, missed: 0 });
  await sleep(APART_MS);
}

async function untilCold(load: Worker<ComeBackLoad>, seats: readonly Seat[]): Promise<void> {
  const deadline = performance.now() + COLD_MS_MAX;
  while ((await load.call("cold", seats)) < seats.length) {
    if (performance.now() > deadline) throw new Error(`not all rooms have a snapshot ${COLD_MS_MAX / 1000} s after they were written`);
    await sleep(500);
  }
}

function check({ snapshots, textLengths }: ComeBackFigures, rooms: number, expected: { snapshots: number }): void {
  if (snapshots !== expected.snapshots) throw new Error(`${snapshots} snapshots were fetched instead of ${expected.snapshots}`);
  const lengths = Object.values(textLengths);
  if (lengths.length !== rooms || lengths.some((length) => length !== PARAGRAPHS * PARAGRAPH_LETTERS))
    throw new Error("a document is incomplete");
}

/** Returns a function that reports the CPU of the servers and the load since this call. */
function cpuOf({ processes }: MeasuredSystem, { pid }: Worker<ComeBackLoad>): () => CpuByRole {
  const all = [...processes, { role: "load", pid }];
  const before = cpuByRole(all);
  return () => cpuBetween(before, cpuByRole(all));
}

function figuresOf(name: string, { msToLast, times, bytes }: ComeBackFigures, clients: number, cpu: CpuByRole): Figures {
  const synced = Latencies.fromPairs(times);
  return {
    [`${name}: until all are synced, ms`]: msToLast,
    [`${name}: p50, ms`]: synced.percentile(50),
    [`${name}: p99, ms`]: synced.percentile(99),
    [`${name}: bytes a client`]: bytes / clients,
    ...Object.fromEntries(Object.entries(cpu).map(([role, seconds]) => [`${name}: CPU of the ${role}, ms`, seconds * 1000])),
  };
}

/** A text of 100,000 letters in paragraphs. */
function documentEdits(): Uint8Array[] {
  const doc = new Y.Doc();
  const edits: Uint8Array[] = [];
  doc.on("update", (update: Uint8Array) => void edits.push(update));
  for (let index = 0; index < PARAGRAPHS; index++)
    doc.getText(TEXT).insert(doc.getText(TEXT).length, String.fromCharCode(97 + index).repeat(PARAGRAPH_LETTERS));
  return edits;
}
