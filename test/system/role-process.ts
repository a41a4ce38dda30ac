/** A process of one role for system tests, as `coroom start --roles` runs it, from this release or another one. */

import { readFileSync } from "node:fs";
import { resolve } from "node:path";

import { NODE_FLAGS } from "../../cli/node-flags.ts";
import { spawnChild, type ChildProcessHandle, type Exit } from "../../engines/child.ts";
import { eventually } from "./eventually.ts";
import { GrowingLog, sizeOf } from "./growing-log.ts";

const READY_MS_MAX = 120_000;
const STOP_PATIENCE_MS = 10_000;

/** A process of one role. */
export class Process {
  readonly role: string;
  readonly #logFile: string;
  readonly #serversReady: GrowingLog;
  readonly #start: (release: string, changed: Readonly<Record<string, string>>) => Promise<ChildProcessHandle>;
  #release: string;
  #changed: Readonly<Record<string, string>> = {};
  #child: ChildProcessHandle;

  private constructor(
    role: string,
    logFile: string,
    release: string,
    start: (release: string, changed: Readonly<Record<string, string>>) => Promise<ChildProcessHandle>,
    child: ChildProcessHandle,
  ) {
    this.role = role;
    this.#release = release;
    this.#logFile = logFile;
    this.#serversReady = new GrowingLog(logFile, (line) => line.includes("room server is ready"));
    this.#start = start;
    this.#child = child;
  }

  static async start(
    role: string,
    logFile: string,
    settings: Readonly<Record<string, string>>,
    launcher: readonly string[] = [],
    release = ".",
  ): Promise<Process> {
    const start = (from: string, changed: Readonly<Record<string, string>>) =>
      startRole(role, logFile, { ...settings, ...changed }, launcher, from);
    return new Process(role, logFile, release, start, await start(release, {}));
  }

  /** The output of all runs of the process. */
  printed(): string {
    return readFileSync(this.#logFile, "utf8");
  }

  /** The log line of each room server that the process ran, the newest last. */
  serversReady(): readonly string[] {
    return this.#serversReady.lines();
  }

  get pid(): number {
    return this.#child.pid;
  }

  get exited(): Promise<Exit> {
    return this.#child.exited;
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#child.exited;
  }

  /** Starts the process after its end. `changed`: settings that differ from now on. */
  async startAgain(changed: Readonly<Record<string, string>> = {}): Promise<void> {
    this.#changed = { ...this.#changed, ...changed };
    this.#child = await this.#start(this.#release, this.#changed);
  }

  async restart(): Promise<void> {
    await this.#child.stop(STOP_PATIENCE_MS);
    this.#child = await this.#start(this.#release, this.#changed);
  }

  /** Stops the process gracefully, and starts the same role from another release. */
  async replaceBy(release: string): Promise<void> {
    this.#release = release;
    await this.restart();
  }

  async stop(): Promise<void> {
    await this.#child.stop(STOP_PATIENCE_MS);
  }
}

function lastLines(file: string): string {
  return readFileSync(file, "utf8").trimEnd().split("\n").slice(-10).join("\n");
}

async function startRole(
  role: string,
  logFile: string,
  settings: Readonly<Record<string, string>>,
  launcher: readonly string[],
  release: string,
): Promise<ChildProcessHandle> {
  const env = Object.fromEntries(Object.entries(settings).map(([name, value]) => [`COROOM_${name}`, value]));
  const ready = new GrowingLog(logFile, (line) => line.includes("coroom ready"), sizeOf(logFile));
  const [path, ...args] = [...launcher, process.execPath, ...NODE_FLAGS, resolve(release, "dist/cli/main.js"), "start", "--roles", role];
  const child = await spawnChild({
    path: path!,
    args,
    env,
    cwd: resolve(release),
    logFile,
  });

  let ended = false;
  void child.exited.then(() => (ended = true));
  try {
    await eventually(`${role} is ready`, () => ended || ready.lines().length > 0, READY_MS_MAX);
    if (ended) throw new Error(`${role} ended at its start. The end of its log:\n${lastLines(logFile)}`);
    return child;
  } catch (error) {
    await child.stop(0);
    throw error;
  }
}
