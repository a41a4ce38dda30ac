/**
 * A child process that cannot outlive Coroom. It has its own process group, so Ctrl-C at the terminal does not stop it
 * before Coroom has drained. A shell waits on a pipe that closes when Coroom ends in any way, and then kills the group.
 */

import { spawn, type ChildProcess } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

import { isErrno } from "../shared/io/system-error.ts";
import { inheritedEnv, type ProgramUser } from "./run-program.ts";

export type ChildCommand = {
  readonly path: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** The output of the process is appended here. */
  readonly logFile: string;
  /** Absent: the user of this process. */
  readonly user?: ProgramUser;
  /** The signal with which `stop` begins. Default: SIGTERM. */
  readonly stopSignal?: NodeJS.Signals;
};

export type Exit = { readonly code: number | null; readonly signal: NodeJS.Signals | null };

export interface ChildProcessHandle {
  readonly pid: number;
  readonly exited: Promise<Exit>;
  kill(signal: NodeJS.Signals): void;
  /** Sends the command's stop signal, then SIGKILL after `patienceMs`. Resolves when the process has ended. */
  stop(patienceMs: number): Promise<void>;
}

/** Throws when the program cannot be started. */
export async function spawnChild(command: ChildCommand): Promise<ChildProcessHandle> {
  const log = openSync(command.logFile, "a");
  const child = spawn(command.path, command.args, {
    detached: true,
    stdio: ["ignore", log, log],
    cwd: command.cwd,
    env: { ...inheritedEnv(), ...command.env },
    ...command.user,
  });
  closeSync(log);
  if (child.pid !== undefined) watch(child, child.pid);
  const exited = new Promise<Exit>((resolve) => child.once("exit", (code, signal) => resolve({ code, signal })));
  const pid = await spawned(child);
  const kill = (signal: NodeJS.Signals): void => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
  };
  return {
    pid,
    exited,
    kill,
    async stop(patienceMs) {
      kill(command.stopSignal ?? "SIGTERM");
      kill("SIGCONT"); // A paused process handles only this signal.
      const patience = new AbortController();
      const tooLong = sleep(patienceMs, true, { signal: patience.signal }).catch(() => false);
      if (await Promise.race([exited.then(() => false), tooLong])) killGroup(pid);
      patience.abort();
      await exited;
    },
  };
}

function spawned(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("spawn", () => (child.pid === undefined ? reject(new Error("spawned without a pid")) : resolve(child.pid)));
  });
}

function watch(child: ChildProcess, pid: number): void {
  const watchdog = spawn("/bin/sh", ["-c", 'read -r _; kill -9 "-$1"', "coroom-watchdog", String(pid)], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
    cwd: "/",
    env: inheritedEnv(),
  });
  watchdog.unref();
  if (watchdog.stdin instanceof Socket) watchdog.stdin.unref();
  // The watchdog must end before its pipe closes, because another process may reuse the group number.
  child.once("exit", () => watchdog.kill("SIGKILL"));
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch (error) {
    if (!isErrno(error, "ESRCH")) throw error;
  }
}
