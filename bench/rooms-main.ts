/** Runs the bench of many rooms: `node dist/bench/rooms-main.js --rooms 10000 --edits 10 --active 100 --services 3 --idle 30 --seed 1`. */

import { parseCommandLine } from "../cli/arguments.ts";
import { machineFacts } from "./machine.ts";
import { benchRooms } from "./rooms.bench.ts";

const { flags } = parseCommandLine(process.argv.slice(2));
const say = (line: string): void => void process.stdout.write(`${line}\n`);
say(
  Object.entries(await machineFacts())
    .map(([name, fact]) => `${name} ${fact}`)
    .join(" · "),
);
const outcome = await benchRooms({
  rooms: Number(flags["rooms"] ?? 10_000),
  editsPerRoom: Number(flags["edits"] ?? 10),
  activeRooms: Number(flags["active"] ?? 100),
  services: Number(flags["services"] ?? 3),
  idleSeconds: Number(flags["idle"] ?? 30),
  seed: Number(flags["seed"] ?? 1),
  say,
});
say(`documents ${outcome.hash}`);
