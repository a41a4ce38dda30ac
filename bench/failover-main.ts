/**
 * Runs the failover bench: `node dist/bench/failover-main.js --rooms 60 --rounds 5 --disturbances killed,paused`. The
 * figures in docs/operations/placement.md are of `--rooms 500 --room-servers 2 --edits-per-second 1 --seconds 1` and as many `--rounds` as they say.
 */

import { parseCommandLine } from "../cli/arguments.ts";
import { list, oneOf, positiveInteger, readSettings, type Settings } from "../shared/config.ts";
import { type Disturbance, DISTURBANCES } from "./disturbances.ts";
import { type BlowWaits, distribution, FailoverBench } from "./failover.bench.ts";
import { machineFacts } from "./machine.ts";

const OF_ONE_NATS: readonly Disturbance[] = ["left alone", "killed", "paused", "cut off", "stopped", "emptied"];

const settings = {
  rooms: { parse: positiveInteger, fallback: 60, meaning: "rooms, each with one who writes and one who reads" },
  roomServers: {
    parse: positiveInteger,
    fallback: 3,
    meaning: "room servers that they are spread over; with two, each takes over all rooms of the other",
  },
  natsServers: { parse: positiveInteger, fallback: 1, meaning: "nats-servers, 1 or 3, that keep as many copies" },
  editsPerSecond: { parse: positiveInteger, fallback: 10, meaning: "edits of each room" },
  rounds: { parse: positiveInteger, fallback: 5, meaning: "how often each is done" },
  seconds: { parse: positiveInteger, fallback: 3, meaning: "how long each lasts" },
  secondsMax: { parse: positiveInteger, fallback: 3_600, meaning: "no round of a disturbance begins after so long" },
  disturbances: {
    parse: (raw: string) => list(raw).map(oneOf(...DISTURBANCES)),
    fallback: OF_ONE_NATS,
    meaning: `which of ${DISTURBANCES.join(", ")}`,
  },
} as const satisfies Settings;

const say = (text: string): void => void process.stdout.write(`${text}\n`);
/** A run that is cut off tells all the same. */
const SUMMARY_EVERY = 10;
const line = (name: string, waits: readonly number[], more = ""): string => {
  const { rooms, p50, p99, max } = distribution(waits);
  return `  ${name.padEnd(46)} p50 ${p50.toFixed(0).padStart(6)} ms   p99 ${p99.toFixed(0).padStart(6)} ms   max ${max.toFixed(0).padStart(6)} ms   (${rooms} rooms)${more}`;
};

const options = readSettings(settings, { flags: parseCommandLine(process.argv.slice(2)).flags, env: {} });
say(
  Object.entries(await machineFacts())
    .map(([name, fact]) => `${name} ${fact}`)
    .join(" · "),
);
const bench = await FailoverBench.start(options);
try {
  await bench.disturb(options.disturbances[0]!); // Not counted: it gathers the rooms on one server, and young processes run slow code.
  for (const disturbance of options.disturbances) {
    const all: BlowWaits[] = [];
    const until = performance.now() + options.secondsMax * 1_000;
    let rounds = 0;
    for (; rounds < options.rounds && performance.now() < until;) {
      const begun = performance.now();
      const { waits } = await bench.disturb(disturbance);
      all.push(...waits);
      rounds += 1;
      const backs = waits.map(({ back }) => back);
      say(line(`${disturbance} ${rounds}`, backs, ` of this round, which took ${((performance.now() - begun) / 1_000).toFixed(1)} s`));
      if (rounds % SUMMARY_EVERY === 0)
        say(
          line(
            `${disturbance}, ${rounds} times so far`,
            all.map(({ back }) => back),
          ),
        );
    }
    say(`${disturbance}, ${rounds} times`);
    say(
      line(
        "from the blow to the next ack",
        all.map(({ back }) => back),
      ),
    );
    say(
      line(
        "the writer waits for an ack at most",
        all.map(({ acked }) => acked),
      ),
    );
    say(
      line(
        "the reader waits to see it committed at most",
        all.map(({ seen }) => seen),
      ),
    );
    say(
      line(
        "the reader waits to see it at all at most",
        all.map(({ shown }) => shown),
      ),
    );
  }
  await bench.stop();
} catch (error) {
  process.stderr.write(`failover bench: ${error instanceof Error ? error.stack : String(error)}\n`);
  await bench.abandon();
  process.exit(1);
}
say("nothing missing, nothing doubled, in one order everywhere");
