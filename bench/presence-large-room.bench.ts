/**
 * A room of 1,000: 100 move their cursors at 30 Hz and 2 edit. The floor is a bare server with a 50 ms tick, and the
 * naive alternative is a server that forwards every state to everybody.
 *
 * Edit latencies are measured twice in the same run, without presence and with it.
 */

import { Latencies } from "../cli/bench/latencies.ts";
import type { Comparison, ComparisonOptions, ComparisonOutcome } from "./comparison.ts";
import type { Seat } from "./load/enter.ts";
import type { PresenceFigures, PresenceLoad } from "./load/presence-load.ts";
import { Worker } from "./load/worker.ts";
import type { Figures } from "./report.ts";
import { cpuBetween, type CpuByRole, cpuByRole } from "./server-usage.ts";
import { coroomFor } from "./systems/coroom.ts";
import { startBare } from "./systems/peers.ts";
import type { MeasuredSystem } from "./systems/system.ts";

const MOVERS_SHARE = 0.1;
const MOVES_PER_SECOND = 30;
const EDITORS = 2;
const EDITS_PER_SECOND = 1.5;
const MEASURE_MS = 15_000;
const SMALL_MS = 750;

export const presenceInLargeRoom: Comparison = {
  name: "presence-large-room",
  summary: `one large room, a tenth of it moving at ${MOVES_PER_SECOND} Hz, ${EDITORS} editing; with a bare server with a 50 ms tick and a naive one`,
  clients: 1_000,
  smallClients: 30,
  run: async (options) => {
    const coroom = await measure(await coroomFor(options.coroom, { small: options.small }), options);
    const tick = await measure(await startBare("tick"), options);
    const naive = await measure(await startBare("naive"), options, "calm"); // The naive server does not keep up: the backlog of a warm-up would be measured as well.
    return { figures: { coroom, tick, naive } } satisfies ComparisonOutcome;
  },
};

/** `warmUp`: a new gateway spends a quarter of its CPU on compiling while participants move. */
async function measure(
  system: MeasuredSystem,
  { clients, small, print }: ComparisonOptions,
  warmUp: "in motion" | "calm" = "in motion",
): Promise<Figures> {
  const load = new Worker<PresenceLoad>("presence-load");
  const motion = {
    ms: small ? SMALL_MS : MEASURE_MS,
    movesPerSecond: MOVES_PER_SECOND,
    editors: EDITORS,
    editsPerSecond: EDITS_PER_SECOND,
  };
  try {
    const { rosterMs } = await load.call("open", await seatsOf(system, clients));
    const movers = Math.ceil(clients * MOVERS_SHARE);
    await load.call("move", { ...motion, movers: warmUp === "calm" ? 0 : movers });
    const beforeCalm = cpuByRole(system.processes);
    const calm = await load.call("move", { ...motion, movers: 0 });
    const before = cpuByRole(system.processes);
    const moved = await load.call("move", { ...motion, movers });
    const cpu = cpuBetween(before, cpuByRole(system.processes));
    await load.call("close", undefined as never);
    print(`${system.name}: ${clients} participants know each other; every edit reached all`);
    return figuresOf(moved, calm, rosterMs, { calm: cpuBetween(beforeCalm, before), moved: cpu }, motion.ms / 1000);
  } finally {
    await load.end();
    await system.stop();
  }
}

function figuresOf(
  moved: PresenceFigures,
  calm: PresenceFigures,
  rosterMs: number,
  cpu: { calm: CpuByRole; moved: CpuByRole },
  seconds: number,
): Figures {
  const [presence, edits, before] = [moved.presence, moved.edits, calm.edits].map((pairs) => Latencies.fromPairs(pairs)) as [
    Latencies,
    Latencies,
    Latencies,
  ];
  return {
    "until all know all, ms": rosterMs,
    "presence p50, ms": presence.percentile(50),
    "presence p99, ms": presence.percentile(99),
    "frames of presence to each, a second": moved.framesEachSecond,
    "bytes of presence to each, a second": moved.bytesEachSecond,
    "longest time without presence, ms": moved.longestSilenceMs,
    "edits p50 without presence, ms": before.percentile(50),
    "edits p99 without presence, ms": before.percentile(99),
    "edits p50 with it, ms": edits.percentile(50),
    "edits p99 with it, ms": edits.percentile(99),
    "CPU of all servers without presence, cores": sumOf(cpu.calm) / seconds,
    "CPU of all servers with it, cores": sumOf(cpu.moved) / seconds,
    ...Object.fromEntries(Object.entries(cpu.moved).map(([role, used]) => [`  ${role}, cores`, used / seconds])),
    "load's own CPU, cores": moved.cpuSeconds / seconds,
  };
}

function sumOf(cpu: CpuByRole): number {
  return Object.values(cpu).reduce((total, used) => total + used, 0);
}

/** All clients in one room, over the system's gateways in turn. */
export function seatsOf({ gateways, token }: MeasuredSystem, clients: number, room = "large"): Promise<Seat[]> {
  return Promise.all(
    Array.from({ length: clients }, async (_, index) => ({
      gateway: gateways[index % gateways.length]!,
      room,
      token: await token(`${room}-${index}`),
      clientKey: `member-${String(index).padStart(4, "0")}`,
    })),
  );
}
