/**
 * Runs the scenarios that compare Coroom with a relay or another floor. On the edit path the systems take turns within
 * one run, so that both measure the same machine.
 */

import { writeFileSync } from "node:fs";

import {
  flag,
  list,
  oneOf,
  positiveInteger,
  type Settings,
  SettingError,
  text,
  type Values,
  wholeNumber,
} from "../shared/settings/settings.ts";
import { arrivals } from "./arrivals.bench.ts";
import { comeBack } from "./come-back.bench.ts";
import type { Comparison, ComparisonOutcome } from "./comparison.ts";
import { type EditPathLeg, runLeg, type Scenario, SCENARIOS, small, WARM_UP, WARM_UPS } from "./edit-path.bench.ts";
import { defineExperiment, type Print } from "./experiment.ts";
import { growingRoom } from "./growing-room.bench.ts";
import { herd } from "./herd.bench.ts";
import { idle } from "./idle.bench.ts";
import { machineFacts } from "./machine.ts";
import { presenceInLargeRoom } from "./presence-large-room.bench.ts";
import { figuresOf, medianFigures, phaseFacts, phaseSummary, table } from "./report.ts";
import { rolling } from "./rolling.bench.ts";
import { stalledReader } from "./stalled-reader.bench.ts";
import { startCoroom } from "./systems/coroom.ts";
import { startRelay } from "./systems/peers.ts";
import { type MeasuredSystem, SYSTEM_NAMES, type SystemName } from "./systems/system.ts";

export const COMPARISONS: readonly Comparison[] = [
  idle,
  comeBack,
  stalledReader,
  herd,
  rolling,
  presenceInLargeRoom,
  growingRoom,
  arrivals,
];

const EDIT_PATH = SCENARIOS.map(({ name }) => name);
export const SCENARIO_NAMES: readonly string[] = [...EDIT_PATH, ...COMPARISONS.map(({ name }) => name)];

const EDIT_PATH_ROUNDS = 2;
const COMPARISON_ROUNDS = 1;
const START = { coroom: () => startCoroom(), relay: () => startRelay() };

const settings = {
  seconds: { parse: positiveInteger, fallback: 8, meaning: "seconds that each phase is measured" },
  warmUpSeconds: { parse: positiveInteger, fallback: 10, meaning: "seconds that each system is driven hard before the first measurement" },
  warmSeconds: { parse: positiveInteger, fallback: 2, meaning: "seconds that each phase runs before it is measured" },
  rounds: {
    parse: wholeNumber,
    fallback: 0,
    meaning: "rounds; scenarios that are not of the edit path show the medians; 0: two on the edit path, otherwise one",
  },
  scenario: { parse: scenarioNames, fallback: EDIT_PATH, meaning: `any of ${SCENARIO_NAMES.join(", ")}` },
  system: {
    parse: systemNames,
    fallback: SYSTEM_NAMES,
    meaning: "coroom, relay or both; for the edit path and idle only, other scenarios measure all systems that they compare",
  },
  small: { parse: flag, fallback: false, meaning: "a few rooms for one second: only the counts are meaningful, the times are not" },
  loadProcesses: { parse: positiveInteger, fallback: 1, meaning: "processes that share the load" },
  clients: { parse: wholeNumber, fallback: 0, meaning: "clients of a scenario that is not of the edit path; 0: its own number" },
  seed: { parse: positiveInteger, fallback: 1, meaning: "seed of the typing schedule" },
  json: { parse: text, fallback: "", meaning: "file for the results as JSON; empty: no file" },
} as const satisfies Settings;
type ScenarioSettings = Values<typeof settings>;

export const scenarios = defineExperiment({
  name: "scenarios",
  summary: "compares Coroom with a relay and other floors; without a name the edit path, ten to fifteen minutes",
  settings,
  run: async (options, print) => {
    const editPath = SCENARIOS.filter(({ name }) => options.scenario.includes(name));
    const results: object[] = editPath.length > 0 ? await runEditPath(editPath, options, print) : [];
    for (const comparison of COMPARISONS.filter(({ name }) => options.scenario.includes(name)))
      results.push(await runComparison(comparison, options, print));
    if (options.json !== "") writeFileSync(options.json, JSON.stringify({ machine: await machineFacts(), options, results }, null, 2));
  },
});

async function runEditPath(chosen: readonly Scenario[], options: ScenarioSettings, print: Print): Promise<object[]> {
  const systems: MeasuredSystem[] = [];
  try {
    for (const name of options.system) systems.push(await START[name]());
    if (!options.small) await warmUp(systems, options);
    const results = [];
    for (const scenario of chosen) results.push(await takeTurns(systems, options.small ? small(scenario) : scenario, options, print));
    return results;
  } finally {
    await Promise.all(systems.map((system) => system.stop()));
  }
}

async function runComparison(
  { name, summary, clients, smallClients, run }: Comparison,
  options: ScenarioSettings,
  print: Print,
): Promise<object> {
  const size = options.clients > 0 ? options.clients : options.small ? smallClients : clients;
  print(`\n${name}: ${summary}; ${size} clients`);
  const rounds = options.rounds || COMPARISON_ROUNDS;
  const outcomes: ComparisonOutcome[] = [];
  for (let round = 1; round <= rounds; round++) {
    const outcome = await run({
      clients: size,
      small: options.small,
      seed: options.seed,
      loadProcesses: options.loadProcesses,
      systems: options.system,
      print: (line) => print(`  ${line}`),
    });
    print(table(outcome.figures));
    outcomes.push(outcome);
  }
  const figures = medianFigures(outcomes.map((outcome) => outcome.figures));
  if (rounds > 1) print(`\n  medians of ${rounds} rounds\n${table(figures)}`);
  return { scenario: name, clients: size, figures, rounds: outcomes };
}

async function warmUp(systems: readonly MeasuredSystem[], options: ScenarioSettings): Promise<void> {
  for (const system of systems)
    for (let round = 1; round <= WARM_UPS; round++)
      await runLeg(system, WARM_UP, { ...options, round, warmMs: 0, measureMs: options.warmUpSeconds * 1000 });
}

async function takeTurns(systems: readonly MeasuredSystem[], scenario: Scenario, options: ScenarioSettings, print: Print) {
  print(`\n${scenario.name}: ${scenario.summary}`);
  const legs: EditPathLeg[] = [];
  for (let round = 1; round <= (options.rounds || EDIT_PATH_ROUNDS); round++) {
    for (const system of systems) {
      const leg = await runLeg(system, scenario, {
        ...options,
        round,
        warmMs: options.small ? 1 : options.warmSeconds * 1000,
        measureMs: options.small ? 1000 : options.seconds * 1000,
      });
      legs.push(leg);
      for (const phase of leg.phases) print(`  ${round} ${system.name.padEnd(7)} ${phaseSummary(phase)}`);
      print(`  ${round} ${system.name.padEnd(7)} no edit missing, none twice; counts ${leg.hash}`);
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
  print(table(figures));
  return {
    scenario: scenario.name,
    figures,
    legs: legs.map(({ system, hash, phases }) => ({ system, hash, phases: phases.map(phaseFacts) })),
  };
}

function scenarioNames(raw: string): readonly string[] {
  return list(raw).map(oneOf(...SCENARIO_NAMES));
}

function systemNames(raw: string): readonly SystemName[] {
  const names = list(raw).map(oneOf(...SYSTEM_NAMES));
  if (names.length === 0) throw new SettingError(`must name ${SYSTEM_NAMES.join(" or ")}`);
  return names;
}
