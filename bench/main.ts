/** Runs the bench: `npm run bench -- --help`. The systems take turns within one run, so that both meet the same machine. */

import { writeFileSync } from "node:fs";

import { parseCommandLine } from "../cli/arguments.ts";
import { flagName, readSettings, SettingError } from "../shared/config.ts";
import { type Leg, runLeg, type Scenario, SCENARIOS, small, WARM_UP, WARM_UPS } from "./edit-path.bench.ts";
import { type Experiment, EXPERIMENTS, type Outcome } from "./experiments.ts";
import { machineFacts } from "./machine.ts";
import { type BenchOptions, benchSettings } from "./options.ts";
import { figuresOf, medianFigures, phaseFacts, phaseLine, table } from "./report.ts";
import { startCoroom } from "./systems/coroom.ts";
import { startRelay } from "./systems/relay.ts";
import type { MeasuredSystem } from "./systems/system.ts";

const EDIT_PATH_ROUNDS = 2;
const EXPERIMENT_ROUNDS = 1;
const START = { coroom: () => startCoroom(), relay: () => startRelay() };

async function run(options: BenchOptions): Promise<void> {
  const machine = await machineFacts();
  say(
    Object.entries(machine)
      .map(([name, fact]) => `${name} ${fact}`)
      .join(" · "),
  );
  const scenarios = SCENARIOS.filter(({ name }) => options.scenario.includes(name));
  const results: object[] = scenarios.length > 0 ? await runEditPath(scenarios, options) : [];
  for (const experiment of EXPERIMENTS.filter(({ name }) => options.scenario.includes(name)))
    results.push(await runExperiment(experiment, options));
  if (options.json !== "") writeFileSync(options.json, JSON.stringify({ machine, options, results }, null, 2));
}

async function runEditPath(scenarios: readonly Scenario[], options: BenchOptions): Promise<object[]> {
  const systems: MeasuredSystem[] = [];
  try {
    for (const name of options.system) systems.push(await START[name]());
    if (!options.small) await warmUp(systems, options);
    const results = [];
    for (const scenario of scenarios) results.push(await takeTurns(systems, options.small ? small(scenario) : scenario, options));
    return results;
  } finally {
    await Promise.all(systems.map((system) => system.stop()));
  }
}

async function runExperiment({ name, meaning, clients, smallClients, run }: Experiment, options: BenchOptions): Promise<object> {
  const size = options.clients > 0 ? options.clients : options.small ? smallClients : clients;
  say(`\n${name}: ${meaning}; ${size} clients`);
  const rounds = options.rounds || EXPERIMENT_ROUNDS;
  const outcomes: Outcome[] = [];
  for (let round = 1; round <= rounds; round++) {
    const outcome = await run({
      clients: size,
      small: options.small,
      seed: options.seed,
      loadProcesses: options.loadProcesses,
      systems: options.system,
      say: (line) => say(`  ${line}`),
    });
    say(table(outcome.figures));
    outcomes.push(outcome);
  }
  const figures = medianFigures(outcomes.map((outcome) => outcome.figures));
  if (rounds > 1) say(`\n  medians of ${rounds} rounds\n${table(figures)}`);
  return { scenario: name, clients: size, figures, rounds: outcomes };
}

async function warmUp(systems: readonly MeasuredSystem[], options: BenchOptions): Promise<void> {
  for (const system of systems)
    for (let round = 1; round <= WARM_UPS; round++)
      await runLeg(system, WARM_UP, { ...options, round, warmMs: 0, measureMs: options.warmUpSeconds * 1000 });
}

async function takeTurns(systems: readonly MeasuredSystem[], scenario: Scenario, options: BenchOptions) {
  say(`\n${scenario.name}: ${scenario.meaning}`);
  const legs: Leg[] = [];
  for (let round = 1; round <= (options.rounds || EDIT_PATH_ROUNDS); round++) {
    for (const system of systems) {
      const leg = await runLeg(system, scenario, {
        ...options,
        round,
        warmMs: options.small ? 1 : options.warmSeconds * 1000,
        measureMs: options.small ? 1000 : options.seconds * 1000,
      });
      legs.push(leg);
      for (const phase of leg.phases) say(`  ${round} ${system.name.padEnd(7)} ${phaseLine(phase)}`);
      say(`  ${round} ${system.name.padEnd(7)} nothing missing, nothing doubled; counts ${leg.hash}`);
    }
    const hashes = new Set(legs.slice(-systems.length).map(({ hash }) => hash));
    if (hashes.size > 1 && (scenario.load.kind === "typing" || options.small)) throw new Error("the systems did not carry the same edits");
  }
  const figures = Object.fromEntries(
    systems.map(({ name }) => [
      name,
      figuresOf(
        scenario,
        legs.filter(({ system }) => system === name),
      ),
    ]),
  );
  say(table(figures));
  return {
    scenario: scenario.name,
    figures,
    legs: legs.map(({ system, hash, phases }) => ({ system, hash, phases: phases.map(phaseFacts) })),
  };
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

function help(): string {
  const lines = Object.entries(benchSettings).map(
    ([name, { fallback, meaning }]) => `  ${flagName(name).padEnd(18)} ${meaning} (default ${String(fallback) || "empty"})`,
  );
  return ["npm run bench -- [flags]", "", ...lines].join("\n");
}

const { flags } = parseCommandLine(process.argv.slice(2));
if (flags["help"] !== undefined) say(help());
else {
  try {
    const unknown = Object.keys(flags).filter((name) => !Object.hasOwn(benchSettings, name));
    if (unknown.length > 0) throw new SettingError(`no such flag: ${unknown.map(flagName).join(", ")}; see npm run bench -- --help`);
    await run(readSettings(benchSettings, { flags, env: {} }));
  } catch (error) {
    process.stderr.write(
      `bench: ${error instanceof SettingError ? error.message : error instanceof Error ? error.stack : String(error)}\n`,
    );
    process.exitCode = 1;
  }
}
