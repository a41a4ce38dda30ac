/**
 * Compares the leaderboard service with direct calls of its script, and ranks in Redis with ranks in PostgreSQL. Each
 * round counts a log with the service and then sends the same batches directly to Redis. On a busy machine, compare
 * the CPU per batch, because both parts wait for the same processors.
 */

import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync, chownSync, existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { positiveInteger, wholeNumber } from "../shared/settings/settings.ts";
import { startNatsServer } from "../engines/nats-server.ts";
import { startRedisServer } from "../engines/redis-server.ts";
import { defineExperiment, positiveIntegers, type Print } from "./experiment.ts";
import {
  type Engines,
  type UpdateLeg,
  benchMemory,
  benchReads,
  benchUpdates,
  fillLargeBoard,
  percentile,
  scoresOf,
} from "./leaderboard-measures.ts";

/**
 * PostgreSQL holds the same scores in a table with an index for rank queries. The programs are from Debian's packages.
 */
const BIN = "/usr/lib/postgresql/15/bin";

type Postgres = {
  fill(members: number, seed: number): Promise<void>;
  ranks(members: number, reads: number, seed: number): Promise<Record<"first 100" | "own rank, counted" | "own rank, rank()", number[]>>;
  stop(): void;
};

/** Undefined when PostgreSQL is not installed. It does not run as root, so root starts it as the user postgres. */
async function startPostgres(): Promise<Postgres | undefined> {
  if (!existsSync(join(BIN, "initdb"))) return undefined;
  const dataDir = mkdtempSync(join(tmpdir(), "coroom-postgres-"));
  const user = process.getuid?.() === 0 ? { uid: idOf("-u"), gid: idOf("-g") } : {};
  if (user.uid !== undefined) chownSync(dataDir, user.uid, user.gid!);
  const run = (program: string, args: readonly string[]): void =>
    void execFileSync(join(BIN, program), args, { ...user, stdio: "ignore", cwd: dataDir });
  run("initdb", ["-D", join(dataDir, "data"), "-U", "bench", "-A", "trust"]);
  run("pg_ctl", [
    "-D",
    join(dataDir, "data"),
    "-o",
    `-k ${dataDir} -c listen_addresses= -c shared_buffers=256MB -c fsync=off`,
    "-w",
    "-l",
    join(dataDir, "log"),
    "start",
  ]);

  const psql = (sql: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const child = spawn("psql", ["-h", dataDir, "-U", "bench", "-d", "postgres", "-qAt", "-v", "ON_ERROR_STOP=1"], {
        stdio: ["pipe", "pipe", "inherit"],
      });
      let out = "";
      child.stdout.on("data", (bytes) => (out += String(bytes)));
      child.on("exit", (code) => (code === 0 ? resolve(out) : reject(new Error(`psql ended with ${code}`))));
      child.stdin.end(sql);
    });

  return {
    fill: async (members, seed) => {
      const rows = scoresOf(members, seed).map(({ user: name, score, reachedAt }) => `${name}\t${score}\t${reachedAt}`);
      await psql(
        `create table board_${members} (member text primary key, score bigint, reached bigint);\ncopy board_${members} from stdin;\n${rows.join("\n")}\n\\.\ncreate index on board_${members} (score desc, reached);\nvacuum analyze board_${members};\n`,
      );
    },
    /** psql's own timing of each prepared query. */
    ranks: async (members, reads, seed) => {
      const names = scoresOf(members, seed);
      const step = Math.max(1, Math.floor(members / reads));
      const asked = Array.from({ length: reads }, (_, index) => names[(index * step) % members]!.user);
      const times = async (query: string, calls: readonly string[]): Promise<number[]> => {
        const out = await psql(`prepare q(text) as ${query};\n\\timing on\n${calls.map((name) => `execute q('${name}');`).join("\n")}\n`);
        return [...out.matchAll(/^Time: ([\d.]+) ms/gm)].map(([, time]) => Number(time));
      };
      return {
        "first 100": await times(`select member, score from board_${members} where $1 = $1 order by score desc, reached limit 100`, asked),
        "own rank, counted": await times(
          `select 1 + count(*) from board_${members} a, (select score, reached from board_${members} where member = $1) o where a.score > o.score or (a.score = o.score and a.reached < o.reached)`,
          asked.slice(0, slow(reads)),
        ),
        "own rank, rank()": await times(
          `select place from (select member, rank() over (order by score desc, reached) as place from board_${members}) ranked where member = $1`,
          asked.slice(0, slow(reads)),
        ),
      };
    },
    stop: () => {
      run("pg_ctl", ["-D", join(dataDir, "data"), "-m", "immediate", "stop"]);
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** Each of these queries takes hundreds of milliseconds. */
function slow(reads: number): number {
  return Math.min(reads, 20);
}

function idOf(which: "-u" | "-g"): number {
  return Number(execFileSync("id", [which, "postgres"]).toString());
}

const SEED = 1;

export const leaderboard = defineExperiment({
  name: "leaderboard",
  summary: "counting boards and reading ranks, also with PostgreSQL if it is installed; some ten minutes",
  settings: {
    edits: { parse: positiveInteger, fallback: 100_000, meaning: "edits in the log" },
    rooms: { parse: positiveInteger, fallback: 2_000, meaning: "rooms of the log" },
    rounds: { parse: wholeNumber, fallback: 3, meaning: "rounds of counting" },
    reads: { parse: positiveInteger, fallback: 2_000, meaning: "reads of each kind" },
    members: {
      parse: positiveIntegers,
      fallback: [1_000, 100_000, 1_000_000] as readonly number[],
      meaning: "members of each board to read",
    },
  },
  run: async ({ edits, rooms, rounds, reads, members: sizes }, print) => {
    const dataDir = mkdtempSync(join(tmpdir(), "coroom-bench-boards-"));
    const [redis, nats] = await Promise.all([
      startRedisServer({ dataDir: join(dataDir, "redis") }),
      startNatsServer({ dataDir: join(dataDir, "nats") }),
    ]);
    const postgres = await startPostgres();
    try {
      const shares: number[] = [];
      for (let round = 1; round <= rounds; round++)
        shares.push(await compareCounting({ natsUrl: nats.url, redisUrl: redis.url }, { rooms, edits }, round, print));
      if (shares.length > 0)
        print(
          `speed of the service compared with the bare script: ${percentile(shares, 50)}% (${Math.min(...shares)} to ${Math.max(...shares)}% in ${shares.length} rounds)`,
        );
      for (const members of sizes) await compareReads(redis.url, postgres, { members, reads }, print);
    } finally {
      postgres?.stop();
      await Promise.all([redis.stop(), nats.stop()]);
      rmSync(dataDir, { recursive: true, force: true });
    }
  },
});

/** Returns the service's speed in percent of the direct script calls. */
async function compareCounting(engines: Engines, log: { rooms: number; edits: number }, round: number, print: Print): Promise<number> {
  const figures = await benchUpdates(engines, { ...log, users: 8, seed: SEED }, `bench${round}`);
  const { edits, batches, projector, bare, projectorHash, bareHash } = figures;
  if (projectorHash !== bareHash) throw new Error("the boards differ: both legs did not send the same batches");
  const micros = (seconds: number): string => `${Math.round(seconds * 1e6)} µs`;
  const leg = ({ seconds, nodeCpu, redisCpu }: UpdateLeg): string =>
    `${Math.round(edits / seconds)} edits/s, ${Math.round(batches / seconds)} batches/s, CPU a batch ${micros(nodeCpu / batches)} in this process, ${micros(redisCpu / batches)} in Redis`;
  const share = Math.round((100 * bare.seconds) / projector.seconds);
  print(
    `updates, round ${round}: ${edits} edits in ${batches} batches, each into 6 windows; boards ${projectorHash}; ${share}%\n  projector    ${leg(projector)}\n  bare script  ${leg(bare)}`,
  );
  return share;
}

async function compareReads(
  redisUrl: string,
  postgres: Postgres | undefined,
  { members, reads }: { members: number; reads: number },
  print: Print,
): Promise<void> {
  const board = await fillLargeBoard(redisUrl, members, "bench-large", SEED);
  const lineOf = (times: readonly number[]): string =>
    `p50 ${percentile(times, 50).toFixed(3).padStart(9)} ms   p99 ${percentile(times, 99).toFixed(3).padStart(9)} ms   (${times.length} reads)`;
  print(`\n${members} members`);
  for (const [name, times] of Object.entries(await benchReads(board, reads, SEED)))
    print(`  Redis       ${name.padEnd(26)} ${lineOf(times)}`);
  if (postgres !== undefined) {
    await postgres.fill(members, SEED);
    for (const [name, times] of Object.entries(await postgres.ranks(members, reads, SEED)))
      print(`  PostgreSQL  ${name.padEnd(26)} ${lineOf(times)}`);
  }
  const { hot, full, counts, bands, allOrdered } = await benchMemory(board, "bench-large");
  const perMember = (bytes: number): string => (bytes / members).toFixed(1);
  print(
    `  memory: ordered part ${hot}, full scores ${full}, counts of bands ${counts} bytes: ${perMember(hot + full + counts)} a member; the ordered tail ${perMember(bands)} more; one sorted set of all ${perMember(allOrdered)}, and ${perMember(allOrdered + full)} with the scores by member`,
  );
  board.connection.stop();
}
