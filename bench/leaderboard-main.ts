/**
 * Runs the leaderboard's bench: `node dist/bench/leaderboard-main.js --members 1000,100000 --edits 100000`. Each round
 * counts a log by the projector and then sends the same batches bare. On a machine that is busy with other things look
 * at the CPU a batch: both wait there for the same processors.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { parseCommandLine } from "../cli/arguments.ts";
import { startNatsServer } from "../engines/nats-server.ts";
import { startRedisServer } from "../engines/redis-server.ts";
import { type Leg, benchMemory, benchReads, benchUpdates, fillLargeBoard, percentile } from "./leaderboard.bench.ts";
import { startPostgres } from "./leaderboard-postgres.ts";
import { machineFacts } from "./machine.ts";

const { flags } = parseCommandLine(process.argv.slice(2));
const [edits, rooms, rounds, reads] = [
  Number(flags["edits"] ?? 100_000),
  Number(flags["rooms"] ?? 2_000),
  Number(flags["rounds"] ?? 3),
  Number(flags["reads"] ?? 2_000),
];
const sizes = (flags["members"] ?? "1000,100000,1000000").split(",").map(Number);
const SEED = 1;

const say = (text: string): void => void process.stdout.write(`${text}\n`);
const micros = (seconds: number): string => `${Math.round(seconds * 1e6)} µs`;
const line = (times: readonly number[]): string =>
  `p50 ${percentile(times, 50).toFixed(3).padStart(9)} ms   p99 ${percentile(times, 99).toFixed(3).padStart(9)} ms   (${times.length} reads)`;

const dataDir = mkdtempSync(join(tmpdir(), "coroom-bench-boards-"));
const [redis, nats] = await Promise.all([
  startRedisServer({ dataDir: join(dataDir, "redis") }),
  startNatsServer({ dataDir: join(dataDir, "nats") }),
]);
const postgres = await startPostgres();
try {
  say(
    Object.entries(await machineFacts())
      .map(([name, fact]) => `${name} ${fact}`)
      .join(" · "),
  );
  const shares: number[] = [];
  for (let round = 1; round <= rounds; round++) {
    const {
      edits: timed,
      batches,
      projector,
      bare,
      projectorHash,
      bareHash,
    } = await benchUpdates({ natsUrl: nats.url, redisUrl: redis.url }, { rooms, users: 8, edits, seed: SEED }, `bench${round}`);
    if (projectorHash !== bareHash) throw new Error("the boards differ: the script was not called the same");
    const leg = ({ seconds, nodeCpu, redisCpu }: Leg): string =>
      `${Math.round(timed / seconds)} edits/s, ${Math.round(batches / seconds)} batches/s, CPU a batch ${micros(nodeCpu / batches)} here, ${micros(redisCpu / batches)} in Redis`;
    const share = Math.round((100 * bare.seconds) / projector.seconds);
    shares.push(share);
    say(
      `updates, round ${round}: ${timed} edits in ${batches} batches, each into 6 windows; boards ${projectorHash}; ${share}%\n  projector    ${leg(projector)}\n  bare script  ${leg(bare)}`,
    );
  }
  if (shares.length > 0)
    say(
      `the projector against the bare script: ${percentile(shares, 50)}% (${Math.min(...shares)} to ${Math.max(...shares)}% in ${shares.length} rounds)`,
    );
  for (const members of sizes) {
    const board = await fillLargeBoard(redis.url, members, "bench-large", SEED);
    say(`\n${members} members`);
    for (const [name, times] of Object.entries(await benchReads(board, reads, SEED)))
      say(`  Redis       ${name.padEnd(26)} ${line(times)}`);
    if (postgres !== undefined) {
      await postgres.fill(members, SEED);
      for (const [name, times] of Object.entries(await postgres.ranks(members, reads, SEED)))
        say(`  PostgreSQL  ${name.padEnd(26)} ${line(times)}`);
    }
    const { hot, full, counts, bands, allOrdered } = await benchMemory(board, "bench-large");
    const perMember = (bytes: number): string => (bytes / members).toFixed(1);
    say(
      `  memory: ordered part ${hot}, full scores ${full}, counts of bands ${counts} bytes: ${perMember(hot + full + counts)} a member; the tail in order ${perMember(bands)} more; one sorted set of all ${perMember(allOrdered)}, and ${perMember(allOrdered + full)} with what finds a member in it`,
    );
    board.line.stop();
  }
} finally {
  postgres?.stop();
  await Promise.all([redis.stop(), nats.stop()]);
  rmSync(dataDir, { recursive: true, force: true });
}
