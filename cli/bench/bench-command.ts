/**
 * `coroom bench`: a load test against a running system through the SDK, in rooms of its own, which it deletes
 * afterwards, also after Ctrl-C.
 */

import { randomBytes } from "node:crypto";

import { SettingError } from "../../shared/settings/settings.ts";
import type { PrintLine } from "../command.ts";
import { benchAccess } from "./access.ts";
import { deleteRooms, refuseUndeletable } from "./bench-rooms.ts";
import { BenchRun } from "./bench-run.ts";
import type { BenchConfig } from "./bench-settings.ts";
import { type BenchFigures, count, failureOf } from "./figures.ts";
import { planBench, rampUpSecondsOf } from "./plan.ts";
import { loadText, reportText } from "./report.ts";

/**
 * Prints the figures, with `json` as one JSON value and nothing else. Throws SettingError if the run is impossible, if
 * nobody could join, or if an edit was lost. `signal`: ends the load, and the rooms are deleted.
 */
export async function bench(config: BenchConfig, print: PrintLine, signal: AbortSignal): Promise<void> {
  const tag = randomBytes(4).toString("hex");
  const plan = planBench(config, tag);
  const access = await benchAccess(config, Date.now());
  await refuseUndeletable(access, tag);
  const report: PrintLine = config.json ? () => {} : print;
  report(loadText(access.url, access.tenant, plan.load));
  report(`joining over ${rampUpSecondsOf(plan.load)} s, in rooms ${plan.rooms[0]} and so on; they are deleted at the end`);
  const figures = await measure(new BenchRun(plan, access, signal), { access, signal, report, seconds: config.seconds });
  print(config.json ? JSON.stringify(figures, null, 2) : reportText(figures));
  const failure = failureOf(figures);
  if (failure !== undefined) throw new SettingError(failure);
}

type Surroundings = {
  readonly access: Awaited<ReturnType<typeof benchAccess>>;
  readonly signal: AbortSignal;
  readonly report: PrintLine;
  readonly seconds: number;
};

async function measure(run: BenchRun, { access, signal, report, seconds }: Surroundings): Promise<BenchFigures> {
  let figures: Omit<BenchFigures, "rooms">;
  try {
    await run.join();
    if (run.opened > 0 && !signal.aborted) {
      report(`${count(run.opened)} people have joined; load for ${seconds} s`);
      await run.runLoad();
    }
    if (signal.aborted) report("stopping: waiting for the last edits, then the rooms are deleted");
    await run.settle();
    figures = run.figures();
  } finally {
    run.leave();
  }
  return { ...figures, rooms: await deleteRooms(access, run.enteredRooms) };
}
