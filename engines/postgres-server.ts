/**
 * A real PostgreSQL server for tests, the machine's own or from Debian's packages, unpacked without root. PostgreSQL
 * refuses to run as root, so a test that runs as root starts it as the user nobody. Its data folder must lie in a folder
 * that this user can enter, as temporary folders do.
 */

import { randomUUID } from "node:crypto";
import { chownSync, cpSync, existsSync, readFileSync, realpathSync } from "node:fs";
import { userInfo } from "node:os";
import { dirname, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isErrno } from "../shared/io/system-error.ts";
import { answersOverTcp } from "./ask.ts";
import { BINARIES } from "./binaries.ts";
import { claimDataDir, writeOwnFile } from "./data-dir.ts";
import { EngineError } from "./engine-error.ts";
import { runEngine, type Engine } from "./engine.ts";
import { type Binary, binaryIn, findBinary, type FindOptions } from "./find.ts";
import { claimPort } from "./free-port.ts";
import { ProgramError, runProgram, type ProgramUser } from "./run-program.ts";

export type PostgresServerOptions = FindOptions & {
  readonly dataDir: string;
  /** Additional server settings, such as `synchronous_commit`. */
  readonly settings?: Readonly<Record<string, string>>;
  /** The certificate and key of the server, in PEM. Absent: connections are not encrypted. */
  readonly tls?: { readonly certificate: string; readonly key: string };
};
/** `url`: with a superuser and its password. */
export type PostgresServer = Engine & {
  /** Kills all processes of the server at once, and starts it again on the same port and data. */
  crash(whileAway?: () => Promise<unknown>): Promise<void>;
};

const SUPERUSER = "coroom";
/** The user nobody of Linux. */
const NOBODY: ProgramUser = { uid: 65_534, gid: 65_534 };
const ASK_MS_MAX = 500;
const PROGRAM_MS_MAX = 60_000;
const POLL_MS = 5;

export async function startPostgresServer(options: PostgresServerOptions): Promise<PostgresServer> {
  const dataDir = resolve(options.dataDir);
  const lock = claimDataDir(dataDir);
  try {
    const user = process.getuid?.() === 0 ? NOBODY : undefined;
    refuseNamelessUser();
    const own = (path: string) => user !== undefined && chownSync(path, user.uid, user.gid);
    own(dataDir);
    const binary = await runnableBinary(await findBinary(BINARIES.postgres, options), dataDir, user);
    const run = { env: { ...binary.env, TZ: "GMT" }, cwd: dataDir, ...(user === undefined ? {} : { user }) };
    const host = "127.0.0.1";
    const port = await claimPort(undefined, host, "COROOM_POSTGRES_URL");
    const data = join(dataDir, "data");
    const password = randomUUID();
    const writeOwn = (name: string, text: string): string => {
      const file = join(dataDir, name);
      writeOwnFile(file, text);
      own(file);
      return file;
    };
    if (existsSync(data)) throw new EngineError("data-dir-in-use", `${data} exists: give the server a new folder`);
    const login = ["-U", SUPERUSER, "--pwfile", writeOwn("password", password), "--auth", "scram-sha-256"];
    const initdb = join(dirname(binary.path), "initdb");
    await runProgram(initdb, ["-D", data, ...login, "--no-locale", "--encoding", "UTF8", "--no-sync"], { ...run, msMax: PROGRAM_MS_MAX });
    const settings = {
      listen_addresses: host,
      port: String(port),
      unix_socket_directories: "",
      fsync: "off", // A killed process loses nothing that it gave to the system. Only a power failure would.
      jit: "off", // The library for JIT compilation is not unpacked.
      shared_buffers: "16MB",
      timezone: "GMT",
      log_timezone: "GMT",
      ...(options.tls && {
        ssl: "on",
        ssl_cert_file: writeOwn("server.crt", options.tls.certificate),
        ssl_key_file: writeOwn("server.key", options.tls.key),
      }),
      ...options.settings,
    };
    const engine = await runEngine({
      name: BINARIES.postgres.name,
      url: `postgres://${SUPERUSER}:${password}@${host}:${port}/postgres`,
      port,
      command: {
        path: binary.path,
        args: ["-D", data, ...Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`])],
        ...run,
        logFile: join(dataDir, "postgres.log"),
        stopSignal: "SIGINT", // SIGTERM waits until all clients have disconnected.
      },
      lock,
      isReady: () => answersOverTcp({ host, port, send: STARTUP, msMax: ASK_MS_MAX }, (received) => received.startsWith("R")),
    });
    return Object.assign(engine, { crash: (whileAway?: () => Promise<unknown>) => crash(engine, whileAway) });
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** PostgreSQL's initdb needs the name of its user, which a user in a container may not have. */
function refuseNamelessUser(): void {
  try {
    userInfo();
  } catch (cause) {
    // The only error of userInfo: the user has no entry.
    const problem = `PostgreSQL cannot start, because user ${process.getuid?.()} has no name`;
    throw new EngineError("start-failed", `${problem}. Run the tests as a user with an entry in /etc/passwd`, { cause });
  }
}

/** The first message of a client. The server asks for a password as soon as it accepts connections, and not before. */
const STARTUP = ((): string => {
  const body = `\0\x03\0\0user\0${SUPERUSER}\0database\0postgres\0\0`;
  return `\0\0\0${String.fromCharCode(body.length + 4)}${body}`;
})();

/** A copy of the unpacked packages if `user` cannot enter their folder, for example below the home of root. */
async function runnableBinary(binary: Binary, dataDir: string, user: ProgramUser | undefined): Promise<Binary> {
  const real = { ...binary, path: realpathSync(binary.path) }; // PostgreSQL's other programs and files are beside this one.
  if (user === undefined || real.unpackedIn === undefined) return real;
  const runs = await runProgram(real.path, ["--version"], { msMax: PROGRAM_MS_MAX, cwd: "/", env: real.env, user }).then(
    () => true,
    (error: unknown) => {
      if (!(error instanceof ProgramError)) throw error;
      return false;
    },
  );
  if (runs) return real;
  const copy = join(dataDir, "program");
  cpSync(real.unpackedIn, copy, { recursive: true, verbatimSymlinks: true });
  return (await binaryIn(BINARIES.postgres, copy)) ?? real;
}

/** PostgreSQL refuses to start while a process of the killed server still uses its memory. */
async function crash(engine: Engine, whileAway: () => Promise<unknown> = async () => {}): Promise<void> {
  const processes = [engine.pid, ...childrenOf(engine.pid)];
  for (const pid of processes) process.kill(pid, "SIGKILL");
  await engine.exited;
  while (processes.some(isAlive)) await sleep(POLL_MS);
  try {
    await whileAway();
  } finally {
    await engine.restart(); // Also for the tests after one that fails.
  }
}

function childrenOf(pid: number): readonly number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  return children === "" ? [] : children.split(" ").map(Number);
}

/** A process that has ended may keep its number until its parent asks for it. */
function isAlive(pid: number): boolean {
  try {
    return !readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ");
  } catch (error) {
    if (isErrno(error, "ENOENT", "ESRCH")) return false;
    throw error;
  }
}
