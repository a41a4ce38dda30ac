/**
 * Which process is meant by a number that is used again once its owner is gone: the number and when
 * its process started. A zombie counts as gone: it holds nothing any more.
 */
import { readFileSync } from "node:fs";
import { isErrno } from "../shared/io/errno.ts";

/** `started` is in clock ticks since boot; empty where there is no /proc to ask, and then the number alone decides. */
export type ProcessIdentity = { readonly pid: number; readonly started: string };

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
  // The name, in brackets, may itself hold spaces and brackets.
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
