/** Runs the durability bench: `node dist/bench/durability-main.js --rooms 50 --seconds 10`; three minutes. */

import { parseCommandLine } from "../cli/arguments.ts";
import { positiveInteger, readSettings, type Settings } from "../shared/config.ts";
import { CONFIGURATIONS, measureDurability } from "./durability.bench.ts";
import type { Latencies } from "./load/latencies.ts";
import { machineFacts } from "./machine.ts";

const settings = {
  rooms: { parse: positiveInteger, fallback: 50, meaning: "rooms, each with one who writes and one who reads" },
  seconds: { parse: positiveInteger, fallback: 10, meaning: "how long each phase is measured" },
} as const satisfies Settings;

const say = (text: string): void => void process.stdout.write(`${text}\n`);
const shown = (acks: Latencies): string => [50, 99].map((percent) => `p${percent} ${acks.percentile(percent).toFixed(1)} ms`).join(", ");

const options = readSettings(settings, { flags: parseCommandLine(process.argv.slice(2)).flags, env: {} });
say(
  Object.entries(await machineFacts())
    .map(([name, fact]) => `${name} ${fact}`)
    .join(" · "),
);
for (const configuration of CONFIGURATIONS) {
  const { paced, flatOut, editsPerSecond } = await measureDurability(configuration, options);
  say(
    `${configuration.name.padEnd(40)} acks at ${2 * options.rooms} edits/s: ${shown(paced)}; as fast as acks come: ${editsPerSecond.toFixed(0)} edits/s, ${shown(flatOut)}`,
  );
}
process.exit(0);
