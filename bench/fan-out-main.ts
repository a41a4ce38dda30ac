/** Runs the bench of fan-out with and without workers: `node dist/bench/fan-out-main.js --participants 1000,5000 --gateways 3,10 --workers 4`. */

import { parseCommandLine } from "../cli/arguments.ts";
import { benchFanOut, type FanOutFigures, type FanOutScene } from "./fan-out.bench.ts";
import { machineFacts } from "./machine.ts";

const { flags } = parseCommandLine(process.argv.slice(2));
const numbers = (flag: string, fallback: readonly number[]): readonly number[] => flags[flag]?.split(",").map(Number) ?? fallback;
const [ticks = 200] = numbers("ticks", []);
const [workers = 4] = numbers("workers", []);
const MOVING_SHARE = 0.1;
const TICKS_PER_SECOND = 20;
const CANVASES = { "a large canvas": { width: 40_000, height: 40_000 }, "one screen": { width: 1_920, height: 1_080 } };

const say = (text: string): void => void process.stdout.write(`${text}\n`);
const shareOfCore = (micros: number): string => `${((micros * TICKS_PER_SECOND) / 1e4).toFixed(2)}%`;
const kilobytes = (bytes: number): string => `${((bytes * TICKS_PER_SECOND) / 1000).toFixed(0)} KB/s`;

say(
  Object.entries(await machineFacts())
    .map(([name, fact]) => `${name} ${fact}`)
    .join(" · "),
);
for (const participants of numbers("participants", [1_000, 5_000])) {
  for (const [place, canvas] of Object.entries(CANVASES)) {
    const scene: FanOutScene = {
      participants,
      moving: Math.floor(participants * MOVING_SHARE),
      canvas,
      view: { width: 1_920, height: 1_080 },
      ticks,
      seed: 1,
    };
    say(`\n${participants} participants on ${place}, ${scene.moving} of them moving at ${TICKS_PER_SECOND} Hz`);
    const shard = benchFanOut(scene, workers);
    for (const gateways of numbers("gateways", [1, 3, 10])) compare(gateways, benchFanOut(scene, gateways), shard);
  }
}

function compare(gateways: number, each: FanOutFigures, shard: FanOutFigures): void {
  const [without, withWorkers] = [gateways * each.sortMicros, workers * shard.sortMicros + gateways * each.takeMicros];
  say(
    `  ${gateways} gateways, sorting themselves: ${shareOfCore(each.sortMicros)} of a core and ${kilobytes(each.newsBytes)} each, ${shareOfCore(without)} together`,
  );
  say(
    `  ${gateways} gateways behind ${workers} workers: ${shareOfCore(each.takeMicros)} and ${kilobytes(each.frameBytes)} each, ${shareOfCore(shard.sortMicros)} a worker, ${shareOfCore(withWorkers)} together`,
  );
}
