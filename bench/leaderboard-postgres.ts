/** PostgreSQL as the classic alternative: the same scores in a table with the index a rank query wants, from Debian's packages. */

import { execFileSync, spawn } from "node:child_process";
import { chownSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { scoresOf } from "./leaderboard.bench.ts";

const BIN = "/usr/lib/postgresql/15/bin";

export type Postgres = {
  fill(members: number, seed: number): Promise<void>;
  ranks(members: number, reads: number, seed: number): Promise<Record<"first 100" | "own rank, counted" | "own rank, rank()", number[]>>;
  stop(): void;
};

/** Undefined where it is not installed. It does not run as root: there it runs as its packages' own user. */
export async function startPostgres(): Promise<Postgres | undefined> {
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
    /** psql's own timing of each, prepared: from the question's sending to the answer. */
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

/** They take hundreds of milliseconds each. */
function slow(reads: number): number {
  return Math.min(reads, 20);
}

function idOf(which: "-u" | "-g"): number {
  return Number(execFileSync("id", [which, "postgres"]).toString());
}
