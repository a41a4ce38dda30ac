/**
 * The cache of unpacked packages, with one folder per program. It is filled under a lock, so that processes that start
 * together download once. A folder gets its final name only after its program has run, so an interrupted download never
 * looks complete.
 */

import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { makeFolder } from "../shared/io/make-folder.ts";
import { isErrno } from "../shared/io/system-error.ts";
import { parseAptError } from "./apt-text.ts";
import type { BinarySpec } from "./binaries.ts";
import { unpackPackages, type PackageSource } from "./debian-packages.ts";
import { EngineError } from "./engine-error.ts";
import { claimLock, type Lock } from "./pid-lock.ts";
import { ProgramError, runProgram } from "./run-program.ts";

type FetchOptions = {
  /** Failures are added to this list, for the error message. */
  readonly tried: string[];
  readonly print: (line: string) => void;
  readonly runs: (root: string) => Promise<boolean>;
};

const LOCK_POLL_MS = 100;
const APT_MS_MAX = 20_000;

/** The folder of the program's packages, downloaded if necessary. Undefined: no source has a program that runs. */
export async function unpackedRoot(spec: BinarySpec, cache: string, fetch: FetchOptions): Promise<string | undefined> {
  const root = join(cache, spec.name);
  if (existsSync(root) && (await fetch.runs(root))) return root;
  const lock = await lockCache(spec, cache);
  try {
    if (existsSync(root) && (await fetch.runs(root))) return root;
    await removePartials(spec, cache);
    if (!(await hasApt())) {
      fetch.tried.push("Debian packages: this machine has no apt-get");
      return undefined;
    }
    fetch.print(`${spec.name} is not installed; downloading its Debian packages once`);
    return await fill(spec, root, fetch);
  } finally {
    await removePartials(spec, cache);
    lock.release();
  }
}

function hasApt(): Promise<boolean> {
  return runProgram("apt-get", ["--version"], { msMax: APT_MS_MAX }).then(
    () => true,
    () => false,
  );
}

async function fill(spec: BinarySpec, root: string, fetch: FetchOptions): Promise<string | undefined> {
  for (const source of sourcesOf(spec)) {
    const partial = `${root}.partial-${randomUUID()}`;
    try {
      await unpackPackages(spec, source, partial);
    } catch (error) {
      if (!(error instanceof ProgramError)) throw error;
      fetch.tried.push(`the package of ${nameOf(source)}: ${parseAptError(error.errorOutput) ?? error.message}`);
      continue;
    }
    if (await fetch.runs(partial)) {
      // An older folder whose program no longer runs is replaced only now, when a better one exists.
      if (existsSync(root)) await rename(root, `${root}.partial-${randomUUID()}`);
      await rename(partial, root);
      return root;
    }
    fetch.tried.push(`the package of ${nameOf(source)}: too old, or does not run on this machine`);
  }
  return undefined;
}

function sourcesOf(spec: BinarySpec): readonly PackageSource[] {
  return [...spec.newerSuites.map((suite) => ({ kind: "newer-suite", suite }) as const), { kind: "own-suite" }];
}

function nameOf(source: PackageSource): string {
  return source.kind === "own-suite" ? "this machine's suite" : source.suite;
}

async function lockCache(spec: BinarySpec, cache: string): Promise<Lock> {
  try {
    makeFolder(cache);
    for (;;) {
      const claim = claimLock(join(cache, `${spec.name}.lock`));
      if (claim.kind === "claimed") return claim.lock;
      await sleep(LOCK_POLL_MS);
    }
  } catch (error) {
    if (!isErrno(error, "EACCES", "EPERM", "ENOTDIR", "EROFS", "ENOENT", "ENOSPC")) throw error;
    const problem = `no usable ${spec.name} found, and the cache folder ${cache} is not writable`;
    throw new EngineError("binary-missing", `${problem}. To fix this, ${spec.remedy}, or set COROOM_CACHE_DIR to a writable folder`, {
      cause: error,
    });
  }
}

/** Call only under the lock: removes the files of an interrupted download. */
async function removePartials(spec: BinarySpec, cache: string): Promise<void> {
  const partials = (await readdir(cache)).filter((name) => name.startsWith(`${spec.name}.partial-`));
  for (const name of partials) await rm(join(cache, name), { recursive: true, force: true });
}
