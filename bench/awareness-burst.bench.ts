/**
 * The shapes Y4.2 and Y4.3 of y/hub's benchmarks, on Coroom and on a bare server with a 50 ms tick. Each of N
 * participants shows 288 bytes of JSON. Then 50 ticks follow, each of one edit, N states and 20 ms. A second later 20
 * edits are sent one by one, each until all N have it or 15 s are over. Then every participant's state is sent once a second
 * for 20 s, with one edit every second. Percentiles are over pairs of an edit and a participant that received it,
 * author included.
 */

import { Latencies } from "../cli/bench/latencies.ts";
import type { Comparison, ComparisonOptions, ComparisonOutcome } from "./comparison.ts";
import type { PresenceLoad, ProbeFigures } from "./load/presence-load.ts";
import { Worker } from "./load/worker.ts";
import { seatsOf } from "./presence-large-room.bench.ts";
import type { Figures } from "./report.ts";
import { cpuBetween, cpuByRole } from "./server-usage.ts";
import { coroomFor } from "./systems/coroom.ts";
import { startBare } from "./systems/peers.ts";
import type { MeasuredSystem } from "./systems/system.ts";

const SIZES = [10, 100, 500];
const TICKS = 50;
const PROBES = 20;
const STEADY_SECONDS = 20;

export const awarenessBurst: Comparison = {
  name: "awareness-burst",
  summary: `the shapes Y4.2 and Y4.3 of y/hub's benchmarks, in rooms of ${SIZES.join(", ")} up to the number of clients; with a bare server with a 50 ms tick`,
  clients: 500,
  smallClients: 10,
  run: async (options) => {
    const coroom = await measure(await coroomFor(options.coroom, { small: options.small }), options);
    const tick: Figures = {};
    // The bare server has one room only, so each size needs a new server.
    for (const size of sizesOf(options)) Object.assign(tick, await measure(await startBare("tick"), options, [size]));
    return { figures: { coroom, tick } } satisfies ComparisonOutcome;
  },
};

async function measure(system: MeasuredSystem, options: ComparisonOptions, sizes = sizesOf(options)): Promise<Figures> {
  const figures: Record<string, number> = {};
  const load = new Worker<PresenceLoad>("presence-load");
  try {
    for (const size of sizes) {
      await load.call("open", await seatsOf(system, size, `burst-${size}`));
      const before = cpuByRole(system.processes);
      const started = performance.now();
      const burst = await load.call("burst", { ticks: options.small ? 5 : TICKS, probes: options.small ? 3 : PROBES });
      const steady = await load.call("steady", { seconds: options.small ? 1 : STEADY_SECONDS });
      const used = Object.values(cpuBetween(before, cpuByRole(system.processes))).reduce((total, seconds) => total + seconds, 0);
      await load.call("close", undefined as never);
      Object.assign(figures, figuresOf(`N=${size}, after the burst`, burst), figuresOf(`N=${size}, at 1 Hz`, steady), {
        [`N=${size}, CPU of all servers, cores`]: used / ((performance.now() - started) / 1000),
      });
      options.print(`${system.name}: N=${size}: ${burst.missed + steady.missed} missed`);
    }
    return figures;
  } finally {
    await load.end();
    await system.stop();
  }
}

function sizesOf({ clients }: ComparisonOptions): number[] {
  return SIZES.includes(clients) ? SIZES.filter((size) => size <= clients) : [clients];
}

function figuresOf(when: string, { pairs, missed }: ProbeFigures): Figures {
  const latencies = Latencies.fromPairs(pairs);
  return { [`${when}: p50, ms`]: latencies.percentile(50), [`${when}: p95, ms`]: latencies.percentile(95), [`${when}: missed`]: missed };
}
