/**
 * Where a program comes from: the machine's own if it is new enough, else Debian packages unpacked
 * once into a cache folder, which from then on serves without a network.
 */
import { constants } from "node:fs";
import { access, readdir, rename, rm } from "node:fs/promises";
import { delimiter, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { BinarySpec } from "./binaries.ts";
import { unpackPackages, type PackageSource } from "./debian-packages.ts";
import { EngineError } from "./engine-error.ts";
import { isErrno } from "./errno.ts";
import { libraryPath } from "./library-path.ts";
import { makeFolder } from "./make-folder.ts";
import { claimLock, type Lock } from "./pid-lock.ts";
import { runProgram } from "./run-program.ts";
import { isAtLeast, parseVersion, showVersion, type Version } from "./version.ts";

export type Binary = {
  readonly path: string;
  readonly version: Version;
  /** What it needs in its environment to run. */
  readonly env: Readonly<Record<string, string>>;
  /** The folder its packages were unpacked in; absent for the machine's own. */
  readonly unpackedIn?: string;
};

export type FindOptions = {
  /** Where unpacked packages are kept. Default: `.coroom/cache` under the working directory. */
  readonly cacheDir?: string;
  /** Leave the machine's own programs aside. */
  readonly ignorePath?: boolean;
  /** Told when something slow begins, in words for a person. */
  readonly say?: (line: string) => void;
};

export async function findBinary(spec: BinarySpec, options: FindOptions = {}): Promise<Binary> {
  const seen: string[] = [];
  const own = options.ignorePath === true ? undefined : await findOnPath(spec, seen);
  if (own !== undefined) return own;
  const cache = resolve(options.cacheDir ?? join(".coroom", "cache"), "engines");
  return (await findUnpacked(spec, cache)) ?? (await fetchIntoCache(spec, cache, seen, options.say ?? (() => {})));
}

async function findOnPath(spec: BinarySpec, seen: string[]): Promise<Binary | undefined> {
  // Servers lie in sbin, which a plain user's PATH leaves out.
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/local/sbin", "/usr/sbin"];
  for (const folder of folders) {
    const path = join(folder, spec.name);
    if (!(await isExecutable(path))) continue;
    const version = await versionOf(path, {});
    if (version !== undefined && isAtLeast(version, spec.versionMin)) return { path, version, env: {} };
    seen.push(version === undefined ? `${path} does not run` : `${path} is ${showVersion(version)}, too old`);
  }
  return undefined;
}

async function findUnpacked(spec: BinarySpec, cache: string): Promise<Binary | undefined> {
  return inspect(spec, join(cache, spec.name));
}

async function inspect(spec: BinarySpec, root: string): Promise<Binary | undefined> {
  const path = join(root, spec.executable);
  if (!(await isExecutable(path))) return undefined;
  const libraries = libraryPath(root);
  const env: Record<string, string> = libraries === "" ? {} : { LD_LIBRARY_PATH: libraries };
  const version = await versionOf(path, env);
  return version !== undefined && isAtLeast(version, spec.versionMin) ? { path, version, env, unpackedIn: root } : undefined;
}

/** Fills the cache under a lock; a folder gets its final name only once its program has been seen to run. */
async function fetchIntoCache(spec: BinarySpec, cache: string, seen: string[], say: (line: string) => void): Promise<Binary> {
  const lock = await lockCache(spec, cache);
  try {
    const meanwhile = await findUnpacked(spec, cache);
    if (meanwhile !== undefined) return meanwhile;
    await removeLeftovers(spec, cache);
    say(`${spec.name}: not on this machine, fetching its Debian packages (once)`);
    for (const source of sources(spec)) {
      const root = join(cache, `${spec.name}.partial`);
      try {
        await unpackPackages(spec.packages, source, root);
        if ((await inspect(spec, root)) === undefined) throw new Error(`the ${spec.name} of ${named(source)} is too old or does not run`);
      } catch (error) {
        seen.push(error instanceof Error ? error.message : String(error));
        await removeLeftovers(spec, cache);
        continue;
      }
      await rename(root, join(cache, spec.name));
      const fetched = await findUnpacked(spec, cache);
      if (fetched !== undefined) return fetched;
    }
  } finally {
    lock.release();
  }
  throw new EngineError("binary-missing", `no usable ${spec.name}: ${spec.remedy}\n  tried: ${seen.join("\n  tried: ")}`);
}

function sources(spec: BinarySpec): readonly PackageSource[] {
  return [...spec.newerSuites.map((suite) => ({ kind: "newer-suite", suite }) as const), { kind: "own-suite" }];
}

function named(source: PackageSource): string {
  return source.kind === "own-suite" ? "this machine's suite" : source.suite;
}

async function lockCache(spec: BinarySpec, cache: string): Promise<Lock> {
  try {
    makeFolder(cache);
    for (;;) {
      const claim = claimLock(join(cache, `${spec.name}.lock`));
      if (claim.kind === "claimed") return claim.lock;
      await sleep(100);
    }
  } catch (error) {
    if (!isErrno(error, "EACCES", "EPERM", "ENOTDIR", "EEXIST", "EROFS", "ENOENT", "ENOSPC")) throw error;
    throw new EngineError("binary-missing", `no ${spec.name} here, and the cache folder ${cache} cannot be written: ${spec.remedy}; or set COROOM_CACHE_DIR to a writable folder`, { cause: error });
  }
}

/** What an interrupted fetch left, or a cache whose program no longer runs. Only under the lock. */
async function removeLeftovers(spec: BinarySpec, cache: string): Promise<void> {
  const leftovers = (await readdir(cache)).filter((name) => name === spec.name || name.startsWith(`${spec.name}.partial`));
  for (const name of leftovers) await rm(join(cache, name), { recursive: true, force: true });
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(() => true, () => false);
}

async function versionOf(path: string, env: Readonly<Record<string, string>>): Promise<Version | undefined> {
  return runProgram(path, ["--version"], { msMax: 20_000, env }).then(parseVersion, () => undefined);
}
