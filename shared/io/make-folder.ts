/**
 * Creates a folder and its parents. Node's recursive mkdir never returns where the file system answers "no such entry"
 * for a child of an existing folder, as /proc does: it occupies a core, and signals are not handled.
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
