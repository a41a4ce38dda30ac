/** Runs the bench of placement's decisions: `node dist/bench/decide-main.js`. Needs no servers. */

import { parseCommandLine } from "../cli/arguments.ts";
import { positiveInteger, readSettings, type Settings } from "../shared/config.ts";
import { liveThroughYear } from "./decide.bench.ts";
import { machineFacts } from "./machine.ts";

const settings = {
  rooms: { parse: positiveInteger, fallback: 100_000, meaning: "rooms" },
  servers: { parse: positiveInteger, fallback: 32, meaning: "room servers, in four zones" },
  weeks: {
    parse: positiveInteger,
    fallback: 52,
    meaning: "weeks, each with a server lost and back, and a twentieth of the rooms released and opened",
  },
  seed: { parse: positiveInteger, fallback: 1, meaning: "which rooms those are" },
} as const satisfies Settings;

/** Of this process, whatever else the machine does. */
const cpuMs = (): number => (process.cpuUsage().user + process.cpuUsage().system) / 1_000;
const say = (text: string): void => void process.stdout.write(`${text}\n`);
const options = readSettings(settings, { flags: parseCommandLine(process.argv.slice(2)).flags, env: {} });
say(
  Object.entries(await machineFacts())
    .map(([name, fact]) => `${name} ${fact}`)
    .join(" · "),
);
const { imbalance, moved, unavoidable, decisionsMs, spread, copiesTooNear, restless } = liveThroughYear({ ...options, now: cpuMs });
const sorted = [...decisionsMs].sort((a, b) => a - b);
const [p50, p99, max] = [0.5, 0.99, 1].map((part) => sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))]!.toFixed(1));
say(`${options.rooms} rooms on ${options.servers} servers, ${options.weeks} weeks, ${decisionsMs.length} decisions`);
say(`  a decision takes (CPU)  p50 ${p50} ms   p99 ${p99} ms   max ${max} ms`);
say(`  furthest from the mean  ${(imbalance * 100).toFixed(1)}%`);
say(`  rooms moved             ${moved}, ${(moved / unavoidable).toFixed(3)} times the unavoidable`);
say(`  a lost server's rooms   ${spread.least} to ${spread.most} to each other server of other zones`);
say(`  copies too near         ${copiesTooNear}, and ${restless} steps left once nothing happens any more`);
