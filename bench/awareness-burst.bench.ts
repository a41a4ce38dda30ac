/**
 * The shapes Y4.2 and Y4.3 of y/hub's benchmarks, on Coroom and on a bare server
 * with a 50 ms tick. Everybody in a room of N shows 288 bytes of JSON; then 50 ticks of one edit, N states and 20 ms;
 * a second later 20 edits one by one, each until all N have it or 15 s are over. Then everybody's state once a second for
 * 20 s, and an edit every second meanwhile. Percentiles are over pairs of an edit and somebody who got it; the author is one.
 */

import { cpuBetween, cpuByRole } from "./cpu.ts";
import type { Experiment, ExperimentOptions, Outcome } from "./experiments.ts";
import { Latencies } from "./load/latencies.ts";
import type { PresenceLoad, Probed } from "./load/presence-load.ts";
import { Worker } from "./load/worker.ts";
import { seatsOf } from "./presence-crowd.bench.ts";
import type { Figures } from "./report.ts";
import { startBare } from "./systems/bare.ts";
import { startCoroom } from "./systems/coroom.ts";
import type { MeasuredSystem } from "./systems/system.ts";

const SIZES = [10, 100, 500];
const TICKS = 50;
const PROBES = 20;
const STEADY_SECONDS = 20;

export const awarenessBurst: Experiment = {
  name: "awareness-burst",
  meaning: `the shapes Y4.2 and Y4.3 of y/hub's benchmarks, in rooms of ${SIZES.join(", ")} up to as many as said; a bare 50 ms tick beside it`,
  clients: 500,
  smallClients: 10,
  run: async (options) => {
    const coroom = await measure(await startCoroom({ small: options.small }), options);
    const tick: Figures = {};
    // One room is all that the bare server has: a new one for each size.
    for (const size of sizesOf(options)) Object.assign(tick, await measure(await startBare("tick"), options, [size]));
    return { figures: { coroom, tick } } satisfies Outcome;
  },
};

async function measure(system: MeasuredSystem, options: ExperimentOptions, sizes = sizesOf(options)): Promise<Figures> {
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
      options.say(`${system.name}: N=${size}: ${burst.missed + steady.missed} missed`);
    }
    return figures;
  } finally {
    await load.end();
    await system.stop();
  }
}

function sizesOf({ clients }: ExperimentOptions): number[] {
  return SIZES.includes(clients) ? SIZES.filter((size) => size <= clients) : [clients];
}

function figuresOf(when: string, { pairs, missed }: Probed): Figures {
  const latencies = Latencies.fromPairs(pairs);
  return { [`${when}: p50, ms`]: latencies.percentile(50), [`${when}: p95, ms`]: latencies.percentile(95), [`${when}: missed`]: missed };
}
