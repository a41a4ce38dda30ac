/**
 * The libraries of unpacked packages, for LD_LIBRARY_PATH: a program taken from a package looks for
 * them in the machine's folders, where they were never installed.
 */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** Each folder two levels under `lib` that holds a shared library, as packages lay them out. */
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
