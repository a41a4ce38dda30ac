/**
 * `npm run sim`: runs seed after seed until the time is over or some seeds fail. Prints the runs, and the command that
 * repeats a failure.
 */

import { describeFault } from "./faults.ts";
import { parseOptions, sizeOf, USAGE } from "./options.ts";
import { PLANTED_BUGS } from "./planted-bugs.ts";
import { PLANTED_APPLICATION_BUGS } from "./planted-application-bugs.ts";
import { PLANTED_SERVICE_BUGS } from "./planted-service-bugs.ts";
import { PLANTED_WEBHOOK_BUGS } from "./planted-webhook-bugs.ts";
import { RunThread, type Stuck } from "./run-thread.ts";
import type { Outcome } from "./simulation.ts";
import type { SizeName } from "./sizes.ts";
import { Tally } from "./tally.ts";

const LINES_SHOWN = 80;
const FAILURES_MAX = 5;
const PROGRESS_MS = 60_000;
/** Modules keep some memory of each run. After thousands of runs a thread had no memory left. */
const RUNS_PER_THREAD = 500;

const plantedBugs = [...PLANTED_BUGS, ...PLANTED_SERVICE_BUGS, ...PLANTED_APPLICATION_BUGS, ...PLANTED_WEBHOOK_BUGS];
const options = parseOptions(process.argv.slice(2), Math.floor(Date.now() / 1000) % 1_000_000_000);
if (options === undefined || (options.planted !== undefined && !plantedBugs.some(({ name }) => name === options.planted))) {
  console.error(`${USAGE}\n\nbugs to plant: ${plantedBugs.map(({ name }) => JSON.stringify(name)).join(", ")}`);
  process.exit(2);
}
const { seed: firstSeed, runsMax, secondsMax, verbose, planted } = options;
const isOfEditPath = PLANTED_BUGS.some(({ name }) => name === planted);
/** Planted bugs of the edit path need the trims of fault injection, so they run without document services. */
const sizes = isOfEditPath && options.size === "mixed" ? "mixed-edit-path" : options.size;
const begun = performance.now();
const secondsSince = (): number => (performance.now() - begun) / 1_000;
const tally = new Tally();
let nextSeed = firstSeed;
let stopping = false;

process.on("SIGINT", () => (stopping = true)).on("SIGTERM", () => (stopping = true));
const progress = setInterval(() => console.log(summary("progress")), PROGRESS_MS);
await Promise.all(Array.from({ length: options.jobs }, runSeeds));
clearInterval(progress);
for (const line of tally.report(secondsSince())) console.log(line);
console.log(summary("total"));
process.exitCode = tally.failures === 0 ? 0 : 1;

async function runSeeds(): Promise<void> {
  while (isMoreDue()) await runInOneThread();
}

function isMoreDue(): boolean {
  return !stopping && nextSeed - firstSeed < runsMax && secondsSince() < secondsMax && tally.failures < FAILURES_MAX;
}

async function runInOneThread(): Promise<void> {
  const thread = new RunThread(options!);
  for (let runs = 0; runs < RUNS_PER_THREAD && isMoreDue(); runs++) {
    const seed = nextSeed++;
    const size = sizeOf(seed, sizes);
    const answer = await thread.ask({ kind: "run", seed, size, verbose });
    if (answer.kind === "well") tally.add(answer.sum);
    else if (answer.kind === "stuck") await printStuck(seed, size, answer, thread);
    else if (answer.kind === "outcome") await printOutcome(answer.outcome, thread);
  }
  const answer = await thread.ask({ kind: "count" });
  if (answer.kind === "counters") tally.addCounters(answer.counters);
  await thread.end();
}

async function printOutcome(outcome: Outcome, thread: RunThread): Promise<void> {
  tally.add(outcome);
  if (verbose) console.log(outcome.lines.join("\n"));
  if (outcome.failure === undefined) return;
  console.log(`\nseed ${outcome.seed} (${outcome.size}) fails: ${outcome.failure.reason}`);
  const answer = await thread.ask({ kind: "minimize", failed: outcome });
  const minimal = answer.kind === "outcome" ? answer.outcome : outcome;
  console.log(
    `\nwith ${minimal.faults.length} of its ${outcome.faults.length} faults it still fails: ${minimal.failure?.reason}\n\n${minimal.faults.map(describeFault).join("\n")}`,
  );
  console.log(`\nin the format of REGRESSION_SEEDS: ${JSON.stringify(minimal.faults)}`);
  printLines(minimal);
  printRepeatCommand(outcome.seed, outcome.size);
}

async function printStuck(seed: number, size: SizeName, { steps, why }: Stuck, thread: RunThread): Promise<void> {
  tally.addStuck(seed);
  console.log(`\nseed ${seed} (${size}) fails: ${why}`);
  const answer = await thread.ask({ kind: "retrace", seed, size, stepsMax: Math.max(0, steps - 1) });
  if (answer.kind === "outcome") {
    console.log(answer.outcome.failure?.reason);
    printLines(answer.outcome);
  }
  printRepeatCommand(seed, size);
}

function printLines({ lines }: Outcome): void {
  console.log(`\nthe end of the trace, with seconds since the run began:\n\n${lines.slice(-LINES_SHOWN).join("\n")}\n`);
}

function printRepeatCommand(seed: number, size: SizeName): void {
  console.log(
    `repeat: npm run sim -- --seed ${seed} --size ${size}${planted === undefined ? "" : ` --planted ${JSON.stringify(planted)}`} --verbose\n`,
  );
}

function summary(kind: "progress" | "total"): string {
  return JSON.stringify({ sim: kind, seeds: [firstSeed, nextSeed - 1], size: sizes, planted, ...tally.summary(secondsSince()) });
}
