/**
 * A room of 1000: 100 move their cursor at 30 Hz, 2 edit. Beside it what that costs at the least, a bare server with a
 * 50 ms tick, and what it costs without thinking, a server that passes every state on to everybody.
 *
 * The edits' latencies are taken twice in the same run, without the presence and with it.
 */

import { cpuBetween, type CpuByRole, cpuByRole } from "./cpu.ts";
import type { Experiment, ExperimentOptions, Outcome } from "./experiments.ts";
import type { Seat } from "./load/enter.ts";
import { Latencies } from "./load/latencies.ts";
import type { Moved, PresenceLoad } from "./load/presence-load.ts";
import { Worker } from "./load/worker.ts";
import type { Figures } from "./report.ts";
import { startBare } from "./systems/bare.ts";
import { startCoroom } from "./systems/coroom.ts";
import type { MeasuredSystem } from "./systems/system.ts";

const MOVERS_SHARE = 0.1;
const MOVES_PER_SECOND = 30;
const EDITORS = 2;
const EDITS_PER_SECOND = 1.5;
const MEASURE_MS = 15_000;
const SMALL_MS = 750;

export const presenceCrowd: Experiment = {
  name: "presence-crowd",
  meaning: `one room, a tenth of it moving at ${MOVES_PER_SECOND} Hz, ${EDITORS} editing; a bare 50 ms tick and a naive relay beside it`,
  clients: 1_000,
  smallClients: 30,
  run: async (options) => {
    const coroom = await measure(await startCoroom({ small: options.small }), options);
    const tick = await measure(await startBare("tick"), options);
    const naive = await measure(await startBare("naive"), options, "calm"); // It does not keep up: what was left of a warm-up would be measured with the rest.
    return { figures: { coroom, tick, naive } } satisfies Outcome;
  },
};

/** `warmUp`: what is young is slow, and in motion a quarter of a young gateway's CPU is spent compiling. */
async function measure(
  system: MeasuredSystem,
  { clients, small, say }: ExperimentOptions,
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
    say(`${system.name}: ${clients} in the room, every one of them told of every other; every edit came to all`);
    return figuresOf(moved, calm, rosterMs, { calm: cpuBetween(beforeCalm, before), moved: cpu }, motion.ms / 1000);
  } finally {
    await load.end();
    await system.stop();
  }
}

function figuresOf(moved: Moved, calm: Moved, rosterMs: number, cpu: { calm: CpuByRole; moved: CpuByRole }, seconds: number): Figures {
  const [presence, edits, before] = [moved.presence, moved.edits, calm.edits].map((pairs) => Latencies.fromPairs(pairs)) as [
    Latencies,
    Latencies,
    Latencies,
  ];
  return {
    "all have come and know of all, ms": rosterMs,
    "presence p50, ms": presence.percentile(50),
    "presence p99, ms": presence.percentile(99),
    "frames of presence to each, a second": moved.framesEachSecond,
    "bytes of presence to each, a second": moved.bytesEachSecond,
    "longest that anybody got none, ms": moved.longestSilenceMs,
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

/** All in one room, over the system's gateways in turn. */
export function seatsOf({ gateways, token }: MeasuredSystem, clients: number, room = "crowd"): Promise<Seat[]> {
  return Promise.all(
    Array.from({ length: clients }, async (_, index) => ({
      gateway: gateways[index % gateways.length]!,
      room,
      token: await token(`${room}-${index}`),
      clientKey: `member-${String(index).padStart(4, "0")}`,
    })),
  );
}
