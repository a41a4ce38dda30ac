/**
 * A lock file that names the processes holding it. One left by processes that are gone is taken
 * over, so a crash never locks anyone out. It serves one machine: process ids mean nothing elsewhere.
 */
import { randomUUID } from "node:crypto";
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { isErrno } from "../shared/io/errno.ts";
import { identify, isRunning, type ProcessIdentity } from "./process-identity.ts";

export interface Lock {
  /** The lock outlives us as long as this process runs. */
  shareWith(pid: number): void;
  /** Safe to call twice: the second time the file may be another's. */
  release(): void;
}

export type Claim = { readonly kind: "claimed"; readonly lock: Lock } | { readonly kind: "held"; readonly by: number };

export function claimLock(path: string): Claim {
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

/** Two may find the same stale lock: only one moves it away, and whoever moved a fresh one puts it back. */
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

/** A file no longer readable as holders holds nothing: it is stale. */
function parseHolders(text: string): readonly ProcessIdentity[] {
  return [...text.matchAll(/"pid":(\d+),"started":"(\d*)"/g)].map((match) => ({ pid: Number(match[1]), started: match[2] ?? "" }));
}
