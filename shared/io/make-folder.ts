/**
 * Creates a folder and its parents. Node's recursive mkdir never returns if the file system answers "no such entry" for
 * a child of an existing folder, as /proc does. It then uses a core at full load and blocks signals.
 */

import { mkdirSync } from "node:fs";
import { dirname } from "node:path";

import { isErrno } from "./system-error.ts";

export function makeFolder(folder: string): void {
  try {
    makeOne(folder);
  } catch (error) {
    if (!isErrno(error, "ENOENT") || dirname(folder) === folder) throw error;
    makeFolder(dirname(folder));
    makeOne(folder);
  }
}

function makeOne(folder: string): void {
  try {
    mkdirSync(folder);
  } catch (error) {
    if (!isErrno(error, "EEXIST")) throw error;
  }
}
