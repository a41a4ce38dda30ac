/**
 * A lock file that names the processes that hold it. A lock whose holders have ended is taken over, so a crash never
 * blocks later processes. It is valid on one machine, because process ids have no meaning on others.
 */

import { randomUUID } from "node:crypto";
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { isErrno } from "../shared/io/system-error.ts";

export interface Lock {
  /** The lock stays after this process ends, as long as the given process runs. */
  shareWith(pid: number): void;
  /** May be called twice. At the second call the file may belong to another process, and is kept. */
  release(): void;
}

type LockOutcome = { readonly kind: "claimed"; readonly lock: Lock } | { readonly kind: "held"; readonly by: number };

export function claimLock(path: string): LockOutcome {
  const mine = `${path}.${randomUUID()}`;
  const us = identify(process.pid);
  writeFileSync(mine, JSON.stringify([us]));
  try {
    for (;;) {
      if (linked(mine, path)) return { kind: "claimed", lock: heldLock(path, us) };
      const found = read(path);
      const living = parseHolders(found).find(isRunning);
      if (living !== undefined) return { kind: "held", by: living.pid };
      removeStale(path, found);
    }
  } finally {
    rmSync(mine, { force: true });
  }
}

function heldLock(path: string, us: ProcessIdentity): Lock {
  let released = false;
  return {
    shareWith(pid) {
      const next = `${path}.${randomUUID()}`;
      writeFileSync(next, JSON.stringify([us, identify(pid)]));
      renameSync(next, path);
    },
    release() {
      if (!released) rmSync(path, { force: true });
      released = true;
    },
  };
}

/** Two processes may find the same stale lock, but only one moves it away. A process that moved a fresh lock restores it. */
function removeStale(path: string, stale: string): void {
  const aside = `${path}.${randomUUID()}`;
  try {
    renameSync(path, aside);
  } catch (error) {
    if (isErrno(error, "ENOENT")) return;
    throw error;
  }
  if (read(aside) !== stale) linked(aside, path);
  rmSync(aside, { force: true });
}

function linked(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (isErrno(error, "EEXIST")) return false;
    throw error;
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (isErrno(error, "ENOENT")) return "";
    throw error;
  }
}

/** A file that does not decode has no holder, so it is stale. */
function parseHolders(text: string): readonly ProcessIdentity[] {
  return [...text.matchAll(/"pid":(\d+),"started":"(\d*)"/g)].map((match) => ({ pid: Number(match[1]), started: match[2] ?? "" }));
}

/** `started`: clock ticks since boot. Empty on a machine without /proc, where only the id decides. */
type ProcessIdentity = { readonly pid: number; readonly started: string };

/**
 * Identifies a process by its id and its start time, because an id is used again after the process has ended. A zombie
 * counts as ended, because it holds nothing.
 */
export function identify(pid: number): ProcessIdentity {
  return { pid, started: startedTicks(pid) };
}

export function isRunning({ pid, started }: ProcessIdentity): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (isErrno(error, "ESRCH")) return false;
    if (!isErrno(error, "EPERM")) throw error;
  }
  return startedTicks(pid) === started;
}

function startedTicks(pid: number): string {
  const stat = statOf(pid);
  // The name is in brackets, and may itself contain spaces and brackets.
  const [state, ...rest] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return state === "Z" ? "" : (rest[18] ?? "");
}

function statOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch (error) {
    if (isErrno(error, "ENOENT", "ESRCH")) return "";
    throw error;
  }
}
