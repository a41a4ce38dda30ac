/**
 * Finds a program: the machine's own if it is new enough, otherwise Debian packages. The packages are unpacked once
 * into a cache folder, which later works without a network.
 */

import { constants, existsSync, readdirSync } from "node:fs";
import { access } from "node:fs/promises";
import { delimiter, join, resolve } from "node:path";
import type { BinarySpec } from "./binaries.ts";
import { EngineError } from "./engine-error.ts";
import { runProgram } from "./run-program.ts";
import { unpackedRoot } from "./unpacked.ts";
import { isAtLeast, parseVersion, showVersion, type Version } from "./binaries.ts";

export type Binary = {
  readonly path: string;
  readonly version: Version;
  /** Additional environment variables that the program needs. */
  readonly env: Readonly<Record<string, string>>;
  /** The folder of the unpacked packages; absent for the machine's own program. */
  readonly unpackedIn?: string;
};

export type FindOptions = {
  /** Folder for unpacked packages. Default: `.coroom/cache` under the working directory. */
  readonly cacheDir?: string;
  /** Receives a message when a slow step begins. */
  readonly print?: (line: string) => void;
};

const VERSION_MS_MAX = 20_000;

export async function findBinary(spec: BinarySpec, options: FindOptions = {}): Promise<Binary> {
  const tried: string[] = [];
  const own = await findOnPath(spec, tried);
  if (own !== undefined) return own;
  const cache = resolve(options.cacheDir ?? join(".coroom", "cache"), "engines");
  const root = await unpackedRoot(spec, cache, {
    tried,
    print: options.print ?? (() => {}),
    runs: async (folder) => (await binaryIn(spec, folder)) !== undefined,
  });
  const unpacked = root === undefined ? undefined : await binaryIn(spec, root);
  if (unpacked !== undefined) return unpacked;
  throw binaryMissing(spec, tried);
}

export function binaryMissing({ name, remedy }: BinarySpec, tried: readonly string[]): EngineError {
  return new EngineError("binary-missing", `no usable ${name} found. To fix this, ${remedy}.\n  tried: ${tried.join("\n  tried: ")}`);
}

async function findOnPath(spec: BinarySpec, tried: string[]): Promise<Binary | undefined> {
  // Servers are in sbin, which the PATH of a normal user omits.
  const folders = new Set([...(process.env["PATH"] ?? "").split(delimiter), "/usr/local/sbin", "/usr/sbin"]);
  const ownVersions = spec.executable.includes("*") ? executablesIn(spec, "/") : [];
  const named = [spec.name, ...(spec.otherNames ?? [])].flatMap((name) => Array.from(folders, (folder) => resolve(folder, name)));
  for (const path of [...named, ...ownVersions]) {
    if (!(await isExecutable(path))) continue;
    const version = await versionOf(spec, path, {});
    if (version !== undefined && isAtLeast(version, spec.versionMin)) return { path, version, env: {} };
    tried.push(version === undefined ? `${path}: it does not run` : `${path}: ${showVersion(version)} is too old`);
  }
  return undefined;
}

/** The program in unpacked packages. Undefined: it does not run on this machine, or is too old. */
export async function binaryIn(spec: BinarySpec, root: string): Promise<Binary | undefined> {
  const [path] = executablesIn(spec, root);
  if (path === undefined || !(await isExecutable(path))) return undefined;
  const libraries = libraryPath(root);
  const env: Record<string, string> = libraries === "" ? {} : { LD_LIBRARY_PATH: libraries };
  const version = await versionOf(spec, path, env);
  return version !== undefined && isAtLeast(version, spec.versionMin) ? { path, version, env, unpackedIn: root } : undefined;
}

/** The paths that `executable` can mean, the highest version first. */
function executablesIn({ executable }: BinarySpec, root: string): readonly string[] {
  const [before = "", after] = executable.split("*");
  if (after === undefined) return [join(root, executable)];
  const versions = existsSync(join(root, before)) ? readdirSync(join(root, before)) : [];
  return versions.toSorted((a, b) => Number(b) - Number(a)).map((version) => join(root, before, version, after));
}

function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

/** Returns undefined for a program that does not run here. */
function versionOf(
  { versionFlag = "--version" }: BinarySpec,
  path: string,
  env: Readonly<Record<string, string>>,
): Promise<Version | undefined> {
  return runProgram(path, [versionFlag], { msMax: VERSION_MS_MAX, env }).then(parseVersion, () => undefined);
}

/**
 * The library folders of unpacked packages, for LD_LIBRARY_PATH: every folder up to two levels under `lib` that
 * contains a shared library. The program itself searches only the machine's folders.
 */
export function libraryPath(root: string): string {
  const tops = [join(root, "usr/lib"), join(root, "lib")].filter((top) => existsSync(top));
  const folders = tops.flatMap((top) => [top, ...subfolders(top), ...subfolders(top).flatMap(subfolders)]);
  return folders.filter(holdsLibrary).join(":");
}

function subfolders(folder: string): readonly string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(folder, entry.name));
}

function holdsLibrary(folder: string): boolean {
  return readdirSync(folder).some((name) => /^lib.*\.so(\.|$)/.test(name));
}
