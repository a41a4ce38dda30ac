/** Runs the moves bench: `node dist/bench/moves-main.js --moves 100`. */

import { parseCommandLine } from "../cli/arguments.ts";
import { positiveInteger, readSettings, type Settings } from "../shared/config.ts";
import { distribution } from "./failover.bench.ts";
import { machineFacts } from "./machine.ts";
import { measureMoves } from "./moves.bench.ts";

const settings = {
  moves: { parse: positiveInteger, fallback: 100, meaning: "rooms that are moved, one after the other" },
  rooms: { parse: positiveInteger, fallback: 50, meaning: "rooms, each with one who writes and one who reads" },
  roomServers: { parse: positiveInteger, fallback: 3, meaning: "room servers that they are spread over" },
  editsPerSecond: { parse: positiveInteger, fallback: 10, meaning: "edits of each room; the one that is looked at has 200" },
  seed: { parse: positiveInteger, fallback: 1, meaning: "where each room goes" },
} as const satisfies Settings;

const say = (text: string): void => void process.stdout.write(`${text}\n`);
const line = (name: string, waits: readonly number[]): string => {
  const { p50, p99, max } = distribution(waits);
  return `  ${name.padEnd(38)} p50 ${p50.toFixed(1).padStart(7)} ms   p99 ${p99.toFixed(1).padStart(7)} ms   max ${max.toFixed(1).padStart(7)} ms`;
};

const options = readSettings(settings, { flags: parseCommandLine(process.argv.slice(2)).flags, env: {} });
say(
  Object.entries(await machineFacts())
    .map(([name, fact]) => `${name} ${fact}`)
    .join(" · "),
);
const { waits, alone } = await measureMoves(options);
for (const [title, some] of [
  [`${waits.length} rooms moved`, waits],
  ["as many left alone", alone],
] as const) {
  say(title);
  say(
    line(
      "the writer waits for an ack at most",
      some.map(({ acked }) => acked),
    ),
  );
  say(
    line(
      "the reader waits to see it at most",
      some.map(({ seen }) => seen),
    ),
  );
}
say("nothing missing, nothing doubled, in one order everywhere");
