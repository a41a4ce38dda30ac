/**
 * Runs chaos: `node dist/test/chaos/main.js --rounds 200 --seed 1` on processes that it starts itself, or with
 * `--project` on the containers of a running compose file. Prints the faults of each round, and at the end the count of
 * each fault.
 */

import { cpSync, statSync } from "node:fs";

import { flag, flagName, list, positiveInteger, readSettings, type Settings, text } from "../../shared/settings/settings.ts";
import { parseCommandLine } from "../../cli/run.ts";
import { ChaosSystem } from "./chaos-system.ts";
import { type ChaosReport, runChaos } from "./chaos.ts";
import { containersTarget } from "./containers.ts";
import type { ChaosTarget } from "./target.ts";

const settings = {
  rounds: { parse: positiveInteger, fallback: 200, meaning: "number of rounds" },
  seed: { parse: positiveInteger, fallback: 1, meaning: "seed from which faults are drawn" },
  secondsMax: { parse: positiveInteger, fallback: 7_200, meaning: "time after which no round begins" },
  rooms: { parse: positiveInteger, fallback: 3, meaning: "rooms at a time, with three clients each" },
  everyMs: { parse: positiveInteger, fallback: 150, meaning: "interval between two keystrokes of a client" },
  only: { parse: text, fallback: "", meaning: "only faults whose name contains this text" },
  syncAlways: {
    parse: flag,
    fallback: true,
    meaning: "nats-servers sync to disk before they acknowledge, as recommended for production",
  },
  project: { parse: text, fallback: "", meaning: "compose project whose containers the faults affect; empty: own processes" },
  environment: { parse: text, fallback: "production", meaning: "COROOM_ENVIRONMENT of those containers" },
  doors: { parse: list, fallback: ["ws://127.0.0.1:8080", "ws://127.0.0.1:8081"], meaning: "address of their gateways" },
  jwtSecret: { parse: text, fallback: "", meaning: "COROOM_JWT_SECRET of those containers" },
  natsPassword: { parse: text, fallback: "", meaning: "NATS_OPERATOR_PASSWORD of those containers" },
  logs: { parse: text, fallback: "", meaning: "folder to which all processes' logs are copied at the end; empty: none" },
} as const satisfies Settings;

const print = (output: string): void => void process.stdout.write(`${output}\n`);

const { flags } = parseCommandLine(process.argv.slice(2));
const isUnderstood = Object.keys(flags).every((name) => Object.hasOwn(settings, name));
if (!isUnderstood) {
  const lines = Object.entries(settings).map(
    ([name, { fallback, meaning }]) => `  ${flagName(name).padEnd(16)} ${meaning} (default ${String(fallback) || "empty"})`,
  );
  print(["node dist/test/chaos/main.js [--flags]", "", ...lines].join("\n"));
  process.exit(flags["help"] === undefined ? 2 : 0);
}
const options = readSettings(settings, { flags, env: {} });
const begun = performance.now();
const system = options.project === "" ? await ChaosSystem.start(options) : undefined;
const target = system?.target ?? containersTarget({ ...options, gatewayUrls: options.doors });
let failed = false;
try {
  printReport(target, await runChaos(target, { ...options, roomsNamed: `chaos-${Date.now().toString(36)}` }, print));
} catch (error) {
  failed = true;
  for (let at: unknown = error; at instanceof Error; at = at.cause) process.stderr.write(`${at.stack ?? at.message}\n`);
} finally {
  if (options.logs !== "" && system !== undefined) cpSync(system.cluster.folder, options.logs, { recursive: true, filter: isLog });
  await system?.stop();
}
process.exit(failed ? 1 : 0);

/** A folder, or a process's log. Its data changes while it is copied. */
function isLog(path: string): boolean {
  return path.endsWith(".log") || statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

function printReport({ faults: all }: ChaosTarget, { rounds, faults, levelMs, sums }: ChaosReport): void {
  const sorted = [...levelMs].sort((a, b) => a - b);
  const [p50, p99, max] = [0.5, 0.99, 1].map((part) =>
    (sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))]! / 1_000).toFixed(1),
  );
  const seconds = ((performance.now() - begun) / 1_000).toFixed(0);
  const edits = `${sums.typed} edits typed in ${sums.rooms} rooms, ${sums.acked} acknowledged, 0 lost, 0 twice, 0 seqs used again`;
  const boards = `the boards of all rooms match edits and ${sums.activities} activities`;
  const rest = `${sums.tentative} shown before the log had them, ${sums.epochs} epochs`;
  print(`\n${rounds} rounds in ${seconds} s, seed ${options.seed}: ${edits}; ${boards}; ${rest}`);
  print(`after the last fault of a round all rooms were level within p50 ${p50} s, p99 ${p99} s, max ${max} s`);
  print(`${[...faults.values()].reduce((sum, count) => sum + count, 0)} faults:`);
  for (const { kind } of all) print(`${String(faults.get(kind) ?? 0).padStart(6)}  ${kind}`);
}
