/**
 * Builds the previous release, which `release/previous.json` names, from the repository's history, with the compiler of
 * this checkout. Production dependencies are linked from this checkout if it has the same files of each package, and
 * installed otherwise.
 */

import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

import { runProgram } from "../../engines/run-program.ts";

const BUILD_MS_MAX = 300_000;

type LockFile = { readonly packages: Readonly<Record<string, { readonly integrity?: string; readonly dev?: boolean }>> };

export type PreviousRelease = { readonly folder: string; remove(): void };

const { commit } = JSON.parse(readFileSync("release/previous.json", "utf8")) as { readonly commit: string };

/** Whether the history of this checkout has the commit. A shallow clone or an exported tree has not. */
export async function hasPreviousRelease(): Promise<boolean> {
  try {
    await runProgram("git", ["cat-file", "-e", `${commit}^{commit}`], { msMax: BUILD_MS_MAX });
    return true;
  } catch {
    console.warn(`The previous release ${commit} is not in the history of this checkout: UPG1 is skipped. Run git fetch --unshallow.`);
    return false;
  }
}

export async function buildPreviousRelease(): Promise<PreviousRelease> {
  const folder = mkdtempSync(join(tmpdir(), "coroom-previous-"));
  const release: PreviousRelease = { folder, remove: () => rmSync(folder, { recursive: true }) };
  try {
    const archive = join(folder, "release.tar");
    await runProgram("git", ["archive", "--output", archive, commit], { msMax: BUILD_MS_MAX });
    await runProgram("tar", ["-xf", archive, "-C", folder], { msMax: BUILD_MS_MAX });
    if (hasSamePackages(folder)) symlinkSync(resolve("node_modules"), join(folder, "node_modules"));
    else await runProgram("npm", ["ci", "--omit=dev", "--prefix", folder], { msMax: BUILD_MS_MAX });
    withoutTypeCheck(join(folder, "tsconfig.build.json"));
    const env = { PATH: `${resolve("node_modules/.bin")}:${process.env["PATH"]}` };
    await runProgram("npm", ["run", "build:server", "--silent", "--prefix", folder], { msMax: BUILD_MS_MAX, env });
    if (!existsSync(join(folder, "dist/cli/main.js"))) throw new Error(`the build of ${commit} made no dist/cli/main.js`);
    return release;
  } catch (error) {
    release.remove();
    throw error;
  }
}

/** The types were checked when that release was made. The check takes two thirds of the build's CPU, and needs packages with types. */
function withoutTypeCheck(file: string): void {
  const config = JSON.parse(readFileSync(file, "utf8")) as { readonly compilerOptions: object };
  writeFileSync(file, JSON.stringify({ ...config, compilerOptions: { ...config.compilerOptions, noCheck: true, types: [] } }));
}

function hasSamePackages(folder: string): boolean {
  const [here, there] = [".", folder].map((at) => JSON.parse(readFileSync(join(at, "package-lock.json"), "utf8")) as LockFile);
  return Object.entries(there!.packages)
    .filter(([path, { dev }]) => path.startsWith("node_modules/") && dev !== true)
    .every(([path, { integrity }]) => here!.packages[path] !== undefined && here!.packages[path].integrity === integrity);
}
