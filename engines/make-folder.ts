/**
 * Makes a folder and those above it. Node's own recursive mkdir never returns where a file system
 * answers "no such entry" for a child of a folder that exists, as /proc does.
 */
import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { isErrno } from "../shared/io/errno.ts";

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
