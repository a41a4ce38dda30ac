/**
 * A running engine: a child process with a data folder, a port and a readiness check. The lock of the data folder spans
 * restarts; `stop` releases it.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { assert } from "../shared/assert.ts";
import type { Running } from "../shared/process/lifecycle.ts";
import { spawnChild, type ChildProcessHandle, type ChildCommand, type Exit } from "./child.ts";
import { EngineError } from "./engine-error.ts";
import { cutLog, endOfLog, keepLogSmall, sizeOfLog } from "./engine-log.ts";
import type { Lock } from "./pid-lock.ts";

export interface Engine extends Running {
  readonly name: string;
  readonly url: string;
  readonly port: number;
  /** The current process; `restart` changes it. */
  readonly pid: number;
  /** Resolves when the current process ends, for any reason. */
  readonly exited: Promise<Exit>;
  kill(signal: NodeJS.Signals): void;
  /** Stops the process if it runs, and starts it on the same port and data. */
  restart(): Promise<void>;
}

type EngineProgram = {
  readonly name: string;
  readonly url: string;
  readonly port: number;
  readonly command: ChildCommand;
  readonly lock: Lock;
  readonly isReady: () => Promise<boolean>;
};

const READY_MS_MAX = 60_000;
const POLL_MS = 20;
const STOP_PATIENCE_MS = 10_000;

export async function runEngine(program: EngineProgram): Promise<Engine> {
  await cutLog(program.command.logFile);
  let child = await startOrExplain(program);
  const stopping = new AbortController();
  void keepLogSmall(program.command.logFile, stopping.signal);
  let stopped = false;
  // A stop waits for a running restart. Otherwise it would end the old process and leave the new one running.
  let turn: Promise<void> = Promise.resolve();
  const inTurn = (act: () => Promise<void>): Promise<void> => (turn = turn.then(act, act));
  return {
    name: program.name,
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
        assert(!stopped, `${program.name} is stopped and cannot be restarted`);
        await child.stop(STOP_PATIENCE_MS);
        child = await startOrExplain(program);
      }),
    stop: () =>
      inTurn(async () => {
        stopped = true;
        stopping.abort();
        await child.stop(STOP_PATIENCE_MS);
        program.lock.release();
      }),
  };
}

async function startOrExplain(program: EngineProgram): Promise<ChildProcessHandle> {
  const { command, name } = program;
  const logStart = sizeOfLog(command.logFile);
  const child = await spawnChild(command).catch((error: unknown) => {
    throw new EngineError(
      "start-failed",
      `cannot start ${name}: ${command.path} does not run (${String(error)}). Install a working ${name}`,
      {
        cause: error,
      },
    );
  });
  const outcome = await sharedAndReady(program, child).catch(async (error: unknown) => {
    await child.stop(0); // The lock does not name it, so another process could open the same data.
    throw error;
  });
  if (outcome === "ready") return child;
  await child.stop(0);
  throw new EngineError(
    "start-failed",
    `${name} ${outcome}; the last lines of ${command.logFile}:\n  ${endOfLog(command.logFile, logStart)}`,
  );
}

async function sharedAndReady(program: EngineProgram, child: ChildProcessHandle): Promise<string> {
  program.lock.shareWith(child.pid);
  return readyOrNot(program, child);
}

async function readyOrNot(program: EngineProgram, child: ChildProcessHandle): Promise<string> {
  let ended: Exit | undefined;
  void child.exited.then((exit) => (ended = exit));
  const deadline = performance.now() + READY_MS_MAX;
  while (performance.now() < deadline) {
    if (ended !== undefined) return `stopped during its start (${ended.signal ?? `exit code ${ended.code}`})`;
    if (await program.isReady()) return "ready";
    await sleep(POLL_MS);
  }
  return `was not ready within ${READY_MS_MAX / 1000} s`;
}
