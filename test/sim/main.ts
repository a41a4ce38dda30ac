/** `npm run sim`: seed after seed until the time is over or one fails. Says what was run, and how to see a failure again. */

import { describeFault, FAULTS } from "./faults.ts";
import { minimize } from "./minimize.ts";
import { parseOptions, USAGE } from "./options.ts";
import { PLANTED_BUGS } from "./planted-bugs.ts";
import { type Outcome, simulate } from "./simulation.ts";
import { type Telemetry, telemetry } from "./world.ts";

const LINES_SHOWN = 80;
const FAILURES_MAX = 5;

const options = parseOptions(process.argv.slice(2), Math.floor(Date.now() / 1000) % 1_000_000_000);
const planted = PLANTED_BUGS.find(({ name }) => name === options?.planted);
if (options === undefined || (options.planted !== undefined && planted === undefined)) {
  console.error(`${USAGE}\n\nbugs to plant: ${PLANTED_BUGS.map(({ name }) => JSON.stringify(name)).join(", ")}`);
  process.exit(2);
}
const { seed, runsMax, secondsMax, verbose } = options;
const counted = telemetry();
const begun = performance.now();
const secondsSince = (): number => (performance.now() - begun) / 1_000;
const sums = { runs: 0, steps: 0, edits: 0, healedInMs: [] as number[], faults: new Map<string, number>() };
let failures = 0;

for (let index = 0; index < runsMax && secondsSince() < secondsMax && failures < FAILURES_MAX; index++) {
  const outcome = await simulate(seed + index, { telemetry: counted, planted, faults: planted?.faults, verbose });
  add(outcome);
  if (verbose) console.log(outcome.lines.join("\n"));
  if (outcome.failure === undefined) continue;
  failures += 1;
  await tell(outcome);
}
report(counted);
process.exitCode = failures === 0 ? 0 : 1;

function add({ steps, edits, healedInMs, faults }: Outcome): void {
  sums.runs += 1;
  sums.steps += steps;
  sums.edits += edits;
  sums.healedInMs.push(healedInMs);
  for (const { kind } of faults) sums.faults.set(kind, (sums.faults.get(kind) ?? 0) + 1);
}

async function tell(failed: Outcome): Promise<void> {
  console.log(`\nseed ${failed.seed} fails: ${failed.failure?.reason}`);
  const minimal = await minimize(failed, { telemetry: telemetry(), planted });
  console.log(`\nwith ${minimal.faults.length} of its ${failed.faults.length} faults it still fails: ${minimal.failure?.reason}\n\n${minimal.faults.map(describeFault).join("\n")}`);
  console.log(`\nthe last of it, seconds since the run began:\n\n${minimal.lines.slice(-LINES_SHOWN).join("\n")}\n`);
  console.log(`again: npm run sim -- --seed ${failed.seed}${planted === undefined ? "" : ` --planted ${JSON.stringify(planted.name)}`} --verbose\n`);
}

function report({ registry }: Telemetry): void {
  const { runs, steps, edits, healedInMs, faults } = sums;
  const sorted = healedInMs.sort((a, b) => a - b);
  const healed = [0.5, 0.99, 1].map((part) => `${((sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0) / 1_000).toFixed(1)} s`);
  console.log(`seeds ${seed} to ${seed + runs - 1}: ${runs} runs, ${failures} failed, ${steps} steps, ${edits} edits in the logs, ${secondsSince().toFixed(1)} s`);
  console.log(`after the last fault all was well within (p50, p99, max): ${healed.join(", ")}`);
  const total = [...faults.values()].reduce((sum, count) => sum + count, 0);
  console.log(`${total} faults:`);
  for (const kind of Object.keys(FAULTS)) console.log(`${String(faults.get(kind) ?? 0).padStart(8)}  ${kind}`);
  void tellWhatWasWalked(registry);
}

/** Which of the parts' own paths the runs came through. */
async function tellWhatWasWalked(registry: Telemetry["registry"]): Promise<void> {
  console.log("what the parts counted:");
  for (const { name, values, type } of await registry.getMetricsAsJSON()) {
    if (String(type) !== "counter") continue;
    for (const { value, labels } of values) console.log(`${String(value).padStart(8)}  ${name} ${Object.values(labels).join(" ")}`);
  }
}
