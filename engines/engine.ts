/**
 * A running engine: a child process with its data folder, its port, and proof that it answers.
 * The data folder's lock spans restarts; `stop` gives it back.
 */
import { statSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { assert } from "../shared/assert.ts";
import type { Running } from "../shared/lifecycle.ts";
import { spawnChild, type Child, type Command, type Exit } from "./child.ts";
import { EngineError } from "./engine-error.ts";
import type { Lock } from "./pid-lock.ts";

export interface Engine extends Running {
  readonly url: string;
  readonly port: number;
  /** Of the present process: another after `restart`. */
  readonly pid: number;
  /** Resolves when the present process ends, whoever ended it. */
  readonly exited: Promise<Exit>;
  kill(signal: NodeJS.Signals): void;
  /** Stops what still runs and starts it again on the same port and data. */
  restart(): Promise<void>;
}

export type EngineProgram = {
  readonly name: string;
  readonly url: string;
  readonly port: number;
  readonly command: Command;
  readonly lock: Lock;
  readonly isReady: () => Promise<boolean>;
};

const READY_MS_MAX = 60_000;
const POLL_MS = 20;
const STOP_PATIENCE_MS = 10_000;

export async function runEngine(program: EngineProgram): Promise<Engine> {
  let child = await startOrExplain(program);
  let stopped = false;
  // A stop during a restart waits for it: it must not end the old process and leave the new one.
  let turn: Promise<void> = Promise.resolve();
  const inTurn = (act: () => Promise<void>): Promise<void> => (turn = turn.then(act, act));
  return {
    url: program.url,
    port: program.port,
    get pid() {
      return child.pid;
    },
    get exited() {
      return child.exited;
    },
    kill(signal) {
      child.kill(signal);
    },
    restart: () =>
      inTurn(async () => {
        assert(!stopped, `${program.name} was stopped: it cannot be restarted`);
        await child.stop(STOP_PATIENCE_MS);
        child = await startOrExplain(program);
      }),
    stop: () =>
      inTurn(async () => {
        stopped = true;
        await child.stop(STOP_PATIENCE_MS);
        program.lock.release();
      }),
  };
}

async function startOrExplain(program: EngineProgram): Promise<Child> {
  const { command, name } = program;
  const logStart = sizeOf(command.logFile);
  const child = await spawnChild(command).catch((error: unknown) => {
    throw new EngineError("start-failed", `${name} could not be started: ${command.path} does not run (${String(error)})`, {
      cause: error,
    });
  });
  program.lock.shareWith(child.pid);
  const outcome = await readyOrNot(program, child);
  if (outcome === "ready") return child;
  await child.stop(0);
  const log = readFileSync(command.logFile).subarray(logStart).toString().trim().split("\n").slice(-8).join("\n  ");
  throw new EngineError("start-failed", `${name} ${outcome}; the last lines of ${command.logFile}:\n  ${log}`);
}

async function readyOrNot(program: EngineProgram, child: Child): Promise<string> {
  let ended: Exit | undefined;
  void child.exited.then((exit) => (ended = exit));
  const deadline = performance.now() + READY_MS_MAX;
  while (performance.now() < deadline) {
    if (ended !== undefined) return `ended at its start (${ended.signal ?? `exit code ${ended.code}`})`;
    if (await program.isReady()) return "ready";
    await sleep(POLL_MS);
  }
  return `did not get ready within ${READY_MS_MAX / 1000} s`;
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}
