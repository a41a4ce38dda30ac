/** Reduces the faults of a failing run. Leaves out halves, then quarters, down to single faults, as long as the run still fails. */

import type { Fault } from "./faults.ts";
import { type Outcome, simulate, type SimulationOptions } from "./simulation.ts";

const RUNS_MAX = 60;

/** Returns the failing run with the fewest faults, with a trace of each message. */
export async function minimize(failed: Outcome, options: Omit<SimulationOptions, "size">): Promise<Outcome> {
  let faults = failed.faults;
  let runs = 0;
  for (let part = Math.ceil(faults.length / 2); part >= 1 && runs < RUNS_MAX; part = part === 1 ? 0 : Math.ceil(part / 2)) {
    for (let start = 0; start < faults.length && runs < RUNS_MAX;) {
      const fewer: readonly Fault[] = [...faults.slice(0, start), ...faults.slice(start + part)];
      runs += 1;
      const outcome = await simulate(failed.seed, { ...options, size: failed.size, faults: fewer });
      if (outcome.failure === undefined) start += part;
      else faults = fewer;
    }
  }
  return simulate(failed.seed, { ...options, size: failed.size, faults, verbose: true });
}
