/** Runs the failover bench: `node dist/bench/failover-main.js --rooms 60 --rounds 5 --disturbances killed,paused`. */

import { parseCommandLine } from "../cli/arguments.ts";
import { list, oneOf, positiveInteger, readSettings, type Settings } from "../shared/config.ts";
import { type Disturbance, DISTURBANCES, distribution, FailoverBench, type Waits } from "./failover.bench.ts";
import { machineFacts } from "./machine.ts";

const settings = {
  rooms: { parse: positiveInteger, fallback: 60, meaning: "rooms, each with one who writes and one who reads" },
  roomServers: { parse: positiveInteger, fallback: 3, meaning: "room servers that they are spread over" },
  editsPerSecond: { parse: positiveInteger, fallback: 10, meaning: "edits of each room" },
  rounds: { parse: positiveInteger, fallback: 5, meaning: "how often each is done" },
  seconds: { parse: positiveInteger, fallback: 3, meaning: "how long each lasts" },
  disturbances: { parse: (raw: string) => list(raw).map(oneOf(...DISTURBANCES)), fallback: DISTURBANCES as readonly Disturbance[], meaning: `which of ${DISTURBANCES.join(", ")}` },
} as const satisfies Settings;

const say = (text: string): void => void process.stdout.write(`${text}\n`);
const line = (name: string, waits: readonly number[]): string => {
  const { rooms, p50, p99, max } = distribution(waits);
  return `  ${name.padEnd(38)} p50 ${p50.toFixed(0).padStart(6)} ms   p99 ${p99.toFixed(0).padStart(6)} ms   max ${max.toFixed(0).padStart(6)} ms   (${rooms} rooms)`;
};

const options = readSettings(settings, { flags: parseCommandLine(process.argv.slice(2)).flags, env: {} });
say(Object.entries(await machineFacts()).map(([name, fact]) => `${name} ${fact}`).join(" · "));
const bench = await FailoverBench.start(options);
try {
  for (const disturbance of options.disturbances) {
    const all: Waits[] = [];
    for (let round = 1; round <= options.rounds; round++) {
      const { waits } = await bench.disturb(disturbance);
      all.push(...waits);
    }
    say(`owner ${disturbance}, ${options.rounds} times`);
    say(line("the writer waits for an ack at most", all.map(({ acked }) => acked)));
    say(line("the reader waits to see it at most", all.map(({ seen }) => seen)));
  }
  await bench.stop();
} catch (error) {
  process.stderr.write(`failover bench: ${error instanceof Error ? error.stack : String(error)}\n`);
  await bench.abandon();
  process.exit(1);
}
say("nothing missing, nothing doubled, in one order everywhere");
