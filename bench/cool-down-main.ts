/** Runs the bench of a hot room: `node dist/bench/cool-down-main.js`. */

import { parseCommandLine } from "../cli/arguments.ts";
import { positiveInteger, readSettings, type Settings } from "../shared/config.ts";
import { measureHotRoom } from "./cool-down.bench.ts";
import type { Latencies } from "./load/latencies.ts";
import { machineFacts } from "./machine.ts";

const settings = {
  rooms: { parse: positiveInteger, fallback: 40, meaning: "rooms, each with one who writes and one who reads" },
  editsPerSecond: { parse: positiveInteger, fallback: 5, meaning: "edits of each room" },
  hotEditsPerSecond: {
    parse: positiveInteger,
    fallback: 2_000,
    meaning: "edits of the hot one, once it is hot: half of a room server's budget",
  },
  controlLoopMs: { parse: positiveInteger, fallback: 10_000, meaning: "how often placement looks" },
  seconds: { parse: positiveInteger, fallback: 10, meaning: "how long the neighbours are looked at before and after" },
} as const satisfies Settings;

const say = (text: string): void => void process.stdout.write(`${text}\n`);
const line = (name: string, waits: Latencies): string =>
  `  ${name.padEnd(24)} p50 ${waits.percentile(50).toFixed(1).padStart(7)} ms   p99 ${waits.percentile(99).toFixed(1).padStart(7)} ms   (${waits.total} edits)`;

const options = readSettings(settings, { flags: parseCommandLine(process.argv.slice(2)).flags, env: {} });
say(
  Object.entries(await machineFacts())
    .map(([name, fact]) => `${name} ${fact}`)
    .join(" · "),
);
const { movedAfterMs, neighbours, before, beside, after } = await measureHotRoom(options);
say(
  `a room of ${options.hotEditsPerSecond} edits/s was moved to the dedicated server ${(movedAfterMs / 1_000).toFixed(1)} s after its first edit`,
);
say(`its ${neighbours} neighbours waited for acks`);
say(line("before it was hot", before));
say(line("while it was beside them", beside));
say(line("after it had moved", after));
say("nothing missing, nothing doubled, in one order everywhere");
