/**
 * Objects as files in a folder. A file gets its name when all its bytes are on disk, and a write ends when the name is
 * on disk. So after a power loss a file is complete or missing. Several services need one file system that all of them
 * can access.
 */

import { randomUUID } from "node:crypto";
import type { Dirent } from "node:fs";
import { mkdir, open, readdir, readFile, rename, rm, rmdir, stat } from "node:fs/promises";
import { dirname, join, relative, resolve, sep } from "node:path";

import { makeFolder } from "../../shared/io/make-folder.ts";
import { folderAdvice, isErrno } from "../../shared/io/system-error.ts";
import { StartError } from "../../shared/process/lifecycle.ts";
import type { ObjectStore } from "../ports.ts";
import { isOfRoom, nameAt, pathOf } from "./object-paths.ts";

/**
 * Names that begin like this are neither room keys nor object names. Lists skip such names, for example the
 * `lost+found` of a volume, which only root can open.
 */
const UNFINISHED = ".unfinished";
const TRIES_MAX = 10;
/** Minimum age of an unfinished file before it is removed. No write takes so long, so its writer is dead. */
const ABANDONED_MS_MIN = 3_600_000;

/** Creates `folder` if it is missing. Throws a StartError if it cannot be used. */
export async function folderObjects(folder: string): Promise<ObjectStore> {
  const root = resolve(folder);
  const unfinished = join(root, UNFINISHED);
  try {
    makeFolder(unfinished);
    await removeAbandoned(unfinished);
  } catch (cause) {
    throw new StartError(`the folder ${root} cannot be written. ${folderAdvice(cause)}, or set COROOM_SNAPSHOTS_FOLDER to another`, {
      cause,
    });
  }
  if (await isCaseIgnored(root)) {
    throw new StartError(
      `the folder ${root} ignores case, so the rooms Notes and notes would share files: set COROOM_SNAPSHOTS_FOLDER to a folder on a case-sensitive file system`,
    );
  }
  const fileOf = (name: string) => join(root, ...pathOf(name).split("/"));

  return {
    write: async (name, bytes) => {
      const [file, unnamed] = [fileOf(name), join(unfinished, randomUUID())];
      try {
        await writeThrough(unnamed, bytes);
        await whateverIsRemoved(() => giveName(root, unnamed, file));
      } catch (error) {
        await rm(unnamed, { force: true }).catch(() => {}); // A full disk would stay full. If this fails too, the sweep removes the file.
        throw error;
      }
    },
    read: (name) => readFile(fileOf(name)).catch((error: unknown) => orUndefined(error)),
    list: async () => {
      const entries = await readdir(root, { withFileTypes: true });
      const files = await filesOf(
        root,
        entries.filter(({ name }) => isOfRoom(name)),
      );
      const sizes = new Map<string, number>();
      for (const file of files) {
        const found = await stat(file).catch((error: unknown) => orUndefined(error));
        if (found !== undefined) sizes.set(nameAt(relative(root, file).split(sep).join("/")), found.size);
      }
      return sizes;
    },
    remove: async (name) => {
      const file = fileOf(name);
      await rm(file, { force: true });
      await removeEmpty(root, dirname(file));
    },
    sweep: () => removeAbandoned(unfinished),
  };
}

/** Lists one folder after the other, because folders may be removed at the same time. */
async function filesOf(folder: string, entries: readonly Dirent[]): Promise<string[]> {
  const files: string[] = [];
  for (const entry of entries) {
    const path = join(folder, entry.name);
    if (entry.isFile()) files.push(path);
    if (!entry.isDirectory()) continue;
    const inside = await readdir(path, { withFileTypes: true }).catch((error: unknown) => orUndefined(error));
    files.push(...(await filesOf(path, inside ?? [])));
  }
  return files;
}

/** Whether the file system finds this folder under an upper-case name too. */
async function isCaseIgnored(root: string): Promise<boolean> {
  const [small, capital] = await Promise.all(
    [UNFINISHED, UNFINISHED.toUpperCase()].map((name) => stat(join(root, name)).catch((error: unknown) => orUndefined(error))),
  );
  return small !== undefined && capital?.ino === small.ino;
}

async function writeThrough(file: string, bytes: Uint8Array): Promise<void> {
  const handle = await open(file, "wx");
  try {
    await handle.writeFile(bytes);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function giveName(root: string, unnamed: string, file: string): Promise<void> {
  await makeFolders(root, dirname(file));
  await rename(unnamed, file);
  await syncFolder(dirname(file));
}

/** Repeats a step if its folder was removed together with another object of the room. */
async function whateverIsRemoved<Value>(ask: () => Promise<Value>): Promise<Value> {
  for (let tries = 1; ; tries++) {
    try {
      return await ask();
    } catch (error) {
      if (!isErrno(error, "ENOENT") || tries === TRIES_MAX) throw error;
    }
  }
}

/** The folder's name is the room's key. After a deletion the name must not remain either. */
async function removeEmpty(root: string, folder: string): Promise<void> {
  try {
    for (let empty = folder; empty.length > root.length; empty = dirname(empty)) await rmdir(empty);
  } catch (error) {
    if (!isErrno(error, "ENOTEMPTY", "EEXIST", "ENOENT")) throw error;
  }
}

/** Each new folder's name is on disk before this resolves. */
async function makeFolders(root: string, folder: string): Promise<void> {
  const first = await mkdir(folder, { recursive: true });
  if (first === undefined) return;
  for (let made = folder; made.length >= root.length; made = dirname(made)) await syncFolder(made);
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function removeAbandoned(folder: string): Promise<number> {
  let removed = 0;
  for (const name of await readdir(folder)) {
    const file = join(folder, name);
    const found = await stat(file).catch((error: unknown) => orUndefined(error));
    if (found === undefined || Date.now() - found.mtimeMs <= ABANDONED_MS_MIN) continue;
    await rm(file, { force: true });
    removed += 1;
  }
  return removed;
}

function orUndefined(error: unknown): undefined {
  if (isErrno(error, "ENOENT")) return undefined;
  throw error;
}
