/** Runs the bench of reading for trimming: `node dist/bench/trim-reads-main.js --rooms 500 --edits-per-room 60`; half a minute. */

import { parseCommandLine } from "../cli/arguments.ts";
import { positiveInteger, readSettings, type Settings } from "../shared/config.ts";
import { machineFacts } from "./machine.ts";
import { measureTrimReads, type ReadCost } from "./trim-reads.bench.ts";

const settings = {
  rooms: { parse: positiveInteger, fallback: 500, meaning: "rooms that write in turn into one part of the log" },
  editsPerRoom: { parse: positiveInteger, fallback: 60, meaning: "what each wrote since it was trimmed last" },
} as const satisfies Settings;

const say = (text: string): void => void process.stdout.write(`${text}\n`);
const shown = ({ records, natsServer, reader }: ReadCost): string =>
  `${records} records, nats-server ${natsServer.toFixed(2)} s of CPU, who reads ${reader.toFixed(2)} s`;

const options = readSettings(settings, { flags: parseCommandLine(process.argv.slice(2)).flags, env: {} });
say(
  Object.entries(await machineFacts())
    .map(([name, fact]) => `${name} ${fact}`)
    .join(" · "),
);
const { byRoom, onePass } = await measureTrimReads(options);
say(`each room by itself  ${shown(byRoom)}`);
say(`all in one pass      ${shown(onePass)}`);
say(`${((byRoom.natsServer + byRoom.reader) / (onePass.natsServer + onePass.reader)).toFixed(1)} times the CPU by room`);
