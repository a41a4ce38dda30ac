/**
 * Where a program comes from: the machine's own if it is new enough, else Debian packages unpacked
 * once into a cache folder, which from then on serves without a network.
 */
import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { delimiter, join, resolve } from "node:path";
import type { BinarySpec } from "./binaries.ts";
import { EngineError } from "./engine-error.ts";
import { libraryPath } from "./library-path.ts";
import { runProgram } from "./run-program.ts";
import { unpackedRoot } from "./unpacked.ts";
import { isAtLeast, parseVersion, showVersion, type Version } from "./version.ts";

export type Binary = {
  readonly path: string;
  readonly version: Version;
  /** What it needs in its environment, beside the usual, to run. */
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

const VERSION_MS_MAX = 20_000;

export async function findBinary(spec: BinarySpec, options: FindOptions = {}): Promise<Binary> {
  const tried: string[] = [];
  const own = options.ignorePath === true ? undefined : await findOnPath(spec, tried);
  if (own !== undefined) return own;
  const cache = resolve(options.cacheDir ?? join(".coroom", "cache"), "engines");
  const root = await unpackedRoot(spec, cache, {
    tried,
    say: options.say ?? (() => {}),
    runs: async (folder) => (await inspect(spec, folder)) !== undefined,
  });
  const unpacked = root === undefined ? undefined : await inspect(spec, root);
  if (unpacked !== undefined) return unpacked;
  throw new EngineError("binary-missing", `no usable ${spec.name}: ${spec.remedy}\n  tried: ${tried.join("\n  tried: ")}`);
}

async function findOnPath(spec: BinarySpec, tried: string[]): Promise<Binary | undefined> {
  // Servers lie in sbin, which a plain user's PATH leaves out.
  const folders = new Set([...(process.env["PATH"] ?? "").split(delimiter), "/usr/local/sbin", "/usr/sbin"]);
  for (const folder of folders) {
    const path = resolve(folder, spec.name);
    if (!(await isExecutable(path))) continue;
    const version = await versionOf(path, {});
    if (version !== undefined && isAtLeast(version, spec.versionMin)) return { path, version, env: {} };
    tried.push(version === undefined ? `${path}: it does not run` : `${path}: ${showVersion(version)} is too old`);
  }
  return undefined;
}

async function inspect(spec: BinarySpec, root: string): Promise<Binary | undefined> {
  const path = join(root, spec.executable);
  if (!(await isExecutable(path))) return undefined;
  const libraries = libraryPath(root);
  const env: Record<string, string> = libraries === "" ? {} : { LD_LIBRARY_PATH: libraries };
  const version = await versionOf(path, env);
  return version !== undefined && isAtLeast(version, spec.versionMin) ? { path, version, env, unpackedIn: root } : undefined;
}

function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

/** Undefined for a program that does not run here, whatever the reason. */
function versionOf(path: string, env: Readonly<Record<string, string>>): Promise<Version | undefined> {
  return runProgram(path, ["--version"], { msMax: VERSION_MS_MAX, env }).then(parseVersion, () => undefined);
}
