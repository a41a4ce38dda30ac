/** What `npm run sim --` understands. */

import { parseArgs } from "node:util";

export const USAGE = `npm run sim -- [--seconds N] [--runs N] [--seed N] [--planted NAME] [--verbose]

  --seconds N   run seed after seed for so long (60, unless --runs is given)
  --runs N      run so many seeds
  --seed N      begin with this seed; without --runs and --seconds: run it alone
  --planted X   plant a bug first, to see it found; without a name: lists them
  --verbose     tell every message of the last run`;

export type SimOptions = { readonly seed: number; readonly runsMax: number; readonly secondsMax: number; readonly planted: string | undefined; readonly verbose: boolean };

/** Undefined: none of it was understood. `fresh`: where to begin when no seed is given. */
export function parseOptions(args: readonly string[], fresh: number): SimOptions | undefined {
  try {
    const { values } = parseArgs({ args: [...args], options: { seconds: { type: "string" }, runs: { type: "string" }, seed: { type: "string" }, planted: { type: "string" }, verbose: { type: "boolean", default: false } } });
    const seconds = numberIn(values.seconds);
    const runs = numberIn(values.runs);
    const seed = numberIn(values.seed);
    const alone = seed !== undefined && runs === undefined && seconds === undefined;
    const secondsMax = seconds ?? (runs === undefined && !alone ? 60 : Number.POSITIVE_INFINITY);
    return { seed: seed ?? fresh, runsMax: alone ? 1 : (runs ?? Number.POSITIVE_INFINITY), secondsMax, planted: values.planted, verbose: values.verbose };
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError) return undefined; // What parseArgs throws, and what is no number.
    throw error;
  }
}

function numberIn(raw: string | undefined): number | undefined {
  if (raw === undefined) return undefined;
  const number = Number(raw);
  if (!Number.isSafeInteger(number) || number < 0) throw new RangeError("not a whole number");
  return number;
}
