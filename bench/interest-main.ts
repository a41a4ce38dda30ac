/** Runs the bench of viewports: `node dist/bench/interest-main.js --participants 1000 --moving 100`. */

import { parseCommandLine } from "../cli/arguments.ts";
import { benchInterest, type InterestScene } from "./interest.bench.ts";
import { machineFacts } from "./machine.ts";

const { flags } = parseCommandLine(process.argv.slice(2));
const [participants, moving, rounds, ticks] = [
  Number(flags["participants"] ?? 1_000),
  Number(flags["moving"] ?? 100),
  Number(flags["rounds"] ?? 3),
  Number(flags["ticks"] ?? 400),
];
const SECONDS_PER_TICK = 0.05;
const base = { participants, moving, ticks, view: { width: 1_920, height: 1_080 }, seed: 1 };

const SCENES: Readonly<Record<string, InterestScene>> = {
  "large canvas, all take part": { ...base, spectators: 0, canvas: { width: 40_000, height: 40_000 } },
  "large canvas, nine in ten watch": { ...base, spectators: Math.floor(participants * 0.9), canvas: { width: 40_000, height: 40_000 } },
  "one screen, all take part": { ...base, spectators: 0, canvas: { width: 1_920, height: 1_080 } },
  "one screen, nine in ten watch": { ...base, spectators: Math.floor(participants * 0.9), canvas: { width: 1_920, height: 1_080 } },
};

const say = (text: string): void => void process.stdout.write(`${text}\n`);
say(
  Object.entries(await machineFacts())
    .map(([name, fact]) => `${name} ${fact}`)
    .join(" · "),
);
for (const [name, scene] of Object.entries(SCENES)) {
  say(`\n${name}: ${participants} participants, ${moving} moving at 20 Hz, ${ticks} ticks`);
  for (let round = 1; round <= rounds; round++) {
    const { toldAll, toldNear, frames, microsPerTick, hash } = benchInterest(scene);
    const perSecond = (count: number): string => (count / participants / ticks / SECONDS_PER_TICK).toFixed(1);
    say(
      `  ${round}  bytes/s a recipient: ${perSecond(toldAll)} told everything, ${perSecond(toldNear)} by view (${Math.round(100 * (1 - toldNear / toldAll))}% saved); ${perSecond(frames)} frames/s each; ${microsPerTick} µs of CPU a tick; ${hash}`,
    );
  }
}
