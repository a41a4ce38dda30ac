/**
 * Objects as files in a folder. A file gets its name when all of it is on the disk, and the name is on the disk before
 * the write is done: a power loss leaves a whole file or none. Several services need a file system that all of them see.
 */

import { randomUUID } from "node:crypto";
import type { Dirent } from "node:fs";
import { mkdir, open, readdir, readFile, rename, rm, rmdir, stat } from "node:fs/promises";
import { dirname, join, relative, resolve, sep } from "node:path";

import { isErrno } from "../../shared/io/errno.ts";
import { StartError } from "../../shared/start-error.ts";
import type { ObjectStore } from "../ports.ts";
import { isOfRoom, nameAt, pathOf } from "./object-paths.ts";

/**
 * Not a room's key, so no object's name begins so. Lists pass it over like whatever else is no room's: a volume's
 * `lost+found` is closed to all but root.
 */
const UNFINISHED = ".unfinished";
const TRIES_MAX = 10;
/** A file that a dead writer left; no write takes so long. */
const ABANDONED_MS_MIN = 3_600_000;

/** `folder` is created where it is missing. Throws a StartError where it cannot be used. */
export async function folderObjects(folder: string): Promise<ObjectStore> {
  const root = resolve(folder);
  const unfinished = join(root, UNFINISHED);
  try {
    await mkdir(unfinished, { recursive: true });
    await removeAbandoned(unfinished);
  } catch (cause) {
    throw new StartError(
      `the folder ${root} cannot be written: make it writable for this user, or set COROOM_SNAPSHOTS_FOLDER to another`,
      { cause },
    );
  }
  if (await isCaseIgnored(root)) {
    throw new StartError(
      `the folder ${root} takes capitals for small letters, so that the rooms Notes and notes would have the same files: set COROOM_SNAPSHOTS_FOLDER to one on a file system that tells them apart`,
    );
  }
  const fileOf = (name: string) => join(root, ...pathOf(name).split("/"));

  return {
    write: async (name, bytes) => {
      const [file, unnamed] = [fileOf(name), join(unfinished, randomUUID())];
      await writeThrough(unnamed, bytes);
      await whateverIsRemoved(() => giveName(root, unnamed, file));
    },
    read: (name) => readFile(fileOf(name)).catch((error: unknown) => orUndefined(error)),
    list: async () => {
      const entries = await readdir(root, { withFileTypes: true });
      const files = await filesOf(
        root,
        entries.filter(({ name }) => isOfRoom(name)),
      );
      return files.map((file) => nameAt(relative(root, file).split(sep).join("/")));
    },
    remove: async (name) => {
      const file = fileOf(name);
      await rm(file, { force: true });
      await removeEmpty(root, dirname(file));
    },
    sweep: () => removeAbandoned(unfinished),
  };
}

/** Folder by folder, for folders are removed meanwhile. */
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

/** Whether the folder that is there is found under a name in capitals as well. */
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

/** Whoever removes a room's last object takes the folder away too, perhaps in between: then once more. */
async function whateverIsRemoved<Value>(ask: () => Promise<Value>): Promise<Value> {
  for (let tries = 1; ; tries++) {
    try {
      return await ask();
    } catch (error) {
      if (!isErrno(error, "ENOENT") || tries === TRIES_MAX) throw error;
    }
  }
}

/** A folder's name is a room's: of one that is deleted not even that is left. */
async function removeEmpty(root: string, folder: string): Promise<void> {
  try {
    for (let empty = folder; empty.length > root.length; empty = dirname(empty)) await rmdir(empty);
  } catch (error) {
    if (!isErrno(error, "ENOTEMPTY", "EEXIST", "ENOENT")) throw error;
  }
}

/** Each folder that is new is on the disk with its name. */
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
