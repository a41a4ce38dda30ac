/** Runs one scenario or experiment: `npm run bench -- NAME [--flags]`. `npm run bench -- --help` lists all names. */

import { parseCommandLine } from "../cli/run.ts";
import { flagName, readSettings, SettingError } from "../shared/settings/settings.ts";
import { appendBatches } from "./append-batches.bench.ts";
import { boardReads } from "./board-reads.bench.ts";
import { coolDown } from "./cool-down.bench.ts";
import { decisions } from "./decide.bench.ts";
import { durability } from "./durability.bench.ts";
import { editCost } from "./edit-cost.bench.ts";
import type { Experiment } from "./experiment.ts";
import { failover } from "./failover.bench.ts";
import { fanOut } from "./fan-out.bench.ts";
import { SCENARIOS } from "./edit-path.bench.ts";
import { hostileRooms } from "./hostile-rooms.bench.ts";
import { hotRoom } from "./hot-room.bench.ts";
import { interest } from "./interest.bench.ts";
import { leaderboard } from "./leaderboard.bench.ts";
import { liveBoard } from "./live-board.bench.ts";
import { machineFacts } from "./machine.ts";
import { moves } from "./moves.bench.ts";
import { rooms } from "./rooms.bench.ts";
import { routing } from "./routing.bench.ts";
import { peers } from "./peers.bench.ts";
import { COMPARISONS, SCENARIO_NAMES, scenarios } from "./scenarios.ts";
import { storedRooms } from "./stored-rooms.bench.ts";
import { unitCosts } from "./unit-costs.bench.ts";

const EXPERIMENTS: readonly Experiment[] = [
  peers,
  editCost,
  unitCosts,
  failover,
  moves,
  fanOut,
  routing,
  interest,
  leaderboard,
  liveBoard,
  boardReads,
  rooms,
  storedRooms,
  coolDown,
  decisions,
  durability,
  appendBatches,
  hotRoom,
  hostileRooms,
];
const HELP = "npm run bench -- --help";

async function main(words: readonly string[]): Promise<void> {
  // `--peers` is the head-to-head bench; a word after it is the value of a flag, not of this one.
  const {
    command,
    flags: { help, ...flags },
  } = parseCommandLine(words.map((word) => (word === "--peers" ? peers.name : word)));
  if (command === undefined && help !== undefined) return print(helpOfAll());
  const isScenario = command === undefined || SCENARIO_NAMES.includes(command);
  const experiment: Experiment | undefined = isScenario ? scenarios : EXPERIMENTS.find(({ name }) => name === command);
  if (experiment === undefined) throw new SettingError(`no scenario or experiment is named "${command}"; see ${HELP}`);
  if (help !== undefined) return print(helpOf(command ?? "", experiment));
  const unknown = Object.keys(flags).filter((name) => !Object.hasOwn(experiment.settings, name));
  if (unknown.length > 0) throw new SettingError(`no such flag: ${unknown.map(flagName).join(", ")}; see ${HELP}`);
  const given = isScenario && command !== undefined ? { ...flags, scenario: command } : flags;
  const options = readSettings(experiment.settings, { flags: given, env: {} });
  const facts = Object.entries(await machineFacts());
  print(facts.map(([name, fact]) => `${name} ${fact}`).join(" · "));
  await experiment.run(options, print);
}

function helpOfAll(): string {
  const lineOf = ({ name, summary }: { name: string; summary: string }): string => `  ${name.padEnd(18)} ${summary}`;
  return [
    "npm run bench -- NAME [--flags]          npm run bench -- NAME --help shows the flags",
    "",
    `Scenarios compare Coroom with a relay or another floor. Without NAME: ${SCENARIOS.map(({ name }) => name).join(", ")}.`,
    ...[...SCENARIOS, ...COMPARISONS].map(lineOf),
    "",
    "Experiments have settings of their own.",
    ...EXPERIMENTS.map(lineOf),
  ].join("\n");
}

function helpOf(name: string, { summary, settings }: Experiment): string {
  const about = [...SCENARIOS, ...COMPARISONS].find((scenario) => scenario.name === name)?.summary ?? summary;
  const lines = Object.entries(settings).map(
    ([setting, { fallback, meaning }]) => `  ${flagName(setting).padEnd(21)} ${meaning} (default ${String(fallback) || "empty"})`,
  );
  return [`npm run bench -- ${name} [--flags]`, "", about, "", ...lines].join("\n");
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`bench: ${error instanceof SettingError ? error.message : error instanceof Error ? error.stack : String(error)}\n`);
  process.exitCode = 1;
}
process.exit(); // A connection that an experiment left open does not keep the process alive.
