/** Runs the bench of a hot room's board: `node dist/bench/live-board-main.js --watchers 1000 --edits-per-second 500`. */

import { readFileSync } from "node:fs";
import { join } from "node:path";

import { parseCommandLine } from "../cli/arguments.ts";
import { makeToken } from "../cli/token.ts";
import { DemoSystem } from "../test/system/browser.ts";
import { benchLiveBoard } from "./live-board.bench.ts";
import { machineFacts } from "./machine.ts";
import { percentile } from "./leaderboard.bench.ts";

const { flags } = parseCommandLine(process.argv.slice(2));
const plan = {
  watchers: Number(flags["watchers"] ?? 1_000),
  writers: Number(flags["writers"] ?? 100),
  editsPerSecond: Number(flags["editsPerSecond"] ?? 500),
  seconds: Number(flags["seconds"] ?? 20),
  warmUpSeconds: Number(flags["warmUpSeconds"] ?? 5),
  shown: Number(flags["shown"] ?? 10),
};
const NO_LIMIT = String(1e9);
const LIFTED = ["EDIT_BURST", "EDITS_PER_SECOND", "CONNECTIONS_PER_IP_MAX", "CONNECTS_PER_SECOND_MAX", "BOARD_POINTS_PER_MINUTE_MAX"];
const POINTS_MAX = String(1e6);

const say = (text: string): void => void process.stdout.write(`${text}\n`);
const settings = {
  LOG_LEVEL: "warn",
  ...Object.fromEntries(LIFTED.map((name) => [name, NO_LIMIT])),
  BOARD_POINTS_PER_MINUTE_MAX: POINTS_MAX,
};
const system = await DemoSystem.start(settings);
try {
  const { jwtSecret } = JSON.parse(readFileSync(join(system.folder, "data", "secrets.json"), "utf8")) as { jwtSecret: string };
  const token = (user: string): Promise<string> =>
    makeToken({ room: ["*"], user, name: `Name of ${user}`, rights: ["read", "write"], tenant: "default", ttl: 3_600 }, jwtSecret);
  say(
    Object.entries(await machineFacts())
      .map(([name, fact]) => `${name} ${fact}`)
      .join(" · "),
  );
  const figures = await benchLiveBoard({ url: system.url, token }, plan);
  const { listAgesMs: ages } = figures;
  say(
    `${plan.watchers} watchers, ${plan.writers} of them writing ${figures.editsPerSecond.toFixed(0)} edits a second, ${plan.shown} places shown, for ${plan.seconds} s`,
  );
  say(
    `  each watcher: ${figures.listsPerSecond.toFixed(2)} lists a second (most ${figures.listsPerSecondMost.toFixed(2)}), ${figures.listBytesPerSecond.toFixed(0)} bytes a second; never two within ${figures.listGapMsLeast.toFixed(0)} ms`,
  );
  say(`  own ranks: ${figures.ownRanksPerSecond.toFixed(2)} a second for each watcher, ${figures.ownRankBytesPerSecond.toFixed(0)} bytes`);
  say(
    `  age of the shown list when it was replaced: p50 ${percentile(ages, 50).toFixed(0)} ms, p99 ${percentile(ages, 99).toFixed(0)} ms, most ${Math.max(...ages).toFixed(0)} ms (${ages.length} lists)`,
  );
} finally {
  await system.stop();
}
