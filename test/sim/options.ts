/** Parses the options of `npm run sim --`. */

import { parseArgs } from "node:util";

import type { SizeName } from "./sizes.ts";

export const USAGE = `npm run sim -- [--seconds N] [--runs N] [--seed N] [--size S] [--jobs N] [--planted NAME] [--verbose]

  --seconds N      run new seeds for this time (60, unless --runs is given)
  --runs N         run this number of seeds
  --seed N         begin with this seed; without --runs and --seconds, run only it
  --size S         small, large, or mixed: every twentieth seed large, the others small (mixed);
                   small-edit-path, large-edit-path, mixed-edit-path: without document services and leaderboards;
                   local-owners: like small-edit-path, with edits that reach running owners without NATS;
                   batches: like small-edit-path, with two rooms whose records go to the log in batches;
                   first-content: like small, with an application that gives new rooms their first content
  --jobs N         number of seeds that run at the same time, each in its own thread (1)
  --run-seconds N  maximum seconds of a run; a longer run fails (300)
  --planted X      plant a bug, which must be found; without a name, list the bugs
  --verbose        print every message of a run`;

type SimOptions = {
  readonly seed: number;
  readonly runsMax: number;
  readonly secondsMax: number;
  readonly size: SizeOption;
  readonly jobs: number;
  readonly runSecondsMax: number;
  readonly planted: string | undefined;
  readonly verbose: boolean;
};

const FLAGS = {
  "seconds": { type: "string" },
  "runs": { type: "string" },
  "seed": { type: "string" },
  "size": { type: "string", default: "mixed" },
  "jobs": { type: "string", default: "1" },
  "run-seconds": { type: "string", default: "300" },
  "planted": { type: "string" },
  "verbose": { type: "boolean", default: false },
} as const;
const SIZE_NAMES = [
  "small",
  "large",
  "mixed",
  "small-edit-path",
  "large-edit-path",
  "mixed-edit-path",
  "local-owners",
  "batches",
  "first-content",
] as const;
type SizeOption = (typeof SIZE_NAMES)[number];
/** One of this many seeds is large. */
const LARGE_EVERY = 20;

/** `fresh`: first seed if none is given. Undefined: the options are invalid. */
export function parseOptions(args: readonly string[], fresh: number): SimOptions | undefined {
  try {
    const { values } = parseArgs({ args: [...args], options: FLAGS });
    const seconds = numberIn(values.seconds);
    const runs = numberIn(values.runs);
    const seed = numberIn(values.seed);
    const alone = seed !== undefined && runs === undefined && seconds === undefined;
    const secondsMax = seconds ?? (runs === undefined && !alone ? 60 : Number.POSITIVE_INFINITY);
    const size = SIZE_NAMES.find((name) => name === values.size);
    if (size === undefined) throw new RangeError("not a size");
    const [jobs, runSecondsMax] = [numberIn(values.jobs) ?? 1, numberIn(values["run-seconds"]) ?? 300];
    return {
      seed: seed ?? fresh,
      runsMax: alone ? 1 : (runs ?? Number.POSITIVE_INFINITY),
      secondsMax,
      size,
      jobs: Math.max(1, jobs),
      runSecondsMax,
      planted: values.planted,
      verbose: values.verbose,
    };
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError) return undefined; // From parseArgs, or from an invalid number or size.
    throw error;
  }
}

export function sizeOf(seed: number, size: SizeOption): SizeName {
  const isLarge = seed % LARGE_EVERY === 0;
  if (size === "mixed") return isLarge ? "large" : "small";
  if (size === "mixed-edit-path") return isLarge ? "large-edit-path" : "small-edit-path";
  return size;
}

function numberIn(raw: string | undefined): number | undefined {
  if (raw === undefined) return undefined;
  const number = Number(raw);
  if (!Number.isSafeInteger(number) || number < 0) throw new RangeError("not a whole number");
  return number;
}
